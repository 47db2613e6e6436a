//! `querymend.yaml`: everything that can be set, in one struct with defaults.
//!
//! ```
//! use querymend::config::Config;
//!
//! let config = Config::from_yaml("model: ollama:qwen2.5-coder\nself_correction: {max_attempts: 2}")?;
//! assert_eq!(config, Config::default().with_model("ollama:qwen2.5-coder").with_max_attempts(2));
//!
//! let error = Config::from_yaml("self_correction:\n  max_attempts: 11").unwrap_err();
//! assert!(error.to_string().contains("must be 1 to 10"));
//! # Ok::<(), querymend::config::ConfigError>(())
//! ```

mod build;
pub mod duration;
mod error;
pub(crate) mod range;
mod secret;
mod sections;
mod server;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use querymend_engine::Limits;
use querymend_sql::{Dialect, Policy};
use serde::{Deserialize, Serialize};

use crate::guard::{BreakerSettings, Budget};
use crate::retry::RetryPolicy;

pub use crate::context::values::ValuesSection;
pub use error::ConfigError;
pub use sections::{BudgetSection, LimitsSection, MemorySection, SelfCorrection, Trace};
pub use server::{Algorithm, Jwt, Role, ServerLimits, ServerSection, SignIn};

/// Everything that can be set. `docs/config.md` describes it for users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The model, such as `ollama:qwen2.5-coder`.
    #[serde(deserialize_with = "range::model")]
    pub model: Option<String>,
    /// The database: a file or an address.
    #[serde(deserialize_with = "range::database")]
    pub database: Option<String>,
    /// The SQL that is spoken, where the database does not say it.
    pub dialect: Option<String>,
    /// Whether and how queries are mended.
    pub self_correction: SelfCorrection,
    /// When a database or a model is left alone.
    pub circuit_breaker: BreakerSettings,
    /// What one question may take.
    pub budget: BudgetSection,
    /// What one query may take.
    pub limits: LimitsSection,
    /// What is done about each kind of failure.
    pub retry_policy: RetryPolicy,
    /// What may be asked of the database.
    pub policy: Policy,
    /// Which values of text columns are read, so that a value that is nowhere can be told.
    pub values: ValuesSection,
    /// How long the tables are taken to be as they were when they were read. A query that shows otherwise has them read again
    /// sooner.
    #[serde(with = "duration")]
    pub schema_age: Duration,
    /// The set of prompts.
    pub prompt: String,
    /// How freely the model chooses its words: 0 to 2.
    #[serde(deserialize_with = "range::temperature")]
    pub temperature: f32,
    /// How many drafts a model in this process writes at once; the answer that most of them agree on is taken: 1 to 16.
    #[serde(deserialize_with = "range::candidates")]
    pub candidates: Option<u32>,
    /// Whether a model in this process can only write names of tables and columns that exist.
    pub real_names: bool,
    /// Whether drafts are asked for as JSON, `{"sql": …}`, which servers can hold a model to. Servers that cannot are asked without;
    /// what comes back otherwise is read all the same.
    pub structured_output: bool,
    /// A file with more models' providers.
    pub providers: Option<PathBuf>,
    /// A file with more models that can be pulled and run on this machine.
    pub models: Option<PathBuf>,
    /// What is remembered of answers.
    pub memory: MemorySection,
    /// What is kept of past runs.
    pub trace: Trace,
    /// What only a server needs.
    pub server: ServerSection,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: None,
            database: None,
            dialect: None,
            self_correction: SelfCorrection::default(),
            circuit_breaker: BreakerSettings::default(),
            budget: BudgetSection::default(),
            limits: LimitsSection::default(),
            retry_policy: RetryPolicy::default(),
            policy: Policy::default(),
            values: ValuesSection::default(),
            schema_age: Duration::from_secs(600),
            prompt: "standard".to_owned(),
            temperature: 0.0,
            candidates: None,
            real_names: false,
            structured_output: false,
            providers: None,
            models: None,
            memory: MemorySection::default(),
            trace: Trace::default(),
            server: ServerSection::default(),
        }
    }
}

/// The name of the file.
const FILE: &str = "querymend.yaml";

/// A larger file is something else.
const LARGEST: u64 = 1 << 20;

impl Config {
    /// Reads a file. Paths in it are taken from its folder, but for `database`, which means what it means on the command
    /// line.
    pub fn read(file: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let file = file.as_ref();
        let mut text = String::new();
        // Not by the size that the system tells: of a device or a pipe that is 0.
        let read = File::open(file).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
        let size = read.map_err(|why| ConfigError::file(file, why))?;
        if size as u64 > LARGEST {
            return Err(ConfigError::file(file, format_args!("more than {LARGEST} bytes are no configuration")));
        }
        let mut config = Self::from_yaml(&text).map_err(|error| error.in_file(file))?;
        if let Some(folder) = file.parent() {
            let values = &mut config.values.cache_folder;
            let own = [&mut config.providers, &mut config.models, &mut config.trace.folder, values];
            let own = own.into_iter().flatten();
            for path in own.chain(config.server.files()) {
                *path = folder.join(&*path);
            }
            if let Some(store) = config.memory.store.as_mut().filter(|store| !store.contains("://")) {
                *store = folder.join(&*store).to_string_lossy().into_owned();
            }
        }
        Ok(config)
    }

