//! Files: a folder of them.

use super::{Subject, sqlite};

pub fn subject() -> Option<Subject> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("things.csv", "id,name,weight\n1,one,1.5\n2,zwölf O'Clock,\n3,,-0.25\n");
    write("größen 表.csv", "naïve col,Σ\n7,8\n");
    let address = format!("file:{}", folder.path().display());
    // Files are asked in SQLite's SQL.
    Some(Subject { name: "files", address, has_keys: false, folder: Some(folder), ..sqlite::subject()? })
}
