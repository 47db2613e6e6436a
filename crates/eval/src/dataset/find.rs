//! Where the files of a set and its databases lie.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::Trouble;

/// The files that Spider and BIRD keep their questions in, the one that is measured on first.
const QUESTIONS: [&str; 4] = ["dev.json", "questions_dev.json", "questions.json", "mini_dev_sqlite.json"];
/// The folders that sets keep their databases in.
const FOLDERS: [&str; 6] = ["database", "databases", "dev_databases", "test_database", "sqlite", ""];
const ENDINGS: [&str; 2] = ["sqlite", "db"];

/// The last part of a path, without its ending.
pub fn stem(path: &Path) -> String {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    path.file_stem().map_or_else(|| "dataset".to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// The files of a folder that hold its questions: all of our own, or the one of Spider or BIRD, or defog's for SQLite.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let own = with_ending(folder, |name| name.ends_with(".yaml") || name.ends_with(".yml"))?;
    if !own.is_empty() {
        return Ok(own);
    }
    if let Some(file) = QUESTIONS.iter().map(|name| folder.join(name)).find(|file| file.is_file()) {
        return Ok(vec![file]);
    }
    for place in [folder.to_path_buf(), folder.join("questions")] {
        if place.is_dir() {
            let tables = with_ending(&place, |name| name.ends_with("_sqlite.csv"))?;
            if !tables.is_empty() {
                return Ok(tables);
            }
        }
    }
    let lists = with_ending(folder, |name| name.ends_with(".json") || name.ends_with(".csv"))?;
    if lists.len() == 1 {
        return Ok(lists);
    }
    Err(Trouble::error(
        format!("no dataset was found in the folder `{}`", folder.display()),
        format!("name the file itself; looked for *.yaml, {} and *_sqlite.csv", QUESTIONS.join(", ")),
    ))
}

/// In the order of their names, because folders are read in any order.
fn with_ending(folder: &Path, fits: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| {
        Trouble::error(format!("the folder `{}` cannot be read: {error}", folder.display()), "check its permissions")
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_file() && path.file_name().is_some_and(|name| fits(&name.to_string_lossy())) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The address of a database whose path starts from a folder, or why it is not there. Servers are not asked.
pub fn at(address: &str, folder: &Path) -> Result<String, String> {
    let path = match address.split_once(':') {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("sqlite") => rest.strip_prefix("//").unwrap_or(rest),
        Some((_, rest)) if rest.starts_with("//") => return Ok(address.to_string()),
        _ => address,
    };
    let path = folder.join(path);
    if path.is_file() { Ok(path.display().to_string()) } else { Err(format!("there is no file `{}`", path.display())) }
}

/// The file of a database that is known by its name, or why there is none.
pub fn named(name: &str, root: Option<&Path>, folder: &Path) -> Result<String, String> {
    // A name is a name: it must not lead out of the folders of the set.
    if name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.') {
        return Err(format!("`{name}` is no name of a database"));
    }
    let above = folder.join("..");
    let bases = root.map_or_else(|| vec![folder, above.as_path()], |root| vec![root]);
    for base in bases {
        for inner in FOLDERS {
            for ending in ENDINGS {
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
        "the database `{name}` is not there (looked for `database/{name}/{name}.sqlite` and the like in `{place}`)"
    ))
}
