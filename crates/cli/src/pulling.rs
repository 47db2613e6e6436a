//! Fetching a model while somebody looks on.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use querymend_model::{Cache, Cancel, Entry, Progress, PullError, pull};

use crate::failure::Failure;
use crate::out::Out;
use crate::setup::runtime;

impl From<PullError> for Failure {
    fn from(error: PullError) -> Self {
        Failure::new(error.to_string()).hint(error.hint())
    }
}

/// Where models are kept.
pub fn cache() -> Result<Cache, Failure> {
    Cache::of_the_user()
        .ok_or_else(|| Failure::new("there is no folder for models").hint("set QUERYMEND_CACHE or HOME to one"))
}

/// Fetches a model and says where it lies. Ctrl-C stops it, and then nothing comes back; what has come is kept.
pub fn fetch(entry: &Entry, cache: &Cache, out: &Out) -> Result<Option<PathBuf>, Failure> {
    let bar = bar(entry, out);
    let (runtime, cancel, begin) = (runtime()?, Cancel::new(), Instant::now());
    let mut watch = |progress: Progress<'_>| match progress {
        Progress::Waiting => {
            bar.set_message("waiting");
            bar.suspend(|| out.note(&format!("{} is being pulled by another process; waiting for it", entry.name)));
        }
        Progress::Asking(source) => {
            bar.set_message("asking");
            bar.suspend(|| out.detail(&format!("asking {source}")));
        }
        Progress::Bytes(bytes) => {
            bar.set_message("pulling");
            bar.set_position(bytes);
        }
        Progress::Failed(source, why) => bar.suspend(|| out.detail(&format!("{source}: {why}"))),
        Progress::Checking => bar.set_message("checking"),
    };
    if !out.live() {
        out.note(&format!("pulling {}", described(entry)));
    }
    let pressed = cancel.clone();
    runtime.spawn(async move {
        // Without a handler the system stops the program itself.
        if tokio::signal::ctrl_c().await.is_ok() {
            pressed.cancel();
        }
    });
    let pulled = runtime.block_on(pull(entry, cache, &mut watch, &cancel));
    bar.finish_and_clear();
    runtime.shutdown_timeout(Duration::from_secs(2));
    let path = match pulled {
        Err(stopped @ PullError::Cancelled { .. }) => {
            out.say(&format!("stopped; {}", stopped.hint()));
            return Ok(None);
        }
        pulled => pulled?,
    };
    out.note(&format!("pulled {} in {:.0} s: {}", entry.name, begin.elapsed().as_secs_f64(), path.display()));
    Ok(Some(path))
}

fn bar(entry: &Entry, out: &Out) -> ProgressBar {
    if !out.live() {
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

/// A model as people weigh it: `qwen2.5-coder-0.5b (491 MB, Apache-2.0)`.
pub fn described(entry: &Entry) -> String {
    format!("{} ({}, {})", entry.name, megabytes(entry.size), entry.licence)
}

/// A size as people say it.
pub fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
