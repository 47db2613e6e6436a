//! Configuration file `querymend.yaml`: every setting in one struct with defaults.
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

mod builder;
pub mod duration;
mod error;
pub(crate) mod secret;
mod sections;
mod server;
#[cfg(test)]
mod tests;
pub(crate) mod validate;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use querymend_engine::Limits;
use querymend_sql::{Dialect, Policy};
use serde::{Deserialize, Serialize};

use crate::resilience::{BreakerSettings, Budget};
use crate::retry::RetryPolicy;

pub use crate::linking::value_sampling::ValuesSection;
pub use error::ConfigError;
pub use sections::{BudgetSection, LimitsSection, MemorySection, SelfCorrection, TraceSection};
pub use server::{AuthSection, Jwt, JwtAlgorithm, RoleSection, ServerLimits, ServerSection};

/// All settings. `docs/guide/configuration.md` documents them for users.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Model, such as `ollama:qwen2.5-coder`.
    #[serde(deserialize_with = "validate::model")]
    pub model: Option<String>,
    /// Database: a file path or a connection URL.
    #[serde(deserialize_with = "validate::database")]
    pub database: Option<String>,
    /// SQL dialect, for databases that do not determine it.
    pub dialect: Option<String>,
    /// Self-correction of failed queries.
    pub self_correction: SelfCorrection,
    /// Circuit breakers for databases and models.
    pub circuit_breaker: BreakerSettings,
    /// Budget of one question.
    pub budget: BudgetSection,
    /// Limits of one query.
    pub limits: LimitsSection,
    /// Retry rules per kind of failure.
    pub retry_policy: RetryPolicy,
    /// Access policy for the database.
    pub policy: Policy,
    /// Sampling of text column values, used to detect literals that do not occur in a column.
    pub values: ValuesSection,
    /// Maximum age of the cached schema. A query that contradicts the cached schema triggers an
    /// earlier refresh.
    #[serde(with = "duration")]
    pub schema_cache_ttl: Duration,
    /// Name of the prompt set.
    pub prompt: String,
    /// Sampling temperature of the model: 0 to 2.
    #[serde(deserialize_with = "validate::temperature")]
    pub temperature: f32,
    /// Number of candidates that an in-process model samples at once: 1 to 16. The result that most
    /// candidates agree on is used.
    #[serde(deserialize_with = "validate::candidates")]
    pub candidates: Option<u32>,
    /// `true` if an in-process model is constrained to names of existing tables and columns.
    pub constrained_decoding: bool,
    /// `true` to request drafts as JSON, `{"sql": …}`, which servers can enforce. Servers without
    /// support are queried without it. Replies in another format are parsed either way.
    pub structured_output: bool,
    /// File with additional model providers.
    pub providers: Option<PathBuf>,
    /// File with additional models that can be pulled and run on this machine.
    pub models: Option<PathBuf>,
    /// Memory of past answers, used for few-shot examples.
    pub memory: MemorySection,
    /// Retention of run traces.
    pub trace: TraceSection,
    /// Settings of `querymend serve`.
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
            schema_cache_ttl: Duration::from_secs(600),
            prompt: "standard".to_owned(),
            temperature: 0.0,
            candidates: None,
            constrained_decoding: false,
            structured_output: false,
            providers: None,
            models: None,
            memory: MemorySection::default(),
            trace: TraceSection::default(),
            server: ServerSection::default(),
        }
    }
}

/// File name of the configuration.
const FILE_NAME: &str = "querymend.yaml";

/// Maximum size of a configuration file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

