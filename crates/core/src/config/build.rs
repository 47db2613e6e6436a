//! The configuration as a program writes it. What is set is checked by [`Config::check`].

use std::path::PathBuf;
use std::time::Duration;

use querymend_engine::Limits;
use querymend_sql::Policy;

use super::{Config, Trace};
use crate::guard::BreakerSettings;
use crate::retry::RetryPolicy;

impl Config {
    /// With a model.
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// With a database.
    pub fn with_database(mut self, database: impl Into<String>) -> Self {
        self.database = Some(database.into());
        self
    }

    /// With a dialect.
    pub fn with_dialect(mut self, dialect: impl Into<String>) -> Self {
        self.dialect = Some(dialect.into());
        self
    }

    /// Whether queries are mended.
    pub fn with_self_correction(mut self, enabled: bool) -> Self {
        self.self_correction.enabled = enabled;
        self
    }

    /// With so many drafts at most.
    pub fn with_max_attempts(mut self, attempts: u32) -> Self {
        self.self_correction.max_attempts = attempts;
        self
    }

    /// Whether the critic holds queries back that are known to fail.
    pub fn with_preflight_validation(mut self, validate: bool) -> Self {
        self.self_correction.preflight_validation = validate;
        self
    }

    /// Whether plain rows are fetched when the attempts are spent.
    pub fn with_fallback(mut self, fallback: bool) -> Self {
        self.self_correction.fallback = fallback;
        self
    }

    /// Whether a person is asked.
    pub fn with_ask_user(mut self, ask: bool) -> Self {
        self.self_correction.ask_user = Some(ask);
        self
    }

    /// With other breakers.
    pub fn with_circuit_breaker(mut self, settings: BreakerSettings) -> Self {
        self.circuit_breaker = settings;
        self
    }

    /// With so many tokens at most for a question.
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.budget.tokens = Some(tokens);
        self
    }

    /// With so much money at most for a question.
    pub fn with_max_cost_usd(mut self, usd: f64) -> Self {
        self.budget.cost_usd = Some(usd);
        self
    }

    /// With so much time at most for a question.
    pub fn with_max_time(mut self, time: Duration) -> Self {
        self.budget.time = time;
        self
    }

    /// With so much time at most for one reply of the model.
    pub fn with_max_request_time(mut self, time: Duration) -> Self {
        self.budget.request = time;
        self
    }

    /// With other limits for a query.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits.into();
        self
    }

    /// With other rules for failures.
    pub fn with_retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// With other rules for what may be asked.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// With how long the tables are taken to be as they were.
    pub fn with_schema_age(mut self, age: Duration) -> Self {
        self.schema_age = age;
        self
    }

    /// With another set of prompts.
    pub fn with_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// With how freely the model chooses its words.
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// With a file of more models' providers.
    pub fn with_providers(mut self, file: impl Into<PathBuf>) -> Self {
        self.providers = Some(file.into());
        self
    }

    /// With a file of more models that can be pulled.
    pub fn with_models(mut self, file: impl Into<PathBuf>) -> Self {
        self.models = Some(file.into());
        self
    }

    /// With traces of so many runs in this folder.
    pub fn with_trace(mut self, keep: u32, folder: impl Into<PathBuf>) -> Self {
        self.trace = Trace { keep, folder: Some(folder.into()) };
        self
    }
}
