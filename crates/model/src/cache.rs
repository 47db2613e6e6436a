//! Where things that can be fetched again are kept.

use std::path::PathBuf;

/// The folder, by the platform's convention; `QUERYMEND_CACHE` names another.
pub fn folder() -> Option<PathBuf> {
    let at = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = at("QUERYMEND_CACHE") {
        return Some(folder);
    }
    if cfg!(windows) {
        at("LOCALAPPDATA").map(|folder| folder.join("querymend"))
    } else if cfg!(target_os = "macos") {
        at("HOME").map(|home| home.join("Library/Caches/querymend"))
    } else {
        at("XDG_CACHE_HOME")
            .or_else(|| at("HOME").map(|home| home.join(".cache")))
            .map(|folder| folder.join("querymend"))
    }
}