    /// Reads a text. An empty one changes nothing.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigError> {
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        let config: Self = serde_saphyr::from_str(text).map_err(|error| ConfigError::yaml(&error, text))?;
        // What is wrong only together with another field, or by its meaning, is noticed when all is read.
        config.check().map_err(|error| error.in_text(text))?;
        Ok(config)
    }

    /// Where the configuration is: `querymend.yaml` in the current folder, or else in `querymend` in the user's folder for
    /// configurations. `None` where there is none.
    pub fn find() -> Option<PathBuf> {
        Self::find_from(Path::new(""), |name| std::env::var_os(name))
    }

    /// The configuration that [`Config::find`] finds; the default where there is none.
    pub fn load() -> Result<Self, ConfigError> {
        Self::find().map_or_else(|| Ok(Self::default()), Self::read)
    }

    fn find_from(folder: &Path, variables: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        // The standard asks that a folder which is not absolute be ignored.
        let absolute = |name: &str| variables(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
        [Some(folder.join(FILE)), home.map(|home| home.join("querymend").join(FILE))]
            .into_iter()
            .flatten()
            .find(|file| file.is_file())
    }

    /// Whether every value is one that it can have. A text is checked while it is read; this is for values that a program
    /// set.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field: &'static str| move |message: String| ConfigError::value(field, message);
        let breaker = &self.circuit_breaker;
        range::check_secret("model", self.model.clone()).map_err(wrong("model"))?;
        range::check_secret("database", self.database.clone()).map_err(wrong("database"))?;
        range::check_attempts(self.self_correction.max_attempts).map_err(wrong("self_correction.max_attempts"))?;
        range::check_threshold("failure_threshold", breaker.failure_threshold)
            .map_err(wrong("circuit_breaker.failure_threshold"))?;
        range::check_threshold("success_threshold", breaker.success_threshold)
            .map_err(wrong("circuit_breaker.success_threshold"))?;
        if breaker.max_timeout < breaker.timeout {
            let [timeout, most] = [breaker.timeout, breaker.max_timeout].map(duration::write);
            let message = format!("`timeout` is {timeout}, which is more than `max_timeout`, {most}");
            return Err(ConfigError::value("circuit_breaker.timeout", message));
        }
        for (field, time) in [
            ("circuit_breaker.timeout", breaker.timeout),
            ("budget.time", self.budget.time),
            ("budget.request", self.budget.request),
            ("limits.time", self.limits.time),
            ("values.time", self.values.time),
            ("values.cache_ttl", self.values.cache_ttl),
        ] {
            if time.is_zero() {
                return Err(ConfigError::value(field, "it must be more than no time".to_owned()));
            }
        }
        range::check_positive("tokens", self.budget.tokens).map_err(wrong("budget.tokens"))?;
        range::check_positive("cost_usd", self.budget.cost_usd).map_err(wrong("budget.cost_usd"))?;
        range::check_positive("rows", Some(self.limits.rows)).map_err(wrong("limits.rows"))?;
        range::check_positive("bytes", Some(self.limits.bytes)).map_err(wrong("limits.bytes"))?;
        range::check_positive("memory", Some(self.limits.memory)).map_err(wrong("limits.memory"))?;
        range::check_positive("most_values", Some(self.values.most_values)).map_err(wrong("values.most_values"))?;
        range::check_positive("rows", Some(self.values.rows)).map_err(wrong("values.rows"))?;
        range::check_positive("total_rows", Some(self.values.total_rows)).map_err(wrong("values.total_rows"))?;
        range::check_positive("column_bytes", Some(self.values.column_bytes)).map_err(wrong("values.column_bytes"))?;
        range::check_positive("table_bytes", Some(self.values.table_bytes)).map_err(wrong("values.table_bytes"))?;
        range::check_positive("bytes", Some(self.values.bytes)).map_err(wrong("values.bytes"))?;
        range::check_positive("cache_bytes", Some(self.values.cache_bytes)).map_err(wrong("values.cache_bytes"))?;
        range::check_temperature(self.temperature).map_err(wrong("temperature"))?;
        self.server.check()?;
        if let Some(name) = self.dialect.as_deref().filter(|name| Dialect::named(name).is_none()) {
            let known: Vec<&str> = querymend_sql::dialect::DIALECTS.iter().map(|dialect| dialect.name).collect();
            let message = format!("there is no dialect `{name}`; there are {}", known.join(", "));
            return Err(ConfigError::value("dialect", message));
        }
        Ok(())
    }

    /// What one question may take.
    pub fn budget(&self) -> Budget {
        Budget {
            max_attempts: self.self_correction.max_attempts,
            max_tokens: self.budget.tokens,
            max_cost_usd: self.budget.cost_usd,
            max_time: self.budget.time,
        }
    }

    /// What one query may take.
    pub fn limits(&self) -> Limits {
        Limits {
            rows: self.limits.rows,
            bytes: self.limits.bytes,
            time: self.limits.time,
            memory: self.limits.memory,
            steps: None,
        }
    }
}
