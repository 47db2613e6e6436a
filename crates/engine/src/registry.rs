//! Registry of engines by address scheme.

use std::path::Path;

use crate::files::FileEngine;
use crate::sqlite::SqliteEngine;
use crate::{DRIVERS, Engine, Error};

/// Driver of a database system.
pub struct EngineDriver {
    /// Schemes of its addresses.
    pub schemes: &'static [&'static str],
    /// Format of its addresses.
    pub url_format: &'static str,
    /// Opens the database at an address.
    pub(crate) open: fn(&str) -> Result<Box<dyn Engine>, Error>,
}

/// Opens the database at an address: `sqlite:shop.db`, one of the other [`DRIVERS`], or the path of
/// a file.
///
/// Never creates anything, and does not connect to a server yet.
pub fn open(address: &str) -> Result<Box<dyn Engine>, Error> {
    let address = address.trim();
    if address.is_empty() {
        return Err(Error::unavailable("no database was named", url_formats()));
    }
    if let Some(scheme) = scheme(address) {
        let driver = DRIVERS.iter().find(|kind| kind.schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)));
        if let Some(kind) = driver {
            return (kind.open)(address);
        }
        // Only the scheme is repeated, because the rest may contain a password.
        if address[scheme.len()..].starts_with("://") {
            return Err(Error::unavailable(format!("there is no engine for `{scheme}://` addresses"), url_formats()));
        }
    }
    if address.contains("://") {
        return Err(Error::unavailable("there is no engine for such an address", url_formats()));
    }
    let path = Path::new(address);
    if FileEngine::can_read(path) {
        return Ok(Box::new(FileEngine::open(path)?));
    }
    Ok(Box::new(SqliteEngine::open(path)?))
}

/// Returns the scheme of an address. A single letter is a Windows drive.
fn scheme(address: &str) -> Option<&str> {
    let (scheme, _) = address.split_once(':')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (scheme.len() > 1 && scheme.chars().all(fits)).then_some(scheme)
}

/// Describes the supported address formats.
fn url_formats() -> String {
    let forms: Vec<&str> = DRIVERS.iter().map(|kind| kind.url_format).collect();
    format!("a database is {}, or the path of a file", forms.join(", "))
}

/// Returns the path after the scheme, with or without `//`.
pub(crate) fn file_path(address: &str) -> Result<&Path, Error> {
    let rest = address.split_once(':').map_or(address, |(_, rest)| rest);
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    if rest.is_empty() {
        return Err(Error::unavailable(format!("`{address}` names no file"), url_formats()));
    }
    Ok(Path::new(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_an_engine_for_each_address_form() {
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
    fn reports_unsupported_addresses_without_secrets() {
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
            assert_eq!(error.hint(), Some(url_formats().as_str()));
        }
    }
}
