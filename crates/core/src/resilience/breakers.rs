//! Registry of circuit breakers, one per tool.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use querymend_engine::Engine;
use querymend_model::Model;

use super::breaker::{Breaker, BreakerStats, OnChange};
use super::clock::{Clock, SystemClock};
use super::decorators::{GuardedEngine, GuardedModel};
use super::settings::BreakerSettings;

/// Circuit breakers of all tools. Each database and each model has its own, so that an outage of
/// one does not block the others.
pub struct Breakers {
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    on_change: Option<OnChange>,
    list: RwLock<BTreeMap<String, Arc<Breaker>>>,
}

impl Breakers {
    /// Creates an empty registry. All breakers will use these settings.
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings, clock: Arc::new(SystemClock), on_change: None, list: RwLock::default() }
    }

    /// Replaces the clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Returns the clock.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// Sets the observer of state transitions of all breakers.
    ///
    /// Transitions of one breaker are reported in order; those of two breakers may be reported
    /// concurrently.
    pub fn on_change(mut self, tell: impl Fn(&super::BreakerStateChange) + Send + Sync + 'static) -> Self {
        self.on_change = Some(Arc::new(tell));
        self
    }

    /// Returns the breaker of a tool, creating it if necessary.
    pub fn get_or_create(&self, tool: &str) -> Arc<Breaker> {
        if let Some(breaker) = self.list.read().unwrap_or_else(PoisonError::into_inner).get(tool) {
            return Arc::clone(breaker);
        }
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have inserted a breaker between the two locks; use that one.
        Arc::clone(list.entry(tool.to_owned()).or_insert_with(|| {
            let mut breaker = Breaker::new(tool, self.settings).with_clock(Arc::clone(&self.clock));
            if let Some(tell) = &self.on_change {
                breaker = breaker.on_change(Arc::clone(tell));
            }
            Arc::new(breaker)
        }))
    }

    /// Wraps a database in its breaker, which is named `database:` followed by the engine name.
    pub fn guard_engine(&self, engine: Arc<dyn Engine>) -> GuardedEngine {
        let breaker = self.get_or_create(&format!("database:{}", engine.name()));
        GuardedEngine::new(engine, breaker)
    }

    /// Wraps a model in its breaker, which is named `model:` followed by the model name.
    pub fn guard_model(&self, model: Arc<dyn Model>) -> GuardedModel {
        let breaker = self.get_or_create(&format!("model:{}", model.name()));
        GuardedModel::new(model, breaker)
    }

    /// Returns the statistics of all tools, sorted by name.
    pub fn stats(&self) -> Vec<BreakerStats> {
        self.all().iter().map(|breaker| breaker.stats()).collect()
    }

    /// Resets the breaker of a tool. Returns `false` if there is none of that name.
    pub fn reset(&self, tool: &str) -> bool {
        let breaker = self.list.read().unwrap_or_else(PoisonError::into_inner).get(tool).cloned();
        breaker.map(|breaker| breaker.reset()).is_some()
    }

    /// Resets all breakers.
    pub fn reset_all(&self) {
        for breaker in self.all() {
            breaker.reset();
        }
    }

    /// Returns a copy of all breakers, so that no lock is held while observers run.
    fn all(&self) -> Vec<Arc<Breaker>> {
        self.list.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

impl Default for Breakers {
    fn default() -> Self {
        Self::new(BreakerSettings::default())
    }
}

impl fmt::Debug for Breakers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Breakers").field("settings", &self.settings).field("list", &self.all()).finish_non_exhaustive()
    }
}
