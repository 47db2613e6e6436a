//! Connection settings from an address and the environment, including when to use TLS.

use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, SslOpts};
use querymend_net::address::UrlSpec;
use querymend_net::{Address, EnvLookup, tls};

use crate::Error;

/// Format of MySQL and MariaDB addresses.
pub(super) const URL_SPEC: UrlSpec<'static> = UrlSpec {
    subject: "the database",
    parameters: &["ssl-mode", "ssl-ca", "socket"],
    example: "mysql://USER@HOST:PORT/DATABASE",
    secret_hint: "set QUERYMEND_DB_PASSWORD or MYSQL_PWD instead",
};

/// Server, database and user to connect with.
pub(super) struct MySqlServer {
    /// Connection options; contains the password and must never be printed.
    pub(super) opts: Opts,
    /// Display name for messages, without the password.
    pub(super) name: String,
    /// Host and port, or the path of a socket.
    pub(super) endpoint: String,
    pub(super) user: String,
    /// Database in which unqualified names are resolved. `None` if tables are qualified by their
    /// database.
    pub(super) database: Option<String>,
    /// `true` if the connection does not leave this machine.
    pub(super) is_local: bool,
}

impl MySqlServer {
    /// Parses an address, `mysql://USER@HOST:PORT/DATABASE`; the database is optional.
    ///
    /// The parameters `ssl-mode`, `ssl-ca` and `socket` have the same meaning as in the server's
    /// own clients, except that certificates are always verified and that connections to other
    /// machines use TLS unless `ssl-mode=disabled` is given. The password is read from the address,
    /// `QUERYMEND_DB_PASSWORD` or `MYSQL_PWD`.
    pub(super) fn parse(text: &str, variables: EnvLookup<'_>) -> Result<Self, Error> {
        let address = Address::parse(text, &URL_SPEC)?;
        let missing = |what: &str| {
            let hint = format!("write it as {}", URL_SPEC.example);
            Error::unavailable(format!("the address of the database has no {what}"), hint)
        };
        let user = address.user.clone().ok_or_else(|| missing("user"))?;
        let socket = address.parameter("socket");
        let host = match (&address.host, socket) {
            (Some(host), _) => host.clone(),
            (None, Some(_)) => "localhost".to_string(),
            (None, None) => return Err(missing("host")),
        };
        let parts = address.path_segments();
        let database = match parts.as_slice() {
            [] => None,
            [database] => Some(database.to_string()),
            _ => return Err(missing("database that could be there")),
        };
        let port = address.port.unwrap_or(3306);
        let is_local = socket.is_some() || tls::is_loopback(&host);
        let roots = address.parameter("ssl-ca").map(PathBuf::from);
        let is_secure = match address.parameter("ssl-mode").map(str::to_ascii_lowercase).as_deref() {
            // Unix sockets are local and do not use TLS.
            _ if socket.is_some() => false,
            Some("disabled") => false,
            Some("required" | "verify_ca" | "verify_identity") => true,
            // Passwords and queries are not sent over a network in plain text by default.
            None => !is_local || roots.is_some(),
            Some(_) => {
                let hint = "use disabled or required; certificates are always verified";
                return Err(Error::unavailable("the ssl-mode in the address of the database is unknown", hint));
            }
        };
        let password = address.password.clone().map(|secret| secret.0);
        let password = password.or_else(|| variables("QUERYMEND_DB_PASSWORD")).or_else(|| variables("MYSQL_PWD"));
        let place = socket.map_or_else(|| format!("{host}:{port}"), str::to_string);
        let scheme = &address.scheme;
        let name = format!("{scheme}://{user}@{place}/{}", database.as_deref().unwrap_or_default());
        let opts = OptsBuilder::default()
            .ip_or_hostname(host)
            .tcp_port(port)
            .socket(socket)
            // Otherwise the driver would switch to a local socket that it finds, which may belong
            // to another server.
            .prefer_socket(false)
            .user(Some(&user))
            .pass(password)
            .db_name(database.as_deref())
            .tcp_keepalive(Some(Duration::from_secs(30)))
            // Each query is prepared once, and the prepared statement does not outlive it.
            .stmt_cache_size(0)
            .ssl_opts(is_secure.then(|| tls_options(roots)).transpose()?);
        Ok(Self { opts: opts.into(), name, endpoint: place, user, database, is_local })
    }
}

/// Builds TLS options with the `ring` provider and certificate verification.
fn tls_options(roots: Option<PathBuf>) -> Result<SslOpts, Error> {
    // The driver builds its own configuration from the process-wide default provider.
    static CHOSEN: Once = Once::new();
    CHOSEN.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    // Validates the file immediately instead of at the first query.
    tls::client_config(roots.as_deref())
        .map_err(|why| Error::unavailable(why.message, "check ssl-ca in the address"))?;
    Ok(SslOpts::default().with_root_certs(roots.into_iter().map(Into::into).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> MySqlServer {
        MySqlServer::parse(text, &|_| None).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn encrypts_remote_connections_unless_disabled() {
        for (text, is_secure) in [
            ("mysql://me@127.0.0.1/shop", false),
            ("mysql://me@[::1]/shop", false),
            ("mysql://me@localhost/shop?socket=/run/mysqld/mysqld.sock", false),
            ("mysql://me@db.example/shop", true),
            ("mariadb://me@db.example", true),
            ("mysql://me@db.example/shop?ssl-mode=disabled", false),
            ("mysql://me@127.0.0.1/shop?ssl-mode=REQUIRED", true),
        ] {
            assert_eq!(read(text).opts.ssl_opts().is_some(), is_secure, "{text}");
        }
    }

    #[test]
    fn finds_passwords_and_never_shows_them() {
        let all = |name: &str| Some(format!("value-of-{name}"));
        let given = MySqlServer::parse("mysql://me:hunter2@db:3307/shop", &all).unwrap();
        assert_eq!((given.opts.pass(), given.name.as_str()), (Some("hunter2"), "mysql://me@db:3307/shop"));
        let set = MySqlServer::parse("mysql://me@db/shop", &all).unwrap();
        assert_eq!(set.opts.pass(), Some("value-of-QUERYMEND_DB_PASSWORD"));
        let own = MySqlServer::parse("mysql://me@db/shop", &|name| (name == "MYSQL_PWD").then(|| "x".into())).unwrap();
        assert_eq!(own.opts.pass(), Some("x"));
    }

    #[test]
    fn reports_incomplete_addresses_without_secrets() {
        for (text, expected) in [
            ("mysql://127.0.0.1/shop", "has no user"),
            ("mysql://me:hunter2@/shop", "is not valid"),
            ("mysql://me:hunter2@db/a/b", "has no database"),
            ("mysql://me:hunter2@db/a?ssl-mode=maybe", "ssl-mode"),
            ("mysql://me:hunter2@db/a?ssl-ca=/no/such/file", "/no/such/file"),
        ] {
            let Err(error) = MySqlServer::parse(text, &|_| None) else { panic!("{text} was read") };
            assert!(error.to_string().contains(expected), "{text}: {error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
