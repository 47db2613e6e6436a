//! What an address, and the environment, say about how to reach a table.

use std::path::PathBuf;
use std::time::Duration;

use querymend_model::tls;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::address::{self, Secret, Variables};
use crate::error::Error;

const FORM: &str = "postgres://USER@HOST:PORT/DATABASE?table=TABLE";
const SECRET: &str = "set QUERYMEND_STORE_PASSWORD, PGPASSWORD, or PGPASSFILE to a file of passwords";
const PARAMETERS: &[&str] = &["table", "sslmode", "sslrootcert", "host"];
/// The table, where none is named.
const TABLE: &str = "querymend_examples";
/// So long may a connection take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How to reach a table.
pub(super) struct Settings {
    pub config: Config,
    pub tls: MakeRustlsConnect,
    pub table: Table,
    /// What to call it in messages.
    pub name: String,
}

impl Settings {
    pub fn read(spec: &str, variables: Variables<'_>) -> Result<Self, Error> {
        let wrong = |message: &str| Error::Unusable { message: message.into(), hint: format!("write it as {FORM}") };
        let address = address::parse(spec, PARAMETERS, SECRET, FORM)?;
        let parameter = |name: &str| address.parameters.get(name).map(String::as_str);
        let host = parameter("host").map(String::from).or(address.host);
        let host = host.ok_or_else(|| wrong("the address of the store names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_string();
        if address.path.is_empty() || address.path.contains('/') {
            return Err(wrong("the address of the store names no database"));
        }
        let database = address.path;
        let table = Table::read(parameter("table").unwrap_or(TABLE))?;
        let user = address.user.or_else(|| variables("PGUSER"));
        let user = user.ok_or_else(|| wrong("the address of the store names no user"))?;
        let port = address.port.unwrap_or(5432);
        let local = host.starts_with('/') || tls::is_loopback(&host);
        let mode = match parameter("sslmode") {
            Some("disable") => SslMode::Disable,
            Some("prefer") => SslMode::Prefer,
            Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            None if local => SslMode::Disable,
            // Passwords and queries do not go over a network for all to read, unless somebody says so.
            None => SslMode::Require,
            Some(other) => {
                return Err(Error::Unusable {
                    message: format!("`{other}` is not a kind of sslmode"),
                    hint: "they are disable, prefer and require; certificates are always checked".into(),
                });
            }
        };
        let roots = parameter("sslrootcert").map(PathBuf::from);
        let tls = tls::config(roots.as_deref()).map_err(|why| Error::Unusable {
            message: why.to_string(),
            hint: "check sslrootcert in the address of the store".into(),
        })?;
        let name = format!("postgres://{user}@{host}:{port}/{database}, table {}", table.shown());
        let mut config = Config::new();
        if host.starts_with('/') {
            config.host_path(&host);
        } else {
            config.host(&host);
        }
        config.port(port).user(&user).dbname(&database).application_name("querymend").ssl_mode(mode);
        config.connect_timeout(CONNECT).keepalives_idle(Duration::from_secs(30));
        let place = Place { host: &host, port, database: &database, user: &user };
        if let Some(Secret(password)) = password(&place, variables)? {
            config.password(password);
        }
        Ok(Self { config, tls: MakeRustlsConnect::new(tls), table, name })
    }
}

/// A table, by a name that needs no quoting, so that nothing else can hide in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    schema: Option<String>,
    name: String,
}

impl Table {
    /// Names of what belongs to it are longer, and PostgreSQL cuts at 63.
    const LONGEST: usize = 48;

    pub fn read(text: &str) -> Result<Self, Error> {
        let plain = |word: &str| {
            word.len() <= Self::LONGEST
                && word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let (schema, name) = text.split_once('.').map_or((None, text), |(schema, name)| (Some(schema), name));
        if !plain(name) || !schema.is_none_or(plain) {
            return Err(Error::Unusable {
                message: format!("`{}` cannot be the name of a table", text.chars().take(60).collect::<String>()),
                hint: format!(
                    "names have small letters, digits and _, at most {} of them; a schema may stand before, with a dot",
                    Self::LONGEST
                ),
            });
        }
        Ok(Self { schema: schema.map(String::from), name: name.to_string() })
    }

    /// As it is written in messages.
    pub fn shown(&self) -> String {
        self.schema.as_ref().map_or_else(|| self.name.clone(), |schema| format!("{schema}.{}", self.name))
    }

    /// As it is written in statements: quoted, as it may be a word of SQL.
    pub fn quoted(&self) -> String {
        self.with("")
    }

    /// The table that says what the other one holds.
    pub fn about(&self) -> String {
        self.with("_about")
    }

    /// The name of something that belongs to it, in the same schema.
    pub fn part(&self, what: &str) -> String {
        format!("\"{}_{what}\"", self.name)
    }

    fn with(&self, end: &str) -> String {
        let schema = self.schema.as_ref().map(|schema| format!("\"{schema}\".")).unwrap_or_default();
        format!("{schema}\"{}{end}\"", self.name)
    }
}

/// What a file of passwords is asked for.
struct Place<'a> {
    host: &'a str,
    port: u16,
    database: &'a str,
    user: &'a str,
}

fn password(place: &Place<'_>, variables: Variables<'_>) -> Result<Option<Secret>, Error> {
    for variable in ["QUERYMEND_STORE_PASSWORD", "PGPASSWORD"] {
        if let Some(password) = variables(variable) {
            return Ok(Some(Secret(password)));
        }
    }
    let Some(file) = variables("PGPASSFILE") else { return Ok(None) };
    Ok(in_passfile(&address::read("PGPASSFILE", &file)?, place))
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
            let found = password(&place, &variables).unwrap();
            assert_eq!(found.map(|secret| secret.0).as_deref(), expected);
        }
        let error = password(&place, &|name| (name == "PGPASSFILE").then(|| "/nowhere/pass".into())).unwrap_err();
        assert!(error.to_string().contains("/nowhere/pass"));
    }

    #[test]
    fn f06_a_connection_that_leaves_the_machine_is_encrypted_unless_told_otherwise() {
        let mode = |spec: &str| Settings::read(spec, &|_| None).map(|settings| settings.config.get_ssl_mode()).unwrap();
        assert_eq!(mode("postgres://me@127.0.0.1/shop"), SslMode::Disable);
        assert_eq!(mode("postgres://me@[::1]/shop"), SslMode::Disable);
        assert_eq!(mode("postgres://me@socket/shop?host=/run/postgresql"), SslMode::Disable);
        assert_eq!(mode("postgresql://me@db.example/shop"), SslMode::Require);
        assert_eq!(mode("postgres://me@db.example/shop?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://me@127.0.0.1/shop?sslmode=verify-full"), SslMode::Require);
    }

    #[test]
    fn f06_no_statement_hides_in_the_name_of_a_table() {
        for name in ["", "1a", "a\"b", "a b", "Ä", "Upper", "a;b", "a--", ".a", "a.", "a.b.c", &"a".repeat(49)] {
            assert!(Table::read(name).is_err(), "{name}");
        }
        assert_eq!(Table::read("select").unwrap().quoted(), "\"select\"");
        assert_eq!(Table::read("shared.examples_2").unwrap().about(), "\"shared\".\"examples_2_about\"");
        let settings = Settings::read("postgres://m%C3%BC@db/sh%20op", &|_| Some("hunter2".into())).unwrap();
        assert_eq!(settings.name, "postgres://mü@db:5432/sh op, table querymend_examples");
    }
}