impl Config {
    /// Reads a configuration file.
    ///
    /// Paths in it are relative to its directory, except `database`, which has the same meaning as
    /// on the command line.
    pub fn read(file: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let file = file.as_ref();
        let mut text = String::new();
        // Does not rely on the reported file size, which is 0 for devices and pipes.
        let read = File::open(file).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text));
        let size = read.map_err(|why| ConfigError::file(file, why))?;
        if size as u64 > MAX_FILE_BYTES {
            return Err(ConfigError::file(file, format_args!("it is larger than {MAX_FILE_BYTES} bytes")));
        }
        let mut config = Self::from_yaml(&text).map_err(|error| error.with_file(file))?;
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

    /// Parses a configuration. Empty text results in the defaults.
    pub fn from_yaml(text: &str) -> Result<Self, ConfigError> {
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        let config: Self = serde_saphyr::from_str(text).map_err(|error| ConfigError::yaml(&error, text))?;
        // Constraints across fields, and semantic ones, can only be checked after parsing.
        config.check().map_err(|error| error.locate_in(text))?;
        Ok(config)
    }

    /// Returns the path of the configuration file, or `None` if there is none.
    ///
    /// Looks for `querymend.yaml` in the current directory, then in `querymend` in the user's
    /// configuration directory.
    pub fn find() -> Option<PathBuf> {
        Self::find_from(Path::new(""), |name| std::env::var_os(name))
    }

    /// Reads the configuration found by [`Config::find`], or returns the default if there is none.
    pub fn load() -> Result<Self, ConfigError> {
        Self::find().map_or_else(|| Ok(Self::default()), Self::read)
    }

    fn find_from(folder: &Path, variables: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        // The XDG specification requires ignoring paths that are not absolute.
        let absolute = |name: &str| variables(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
        [Some(folder.join(FILE_NAME)), home.map(|home| home.join("querymend").join(FILE_NAME))]
            .into_iter()
            .flatten()
            .find(|file| file.is_file())
    }

    /// Validates every value.
    ///
    /// Parsed text is validated by the parser; call this for values that a program sets.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field: &'static str| move |message: String| ConfigError::invalid_value(field, message);
        let breaker = &self.circuit_breaker;
        validate::check_secret("model", self.model.clone()).map_err(wrong("model"))?;
        validate::check_secret("database", self.database.clone()).map_err(wrong("database"))?;
        validate::check_attempts(self.self_correction.max_attempts).map_err(wrong("self_correction.max_attempts"))?;
        validate::check_threshold("failure_threshold", breaker.failure_threshold)
            .map_err(wrong("circuit_breaker.failure_threshold"))?;
        validate::check_threshold("success_threshold", breaker.success_threshold)
            .map_err(wrong("circuit_breaker.success_threshold"))?;
        if breaker.max_timeout < breaker.timeout {
            let [timeout, most] = [breaker.timeout, breaker.max_timeout].map(duration::format);
            let message = format!("`timeout` is {timeout}, which is more than `max_timeout`, {most}");
            return Err(ConfigError::invalid_value("circuit_breaker.timeout", message));
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
                return Err(ConfigError::invalid_value(field, "it must be more than no time".to_owned()));
            }
        }
        validate::check_positive("tokens", self.budget.tokens).map_err(wrong("budget.tokens"))?;
        validate::check_positive("cost_usd", self.budget.cost_usd).map_err(wrong("budget.cost_usd"))?;
        validate::check_positive("rows", Some(self.limits.rows)).map_err(wrong("limits.rows"))?;
        validate::check_positive("bytes", Some(self.limits.bytes)).map_err(wrong("limits.bytes"))?;
        validate::check_positive("memory", Some(self.limits.memory)).map_err(wrong("limits.memory"))?;
        validate::check_positive("max_values_per_column", Some(self.values.max_values_per_column))
            .map_err(wrong("values.max_values_per_column"))?;
        validate::check_positive("rows", Some(self.values.rows)).map_err(wrong("values.rows"))?;
        validate::check_positive("total_rows", Some(self.values.total_rows)).map_err(wrong("values.total_rows"))?;
        validate::check_positive("column_bytes", Some(self.values.column_bytes))
            .map_err(wrong("values.column_bytes"))?;
        validate::check_positive("table_bytes", Some(self.values.table_bytes)).map_err(wrong("values.table_bytes"))?;
        validate::check_positive("bytes", Some(self.values.bytes)).map_err(wrong("values.bytes"))?;
        validate::check_positive("cache_bytes", Some(self.values.cache_bytes)).map_err(wrong("values.cache_bytes"))?;
        validate::check_temperature(self.temperature).map_err(wrong("temperature"))?;
        self.server.check()?;
        if let Some(name) = self.dialect.as_deref().filter(|name| Dialect::from_name(name).is_none()) {
            let known: Vec<&str> = querymend_sql::dialect::DIALECTS.iter().map(|dialect| dialect.name).collect();
            let message = format!("there is no dialect `{name}`; there are {}", known.join(", "));
            return Err(ConfigError::invalid_value("dialect", message));
        }
        Ok(())
    }

    /// Returns the budget of one question.
    pub fn budget(&self) -> Budget {
        Budget {
            max_attempts: self.self_correction.max_attempts,
            max_tokens: self.budget.tokens,
            max_cost_usd: self.budget.cost_usd,
            max_time: self.budget.time,
        }
    }

    /// Returns the limits of one query.
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
