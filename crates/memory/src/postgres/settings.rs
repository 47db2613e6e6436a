//! What an address, and the environment, say about how to reach a table.

use querymend_net::address::Form;
use querymend_net::postgres::Server;
use querymend_net::{Address, Variables};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Error;

const FORM: Form<'_> = Form {
    what: "the store",
    parameters: &["table", "sslmode", "sslrootcert", "host"],
    example: "postgres://USER@HOST:PORT/DATABASE?table=TABLE",
    secret: "set QUERYMEND_STORE_PASSWORD, PGPASSWORD, or PGPASSFILE to a file of passwords",
};
/// The table, where none is named.
const TABLE: &str = "querymend_examples";
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
        let address = Address::parse(spec, &FORM)?;
        if address.password.is_some() {
            return Err(FORM.holds_secret("a password").into());
        }
        let table = Table::read(address.parameter("table").unwrap_or(TABLE))?;
        let server = Server::read(&address, &FORM, "QUERYMEND_STORE_PASSWORD", variables)?;
        let name = format!("{}, table {}", server.name, table.shown());
        Ok(Self { config: server.config, tls: server.tls, table, name })
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

#[cfg(test)]
mod tests {
    use super::*;

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
