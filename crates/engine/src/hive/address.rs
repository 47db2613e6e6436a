//! Where a server is, who asks, and how they are greeted.

use std::path::PathBuf;
use std::sync::Arc;

use querymend_net::address::Form;
use querymend_net::{Address, Secret, Variables, tls};
use querymend_sql::{Dialect, dialect};
use rustls::ClientConfig;

use crate::Error;

/// The port that HiveServer2 and Spark's Thrift server choose by themselves.
const PORT: u16 = 10_000;
const DATABASE: &str = "default";
/// Whoever gives no name. Servers that ask for none still want a name and a password to be there.
const NOBODY: &str = "anonymous";

/// How a server wants to be greeted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    /// With a name and a password: `hive.server2.authentication` is NONE, LDAP, PAM or CUSTOM.
    Plain,
    /// Not at all: it is NOSASL.
    None,
}

/// An address, read.
pub(super) struct Settings {
    pub(super) dialect: &'static Dialect,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: String,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) greeting: Greeting,
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// What to call it in messages.
    pub(super) name: String,
}

impl Settings {
    /// Reads `spark://USER:PASSWORD@HOST:PORT/DATABASE`, or `hive://`, with the parameters `auth` (plain, nosasl), `tls` (true,
    /// false; connections that leave the machine are secret unless told otherwise) and `sslrootcert`.
    pub(super) fn read(text: &str, variables: Variables<'_>) -> Result<Self, Error> {
        let form = Form {
            what: "the database",
            parameters: &["auth", "tls", "sslrootcert"],
            example: "spark://USER@HOST:PORT/DATABASE or hive://USER@HOST:PORT/DATABASE",
            secret: "set QUERYMEND_DB_PASSWORD instead",
        };
        let wrong = |message: String| Error::unavailable(message, format!("write it as {}", form.example));
        let address = Address::parse(text, &form)?;
        let dialect = if address.scheme == "hive" { &dialect::HIVE } else { &dialect::SPARK };
        let host = address.host.clone().ok_or_else(|| wrong("the address of the database names no host".into()))?;
        if address.path.contains('/') {
            return Err(wrong("the address of the database names more than a database".into()));
        }
        let database = if address.path.is_empty() { DATABASE.to_string() } else { address.path.clone() };
        // It is put between backticks later; Hive knows no way to write one inside.
        if database.contains('`') || database.chars().any(char::is_control) {
            return Err(wrong("no database has such a name".into()));
        }
        let greeting = match address.parameter("auth") {
            None | Some("plain") => Greeting::Plain,
            Some("nosasl") => Greeting::None,
            Some(_) => {
                return Err(Error::unavailable(
                    "the address of the database asks for a kind of `auth` that is not known",
                    "they are plain (a name and a password, which is what servers expect by themselves) and nosasl; \
                     Kerberos is not spoken",
                ));
            }
        };
        let secret = match address.parameter("tls") {
            Some("true") => true,
            Some("false") => false,
            None => address.parameter("sslrootcert").is_some() || !tls::is_loopback(&host),
            Some(_) => return Err(wrong("`tls` in the address of the database is neither true nor false".into())),
        };
        let roots = address.parameter("sslrootcert").map(PathBuf::from);
        let tls = if secret {
            let config = tls::config(roots.as_deref())
                .map_err(|why| Error::unavailable(why.message, "check sslrootcert in the address of the database"))?;
            Some(Arc::new(config))
        } else {
            None
        };
        let port = address.port.unwrap_or(PORT);
        let user = address.user.clone().unwrap_or_else(|| NOBODY.into());
        let password = address.password.clone().or_else(|| variables("QUERYMEND_DB_PASSWORD").map(Secret));
        let password = password.filter(|password| !password.0.is_empty()).unwrap_or_else(|| Secret(NOBODY.into()));
        if user.contains('\0') || password.0.contains('\0') {
            return Err(wrong("a name or a password holds a NUL character".into()));
        }
        let name = format!("{}://{user}@{host}:{port}/{database}", address.scheme);
        Ok(Self { dialect, host, port, database, user, password, greeting, tls, name })
    }

    /// Whether the connection leaves this machine for all to read.
    pub(super) fn is_exposed(&self) -> bool {
        self.tls.is_none() && !tls::is_loopback(&self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, Error> {
        Settings::read(text, &|name| (name == "QUERYMEND_DB_PASSWORD").then(|| "from-outside".into()))
    }

    #[test]
    fn f03_an_address_says_where_and_how() {
        let full = read("hive://me:p%40ss@db.example:10001/shop?auth=nosasl&tls=false").unwrap();
        assert_eq!((full.dialect.name, full.port, full.database.as_str()), ("hive", 10_001, "shop"));
        assert_eq!((full.password.0.as_str(), full.greeting, full.is_exposed()), ("p@ss", Greeting::None, true));
        assert_eq!(full.name, "hive://me@db.example:10001/shop");
        let short = read("spark://127.0.0.1").unwrap();
        assert_eq!((short.dialect.name, short.name.as_str()), ("spark", "spark://anonymous@127.0.0.1:10000/default"));
        assert_eq!((short.password.0.as_str(), short.greeting), ("from-outside", Greeting::Plain));
        assert!(short.tls.is_none() && read("spark://db.example").unwrap().tls.is_some());
    }

    #[test]
    fn f06_what_is_wrong_is_said_without_secrets() {
        for (text, said) in [
            ("spark:///shop", "names no host"),
            ("spark://me:hunter2@host/a/b", "more than a database"),
            ("spark://me:hunter2@host/a%60b", "no database has such a name"),
            ("spark://me:hunter2@host/a?auth=kerberos", "not known"),
            ("spark://me:hunter2@host/a?tls=maybe", "neither true nor false"),
            ("spark://me:hunter2@host/a?sslrootcert=/nowhere", "/nowhere"),
            ("spark://me:hunter2@host/a?token=x", "holds `token`"),
            ("spark://me:hunter2%00@host/a", "NUL"),
        ] {
            let error = read(text).err().unwrap();
            assert!(error.to_string().contains(said), "{text}: {error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
