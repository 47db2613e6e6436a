//! Engines and models behind a breaker, which are engines and models themselves.

use std::fmt;
use std::sync::Arc;

use querymend_engine::{
    Answer as EngineAnswer, Cancel, Check, Connections, DataVersion, Engine, Error as EngineTrouble, Limits,
};
use querymend_model::{
    Answer as ModelAnswer, Cancel as ModelCancel, Error as ModelTrouble, Model, ModelLimits, Reply, Request,
};
use querymend_sql::{Approved, Dialect, Rows, Schema};

use super::breaker::{Breaker, Permit};

/// What the end of a call says about the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    /// It is there and answers.
    Alive,
    /// It cannot be reached, or what it does makes no sense.
    Down,
    /// Nothing: it was not asked, or not to the end.
    Nothing,
}

fn tell(permit: Permit<'_>, news: News) {
    match news {
        News::Alive => permit.success(),
        News::Down => permit.failure(),
        News::Nothing => drop(permit),
    }
}

fn engine_news<T>(result: &Result<T, EngineTrouble>) -> News {
    match result {
        // A database that refuses a query has read it: it is the query that is wrong.
        Ok(_) | Err(EngineTrouble::Rejected(_)) => News::Alive,
        Err(EngineTrouble::Unavailable { .. } | EngineTrouble::Internal(_)) => News::Down,
        // The limit is ours, and so are the wish to stop and the wrong review.
        Err(
            EngineTrouble::TimedOut { .. }
            | EngineTrouble::StepLimit { .. }
            | EngineTrouble::Cancelled
            | EngineTrouble::WrongDialect { .. },
        ) => News::Nothing,
    }
}

fn model_news(result: &Result<Reply, ModelTrouble>) -> News {
    match result {
        // Its server read the conversation and found it too long or improper.
        Ok(_) | Err(ModelTrouble::Refused { .. } | ModelTrouble::ContextTooLong { .. }) => News::Alive,
        Err(
            ModelTrouble::Unreachable { .. }
            | ModelTrouble::Overloaded { .. }
            | ModelTrouble::Timeout { .. }
            | ModelTrouble::RateLimited { .. }
            | ModelTrouble::BadResponse { .. },
        ) => News::Down,
        // A missing key is noticed before the server is asked, and waiting mends neither a key nor a setting.
        Err(ModelTrouble::Auth { .. } | ModelTrouble::Cancelled | ModelTrouble::Configuration { .. }) => News::Nothing,
    }
}

/// A database behind a breaker. Every call counts that the database failed to answer; a query that it refused does not.
#[derive(Clone)]
pub struct GuardedEngine {
    engine: Arc<dyn Engine>,
    breaker: Arc<Breaker>,
}

impl GuardedEngine {
    /// This engine behind this breaker.
    pub fn new(engine: Arc<dyn Engine>, breaker: Arc<Breaker>) -> Self {
        Self { engine, breaker }
    }

    /// The breaker: its state, its figures, its reset.
    pub fn breaker(&self) -> &Arc<Breaker> {
        &self.breaker
    }

    /// The call is made when it is waited for, and so is the breaker asked; a call that is dropped half way gives its
    /// place back.
    fn guarded<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce() -> EngineAnswer<'a, T> + Send + 'a,
    ) -> EngineAnswer<'a, T> {
        Box::pin(async move {
            let permit = self.breaker.admit()?;
            let result = call().await;
            tell(permit, engine_news(&result));
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

    fn schema(&self) -> EngineAnswer<'_, Schema> {
        self.guarded(|| self.engine.schema())
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineAnswer<'a, ()> {
        self.guarded(|| self.engine.probe(query))
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> EngineAnswer<'a, Rows> {
        self.guarded(|| self.engine.execute(query, limits, cancel))
    }

    fn test_connection(&self) -> EngineAnswer<'_, ()> {
        self.guarded(|| self.engine.test_connection())
    }

    fn data_version(&self) -> EngineAnswer<'_, Option<DataVersion>> {
        self.guarded(|| self.engine.data_version())
    }

    fn is_offline(&self) -> bool {
        self.engine.is_offline()
    }

    fn connections(&self) -> Option<Connections> {
        self.engine.connections()
    }

    fn examine(&self) -> EngineAnswer<'_, Vec<Check>> {
        self.guarded(|| self.engine.examine())
    }
}

impl fmt::Debug for GuardedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedEngine").field("engine", &self.name()).field("breaker", &self.breaker).finish()
    }
}

/// A model behind a breaker. The model's own tries count as one call.
#[derive(Clone)]
pub struct GuardedModel {
    model: Arc<dyn Model>,
    breaker: Arc<Breaker>,
}

impl GuardedModel {
    /// This model behind this breaker.
    pub fn new(model: Arc<dyn Model>, breaker: Arc<Breaker>) -> Self {
        Self { model, breaker }
    }

    /// The breaker: its state, its figures, its reset.
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
        request: &'a Request,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a ModelCancel,
    ) -> ModelAnswer<'a, Reply> {
        Box::pin(async move {
            let permit = self.breaker.admit().map_err(|open| open.of_model(self.name()))?;
            let result = self.model.complete(request, watch, cancel).await;
            tell(permit, model_news(&result));
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
