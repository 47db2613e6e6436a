//! How a server is reached: what its address and the environment say, and when a connection is encrypted.

use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, SslOpts};
use querymend_net::address::Form;
use querymend_net::{Address, Variables, tls};

use crate::Error;

/// How addresses of MySQL and MariaDB are written.
pub(super) const FORM: Form<'static> = Form {
    what: "the database",
    parameters: &["ssl-mode", "ssl-ca", "socket"],
    example: "mysql://USER@HOST:PORT/DATABASE",
    secret: "set QUERYMEND_DB_PASSWORD or MYSQL_PWD instead",
};

/// A server, a database on it and who asks.
pub(super) struct Server {
    /// For connecting; holds the password, and is never printed.
    pub(super) opts: Opts,
    /// What to call it in messages.
    pub(super) name: String,
    /// Where it is, in the form that people look for: a host and a port, or a socket.
    pub(super) place: String,
    /// Who asks.
    pub(super) user: String,
    /// The database in which names are looked for. Without one, all tables are named with theirs.
    pub(super) database: Option<String>,
    /// Whether nothing that is said leaves this machine.
    pub(super) is_local: bool,
}

impl Server {
    /// Reads an address, `mysql://USER@HOST:PORT/DATABASE`; the database may be left out. The parameters `ssl-mode`, `ssl-ca` and
    /// `socket` mean what they mean to the server's own programs, except that certificates are always checked and that
    /// connections which leave the machine are encrypted unless `ssl-mode=disabled` is given. The password is looked for in the
    /// address, in `QUERYMEND_DB_PASSWORD` and in `MYSQL_PWD`.
    pub(super) fn read(text: &str, variables: Variables<'_>) -> Result<Self, Error> {
        let address = Address::parse(text, &FORM)?;
        let lacks = |what: &str| {
            let hint = format!("write it as {}", FORM.example);
            Error::unavailable(format!("the address of the database names no {what}"), hint)
        };
        let user = address.user.clone().ok_or_else(|| lacks("user"))?;
        let socket = address.parameter("socket");
        let host = match (&address.host, socket) {
            (Some(host), _) => host.clone(),
            (None, Some(_)) => "localhost".to_string(),
            (None, None) => return Err(lacks("host")),
        };
        let parts = address.parts();
        let database = match parts.as_slice() {
            [] => None,
            [database] => Some(database.to_string()),
            _ => return Err(lacks("database that could be there")),
        };
        let port = address.port.unwrap_or(3306);
        let is_local = socket.is_some() || tls::is_loopback(&host);
        let roots = address.parameter("ssl-ca").map(PathBuf::from);
        let is_secure = match address.parameter("ssl-mode").map(str::to_ascii_lowercase).as_deref() {
            // A socket is a file of this machine; there is no TLS on it.
            _ if socket.is_some() => false,
            Some("disabled") => false,
            Some("required" | "verify_ca" | "verify_identity") => true,
            // Passwords and queries do not go over a network for all to read, unless somebody says so.
            None => !is_local || roots.is_some(),
            Some(_) => {
                let hint = "it is disabled or required; certificates are always checked";
                return Err(Error::unavailable("the address of the database has an ssl-mode that is not known", hint));
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
            // Else the driver would leave the address for a socket that it finds there, where it may be somebody else.
            .prefer_socket(false)
            .user(Some(&user))
            .pass(password)
            .db_name(database.as_deref())
            .tcp_keepalive(Some(Duration::from_secs(30)))
            // Each text is prepared once, and what was prepared does not outlive its query.
            .stmt_cache_size(0)
            .ssl_opts(is_secure.then(|| secure(roots)).transpose()?);
        Ok(Self { opts: opts.into(), name, place, user, database, is_local })
    }
}

/// Secure connections as everywhere here: with ring, and certificates are checked.
fn secure(roots: Option<PathBuf>) -> Result<SslOpts, Error> {
    // The driver makes its own configuration from what the process has chosen, and asks nobody.
    static CHOSEN: Once = Once::new();
    CHOSEN.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    // Read once here, so that a wrong file is found now and not at the first query.
    tls::config(roots.as_deref()).map_err(|why| Error::unavailable(why.message, "check ssl-ca in the address"))?;
    Ok(SslOpts::default().with_root_certs(roots.into_iter().map(Into::into).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Server {
        Server::read(text, &|_| None).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn f06_a_connection_that_leaves_the_machine_is_encrypted_unless_told_otherwise() {
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
    fn f06_passwords_are_found_and_never_shown() {
        let all = |name: &str| Some(format!("value-of-{name}"));
        let given = Server::read("mysql://me:hunter2@db:3307/shop", &all).unwrap();
        assert_eq!((given.opts.pass(), given.name.as_str()), (Some("hunter2"), "mysql://me@db:3307/shop"));
        let set = Server::read("mysql://me@db/shop", &all).unwrap();
        assert_eq!(set.opts.pass(), Some("value-of-QUERYMEND_DB_PASSWORD"));
        let own = Server::read("mysql://me@db/shop", &|name| (name == "MYSQL_PWD").then(|| "x".into())).unwrap();
        assert_eq!(own.opts.pass(), Some("x"));
    }

    #[test]
    fn addresses_that_name_too_little_are_explained() {
        for (text, said) in [
            ("mysql://127.0.0.1/shop", "names no user"),
            ("mysql://me:hunter2@/shop", "cannot be read"),
            ("mysql://me:hunter2@db/a/b", "names no database"),
            ("mysql://me:hunter2@db/a?ssl-mode=maybe", "ssl-mode"),
            ("mysql://me:hunter2@db/a?ssl-ca=/no/such/file", "/no/such/file"),
        ] {
            let Err(error) = Server::read(text, &|_| None) else { panic!("{text} was read") };
            assert!(error.to_string().contains(said), "{text}: {error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
