//! From the address of a database to its engine.

use std::path::Path;

use crate::sqlite::Sqlite;
use crate::{Engine, Error};

const FORMS: &str = "databases are named sqlite:PATH, sqlite://PATH or by the path of a SQLite file";

/// Opens `sqlite:shop.db`, `sqlite:///data/shop.db` or `shop.db`. Nothing is ever created.
pub fn open(address: &str) -> Result<Box<dyn Engine>, Error> {
    let address = address.trim();
    if address.is_empty() {
        return Err(Error::unavailable("no database was named", FORMS));
    }
    if let Some(path) = after_scheme(address, "sqlite://").or_else(|| after_scheme(address, "sqlite:")) {
        if path.is_empty() {
            return Err(Error::unavailable(format!("`{address}` names no file"), FORMS));
        }
        return Ok(Box::new(Sqlite::open(Path::new(path))?));
    }
    // Only the scheme is repeated: what follows it may hold a password.
    if let Some((scheme, _)) = address.split_once("://") {
        return Err(Error::unavailable(format!("there is no engine for `{scheme}://` addresses"), FORMS));
    }
    Ok(Box::new(Sqlite::open(Path::new(address))?))
}

fn after_scheme<'a>(address: &'a str, scheme: &str) -> Option<&'a str> {
    let head = address.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| &address[scheme.len()..])
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
        ] {
            let error = open(address).err().unwrap();
            assert_eq!(error.to_string(), message);
            assert_eq!(error.hint(), Some(FORMS));
        }
    }
}
