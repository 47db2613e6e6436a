//! How a PostgreSQL server is reached: what its address and the environment say, where passwords are looked for, when a
//! connection is encrypted, and what moves it on.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::Form;
use crate::{Address, Error, Secret, Variables, read_secret, tls};

/// So long may a connection take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// So long is waited for the last answers on a connection that nobody holds any more.
const FAREWELL: Duration = Duration::from_secs(2);

/// A server, a database on it and who asks.
pub struct Server {
    /// For connecting; holds the password.
    pub config: Config,
    /// For connecting in secret.
    pub tls: MakeRustlsConnect,
    /// What to call it in messages.
    pub name: String,
}

impl Server {
    /// Reads an address, `postgres://USER@HOST:PORT/DATABASE`. Its parameters `sslmode`, `sslrootcert` and `host` (the folder of
    /// a socket) mean what they mean to PostgreSQL's own programs, except that certificates are always checked and that
    /// connections which leave the machine are encrypted unless `sslmode=disable` is given. The password is looked for in the
    /// address, in the variable, in `PGPASSWORD` and in the file that `PGPASSFILE` names.
    pub fn read(address: &Address, form: &Form<'_>, variable: &str, variables: Variables<'_>) -> Result<Self, Error> {
        let what = form.what;
        let wrong = |lacks: &str| {
            Error::new(format!("the address of {what} names no {lacks}"), format!("write it as {}", form.example))
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
            // Passwords and queries do not go over a network for all to read, unless somebody says so.
            None => SslMode::Require,
            Some(other) => {
                let message = format!("`{other}` is not a kind of sslmode");
                return Err(Error::new(
                    message,
                    "they are disable, prefer and require; certificates are always checked",
                ));
            }
        };
        let roots = address.parameter("sslrootcert").map(PathBuf::from);
        let tls = tls::config(roots.as_deref())
            .map_err(|why| Error::new(why.message, format!("check sslrootcert in the address of {what}")))?;
        let name = format!("postgres://{user}@{host}:{port}/{database}");
        let mut config = Config::new();
        if host.starts_with('/') {
            config.host_path(host);
        } else {
            config.host(host);
        }
        config.port(port).user(&user).dbname(database).application_name("querymend").ssl_mode(mode);
        config.connect_timeout(CONNECT).keepalives_idle(Duration::from_secs(30));
        let place = Place { host, port, database, user: &user };
        let given = address.password.clone().map(Ok);
        let password = given.or_else(|| password(&place, variable, variables).transpose()).transpose()?;
        if let Some(Secret(password)) = password {
            config.password(password);
        }
        Ok(Self { config, tls: MakeRustlsConnect::new(tls), name })
    }
}

/// Moves a connection on until the server goes away, which the client then says, or until nobody holds it. Then it waits for answers
/// that are still to come before it says farewell; a server that has fallen silent is not waited for.
pub async fn until_let_go(
    connection: impl Future<Output = Result<(), tokio_postgres::Error>>,
    held: oneshot::Receiver<()>,
) {
    let mut connection = pin!(connection);
    tokio::select! {
        ended = &mut connection => drop(ended),
        _ = held => drop(timeout(FAREWELL, connection).await),
    }
}

/// What a file of passwords is asked for.
struct Place<'a> {
    host: &'a str,
    port: u16,
    database: &'a str,
    user: &'a str,
}

fn password(place: &Place<'_>, variable: &str, variables: Variables<'_>) -> Result<Option<Secret>, Error> {
    for variable in [variable, "PGPASSWORD"] {
        if let Some(password) = variables(variable) {
            return Ok(Some(Secret(password)));
        }
    }
    let Some(file) = variables("PGPASSFILE") else { return Ok(None) };
    Ok(in_passfile(&read_secret("PGPASSFILE", &file)?, place))
}

/// The first line that fits, in the form of PostgreSQL's own clients: `host:port:database:user:password`, where `*` fits all
/// and a backslash takes the meaning from what follows it.
fn in_passfile(text: &str, place: &Place<'_>) -> Option<Secret> {
    let port = place.port.to_string();
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = vec![String::new()];
        let mut characters = line.chars();
        while let Some(c) = characters.next() {
            // What follows the fourth colon is all password.
            if c == ':' && fields.len() < 5 {
                fields.push(String::new());
            } else if c == '\\' {
                fields.last_mut()?.extend(characters.next());
            } else {
                fields.last_mut()?.push(c);
            }
        }
        let wanted = [place.host, &port, place.database, place.user];
        let fits =
            fields.len() == 5 && fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then(|| fields.pop().map(Secret)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f06_passwords_come_from_where_postgres_looks_for_them() {
        let place = Place { host: "db", port: 5432, database: "shop", user: "me" };
        let text = "# a remark\nother:*:*:me:no\ndb:5432:shop:you:no\ndb:*:sh\\op:me:a\\:b:c\n*:*:*:*:late\n";
        assert_eq!(in_passfile(text, &place).unwrap().0, "a:b:c");
        assert_eq!(in_passfile("db:5432:shop:me", &place), None);
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
            let found = password(&place, "QUERYMEND_STORE_PASSWORD", &variables).unwrap();
            assert_eq!(found.map(|secret| secret.0).as_deref(), expected);
        }
        let error = password(&place, "QUERYMEND_STORE_PASSWORD", &|name| {
            (name == "PGPASSFILE").then(|| "/nowhere/pass".into())
        })
        .unwrap_err();
        assert!(error.to_string().contains("/nowhere/pass"));
    }

    #[test]
    fn f06_a_connection_that_leaves_the_machine_is_encrypted_unless_told_otherwise() {
        let form = Form { what: "the database", parameters: &["sslmode", "host"], example: "postgres://", secret: "" };
        let mode = |spec: &str| {
            let server = Server::read(&Address::parse(spec, &form).unwrap(), &form, "PASSWORD", &|_| None);
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
