//! From the address of a database to its engine.

use std::path::Path;

use crate::files::Files;
use crate::hive::Hive;
use crate::mysql::MySql;
use crate::postgres::Postgres;
use crate::sqlite::Sqlite;
use crate::trino::Trino;
use crate::{Engine, Error};

/// One kind of database.
pub struct Kind {
    /// What its addresses begin with.
    pub schemes: &'static [&'static str],
    /// How its addresses are written.
    pub form: &'static str,
    /// Opens the database at an address of this form.
    open: fn(&str) -> Result<Box<dyn Engine>, Error>,
}

/// Every kind of database that can be asked.
pub static KINDS: &[Kind] = &[
    Kind { schemes: &["sqlite"], form: "sqlite:PATH", open: sqlite },
    Kind { schemes: &["file"], form: "file:PATH", open: files },
    Kind { schemes: &["postgres", "postgresql"], form: "postgres://USER@HOST/DATABASE", open: postgres },
    Kind { schemes: &["mysql", "mariadb"], form: "mysql://USER@HOST/DATABASE", open: mysql },
    Kind { schemes: &["trino", "presto"], form: "trino://USER@HOST:PORT/CATALOG/SCHEMA (or presto://)", open: trino },
    Kind { schemes: &["spark", "hive"], form: "spark://USER@HOST:PORT/DATABASE (or hive://)", open: hive },
];

/// Opens the database at an address: `sqlite:shop.db`, one of the other [`KINDS`], or the path of a file. Nothing is ever
/// created, and no server is asked anything yet.
pub fn open(address: &str) -> Result<Box<dyn Engine>, Error> {
    let address = address.trim();
    if address.is_empty() {
        return Err(Error::unavailable("no database was named", forms()));
    }
    if let Some(scheme) = scheme(address) {
        let kind = KINDS.iter().find(|kind| kind.schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)));
        if let Some(kind) = kind {
            return (kind.open)(address);
        }
        // Only the scheme is repeated: what follows it may hold a password.
        if address[scheme.len()..].starts_with("://") {
            return Err(Error::unavailable(format!("there is no engine for `{scheme}://` addresses"), forms()));
        }
    }
    if address.contains("://") {
        return Err(Error::unavailable("there is no engine for such an address", forms()));
    }
    let path = Path::new(address);
    if Files::can_read(path) {
        return Ok(Box::new(Files::open(path)?));
    }
    Ok(Box::new(Sqlite::open(path)?))
}

/// What stands before the colon, if it could be a scheme: one letter alone is a drive.
fn scheme(address: &str) -> Option<&str> {
    let (scheme, _) = address.split_once(':')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (scheme.len() > 1 && scheme.chars().all(fits)).then_some(scheme)
}

/// How databases are named.
fn forms() -> String {
    let forms: Vec<&str> = KINDS.iter().map(|kind| kind.form).collect();
    format!("databases are named {}, or by the path of a file", forms.join(", "))
}

/// What follows the scheme: a path, which may stand behind two strokes.
fn path(address: &str) -> Result<&Path, Error> {
    let rest = address.split_once(':').map_or(address, |(_, rest)| rest);
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    if rest.is_empty() {
        return Err(Error::unavailable(format!("`{address}` names no file"), forms()));
    }
    Ok(Path::new(rest))
}

fn sqlite(address: &str) -> Result<Box<dyn Engine>, Error> {
    Ok(Box::new(Sqlite::open(path(address)?)?))
}

fn files(address: &str) -> Result<Box<dyn Engine>, Error> {
    Ok(Box::new(Files::open(path(address)?)?))
}

fn postgres(address: &str) -> Result<Box<dyn Engine>, Error> {
    Ok(Box::new(Postgres::open(address)?))
}

fn mysql(address: &str) -> Result<Box<dyn Engine>, Error> {
    Ok(Box::new(MySql::open(address)?))
}

fn trino(address: &str) -> Result<Box<dyn Engine>, Error> {
    Ok(Box::new(Trino::open(address)?))
}

fn hive(address: &str) -> Result<Box<dyn Engine>, Error> {
    Ok(Box::new(Hive::open(address)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_engines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop: ünïx.db");
        crate::demo::write(&file).unwrap();
        let path = file.to_str().unwrap();
        for address in
            [path.to_string(), format!("sqlite:{path}"), format!("sqlite://{path}"), format!("SQLite:{path}")]
        {
            assert_eq!(open(&address).unwrap().dialect().name, "sqlite", "{address}");
        }
    }

    #[test]
    fn other_addresses_are_explained_without_their_secrets() {
        for (address, message) in [
            ("", "no database was named"),
            ("  ", "no database was named"),
            ("sqlite:", "`sqlite:` names no file"),
            ("oracle://scott:tiger@host/db", "there is no engine for `oracle://` addresses"),
            ("jdbc:mysql://host/db?user=me&password=tiger", "there is no engine for such an address"),
            ("'postgres://me:tiger@host/db'", "there is no engine for such an address"),
        ] {
            let error = open(address).err().unwrap();
            assert_eq!(error.to_string(), message);
            assert_eq!(error.hint(), Some(forms().as_str()));
        }
    }
}
