//! Which model is asked about which database, and how: from options, the environment and `querymend.yaml`, in this order.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use querymend::Config;
use querymend::config::ConfigError;
use querymend::prompts::{VARIANTS, variant};
use querymend_engine::{Engine, Offline, open};
use querymend_model::{Catalogue, Model, Providers};
use querymend_sql::Dialect;
use querymend_sql::dialect::SQLITE;
use tokio::runtime::Runtime;

use crate::against::{self, dialect};
use crate::chosen;
use crate::failure::Failure;
use crate::input;
use crate::out::Out;
use crate::state;

/// The options that say which model is asked, and how often.
#[derive(Debug, Clone, Args)]
pub struct Asking {
    /// Model that writes the SQL: provider:model, local:NAME, or http://HOST:PORT/v1#NAME [env: QUERYMEND_MODEL]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Configuration [default: querymend.yaml here, else in the user's configuration folder]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// House rules: tables and functions that may be used, comments, sizes (YAML or JSON)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Drafts of one question, the first included [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10))]
    pub max_attempts: Option<u32>,
    /// Run the first draft as it is: nothing is mended, and the model is not asked again
    #[arg(long)]
    pub no_correction: bool,
    /// Do not fetch plain rows and analyse them here when the attempts are spent
    #[arg(long)]
    pub no_fallback: bool,
    /// Wording of the question to the model
    #[arg(long, value_name = "VARIANT", value_parser = wording)]
    pub prompt: Option<String>,
}

/// The options that say where a database is.
#[derive(Debug, Clone, Args)]
pub struct Located {
    /// Database: a file, a folder of files, or an address such as postgres://USER@HOST/NAME [env: QUERYMEND_DB]
    #[arg(long, value_name = "URL", conflicts_with_all = ["db_host", "db_port", "db_name", "db_user", "catalog", "db_schema"])]
    pub db: Option<String>,
    /// Host of the database server, instead of --db; --dialect says what it speaks
    #[arg(long, value_name = "HOST", requires = "dialect")]
    pub db_host: Option<String>,
    /// Port of the database server
    #[arg(long, value_name = "PORT", requires = "db_host")]
    pub db_port: Option<u16>,
    /// Name of the database on the server
    #[arg(long, value_name = "NAME", requires = "db_host")]
    pub db_name: Option<String>,
    /// User of the database server
    #[arg(long, value_name = "USER", requires = "db_host")]
    pub db_user: Option<String>,
    /// Catalog on the server, where it has such a thing (Trino, Presto)
    #[arg(long, value_name = "NAME", requires = "db_host", conflicts_with = "db_name")]
    pub catalog: Option<String>,
}

/// The options that say which database is asked.
#[derive(Debug, Clone, Args)]
pub struct Database {
    #[command(flatten)]
    pub located: Located,
    /// Schema in the catalog or on the server, with --db-host; for `ask` and `chat` without it, a file that describes the tables
    /// (JSON, or CREATE TABLE statements): the SQL is then drafted and checked, and not run
    #[arg(long = "schema", visible_alias = "db-schema", value_name = "NAME|FILE", conflicts_with = "db_name")]
    pub db_schema: Option<String>,
    /// Dialect of the database [default: the one that the database speaks]
    #[arg(long, value_name = "NAME", value_parser = dialect)]
    pub dialect: Option<&'static Dialect>,
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::new(error.to_string()).hint(error.hint)
    }
}

impl From<querymend_model::Error> for Failure {
    fn from(error: querymend_model::Error) -> Self {
        Failure { hint: error.hint().map(str::to_string), ..Failure::new(error.to_string()) }
    }
}

impl Asking {
    /// The configuration, with what the options change.
    pub fn config(&self) -> Result<Config, Failure> {
        let mut config = match &self.config {
            Some(file) => Config::read(file)?,
            None => Config::load()?,
        };
        config = state::with_value_cache(config);
        if let Some(file) = &self.policy {
            // It adds to what the configuration denies, and takes nothing of it back.
            config.policy = std::mem::take(&mut config.policy).and(input::policy_file(file)?);
        }
        if let Some(attempts) = self.max_attempts {
            config.self_correction.max_attempts = attempts;
        }
        if self.no_correction {
            config.self_correction.enabled = false;
        }
        if self.no_correction || self.no_fallback {
            config.self_correction.fallback = false;
        }
        if let Some(prompt) = &self.prompt {
            config.prompt.clone_from(prompt);
        }
        wording(&config.prompt).map_err(|what| Failure::new(what).hint("change `prompt` in the configuration"))?;
        Ok(config)
    }

    /// The model that is named, if one is.
    pub fn named(&self, config: &Config) -> Option<String> {
        self.model.clone().or_else(|| variable("QUERYMEND_MODEL")).or_else(|| config.model.clone())
    }

    /// The model, which must be named: nobody wants to measure a model without knowing which. Nothing is sent to it yet.
    pub fn model(&self, config: &Config) -> Result<Arc<dyn Model>, Failure> {
        let providers = providers(config)?;
        let spec = self.named(config).ok_or_else(chosen::unnamed)?;
        Ok(querymend_model::open(&spec, &providers)?)
    }
}

