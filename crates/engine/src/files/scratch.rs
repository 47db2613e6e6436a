//! A place for the database that files are read into. Others may not look into it, and it is gone when this is.

use std::path::{Path, PathBuf};

use crate::Error;

const NAME: &str = "querymend-files-";

/// A folder of our own.
pub(super) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new() -> Result<Self, Error> {
        sweep(&std::env::temp_dir());
        let name = format!("{NAME}{}-", std::process::id());
        let mut folder = tempfile::Builder::new();
        folder.prefix(&name);
        // Whoever may read the files need not be everybody.
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.tempdir();
        folder.map(Self).map_err(|error| {
            let hint =
                "files are read into a database in the folder for temporary files; check TMPDIR and the room there";
            Error::unavailable(format!("there is no room for reading files: {error}"), hint)
        })
    }

    /// Where the database is.
    pub fn database(&self) -> PathBuf {
        self.0.path().join("files.db")
    }
}

/// Throws away what a program left behind that was killed. Where it cannot be told whether one still runs, nothing is.
fn sweep(folder: &Path) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(NAME)).and_then(|rest| rest.split('-').next());
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
    fn others_cannot_look_into_it() {
        let scratch = Scratch::new().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&scratch.0.path().metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn what_a_killed_program_left_is_thrown_away() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = folder.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        // No process has the largest number.
        let left = make(format!("{NAME}{}-x", u32::MAX));
        let ours = make(format!("{NAME}{}-x", std::process::id()));
        let other = make("something-else".into());
        sweep(folder.path());
        assert!(!left.exists() && ours.exists() && other.exists());
    }
}
