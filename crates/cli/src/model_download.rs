//! Model downloads with a progress bar.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use querymend_model::{CancelSignal, ModelCache, ModelEntry, PullError, PullProgress, pull};

use crate::error::CliError;
use crate::output::Out;
use crate::output::text::format_bytes;
use crate::runtime::build_runtime;

/// Returns the model cache of the user.
pub fn user_cache() -> Result<ModelCache, CliError> {
    ModelCache::user_default()
        .ok_or_else(|| CliError::new("the folder for models cannot be determined").hint("set QUERYMEND_CACHE or HOME"))
}

/// Downloads a model and returns its path, or `None` if interrupted by Ctrl-C. A partial download
/// is kept.
pub fn download_model(entry: &ModelEntry, cache: &ModelCache, out: &Out) -> Result<Option<PathBuf>, CliError> {
    let bar = progress_bar(entry, out);
    let (runtime, cancel, begin) = (build_runtime()?, CancelSignal::new(), Instant::now());
    let mut watch = |progress: PullProgress<'_>| match progress {
        PullProgress::Waiting => {
            bar.set_message("waiting");
            bar.suspend(|| out.note(&format!("{} is being pulled by another process; waiting for it", entry.name)));
        }
        PullProgress::Connecting(source) => {
            bar.set_message("asking");
            bar.suspend(|| out.detail(&format!("trying {source}")));
        }
        PullProgress::Bytes(bytes) => {
            bar.set_message("pulling");
            bar.set_position(bytes);
        }
        PullProgress::Failed(source, why) => bar.suspend(|| out.detail(&format!("{source}: {why}"))),
        PullProgress::Verifying => bar.set_message("checking"),
    };
    if !out.is_live() {
        out.note(&format!("pulling {}", describe_model(entry)));
    }
    let pressed = cancel.clone();
    runtime.spawn(async move {
        // Without a handler, the default signal action terminates the process.
        if tokio::signal::ctrl_c().await.is_ok() {
            pressed.cancel();
        }
    });
    let pulled = runtime.block_on(pull(entry, cache, &mut watch, &cancel));
    bar.finish_and_clear();
    runtime.shutdown_timeout(Duration::from_secs(2));
    let path = match pulled {
        Err(stopped @ PullError::Cancelled { .. }) => {
            out.message(&format!("stopped; {}", stopped.hint()));
            return Ok(None);
        }
        pulled => pulled?,
    };
    out.note(&format!("pulled {} in {:.0} s: {}", entry.name, begin.elapsed().as_secs_f64(), path.display()));
    Ok(Some(path))
}

fn progress_bar(entry: &ModelEntry, out: &Out) -> ProgressBar {
    if !out.is_live() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(entry.size), ProgressDrawTarget::stderr());
    let template = "{prefix}  {msg:8} [{wide_bar}] {decimal_bytes} of {decimal_total_bytes}  {decimal_bytes_per_sec}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_prefix(entry.name.clone());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Formats a model with its size and license: `qwen2.5-coder-0.5b (491 MB, Apache-2.0)`.
pub fn describe_model(entry: &ModelEntry) -> String {
    format!("{} ({}, {})", entry.name, format_bytes(entry.size), entry.licence)
}
