//! What an address says: `trino://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA`.

use std::path::PathBuf;

use querymend_net::address::Form;
use querymend_net::{Address, Error, Secret, Variables, tls};
use querymend_sql::{Dialect, dialect};
use reqwest::Url;

/// Trino and Presto speak one protocol under two names.
#[derive(Debug)]
pub(super) struct Family {
    /// What its addresses begin with.
    pub scheme: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What its headers begin with.
    pub header: &'static str,
    /// Where its own clients look for a password.
    pub variable: &'static str,
    /// What it speaks.
    pub dialect: &'static Dialect,
    form: &'static str,
}

/// Trino.
pub(super) static TRINO: Family = Family {
    scheme: "trino",
    title: "Trino",
    header: "x-trino",
    variable: "TRINO_PASSWORD",
    dialect: &dialect::TRINO,
    form: "trino://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA",
};

/// Presto, from which Trino came.
pub(super) static PRESTO: Family = Family {
    scheme: "presto",
    title: "Presto",
    header: "x-presto",
    variable: "PRESTO_PASSWORD",
    dialect: &dialect::PRESTO,
    form: "presto://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA",
};

/// What shows who asks.
#[derive(Debug, Clone)]
pub(super) enum Proof {
    Password(Secret),
    Token(Secret),
}

/// A server, where on it the tables are, and who asks.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub family: &'static Family,
    /// `https://host:port/`.
    pub base: Url,
    pub user: Option<String>,
    pub proof: Option<Proof>,
    pub catalog: String,
    /// Where tables are found by their bare names.
    pub schema: Option<String>,
    /// Certificates that are trusted beside the usual ones.
    pub ca_file: Option<PathBuf>,
    /// The server is this machine.
    pub local: bool,
    /// What to call it in messages.
    pub name: String,
}

impl Settings {
    /// Reads an address. The connection is encrypted if it leaves the machine, unless `tls=false` is given; on this machine it is
    /// if `tls=true`, port 443 or `sslrootcert` say so. A password or a token is not sent over a network in the clear.
    pub fn read(text: &str, family: &'static Family, variables: Variables<'_>) -> Result<Self, Error> {
        let secret = format!("set QUERYMEND_DB_PASSWORD, QUERYMEND_DB_TOKEN or {}", family.variable);
        let form =
            Form { what: "the database", parameters: &["tls", "sslrootcert"], example: family.form, secret: &secret };
        let address = Address::parse(text, &form)?;
        let wrong = |message: &str| Error::new(message, format!("write it as {}", family.form));
        let host = address.host.as_deref().ok_or_else(|| wrong("the address of the database names no host"))?;
        let (catalog, schema) = match address.parts()[..] {
            [catalog] => (catalog.to_string(), None),
            [catalog, schema] => (catalog.to_string(), Some(schema.to_string())),
            [] => return Err(wrong("the address of the database names no catalog")),
            _ => return Err(wrong("the address of the database has more parts than a catalog and a schema")),
        };
        let local = tls::is_loopback(host);
        let encrypted = match address.parameter("tls") {
            Some("true") => true,
            Some("false") => false,
            Some(_) => return Err(Error::new("`tls` is neither true nor false", "write ?tls=true or ?tls=false")),
            None => !local || address.port == Some(443) || address.parameter("sslrootcert").is_some(),
        };
        let port = address.port.unwrap_or(if encrypted { 443 } else { 8080 });
        let token = || variables("QUERYMEND_DB_TOKEN").map(|token| Proof::Token(Secret(token)));
        let password = || variables("QUERYMEND_DB_PASSWORD").or_else(|| variables(family.variable)).map(Secret);
        let given = address.password.clone().map(Proof::Password);
        let proof = given.or_else(token).or_else(|| password().map(Proof::Password));
        if proof.is_some() && !encrypted && !local {
            let hint = "leave out tls=false, or leave out the password if the server asks for none";
            return Err(Error::new("a password or a token is not sent to another machine without TLS", hint));
        }
        if address.user.is_none() && !matches!(proof, Some(Proof::Token(_))) {
            return Err(wrong("the address of the database names no user"));
        }
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        let base = format!("{}://{bracketed}:{port}/", if encrypted { "https" } else { "http" });
        let base = Url::parse(&base).map_err(|_| wrong("the host in the address of the database cannot be read"))?;
        let who = address.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let within = schema.as_ref().map(|schema| format!("/{schema}")).unwrap_or_default();
        let name = format!("{}://{who}{bracketed}:{port}/{catalog}{within}", family.scheme);
        let ca_file = address.parameter("sslrootcert").map(PathBuf::from);
        Ok(Self { family, base, user: address.user, proof, catalog, schema, ca_file, local, name })
    }

    /// Whether nobody on the way can read what is sent.
    pub fn encrypted(&self) -> bool {
        self.base.scheme() == "https"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Settings, Error> {
        Settings::read(text, &TRINO, &|_| None)
    }

    #[test]
    fn f03_an_address_says_where_and_who() {
        let settings = read("trino://mü:p%40ss@db.example/hive/sales").unwrap();
        assert_eq!(settings.base.as_str(), "https://db.example/");
        assert_eq!(settings.name, "trino://mü@db.example:443/hive/sales");
        assert_eq!((settings.catalog.as_str(), settings.schema.as_deref()), ("hive", Some("sales")));
        assert!(matches!(&settings.proof, Some(Proof::Password(Secret(password))) if password == "p@ss"));
        assert!(!format!("{settings:?}").contains("p@ss"));
        for (text, base) in [
            ("trino://me@localhost/c", "http://localhost:8080/"),
            ("trino://me@[::1]:9/c", "http://[::1]:9/"),
            ("trino://me@127.0.0.1:443/c", "https://127.0.0.1/"),
            ("trino://me@127.0.0.1:9/c?tls=true", "https://127.0.0.1:9/"),
            ("trino://me@127.0.0.1:9/c?sslrootcert=x.pem", "https://127.0.0.1:9/"),
            ("trino://me@db.example:8080/c?tls=false", "http://db.example:8080/"),
            ("trino://me@db.example:8443/c", "https://db.example:8443/"),
        ] {
            assert_eq!(read(text).unwrap().base.as_str(), base, "{text}");
        }
    }

    #[test]
    fn f06_secrets_come_from_the_environment_and_stay_out_of_the_clear() {
        let variables = |name: &str| (name == "QUERYMEND_DB_TOKEN").then(|| "hunter2".to_string());
        let settings = Settings::read("trino://db.example/c", &TRINO, &variables).unwrap();
        assert!(matches!(settings.proof, Some(Proof::Token(_))));
        let variables = |name: &str| (name == "PRESTO_PASSWORD").then(|| "hunter2".to_string());
        let settings = Settings::read("presto://me@db.example/c", &PRESTO, &variables).unwrap();
        assert!(matches!(settings.proof, Some(Proof::Password(_))));
        for text in ["presto://me@db.example/c?tls=false", "presto://me:hunter2@db.example/c?tls=false"] {
            let error = Settings::read(text, &PRESTO, &variables).unwrap_err();
            assert!(error.message.contains("without TLS") && !format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn f03_addresses_that_lack_something_are_explained() {
        for (text, said) in [
            ("trino://me@db.example", "names no catalog"),
            ("trino://me@db.example/a/b/c", "more parts"),
            ("trino://db.example/a", "names no user"),
            ("trino://me@db.example/a?tls=maybe", "neither true nor false"),
            ("trino://me@db.example/a?SSL=true", "means nothing"),
            ("trino:///a", "host"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.message.contains(said), "{text}: {error}");
        }
    }
}
