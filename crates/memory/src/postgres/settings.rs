//! Connection settings from an address and the environment.

use querymend_net::address::UrlSpec;
use querymend_net::postgres::PostgresServer;
use querymend_net::{Address, EnvLookup};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::Error;

const URL_SPEC: UrlSpec<'_> = UrlSpec {
    subject: "the store",
    parameters: &["table", "sslmode", "sslrootcert", "host"],
    example: "postgres://USER@HOST:PORT/DATABASE?table=TABLE",
    secret_hint: "set QUERYMEND_STORE_PASSWORD, PGPASSWORD, or PGPASSFILE to a file of passwords",
};
/// Table name used if the address specifies none.
const DEFAULT_TABLE: &str = "querymend_examples";
/// Connection settings of a table.
pub(super) struct StoreSettings {
    pub config: Config,
    pub tls: MakeRustlsConnect,
    pub table: StoreTable,
    /// Name of the table in messages, without secrets.
    pub name: String,
}

impl StoreSettings {
    pub fn parse(spec: &str, variables: EnvLookup<'_>) -> Result<Self, Error> {
        let address = Address::parse(spec, &URL_SPEC)?;
        if address.password.is_some() {
            return Err(URL_SPEC.secret_error("a password").into());
        }
        let table = StoreTable::parse(address.parameter("table").unwrap_or(DEFAULT_TABLE))?;
        let server = PostgresServer::from_address(&address, &URL_SPEC, "QUERYMEND_STORE_PASSWORD", variables)?;
        let name = format!("{}, table {}", server.name, table.display_name());
        Ok(Self { config: server.config, tls: server.tls, table, name })
    }
}

/// Table whose name is a plain identifier, which rules out SQL injection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoreTable {
    schema: Option<String>,
    name: String,
}

impl StoreTable {
    /// Maximum length of a name: derived objects get a suffix, and PostgreSQL truncates identifiers
    /// at 63 bytes.
    const MAX_NAME_LENGTH: usize = 48;

    pub fn parse(text: &str) -> Result<Self, Error> {
        let plain = |word: &str| {
            word.len() <= Self::MAX_NAME_LENGTH
                && word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
                && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        };
        let (schema, name) = text.split_once('.').map_or((None, text), |(schema, name)| (Some(schema), name));
        if !plain(name) || !schema.is_none_or(plain) {
            return Err(Error::Unusable {
                message: format!("`{}` cannot be the name of a table", text.chars().take(60).collect::<String>()),
                hint: format!(
                    "names have lowercase letters, digits and _, at most {} characters, optionally after a schema and a dot",
                    Self::MAX_NAME_LENGTH
                ),
            });
        }
        Ok(Self { schema: schema.map(String::from), name: name.to_string() })
    }

    /// Returns the name for messages.
    pub fn display_name(&self) -> String {
        self.schema.as_ref().map_or_else(|| self.name.clone(), |schema| format!("{schema}.{}", self.name))
    }

    /// Returns the name for statements, quoted because it may be a keyword.
    pub fn quoted(&self) -> String {
        self.quoted_with_suffix("")
    }

    /// Returns the name of the table that holds the format version and the embedder.
    pub fn meta_table(&self) -> String {
        self.quoted_with_suffix("_about")
    }

    /// Returns the quoted name of a dependent object in the same schema.
    pub fn object_name(&self, what: &str) -> String {
        format!("\"{}_{what}\"", self.name)
    }

    fn quoted_with_suffix(&self, end: &str) -> String {
        let schema = self.schema.as_ref().map(|schema| format!("\"{schema}\".")).unwrap_or_default();
        format!("{schema}\"{}{end}\"", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_sql_injection_in_table_names() {
        for name in ["", "1a", "a\"b", "a b", "Ä", "Upper", "a;b", "a--", ".a", "a.", "a.b.c", &"a".repeat(49)] {
            assert!(StoreTable::parse(name).is_err(), "{name}");
        }
        assert_eq!(StoreTable::parse("select").unwrap().quoted(), "\"select\"");
        assert_eq!(StoreTable::parse("shared.examples_2").unwrap().meta_table(), "\"shared\".\"examples_2_about\"");
        let settings = StoreSettings::parse("postgres://m%C3%BC@db/sh%20op", &|_| Some("hunter2".into())).unwrap();
        assert_eq!(settings.name, "postgres://mü@db:5432/sh op, table querymend_examples");
    }
}
