//! Database selection: options first, then environment variables, then `querymend.yaml`.

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use querymend::Config;
use querymend_engine::{Engine, OfflineEngine, open};
use querymend_sql::Dialect;
use querymend_sql::dialect::SQLITE;

use crate::args::dialect::parse_dialect;
use crate::args::env::env_var;
use crate::error::CliError;
use crate::input;

/// Options that give the address of a database.
#[derive(Debug, Clone, Args)]
pub struct DatabaseAddressArgs {
    /// Database: a file, a folder of files, or a URL such as postgres://USER@HOST/NAME [env:
    /// QUERYMEND_DB]
    #[arg(long, value_name = "URL", conflicts_with_all = ["db_host", "db_port", "db_name", "db_user", "catalog", "db_schema"])]
    pub db: Option<String>,
    /// Host of the database server, instead of --db; requires --dialect
    #[arg(long, value_name = "HOST", requires = "dialect")]
    pub db_host: Option<String>,
    /// Port of the database server
    #[arg(long, value_name = "PORT", requires = "db_host")]
    pub db_port: Option<u16>,
    /// Name of the database on the server
    #[arg(long, value_name = "NAME", requires = "db_host")]
    pub db_name: Option<String>,
    /// User name on the database server
    #[arg(long, value_name = "USER", requires = "db_host")]
    pub db_user: Option<String>,
    /// Catalog on the server, if it has catalogs (Trino, Presto)
    #[arg(long, value_name = "NAME", requires = "db_host", conflicts_with = "db_name")]
    pub catalog: Option<String>,
}

/// Options that select the database to query.
#[derive(Debug, Clone, Args)]
pub struct DatabaseArgs {
    #[command(flatten)]
    pub address_args: DatabaseAddressArgs,
    /// With --db-host: schema in the catalog or on the server. Without it, for `ask` and `chat`: a
    /// file that describes the tables (JSON, or CREATE TABLE statements); the SQL is then drafted
    /// and checked, but not run
    #[arg(long = "schema", visible_alias = "db-schema", value_name = "NAME|FILE", conflicts_with = "db_name")]
    pub db_schema: Option<String>,
    /// Dialect of the database [default: detected from the database]
    #[arg(long, value_name = "NAME", value_parser = parse_dialect)]
    pub dialect: Option<&'static Dialect>,
}

/// Returns the database to use if no option names one.
pub fn default_database(config: &Config) -> Option<String> {
    env_var("QUERYMEND_DB").or_else(|| config.database.clone())
}

impl DatabaseAddressArgs {
    /// Returns the database address given by the options, if any.
    pub fn address(&self, schema: Option<&str>, dialect: Option<&'static Dialect>) -> Result<Option<String>, CliError> {
        let (Some(host), Some(dialect)) = (&self.db_host, dialect) else { return Ok(self.db.clone()) };
        if dialect.name == "sqlite" {
            return Err(CliError::new("SQLite has no server").hint("name the file with --db"));
        }
        Ok(Some(self.build_url(host, schema, dialect)))
    }

    /// Builds `dialect://user@host:port/name`.
    ///
    /// The URL never contains a password: the engine reads passwords from its own sources.
    fn build_url(&self, host: &str, schema: Option<&str>, dialect: &Dialect) -> String {
        let user = self.db_user.as_ref().map_or(String::new(), |user| format!("{}@", percent_encode(user)));
        let port = self.db_port.map_or(String::new(), |port| format!(":{port}"));
        let path = [self.db_name.as_deref(), self.catalog.as_deref(), schema].into_iter().flatten();
        let path: String = path.map(|part| format!("/{}", percent_encode(part))).collect();
        format!("{}://{user}{host}{port}{path}", dialect.name)
    }
}

impl DatabaseArgs {
    /// Returns the address of the database, if one is configured.
    pub fn address(&self, config: &Config) -> Result<Option<String>, CliError> {
        let named = self.address_args.address(self.db_schema.as_deref(), self.dialect)?;
        Ok(named.or_else(|| default_database(config)))
    }

    /// Returns the schema file that replaces the database, if one is given.
    fn schema_file(&self) -> Option<&Path> {
        self.db_schema.as_deref().filter(|_| self.address_args.db_host.is_none()).map(Path::new)
    }

    /// Opens the database, or an offline engine if a schema file replaces it.
    pub fn open_or_offline(&self, config: &Config) -> Result<Arc<dyn Engine>, CliError> {
        let Some(file) = self.schema_file() else { return self.open(config) };
        let named = config.dialect.as_deref().and_then(Dialect::from_name);
        let dialect = self.dialect.or(named).unwrap_or(&SQLITE);
        let schema = input::read_schema(file, dialect)?;
        Ok(Arc::new(OfflineEngine::new(file.display().to_string(), schema, dialect)))
    }

    /// Returns the address of the database, or an error if none is configured.
    pub fn require_address(&self, config: &Config) -> Result<String, CliError> {
        if self.schema_file().is_some() {
            return Err(CliError::new("a schema file has no rows: this command needs a database")
                .hint("name one with --db; `ask`, `chat`, `check` and `fix` also work with --schema FILE"));
        }
        self.address(config)?.ok_or_else(|| {
            CliError::new("no database is configured").hint(
                "name one with --db, in the variable QUERYMEND_DB or as `database` in querymend.yaml; \
                 `ask` and `chat` draft SQL without one from --schema FILE",
            )
        })
    }

    /// Opens the configured database.
    pub fn open(&self, config: &Config) -> Result<Arc<dyn Engine>, CliError> {
        self.open_at(&self.require_address(config)?, config)
    }

    /// Opens the database at `address`, and fails if it does not use the requested dialect.
    pub fn open_at(&self, address: &str, config: &Config) -> Result<Arc<dyn Engine>, CliError> {
        let engine = open(address)?;
        let named = config.dialect.as_deref().and_then(Dialect::from_name);
        if let Some(wanted) = self.dialect.or(named).filter(|wanted| wanted.name != engine.dialect().name) {
            let (name, speaks) = (engine.name(), engine.dialect().name);
            return Err(CliError::new(format!("the dialect of {name} is {speaks}, not {}", wanted.name))
                .hint("omit the dialect, or use a database with that dialect"));
        }
        Ok(Arc::from(engine))
    }
}

/// Percent-encodes a URL component.
fn percent_encode(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}
