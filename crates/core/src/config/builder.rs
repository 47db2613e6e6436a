//! Builder methods of [`Config`]. [`Config::check`] validates the values.

use std::path::PathBuf;
use std::time::Duration;

use querymend_engine::Limits;
use querymend_sql::Policy;

use super::{Config, TraceSection};
use crate::resilience::BreakerSettings;
use crate::retry::RetryPolicy;

impl Config {
    /// Sets the model.
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the database.
    pub fn with_database(mut self, database: impl Into<String>) -> Self {
        self.database = Some(database.into());
        self
    }

    /// Sets the SQL dialect.
    pub fn with_dialect(mut self, dialect: impl Into<String>) -> Self {
        self.dialect = Some(dialect.into());
        self
    }

    /// Enables or disables self-correction.
    pub fn with_self_correction(mut self, enabled: bool) -> Self {
        self.self_correction.enabled = enabled;
        self
    }

    /// Sets the maximum number of drafts per question.
    pub fn with_max_attempts(mut self, attempts: u32) -> Self {
        self.self_correction.max_attempts = attempts;
        self
    }

    /// Enables or disables blocking queries that the reviewer predicts to fail.
    pub fn with_preflight_validation(mut self, validate: bool) -> Self {
        self.self_correction.preflight_validation = validate;
        self
    }

    /// Enables or disables the fallback to client-side analysis after the last attempt.
    pub fn with_fallback(mut self, fallback: bool) -> Self {
        self.self_correction.fallback = fallback;
        self
    }

    /// Enables or disables clarification questions.
    pub fn with_ask_user(mut self, ask: bool) -> Self {
        self.self_correction.ask_user = Some(ask);
        self
    }

    /// Sets the circuit breaker settings.
    pub fn with_circuit_breaker(mut self, settings: BreakerSettings) -> Self {
        self.circuit_breaker = settings;
        self
    }

    /// Sets the maximum number of tokens per question.
    pub fn with_max_tokens(mut self, tokens: u64) -> Self {
        self.budget.tokens = Some(tokens);
        self
    }

    /// Sets the maximum cost per question, in US dollars.
    pub fn with_max_cost_usd(mut self, usd: f64) -> Self {
        self.budget.cost_usd = Some(usd);
        self
    }

    /// Sets the maximum time per question.
    pub fn with_max_time(mut self, time: Duration) -> Self {
        self.budget.time = time;
        self
    }

    /// Sets the maximum time of one model request.
    pub fn with_max_request_time(mut self, time: Duration) -> Self {
        self.budget.request = time;
        self
    }

    /// Sets the limits of one query.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits.into();
        self
    }

    /// Sets the retry policy.
    pub fn with_retry_policy(mut self, policy: RetryPolicy) -> Self {
        self.retry_policy = policy;
        self
    }

    /// Sets the access policy.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the maximum age of the cached schema.
    pub fn with_schema_cache_ttl(mut self, age: Duration) -> Self {
        self.schema_cache_ttl = age;
        self
    }

    /// Sets the prompt set.
    pub fn with_prompt(mut self, prompt: impl Into<String>) -> Self {
        self.prompt = prompt.into();
        self
    }

    /// Sets the sampling temperature.
    pub fn with_temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets the file with additional model providers.
    pub fn with_providers(mut self, file: impl Into<PathBuf>) -> Self {
        self.providers = Some(file.into());
        self
    }

    /// Sets the file with additional models that can be pulled.
    pub fn with_models(mut self, file: impl Into<PathBuf>) -> Self {
        self.models = Some(file.into());
        self
    }

    /// Keeps traces of the last `keep` runs in this directory.
    pub fn with_trace(mut self, keep: u32, folder: impl Into<PathBuf>) -> Self {
        self.trace = TraceSection { max_traces: keep, folder: Some(folder.into()) };
        self
    }
}
