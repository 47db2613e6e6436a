//! Finds the source files and derives their formats and table names.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::Error;
use crate::sqlite::file::suggest_database_file;

/// Maximum total size of the files. Larger data belongs in a database.
const MAX_TOTAL_BYTES: u64 = 8 << 30;
/// Maximum number of files in one database.
const MAX_FILES: usize = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileFormat {
    Csv { tabs: bool },
    JsonLines,
    Json,
    Parquet,
    Excel,
}

/// Supported file extensions.
#[rustfmt::skip]
pub(super) static EXTENSIONS: &[(&str, FileFormat)] = &[
    ("csv", FileFormat::Csv { tabs: false }),
    ("tsv", FileFormat::Csv { tabs: true }),
    ("tab", FileFormat::Csv { tabs: true }),
    ("jsonl", FileFormat::JsonLines),
    ("ndjson", FileFormat::JsonLines),
    ("json", FileFormat::Json),
    ("parquet", FileFormat::Parquet),
    ("xlsx", FileFormat::Excel),
    ("xlsm", FileFormat::Excel),
];

impl FileFormat {
    /// Returns the format for a file's extension.
    pub fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        EXTENSIONS.iter().find(|(known, _)| *known == ending).map(|(_, format)| *format)
    }
}

/// Source file and its metadata at the time when it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    pub path: PathBuf,
    pub format: FileFormat,
    /// Name of its table, or prefix of the names of its tables.
    pub table: String,
    pub bytes: u64,
    modified: Option<SystemTime>,
}

/// Finds the file at a path, or the files directly in a folder.
pub(super) fn find_sources(path: &Path) -> Result<Vec<SourceFile>, Error> {
    let display_path = path.display();
    let unreadable = |error: std::io::Error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            let hint = "check the path; nothing is created";
            return Error::unavailable(format!("there is no file or folder `{display_path}`"), hint);
        }
        Error::unavailable(format!("`{display_path}` cannot be read: {error}"), "check the path and its permissions")
    };
    let mut paths = Vec::new();
    if fs::metadata(path).map_err(unreadable)?.is_dir() {
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '~']));
            // Symlinks are skipped: naming a folder does not grant access to files elsewhere.
            let here = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
            if !hidden && here && FileFormat::from_path(&path).is_some() {
                paths.push(path);
            }
        }
        paths.sort();
        if paths.is_empty() {
            let endings: Vec<&str> = EXTENSIONS.iter().map(|(ending, _)| *ending).collect();
            let endings = || format!("files that can be read end in {}", endings.join(", "));
            let what = "a folder without any CSV, TSV, JSON, JSON lines, Parquet or Excel file";
            let hint = suggest_database_file(path).unwrap_or_else(endings);
            return Err(Error::unavailable(format!("`{display_path}` is {what}"), hint));
        }
    } else {
        paths.push(path.to_path_buf());
    }
    if paths.len() > MAX_FILES {
        let hint =
            format!("at most {MAX_FILES} files are read as one database; put those that are needed into a folder");
        return Err(Error::unavailable(format!("there are {} files in `{display_path}`", paths.len()), hint));
    }
    let mut found: Vec<SourceFile> = Vec::with_capacity(paths.len());
    for path in paths {
        let Some(format) = FileFormat::from_path(&path) else {
            let hint = "the format is detected by the file extension, such as .csv, .jsonl, .parquet or .xlsx";
            return Err(Error::unavailable(format!("the format of `{display_path}` is unknown"), hint));
        };
        let metadata = fs::metadata(&path).map_err(unreadable)?;
        // Reading a pipe or a device may block forever.
        if !metadata.is_file() {
            return Err(Error::unavailable(
                format!("`{display_path}` is not a regular file"),
                "copy it into one first",
            ));
        }
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let table = unique_name(stem.trim(), |name| found.iter().any(|source| source.table.eq_ignore_ascii_case(name)));
        found.push(SourceFile { path, format, table, bytes: metadata.len(), modified: metadata.modified().ok() });
    }
    let bytes: u64 = found.iter().map(|source| source.bytes).sum();
    if bytes > MAX_TOTAL_BYTES {
        let hint = format!("files are read up to {} GiB in all; keep larger ones in a database", MAX_TOTAL_BYTES >> 30);
        return Err(Error::unavailable(format!("`{display_path}` holds {} GiB", bytes >> 30), hint));
    }
    Ok(found)
}

/// Returns a name that is not used yet: `sales`, `sales_2`, `sales_3`.
pub(super) fn unique_name(name: &str, is_used: impl Fn(&str) -> bool) -> String {
    let name = if name.is_empty() { "unnamed" } else { name };
    let more = (2..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_string()).chain(more).find(|name| !is_used(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_the_files_of_a_folder_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.JSONL", "a.parquet", ".hidden.csv", "~$a.xlsx", "notes.txt"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        fs::create_dir(folder.path().join("c.csv")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/proc/self/environ", folder.path().join("d.csv")).unwrap();
        let names: Vec<String> = find_sources(folder.path()).unwrap().into_iter().map(|source| source.table).collect();
        assert_eq!(names, ["a", "a_2", "b"]);
    }

    #[test]
    fn reports_missing_files_and_empty_folders() {
        let folder = tempfile::tempdir().unwrap();
        assert!(find_sources(folder.path()).unwrap_err().to_string().contains("is a folder without any CSV"));
        assert!(find_sources(&folder.path().join("none.csv")).unwrap_err().to_string().contains("there is no file"));
    }
}
