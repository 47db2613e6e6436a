//! Connection settings of PostgreSQL servers, from the address and the environment.
//!
//! Covers password lookup, TLS, and the task that drives a connection.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::UrlSpec;
use crate::{Address, EnvLookup, Error, Secret, read_secret_file, tls};

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time to wait for outstanding responses on a released connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Server, database and user to connect with.
pub struct PostgresServer {
    /// Connection settings; contains the password.
    pub config: Config,
    /// TLS connector.
    pub tls: MakeRustlsConnect,
    /// Display name for messages, without the password.
    pub name: String,
}

impl PostgresServer {
    /// Reads the settings of an address, `postgres://USER@HOST:PORT/DATABASE`.
    ///
    /// The parameters `sslmode`, `sslrootcert` and `host` (the folder of a socket) have the same
    /// meaning as in PostgreSQL's own clients, except that certificates are always verified and
    /// that connections to other machines use TLS unless `sslmode=disable` is given. The password
    /// is read from the address, the environment variable `variable`, `PGPASSWORD`, or the file
    /// that `PGPASSFILE` names.
    pub fn from_address(
        address: &Address,
        spec: &UrlSpec<'_>,
        variable: &str,
        variables: EnvLookup<'_>,
    ) -> Result<Self, Error> {
        let what = spec.subject;
        let wrong = |lacks: &str| {
            Error::new(format!("the address of {what} has no {lacks}"), format!("write it as {}", spec.example))
        };
        let host = address.parameter("host").or(address.host.as_deref()).ok_or_else(|| wrong("host"))?;
        if address.path.is_empty() || address.path.contains('/') {
            return Err(wrong("database"));
        }
        let database = &address.path;
        let user = address.user.clone().or_else(|| variables("PGUSER")).ok_or_else(|| wrong("user"))?;
        let port = address.port.unwrap_or(5432);
        let local = host.starts_with('/') || tls::is_loopback(host);
        let mode = match address.parameter("sslmode") {
            Some("disable") => SslMode::Disable,
            Some("prefer") => SslMode::Prefer,
            Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            None if local => SslMode::Disable,
            // Passwords and queries are not sent over a network in plain text by default.
            None => SslMode::Require,
            Some(other) => {
                let message = format!("`{other}` is not a valid sslmode");
                return Err(Error::new(message, "use disable, prefer or require; certificates are always verified"));
            }
        };
        let roots = address.parameter("sslrootcert").map(PathBuf::from);
        let tls = tls::client_config(roots.as_deref())
            .map_err(|why| Error::new(why.message, format!("check sslrootcert in the address of {what}")))?;
        let name = format!("postgres://{user}@{host}:{port}/{database}");
        let mut config = Config::new();
        if host.starts_with('/') {
            config.host_path(host);
        } else {
            config.host(host);
        }
        config.port(port).user(&user).dbname(database).application_name("querymend").ssl_mode(mode);
        config.connect_timeout(CONNECT_TIMEOUT).keepalives_idle(Duration::from_secs(30));
        let key = PgPassKey { host, port, database, user: &user };
        let given = address.password.clone().map(Ok);
        let password = given.or_else(|| find_password(&key, variable, variables).transpose()).transpose()?;
        if let Some(Secret(password)) = password {
            config.password(password);
        }
        Ok(Self { config, tls: MakeRustlsConnect::new(tls), name })
    }
}

/// Drives a connection until the server closes it or until it is released.
///
/// The client reports a close by the server. After the release, it waits for outstanding responses
/// before it closes, up to a timeout in case the server is unresponsive.
pub async fn drive_connection(
    connection: impl Future<Output = Result<(), tokio_postgres::Error>>,
    released: oneshot::Receiver<()>,
) {
    let mut connection = pin!(connection);
    tokio::select! {
        ended = &mut connection => drop(ended),
        _ = released => drop(timeout(CLOSE_TIMEOUT, connection).await),
    }
}

