//! Connection settings from an address: `trino://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA`.

use std::path::PathBuf;

use querymend_net::address::UrlSpec;
use querymend_net::{Address, EnvLookup, Error, Secret, tls};
use querymend_sql::{Dialect, dialect};
use reqwest::Url;

/// Server flavor. Trino and Presto use one protocol with different names.
#[derive(Debug)]
pub(super) struct TrinoFlavor {
    /// Scheme of its addresses.
    pub scheme: &'static str,
    /// Product name.
    pub title: &'static str,
    /// Prefix of its HTTP headers.
    pub header_prefix: &'static str,
    /// Environment variable in which its own clients look for the password.
    pub password_variable: &'static str,
    /// SQL dialect.
    pub dialect: &'static Dialect,
    url_format: &'static str,
}

pub(super) static TRINO: TrinoFlavor = TrinoFlavor {
    scheme: "trino",
    title: "Trino",
    header_prefix: "x-trino",
    password_variable: "TRINO_PASSWORD",
    dialect: &dialect::TRINO,
    url_format: "trino://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA",
};

/// Presto, from which Trino was forked.
pub(super) static PRESTO: TrinoFlavor = TrinoFlavor {
    scheme: "presto",
    title: "Presto",
    header_prefix: "x-presto",
    password_variable: "PRESTO_PASSWORD",
    dialect: &dialect::PRESTO,
    url_format: "presto://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA",
};

/// Credential of the user.
#[derive(Debug, Clone)]
pub(super) enum TrinoCredential {
    Password(Secret),
    Token(Secret),
}

/// Server, catalog and user to connect with.
#[derive(Debug, Clone)]
pub(super) struct TrinoSettings {
    pub flavor: &'static TrinoFlavor,
    /// Base URL, such as `https://host:port/`.
    pub base_url: Url,
    pub user: Option<String>,
    pub credential: Option<TrinoCredential>,
    pub catalog: String,
    /// Schema in which unqualified names are resolved.
    pub schema: Option<String>,
    /// File with additional trusted certificates.
    pub ca_file: Option<PathBuf>,
    /// `true` if the server is on this machine.
    pub is_local: bool,
    /// Display name for messages, without the credential.
    pub name: String,
}

impl TrinoSettings {
    /// Parses an address.
    ///
    /// Connections to other machines use TLS unless `tls=false` is given; local ones do if
    /// `tls=true`, port 443 or `sslrootcert` is given. A password or a token is never sent to
    /// another machine in plain text.
    pub fn parse(text: &str, flavor: &'static TrinoFlavor, variables: EnvLookup<'_>) -> Result<Self, Error> {
        let secret = format!("set QUERYMEND_DB_PASSWORD, QUERYMEND_DB_TOKEN or {}", flavor.password_variable);
        let spec = UrlSpec {
            subject: "the database",
            parameters: &["tls", "sslrootcert"],
            example: flavor.url_format,
            secret_hint: &secret,
        };
        let address = Address::parse(text, &spec)?;
        let wrong = |message: &str| Error::new(message, format!("write it as {}", flavor.url_format));
        let host = address.host.as_deref().ok_or_else(|| wrong("the address of the database has no host"))?;
        let (catalog, schema) = match address.path_segments()[..] {
            [catalog] => (catalog.to_string(), None),
            [catalog, schema] => (catalog.to_string(), Some(schema.to_string())),
            [] => return Err(wrong("the address of the database has no catalog")),
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
        let token = || variables("QUERYMEND_DB_TOKEN").map(|token| TrinoCredential::Token(Secret(token)));
        let password =
            || variables("QUERYMEND_DB_PASSWORD").or_else(|| variables(flavor.password_variable)).map(Secret);
        let given = address.password.clone().map(TrinoCredential::Password);
        let proof = given.or_else(token).or_else(|| password().map(TrinoCredential::Password));
        if proof.is_some() && !encrypted && !local {
            let hint = "remove tls=false, or remove the password if the server does not require one";
            return Err(Error::new("a password or a token is not sent to another machine without TLS", hint));
        }
        if address.user.is_none() && !matches!(proof, Some(TrinoCredential::Token(_))) {
            return Err(wrong("the address of the database has no user"));
        }
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_string() };
        let base = format!("{}://{bracketed}:{port}/", if encrypted { "https" } else { "http" });
        let base = Url::parse(&base).map_err(|_| wrong("the host in the address of the database is not valid"))?;
        let who = address.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let within = schema.as_ref().map(|schema| format!("/{schema}")).unwrap_or_default();
        let name = format!("{}://{who}{bracketed}:{port}/{catalog}{within}", flavor.scheme);
        let ca_file = address.parameter("sslrootcert").map(PathBuf::from);
        Ok(Self {
            flavor,
            base_url: base,
            user: address.user,
            credential: proof,
            catalog,
            schema,
            ca_file,
            is_local: local,
            name,
        })
    }

    pub fn is_encrypted(&self) -> bool {
        self.base_url.scheme() == "https"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TrinoSettings, Error> {
        TrinoSettings::parse(text, &TRINO, &|_| None)
    }

    #[test]
    fn parses_host_user_catalog_and_schema() {
        let settings = read("trino://mü:p%40ss@db.example/hive/sales").unwrap();
        assert_eq!(settings.base_url.as_str(), "https://db.example/");
        assert_eq!(settings.name, "trino://mü@db.example:443/hive/sales");
        assert_eq!((settings.catalog.as_str(), settings.schema.as_deref()), ("hive", Some("sales")));
        assert!(
            matches!(&settings.credential, Some(TrinoCredential::Password(Secret(password))) if password == "p@ss")
        );
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
            assert_eq!(read(text).unwrap().base_url.as_str(), base, "{text}");
        }
    }

    #[test]
    fn takes_secrets_from_environment_and_requires_tls() {
        let variables = |name: &str| (name == "QUERYMEND_DB_TOKEN").then(|| "hunter2".to_string());
        let settings = TrinoSettings::parse("trino://db.example/c", &TRINO, &variables).unwrap();
        assert!(matches!(settings.credential, Some(TrinoCredential::Token(_))));
        let variables = |name: &str| (name == "PRESTO_PASSWORD").then(|| "hunter2".to_string());
        let settings = TrinoSettings::parse("presto://me@db.example/c", &PRESTO, &variables).unwrap();
        assert!(matches!(settings.credential, Some(TrinoCredential::Password(_))));
        for text in ["presto://me@db.example/c?tls=false", "presto://me:hunter2@db.example/c?tls=false"] {
            let error = TrinoSettings::parse(text, &PRESTO, &variables).unwrap_err();
            assert!(error.message.contains("without TLS") && !format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn reports_incomplete_addresses() {
        for (text, expected) in [
            ("trino://me@db.example", "has no catalog"),
            ("trino://me@db.example/a/b/c", "more parts"),
            ("trino://db.example/a", "has no user"),
            ("trino://me@db.example/a?tls=maybe", "neither true nor false"),
            ("trino://me@db.example/a?SSL=true", "unknown parameter `SSL`"),
            ("trino:///a", "host"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {error}");
        }
    }
}
