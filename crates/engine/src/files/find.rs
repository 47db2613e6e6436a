//! Which files there are, what they hold, and what their tables are called.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::Error;
use crate::sqlite::file::itself;

/// So much is read in all; more is for a database.
const MOST_BYTES: u64 = 8 << 30;
/// So many files are one database.
const MOST_FILES: usize = 1_000;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Separated { tabs: bool },
    JsonLines,
    Json,
    Parquet,
    Excel,
}

/// The endings of files that can be read.
#[rustfmt::skip]
pub(super) static ENDINGS: &[(&str, Format)] = &[
    ("csv", Format::Separated { tabs: false }),
    ("tsv", Format::Separated { tabs: true }),
    ("tab", Format::Separated { tabs: true }),
    ("jsonl", Format::JsonLines),
    ("ndjson", Format::JsonLines),
    ("json", Format::Json),
    ("parquet", Format::Parquet),
    ("xlsx", Format::Excel),
    ("xlsm", Format::Excel),
];

impl Format {
    /// By the ending of its name.
    pub fn of(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        ENDINGS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format)
    }
}

/// A file, and how it looked when it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub path: PathBuf,
    pub format: Format,
    /// What its table is called, or its tables begin with.
    pub table: String,
    pub bytes: u64,
    changed: Option<SystemTime>,
}

/// The file at a path, or those in the folder; not those in folders of it.
pub(super) fn sources(path: &Path) -> Result<Vec<Source>, Error> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            let hint = "check the path; nothing is created";
            return Error::unavailable(format!("there is no file or folder `{shown}`"), hint);
        }
        Error::unavailable(format!("`{shown}` cannot be read: {error}"), "check the path and its permissions")
    };
    let mut paths = Vec::new();
    if fs::metadata(path).map_err(unreadable)?.is_dir() {
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '~']));
            // What lies elsewhere was not meant by naming this folder.
            let here = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
            if !hidden && here && Format::of(&path).is_some() {
                paths.push(path);
            }
        }
        paths.sort();
        if paths.is_empty() {
            let endings: Vec<&str> = ENDINGS.iter().map(|(ending, _)| *ending).collect();
            let endings = || format!("files that can be read end in {}", endings.join(", "));
            let what = "a folder without any CSV, TSV, JSON, JSON lines, Parquet or Excel file";
            let hint = itself(path).unwrap_or_else(endings);
            return Err(Error::unavailable(format!("`{shown}` is {what}"), hint));
        }
    } else {
        paths.push(path.to_path_buf());
    }
    if paths.len() > MOST_FILES {
        let hint =
            format!("at most {MOST_FILES} files are read as one database; put those that are needed into a folder");
        return Err(Error::unavailable(format!("there are {} files in `{shown}`", paths.len()), hint));
    }
    let mut found: Vec<Source> = Vec::with_capacity(paths.len());
    for path in paths {
        let Some(format) = Format::of(&path) else {
            let hint = "it is told by the ending of its name, such as .csv, .jsonl, .parquet or .xlsx";
            return Err(Error::unavailable(format!("it is not known what `{shown}` holds"), hint));
        };
        let metadata = fs::metadata(&path).map_err(unreadable)?;
        // Reading a pipe or a device may wait for ever.
        if !metadata.is_file() {
            return Err(Error::unavailable(format!("`{shown}` is not a regular file"), "copy it into one first"));
        }
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let table = unused(stem.trim(), |name| found.iter().any(|source| source.table.eq_ignore_ascii_case(name)));
        found.push(Source { path, format, table, bytes: metadata.len(), changed: metadata.modified().ok() });
    }
    let bytes: u64 = found.iter().map(|source| source.bytes).sum();
    if bytes > MOST_BYTES {
        let hint = format!("files are read up to {} GiB in all; keep larger ones in a database", MOST_BYTES >> 30);
        return Err(Error::unavailable(format!("`{shown}` holds {} GiB", bytes >> 30), hint));
    }
    Ok(found)
}

/// A name that is not used yet: `sales`, `sales_2`, `sales_3`.
pub(super) fn unused(name: &str, is_used: impl Fn(&str) -> bool) -> String {
    let name = if name.is_empty() { "unnamed" } else { name };
    let more = (2..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_string()).chain(more).find(|name| !is_used(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.JSONL", "a.parquet", ".hidden.csv", "~$a.xlsx", "notes.txt"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        fs::create_dir(folder.path().join("c.csv")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/proc/self/environ", folder.path().join("d.csv")).unwrap();
        let names: Vec<String> = sources(folder.path()).unwrap().into_iter().map(|source| source.table).collect();
        assert_eq!(names, ["a", "a_2", "b"]);
    }

    #[test]
    fn what_cannot_be_read_is_said_to_be() {
        let folder = tempfile::tempdir().unwrap();
        assert!(sources(folder.path()).unwrap_err().to_string().contains("is a folder without any CSV"));
        assert!(sources(&folder.path().join("none.csv")).unwrap_err().to_string().contains("there is no file"));
    }
}
