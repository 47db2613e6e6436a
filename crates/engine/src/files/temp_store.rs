//! Private temporary directory for the database that files are loaded into, deleted on drop.

use std::path::{Path, PathBuf};

use crate::Error;

const DIR_PREFIX: &str = "querymend-files-";

/// Private temporary directory.
pub(super) struct TempStore(tempfile::TempDir);

impl TempStore {
    pub fn new() -> Result<Self, Error> {
        remove_stale(&std::env::temp_dir());
        let name = format!("{DIR_PREFIX}{}-", std::process::id());
        let mut folder = tempfile::Builder::new();
        folder.prefix(&name);
        // The source files may not be world-readable, so the copy must not be either.
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir();
        folder.map(Self).map_err(|error| {
            let hint = "files are loaded into a database in the temporary folder; check TMPDIR and its free space";
            Error::unavailable(format!("there is no space to load files: {error}"), hint)
        })
    }

    /// Returns the path of the database file.
    pub fn database_path(&self) -> PathBuf {
        self.0.path().join("files.db")
    }
}

/// Deletes directories of processes that were killed. Does nothing on systems without `/proc`,
/// where running processes cannot be detected.
fn remove_stale(folder: &Path) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process =
            name.to_str().and_then(|name| name.strip_prefix(DIR_PREFIX)).and_then(|rest| rest.split('-').next());
        if let Some(process) = process.and_then(|text| text.parse::<u32>().ok())
            && !processes.join(process.to_string()).exists()
        {
            std::fs::remove_dir_all(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn temp_store_is_private_to_its_owner() {
        let scratch = TempStore::new().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&scratch.0.path().metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn removes_stores_of_killed_processes() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        // No process has the largest id.
        let left = make(format!("{DIR_PREFIX}{}-x", u32::MAX));
        let ours = make(format!("{DIR_PREFIX}{}-x", std::process::id()));
        let other = make("something-else".into());
        remove_stale(folder.path());
        assert!(!left.exists() && ours.exists() && other.exists());
    }
}
