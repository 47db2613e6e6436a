//! Connection settings from an address: host, credentials and authentication mechanism.

use std::path::PathBuf;
use std::sync::Arc;

use querymend_net::address::UrlSpec;
use querymend_net::{Address, EnvLookup, Secret, tls};
use querymend_sql::{Dialect, dialect};
use rustls::ClientConfig;

use crate::Error;

/// Default port of HiveServer2 and of Spark's Thrift server.
const DEFAULT_PORT: u16 = 10_000;
const DEFAULT_DATABASE: &str = "default";
/// Default user and password.
///
/// Servers without authentication still require both to be set.
const ANONYMOUS: &str = "anonymous";

/// Authentication mechanism of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthMechanism {
    /// SASL PLAIN with user and password: `hive.server2.authentication` is NONE, LDAP, PAM or
    /// CUSTOM.
    Plain,
    /// No SASL handshake: `hive.server2.authentication` is NOSASL.
    NoSasl,
}

/// Parsed address.
pub(super) struct HiveSettings {
    pub(super) dialect: &'static Dialect,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) database: String,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) auth: AuthMechanism,
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// Display name for messages, without the password.
    pub(super) name: String,
}

impl HiveSettings {
    /// Parses `spark://USER:PASSWORD@HOST:PORT/DATABASE`, or the same with `hive://`.
    ///
    /// The parameters are `auth` (plain, nosasl), `tls` (true, false; by default, only connections
    /// to other machines use TLS) and `sslrootcert`.
    pub(super) fn parse(text: &str, variables: EnvLookup<'_>) -> Result<Self, Error> {
        let spec = UrlSpec {
            subject: "the database",
            parameters: &["auth", "tls", "sslrootcert"],
            example: "spark://USER@HOST:PORT/DATABASE or hive://USER@HOST:PORT/DATABASE",
            secret_hint: "set QUERYMEND_DB_PASSWORD instead",
        };
        let wrong = |message: String| Error::unavailable(message, format!("write it as {}", spec.example));
        let address = Address::parse(text, &spec)?;
        let dialect = if address.scheme == "hive" { &dialect::HIVE } else { &dialect::SPARK };
        let host = address.host.clone().ok_or_else(|| wrong("the address of the database has no host".into()))?;
        if address.path.contains('/') {
            return Err(wrong("the path in the address of the database must be one database name".into()));
        }
        let database = if address.path.is_empty() { DEFAULT_DATABASE.to_string() } else { address.path.clone() };
        // The name is quoted with backticks later, and Hive cannot escape a backtick inside them.
        if database.contains('`') || database.chars().any(char::is_control) {
            return Err(wrong("the database name in the address is not valid".into()));
        }
        let auth = match address.parameter("auth") {
            None | Some("plain") => AuthMechanism::Plain,
            Some("nosasl") => AuthMechanism::NoSasl,
            Some(_) => {
                return Err(Error::unavailable(
                    "`auth` in the address of the database is not supported",
                    "use plain (user name and password, the default of servers) or nosasl; Kerberos is not supported",
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
            let config = tls::client_config(roots.as_deref())
                .map_err(|why| Error::unavailable(why.message, "check sslrootcert in the address of the database"))?;
            Some(Arc::new(config))
        } else {
            None
        };
        let port = address.port.unwrap_or(DEFAULT_PORT);
        let user = address.user.clone().unwrap_or_else(|| ANONYMOUS.into());
        let password = address.password.clone().or_else(|| variables("QUERYMEND_DB_PASSWORD").map(Secret));
        let password = password.filter(|password| !password.0.is_empty()).unwrap_or_else(|| Secret(ANONYMOUS.into()));
        if user.contains('\0') || password.0.contains('\0') {
            return Err(wrong("the user name or the password contains a NUL character".into()));
        }
        let name = format!("{}://{user}@{host}:{port}/{database}", address.scheme);
        Ok(Self { dialect, host, port, database, user, password, auth, tls, name })
    }

    /// Returns whether the connection leaves this machine unencrypted.
    pub(super) fn is_exposed(&self) -> bool {
        self.tls.is_none() && !tls::is_loopback(&self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HiveSettings, Error> {
        HiveSettings::parse(text, &|name| (name == "QUERYMEND_DB_PASSWORD").then(|| "from-outside".into()))
    }

    #[test]
    fn parses_host_credentials_and_parameters() {
        let full = read("hive://me:p%40ss@db.example:10001/shop?auth=nosasl&tls=false").unwrap();
        assert_eq!((full.dialect.name, full.port, full.database.as_str()), ("hive", 10_001, "shop"));
        assert_eq!((full.password.0.as_str(), full.auth, full.is_exposed()), ("p@ss", AuthMechanism::NoSasl, true));
        assert_eq!(full.name, "hive://me@db.example:10001/shop");
        let short = read("spark://127.0.0.1").unwrap();
        assert_eq!((short.dialect.name, short.name.as_str()), ("spark", "spark://anonymous@127.0.0.1:10000/default"));
        assert_eq!((short.password.0.as_str(), short.auth), ("from-outside", AuthMechanism::Plain));
        assert!(short.tls.is_none() && read("spark://db.example").unwrap().tls.is_some());
    }

    #[test]
    fn reports_invalid_addresses_without_secrets() {
        for (text, expected) in [
            ("spark:///shop", "has no host"),
            ("spark://me:hunter2@host/a/b", "one database name"),
            ("spark://me:hunter2@host/a%60b", "the database name in the address is not valid"),
            ("spark://me:hunter2@host/a?auth=kerberos", "not supported"),
            ("spark://me:hunter2@host/a?tls=maybe", "neither true nor false"),
            ("spark://me:hunter2@host/a?sslrootcert=/nowhere", "/nowhere"),
            ("spark://me:hunter2@host/a?token=x", "contains `token`"),
            ("spark://me:hunter2%00@host/a", "NUL"),
        ] {
            let error = read(text).err().unwrap();
            assert!(error.to_string().contains(expected), "{text}: {error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
