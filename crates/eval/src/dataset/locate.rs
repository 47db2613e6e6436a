//! Locations of dataset files and databases.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::EvalError;

/// Names of the question files of Spider and BIRD, in order of preference.
const QUESTION_FILES: [&str; 4] = ["dev.json", "questions_dev.json", "questions.json", "mini_dev_sqlite.json"];
/// Names of the database folders of datasets.
const DATABASE_FOLDERS: [&str; 6] = ["database", "databases", "dev_databases", "test_database", "sqlite", ""];
const DATABASE_EXTENSIONS: [&str; 2] = ["sqlite", "db"];

/// Returns the file name of a path without its extension.
pub fn file_stem(path: &Path) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    path.file_stem().map_or_else(|| "dataset".to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// Returns the question files of a folder: all native ones, else the one of Spider or BIRD, else
/// those of defog for SQLite.
pub fn dataset_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let own = list_files(folder, |name| name.ends_with(".yaml") || name.ends_with(".yml"))?;
    if !own.is_empty() {
        return Ok(own);
    }
    if let Some(file) = QUESTION_FILES.iter().map(|name| folder.join(name)).find(|file| file.is_file()) {
        return Ok(vec![file]);
    }
    for place in [folder.to_path_buf(), folder.join("questions")] {
        if place.is_dir() {
            let tables = list_files(&place, |name| name.ends_with("_sqlite.csv"))?;
            if !tables.is_empty() {
                return Ok(tables);
            }
        }
    }
    let lists = list_files(folder, |name| name.ends_with(".json") || name.ends_with(".csv"))?;
    if lists.len() == 1 {
        return Ok(lists);
    }
    Err(EvalError::anyhow(
        format!("no dataset was found in the folder `{}`", folder.display()),
        format!("name the file itself; looked for *.yaml, {} and *_sqlite.csv", QUESTION_FILES.join(", ")),
    ))
}

/// Lists matching files, sorted by name, since the order of directory entries is unspecified.
fn list_files(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| {
        EvalError::anyhow(format!("the folder `{}` cannot be read: {error}", folder.display()), "check its permissions")
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && path.file_name().is_some_and(|name| is_wanted(&name.to_string_lossy())) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Resolves the address of a database relative to a folder. The error is the reason; servers are
/// not contacted.
pub fn resolve_address(address: &str, folder: &Path) -> Result<String, String> {
    let path = match address.split_once(':') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("sqlite") => rest.strip_prefix("//").unwrap_or(rest),
        Some((_, rest)) if rest.starts_with("//") => return Ok(address.to_string()),
        _ => address,
    };
    let path = folder.join(path);
    if path.is_file() { Ok(path.display().to_string()) } else { Err(format!("there is no file `{}`", path.display())) }
}

/// Finds the file of a database by name. The error is the reason.
pub fn find_by_name(name: &str, root: Option<&Path>, folder: &Path) -> Result<String, String> {
    // Prevent path traversal out of the dataset folders.
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return Err(format!("`{name}` is not a valid database name"));
    }
    let above = folder.join("..");
    let bases = root.map_or_else(|| vec![folder, above.as_path()], |root| vec![root]);
    for base in bases {
        for inner in DATABASE_FOLDERS {
            for ending in DATABASE_EXTENSIONS {
                let file = format!("{name}.{ending}");
                let nested = base.join(inner).join(name).join(&file);
                if let Some(found) = [nested, base.join(inner).join(&file)].into_iter().find(|path| path.is_file()) {
                    return Ok(found.display().to_string());
                }
            }
        }
    }
    let place = root.unwrap_or(folder).display().to_string();
    Err(format!(
        "the database `{name}` was not found (looked for `database/{name}/{name}.sqlite` and the like in `{place}`)"
    ))
}
