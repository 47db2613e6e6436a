//! Folders for persistent state: traces, chat history, examples.

use std::path::PathBuf;

use querymend::event::Event;
use querymend::{Config, TraceStore};

use crate::error::CliError;
use crate::output::Out;

/// Returns `$XDG_STATE_HOME/querymend`, or `~/.local/state/querymend`.
pub fn state_dir() -> Option<PathBuf> {
    // The XDG specification requires relative paths to be ignored.
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".local").join("state"));
    absolute("XDG_STATE_HOME").or_else(home).map(|state| state.join("querymend"))
}

/// Returns `$XDG_CACHE_HOME/querymend`, or `~/.cache/querymend`, for files that can be downloaded
/// again.
pub fn cache_dir() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    absolute("XDG_CACHE_HOME").or_else(home).map(|cache| cache.join("querymend"))
}

/// Sets the default folder of the value index, unless the configuration names one.
pub fn with_value_cache(mut config: Config) -> Config {
    let usual = || querymend_model::ModelCache::user_default().map(|cache| cache.folder().join("values"));
    config.values.cache_folder = config.values.cache_folder.take().or_else(usual);
    config
}

/// Returns a file in the state folder that only its owner may read; creates it if it does not
/// exist.
pub fn create_private_file(name: &str) -> Option<PathBuf> {
    let folder = state_dir()?;
    std::fs::create_dir_all(&folder).ok()?;
    let path = folder.join(name);
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&path).ok()?;
    Some(path)
}

/// Returns the store of past runs; `None` without a state folder.
pub fn trace_store(config: &Config) -> Option<TraceStore> {
    Some(TraceStore::new(trace_dir(config)?, config.trace.max_traces as usize))
}

/// Returns the store of past batch runs. It is separate, so that a large batch does not evict
/// interactive runs.
pub fn batch_trace_store(config: &Config) -> Option<TraceStore> {
    Some(TraceStore::new(trace_dir(config)?.join("batch"), config.trace.max_traces as usize))
}

/// Returns the folder of past runs.
pub fn trace_dir(config: &Config) -> Option<PathBuf> {
    config.trace.folder.clone().or_else(|| state_dir().map(|state| state.join("runs")))
}

/// Saves the trace of a run. A failure is reported but does not withhold the answer.
pub fn save_trace(config: &Config, id: &str, events: &[Event], out: &Out) {
    let saved = trace_store(config).map(|traces| traces.save(id, events));
    if let Some(Err(error)) = saved {
        out.note(&format!("note: the run cannot be saved for `querymend trace`: {error}"));
    }
}

/// Returns the error for a missing state folder.
pub fn no_state_dir() -> CliError {
    CliError::new("the folder for past runs cannot be determined")
        .hint("set HOME or XDG_STATE_HOME, or `trace.folder` in querymend.yaml")
}
