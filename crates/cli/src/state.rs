//! Where the command keeps what outlives it: past runs, the history of chats, examples.

use std::path::PathBuf;

use querymend::event::Event;
use querymend::{Config, Traces};

use crate::failure::Failure;
use crate::out::Out;

/// `$XDG_STATE_HOME/querymend`, or `~/.local/state/querymend`.
pub fn folder() -> Option<PathBuf> {
    // The standard asks that a folder which is not absolute be ignored.
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".local").join("state"));
    absolute("XDG_STATE_HOME").or_else(home).map(|state| state.join("querymend"))
}

/// `$XDG_CACHE_HOME/querymend`, or `~/.cache/querymend`: what can be fetched again.
pub fn cache() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".cache"));
    absolute("XDG_CACHE_HOME").or_else(home).map(|cache| cache.join("querymend"))
}

/// With the folder of the index of values, where the configuration names none.
pub fn with_value_cache(mut config: Config) -> Config {
    let usual = || querymend_model::Cache::of_the_user().map(|cache| cache.folder().join("values"));
    config.values.cache_folder = config.values.cache_folder.take().or_else(usual);
    config
}

/// A file in the state folder that only its owner may read; it is made if it is not there.
pub fn private(name: &str) -> Option<PathBuf> {
    let folder = folder()?;
    std::fs::create_dir_all(&folder).ok()?;
    let path = folder.join(name);
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&path).ok()?;
    Some(path)
}

/// Past runs, where there is a place for them.
pub fn traces(config: &Config) -> Option<Traces> {
    Some(Traces::new(runs(config)?, config.trace.keep as usize))
}

/// Past runs of batches. They are kept apart, so that a thousand questions of a batch do not push out those of a person.
pub fn batch_traces(config: &Config) -> Option<Traces> {
    Some(Traces::new(runs(config)?.join("batch"), config.trace.keep as usize))
}

/// The folder of past runs.
pub fn runs(config: &Config) -> Option<PathBuf> {
    config.trace.folder.clone().or_else(|| folder().map(|state| state.join("runs")))
}

/// Keeps a run. That it cannot be kept is no reason to withhold the answer.
pub fn keep(config: &Config, id: &str, events: &[Event], out: &Out) {
    let kept = traces(config).map(|traces| traces.save(id, events));
    if let Some(Err(error)) = kept {
        out.note(&format!("note: the run cannot be kept for `querymend trace`: {error}"));
    }
}

/// Nowhere to keep anything.
pub fn nowhere() -> Failure {
    Failure::new("there is no folder for past runs")
        .hint("set HOME or XDG_STATE_HOME, or `trace.folder` in querymend.yaml")
}
