//! Entry point of the library: combines a database, a model and a configuration.

use std::sync::Arc;

use querymend_engine::{self as engine, Engine};
use querymend_model::{CompletionRequest, Model};
use querymend_sql::schema::Schema;
use querymend_sql::{Policy, Validator};

use crate::cancel::CancellationToken;
use crate::config::Config;
use crate::error_history::ErrorHistory;
use crate::event::{Answer, Problem};
use crate::linking::SchemaLinker;
use crate::memory::Memory;
use crate::resilience::{Breakers, GuardedEngine, GuardedModel};
use crate::run::{Clarify, RunSettings, StepError};
use crate::schema_cache::SchemaCache;
use crate::step_error::model_step_error;
use crate::{prompts, trace_id};

/// Default length of the schema in a prompt, in bytes: about 6,000 tokens.
///
/// Used if the model's context window is unknown.
const DEFAULT_SCHEMA_BYTES: usize = 24_000;

/// Database, model and configuration. Cheap to clone and thread-safe; clones share the schema
/// cache.
#[derive(Clone)]
pub struct Querymend {
    pub(crate) engine: GuardedEngine,
    pub(crate) model: GuardedModel,
    pub(crate) config: Arc<Config>,
    breakers: Arc<Breakers>,
    error_history: Arc<ErrorHistory>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) schema_cache: Arc<SchemaCache>,
    pub(crate) memory: Option<Memory>,
}

impl Querymend {
    /// Wraps a database and a model in circuit breakers.
    pub fn new(engine: Arc<dyn Engine>, model: Arc<dyn Model>, config: Config) -> Self {
        let breakers = Arc::new(Breakers::new(config.circuit_breaker));
        Self::with_shared_breakers(engine, model, config, breakers)
    }

    /// Uses shared circuit breakers: one model that serves several databases has one breaker.
    pub fn with_shared_breakers(
        engine: Arc<dyn Engine>,
        model: Arc<dyn Model>,
        config: Config,
        breakers: Arc<Breakers>,
    ) -> Self {
        let policy = Arc::new(config.policy.clone());
        let (values, age, clock) = (config.values.clone(), config.schema_cache_ttl, breakers.clock());
        let known = SchemaCache::new(Arc::clone(&engine), Arc::clone(&policy), values, age, clock);
        Self {
            schema_cache: Arc::new(known),
            engine: breakers.guard_engine(engine),
            model: breakers.guard_model(model),
            config: Arc::new(config),
            breakers,
            error_history: Arc::default(),
            policy,
            memory: None,
        }
    }

    /// Sets the memory of past questions.
    pub fn with_memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Registers a custom validator, which checks every query before execution.
    pub fn with_validator(mut self, validator: Arc<dyn Validator>) -> Self {
        Arc::make_mut(&mut self.policy).validators.register(validator);
        self
    }

    /// Sets a shared error history, which outlives configuration changes.
    pub fn with_error_history(mut self, records: Arc<ErrorHistory>) -> Self {
        self.error_history = records;
        self
    }

    /// Returns the memory, if there is one.
    pub fn memory(&self) -> Option<&Memory> {
        self.memory.as_ref()
    }

    /// Returns the database, guarded by its circuit breaker.
    pub fn engine(&self) -> &dyn Engine {
        &self.engine
    }

    /// Returns the name of the model.
    pub fn model_name(&self) -> &str {
        self.model.name()
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the circuit breakers of the database and the model.
    pub fn breakers(&self) -> &Breakers {
        &self.breakers
    }

    /// Returns the error history of all sessions.
    pub fn error_history(&self) -> &ErrorHistory {
        &self.error_history
    }

    /// Returns the schema. It is cached until it expires or the database contradicts it.
    pub async fn schema(&self) -> Result<Arc<Schema>, engine::Error> {
        self.linker().await.map(|tables| Arc::clone(tables.schema()))
    }

    /// Returns the schema prepared for linking.
    pub(crate) async fn linker(&self) -> Result<Arc<SchemaLinker>, engine::Error> {
        self.schema_cache.get(&self.engine).await
    }

    /// Waits until the values of the database are sampled.
    ///
    /// Questions wait for them too; call this to have them before the first question.
    pub async fn wait_for_values(&self) {
        if self.linker().await.is_ok() {
            self.schema_cache.wait_for_values().await;
        }
    }

    /// Summarizes the rows of an answer in a sentence or two. Returns `None` if there are none.
    pub async fn summarise(&self, answer: &Answer, cancel: &CancellationToken) -> Result<Option<String>, Problem> {
        let Some(rows) = &answer.rows else { return Ok(None) };
        let messages = prompts::summarise(&answer.question, &prompts::format_rows(rows));
        let request =
            CompletionRequest::new(messages).temperature(self.config.temperature).timeout(self.config.budget.request);
        let reply = self.model.complete(&request, &mut |_| {}, &cancel.model).await;
        match reply.map_err(|error| model_step_error(&error)) {
            Ok(reply) => Ok(Some(reply.text.trim().to_string()).filter(|text| !text.is_empty())),
            Err(StepError::Unavailable(problem) | StepError::ContextTooLong(problem)) => Err(problem),
            // Cancelled: the caller does not wait for the result.
            Err(_) => Ok(None),
        }
    }

    pub(crate) fn run_settings(&self, trace_id: Option<String>, clarify: Option<Clarify>) -> RunSettings {
        let correction = &self.config.self_correction;
        RunSettings {
            trace_id: trace_id.unwrap_or_else(trace_id::generate),
            dialect: self.engine.dialect(),
            policy: Arc::clone(&self.policy),
            budget: self.config.budget(),
            retry: self.config.retry_policy.clone(),
            self_correction: correction.enabled,
            preflight: correction.preflight_validation,
            offline: self.engine.is_offline(),
            fallback: correction.fallback && !self.engine.is_offline(),
            clarify: clarify.unwrap_or(Clarify::from_setting(correction.ask_user, false)),
            variant: prompts::find_variant(&self.config.prompt).unwrap_or(&prompts::VARIANTS[0]),
            temperature: self.config.temperature,
            extra_candidates: self.config.candidates.unwrap_or(self.model.limits().candidates).saturating_sub(1),
            max_schema_bytes: self.max_schema_bytes(),
        }
    }

    /// Returns the maximum length of the schema in a prompt, in bytes.
    ///
    /// Two thirds of the model's context window, at about three bytes of DDL per token.
    pub(crate) fn max_schema_bytes(&self) -> usize {
        self.model.limits().context.map_or(DEFAULT_SCHEMA_BYTES, |tokens| tokens as usize * 2)
    }
}
