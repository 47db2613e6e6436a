//! Decorators that guard engines and models with a circuit breaker.

use std::fmt;
use std::sync::Arc;

use querymend_engine::{
    self as engine, CancelFlag, Connections, DataVersion, Engine, EngineFuture, HealthCheck, Limits,
};
use querymend_model::{self as model, BoxFuture, CancelSignal, Completion, CompletionRequest, Model, ModelLimits};
use querymend_sql::{Approved, Dialect, Rows, Schema};

use super::breaker::{Breaker, Permit};

/// Evidence about the health of a tool from the result of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HealthSignal {
    /// The tool responded.
    Up,
    /// The tool is unreachable, or its response makes no sense.
    Down,
    /// No evidence: the tool was not called, or the call was not completed.
    Unknown,
}

fn report(permit: Permit<'_>, signal: HealthSignal) {
    match signal {
        HealthSignal::Up => permit.success(),
        HealthSignal::Down => permit.failure(),
        HealthSignal::Unknown => drop(permit),
    }
}

fn engine_signal<T>(result: &Result<T, engine::Error>) -> HealthSignal {
    match result {
        // A database that rejects a query has processed it: the query is at fault.
        Ok(_) | Err(engine::Error::Rejected(_)) => HealthSignal::Up,
        Err(engine::Error::Unavailable { .. } | engine::Error::Internal(_)) => HealthSignal::Down,
        // Limits, cancellation and a wrong dialect originate on our side.
        Err(
            engine::Error::TimedOut { .. }
            | engine::Error::StepLimit { .. }
            | engine::Error::Cancelled
            | engine::Error::WrongDialect { .. },
        ) => HealthSignal::Unknown,
    }
}

fn model_signal(result: &Result<Completion, model::Error>) -> HealthSignal {
    match result {
        // The server processed the conversation and found it too long or inappropriate.
        Ok(_) | Err(model::Error::Refused { .. } | model::Error::ContextTooLong { .. }) => HealthSignal::Up,
        Err(
            model::Error::Unreachable { .. }
            | model::Error::Overloaded { .. }
            | model::Error::Timeout { .. }
            | model::Error::RateLimited { .. }
            | model::Error::BadResponse { .. },
        ) => HealthSignal::Down,
        // A missing key is detected before the server is called, and waiting fixes neither a key
        // nor a setting.
        Err(model::Error::Auth { .. } | model::Error::Cancelled | model::Error::Configuration { .. }) => {
            HealthSignal::Unknown
        }
    }
}

/// Database guarded by a circuit breaker. Failures to respond count; rejected queries do not.
#[derive(Clone)]
pub struct GuardedEngine {
    engine: Arc<dyn Engine>,
    breaker: Arc<Breaker>,
}

impl GuardedEngine {
    /// Wraps an engine in a breaker.
    pub fn new(engine: Arc<dyn Engine>, breaker: Arc<Breaker>) -> Self {
        Self { engine, breaker }
    }

    /// Returns the breaker.
    pub fn breaker(&self) -> &Arc<Breaker> {
        &self.breaker
    }

    /// Admits and makes the call when the future is polled. A call that is dropped releases its
    /// slot.
    fn with_breaker<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce() -> EngineFuture<'a, T> + Send + 'a,
    ) -> EngineFuture<'a, T> {
        Box::pin(async move {
            let permit = self.breaker.admit()?;
            let result = call().await;
            report(permit, engine_signal(&result));
            result
        })
    }
}

impl Engine for GuardedEngine {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn dialect(&self) -> &'static Dialect {
        self.engine.dialect()
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        self.with_breaker(|| self.engine.schema())
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        self.with_breaker(|| self.engine.probe(query))
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        self.with_breaker(|| self.engine.execute(query, limits, cancel))
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        self.with_breaker(|| self.engine.test_connection())
    }

    fn data_version(&self) -> EngineFuture<'_, Option<DataVersion>> {
        self.with_breaker(|| self.engine.data_version())
    }

    fn is_offline(&self) -> bool {
        self.engine.is_offline()
    }

    fn connections(&self) -> Option<Connections> {
        self.engine.connections()
    }

    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        self.with_breaker(|| self.engine.check_health())
    }
}

impl fmt::Debug for GuardedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedEngine").field("engine", &self.name()).field("breaker", &self.breaker).finish()
    }
}

/// Model guarded by a circuit breaker. The model's own retries count as one call.
#[derive(Clone)]
pub struct GuardedModel {
    model: Arc<dyn Model>,
    breaker: Arc<Breaker>,
}

impl GuardedModel {
    /// Wraps a model in a breaker.
    pub fn new(model: Arc<dyn Model>, breaker: Arc<Breaker>) -> Self {
        Self { model, breaker }
    }

    /// Returns the breaker.
    pub fn breaker(&self) -> &Arc<Breaker> {
        &self.breaker
    }
}

impl Model for GuardedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let permit = self.breaker.admit().map_err(|open| open.into_model_error(self.name()))?;
            let result = self.model.complete(request, watch, cancel).await;
            report(permit, model_signal(&result));
            result
        })
    }

    fn limits(&self) -> ModelLimits {
        self.model.limits()
    }
}

impl fmt::Debug for GuardedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedModel").field("model", &self.name()).field("breaker", &self.breaker).finish()
    }
}