/// Who serves models, and which can run here.
pub fn providers(config: &Config) -> Result<Providers, Failure> {
    let mut providers = Providers::builtin()?;
    if let Some(file) = &config.providers {
        providers = providers.and_file(file)?;
    }
    providers.catalogue = catalogue(config)?;
    Ok(providers)
}

/// Which models can run here.
pub fn catalogue(config: &Config) -> Result<Catalogue, Failure> {
    let catalogue = Catalogue::builtin()?;
    Ok(match &config.models {
        Some(file) => catalogue.and_file(file)?,
        None => catalogue,
    })
}

/// The database that is asked where no option names one.
pub fn usual_database(config: &Config) -> Option<String> {
    variable("QUERYMEND_DB").or_else(|| config.database.clone())
}

impl Located {
    /// The address that the options name, if they name one.
    pub fn address(&self, schema: Option<&str>, dialect: Option<&'static Dialect>) -> Result<Option<String>, Failure> {
        let (Some(host), Some(dialect)) = (&self.db_host, dialect) else { return Ok(self.db.clone()) };
        if dialect.name == "sqlite" {
            return Err(Failure::new("SQLite has no server").hint("name the file with --db"));
        }
        Ok(Some(self.composed(host, schema, dialect)))
    }

    /// `dialect://user@host:port/name`. A password is never part of it: those come from where the engine looks for them.
    fn composed(&self, host: &str, schema: Option<&str>, dialect: &Dialect) -> String {
        let user = self.db_user.as_ref().map_or(String::new(), |user| format!("{}@", encoded(user)));
        let port = self.db_port.map_or(String::new(), |port| format!(":{port}"));
        let path = [self.db_name.as_deref(), self.catalog.as_deref(), schema].into_iter().flatten();
        let path: String = path.map(|part| format!("/{}", encoded(part))).collect();
        format!("{}://{user}{host}{port}{path}", dialect.name)
    }
}

impl Database {
    /// The address of the database, if one is named.
    pub fn address(&self, config: &Config) -> Result<Option<String>, Failure> {
        let named = self.located.address(self.db_schema.as_deref(), self.dialect)?;
        Ok(named.or_else(|| usual_database(config)))
    }

    /// The file that describes the tables, where there is no database.
    fn schema_file(&self) -> Option<&Path> {
        self.db_schema.as_deref().filter(|_| self.located.db_host.is_none()).map(Path::new)
    }

    /// The database, or the tables of a schema file instead of one.
    pub fn open_or_offline(&self, config: &Config) -> Result<Arc<dyn Engine>, Failure> {
        let Some(file) = self.schema_file() else { return self.open(config) };
        let named = config.dialect.as_deref().and_then(Dialect::named);
        let dialect = self.dialect.or(named).unwrap_or(&SQLITE);
        let schema = input::schema(file, dialect)?;
        Ok(Arc::new(Offline::new(file.display().to_string(), schema, dialect)))
    }

    /// The address of the database, where there must be one.
    pub fn must_have_address(&self, config: &Config) -> Result<String, Failure> {
        if self.schema_file().is_some() {
            return Err(Failure::new("a schema file has no rows: this command needs a database")
                .hint("name one with --db; `ask`, `chat`, `check` and `fix` also work with --schema FILE"));
        }
        self.address(config)?.ok_or_else(|| {
            Failure::new("no database is named").hint(
                "name one with --db, in the variable QUERYMEND_DB or as `database` in querymend.yaml; \
                 `ask` and `chat` draft SQL without one from --schema FILE",
            )
        })
    }

    /// The database.
    pub fn open(&self, config: &Config) -> Result<Arc<dyn Engine>, Failure> {
        self.open_at(&self.must_have_address(config)?, config)
    }

    /// The database at an address. It must speak the dialect that was asked for.
    pub fn open_at(&self, address: &str, config: &Config) -> Result<Arc<dyn Engine>, Failure> {
        let engine = open(address)?;
        let named = config.dialect.as_deref().and_then(Dialect::named);
        if let Some(wanted) = self.dialect.or(named).filter(|wanted| wanted.name != engine.dialect().name) {
            let (name, speaks) = (engine.name(), engine.dialect().name);
            return Err(Failure::new(format!("{name} speaks {speaks}, not {}", wanted.name))
                .hint("leave the dialect out, or name a database that speaks it"));
        }
        Ok(Arc::from(engine))
    }
}

/// A name as it stands in an address.
fn encoded(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// A variable that holds something.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

fn wording(name: &str) -> Result<String, String> {
    let names: Vec<&str> = VARIANTS.iter().map(|variant| variant.name).collect();
    let unknown = || format!("there is no wording `{name}`; there are {}", names.join(", "));
    variant(name).map(|variant| variant.name.to_string()).ok_or_else(unknown)
}

/// Warns of what the configuration denies and the database does not have.
pub fn tell_idle(config: &Config, engine: &dyn Engine, runtime: &Runtime, out: &Out) {
    if config.policy.deny_tables.is_empty() && config.policy.deny_columns.is_empty() {
        return;
    }
    // A database that cannot be read says so when it is asked.
    if let Ok(schema) = runtime.block_on(engine.schema()) {
        against::tell_idle(&config.policy, &schema, out);
    }
}

/// Threads for waiting on models and databases, while this one listens to Ctrl-C.
pub fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(|error| Failure::new(format!("no thread can be started: {error}")))
}