/// Key for looking up a password in a password file.
struct PgPassKey<'a> {
    host: &'a str,
    port: u16,
    database: &'a str,
    user: &'a str,
}

fn find_password(key: &PgPassKey<'_>, variable: &str, variables: EnvLookup<'_>) -> Result<Option<Secret>, Error> {
    for variable in [variable, "PGPASSWORD"] {
        if let Some(password) = variables(variable) {
            return Ok(Some(Secret(password)));
        }
    }
    let Some(file) = variables("PGPASSFILE") else { return Ok(None) };
    Ok(find_in_passfile(&read_secret_file("PGPASSFILE", &file)?, key))
}

/// Returns the password of the first matching line of a `.pgpass` file.
///
/// The format is that of PostgreSQL's own clients: `host:port:database:user:password`, where `*`
/// matches anything and a backslash escapes the next character.
fn find_in_passfile(text: &str, key: &PgPassKey<'_>) -> Option<Secret> {
    let port = key.port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = vec![String::new()];
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            // Everything after the fourth colon is the password.
            if c == ':' && fields.len() < 5 {
                fields.push(String::new());
            } else if c == '\\' {
                fields.last_mut()?.extend(characters.next());
            } else {
                fields.last_mut()?.push(c);
            }
        }
        let wanted = [key.host, &port, key.database, key.user];
        let fits =
            fields.len() == 5 && fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then(|| fields.pop().map(Secret)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_passwords_where_postgres_does() {
        let place = PgPassKey { host: "db", port: 5432, database: "shop", user: "me" };
        let text = "# a remark\nother:*:*:me:no\ndb:5432:shop:you:no\ndb:*:sh\\op:me:a\\:b:c\n*:*:*:*:late\n";
        assert_eq!(find_in_passfile(text, &place).unwrap().0, "a:b:c");
        assert_eq!(find_in_passfile("db:5432:shop:me", &place), None);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pass");
        std::fs::write(&file, "db:5432:shop:me:third\n").unwrap();
        let file = file.to_str().unwrap().to_string();
        for (set, expected) in [
            (vec!["QUERYMEND_STORE_PASSWORD", "PGPASSWORD", "PGPASSFILE"], Some("QUERYMEND_STORE_PASSWORD")),
            (vec!["PGPASSWORD", "PGPASSFILE"], Some("PGPASSWORD")),
            (vec!["PGPASSFILE"], Some("third")),
            (vec![], None),
        ] {
            let variables = |name: &str| {
                set.contains(&name).then(|| if name == "PGPASSFILE" { file.clone() } else { name.to_string() })
            };
            let found = find_password(&place, "QUERYMEND_STORE_PASSWORD", &variables).unwrap();
            assert_eq!(found.map(|secret| secret.0).as_deref(), expected);
        }
        let error = find_password(&place, "QUERYMEND_STORE_PASSWORD", &|name| {
            (name == "PGPASSFILE").then(|| "/nowhere/pass".into())
        })
        .unwrap_err();
        assert!(error.to_string().contains("/nowhere/pass"));
    }

    #[test]
    fn encrypts_remote_connections_unless_disabled() {
        let form = UrlSpec {
            subject: "the database",
            parameters: &["sslmode", "host"],
            example: "postgres://",
            secret_hint: "",
        };
        let mode = |spec: &str| {
            let server =
                PostgresServer::from_address(&Address::parse(spec, &form).unwrap(), &form, "PASSWORD", &|_| None);
            server.map(|server| server.config.get_ssl_mode()).unwrap()
        };
        assert_eq!(mode("postgres://me@127.0.0.1/shop"), SslMode::Disable);
        assert_eq!(mode("postgres://me@[::1]/shop"), SslMode::Disable);
        assert_eq!(mode("postgres://me@socket/shop?host=/run/postgresql"), SslMode::Disable);
        assert_eq!(mode("postgresql://me@db.example/shop"), SslMode::Require);
        assert_eq!(mode("postgres://me@db.example/shop?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://me@127.0.0.1/shop?sslmode=verify-full"), SslMode::Require);
    }
}
