//! One breaker for each tool.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use querymend_engine::Engine;
use querymend_model::Model;

use super::breaker::{Breaker, OnChange, Stats};
use super::clock::{Clock, SystemClock};
use super::settings::BreakerSettings;
use super::wrapped::{GuardedEngine, GuardedModel};

/// The breakers of all tools: each database and each model has its own, so that one that is down blocks no other.
pub struct Breakers {
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    on_change: Option<OnChange>,
    list: RwLock<BTreeMap<String, Arc<Breaker>>>,
}

impl Breakers {
    /// None yet; all will have these settings.
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings, clock: Arc::new(SystemClock), on_change: None, list: RwLock::default() }
    }

    /// With another clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The clock that they go by.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    /// With someone who is told when any of them changes. Each breaker's changes come in order; those of two breakers may
    /// come at the same time.
    pub fn on_change(mut self, tell: impl Fn(&super::Change) + Send + Sync + 'static) -> Self {
        self.on_change = Some(Arc::new(tell));
        self
    }

    /// The breaker of a tool; a new one if there is none.
    pub fn of(&self, tool: &str) -> Arc<Breaker> {
        if let Some(breaker) = self.list.read().unwrap_or_else(PoisonError::into_inner).get(tool) {
            return Arc::clone(breaker);
        }
        let mut list = self.list.write().unwrap_or_else(PoisonError::into_inner);
        // Someone may have been faster between the two locks: theirs is taken.
        Arc::clone(list.entry(tool.to_owned()).or_insert_with(|| {
            let mut breaker = Breaker::new(tool, self.settings).with_clock(Arc::clone(&self.clock));
            if let Some(tell) = &self.on_change {
                breaker = breaker.on_change(Arc::clone(tell));
            }
            Arc::new(breaker)
        }))
    }

    /// A database behind its breaker, which is called `database:` and the engine's name.
    pub fn engine(&self, engine: Arc<dyn Engine>) -> GuardedEngine {
        let breaker = self.of(&format!("database:{}", engine.name()));
        GuardedEngine::new(engine, breaker)
    }

    /// A model behind its breaker, which is called `model:` and the model's name.
    pub fn model(&self, model: Arc<dyn Model>) -> GuardedModel {
        let breaker = self.of(&format!("model:{}", model.name()));
        GuardedModel::new(model, breaker)
    }

    /// How all tools have been doing, by name.
    pub fn stats(&self) -> Vec<Stats> {
        self.all().iter().map(|breaker| breaker.stats()).collect()
    }

    /// Resets the breaker of a tool. False if there is none of that name.
    pub fn reset(&self, tool: &str) -> bool {
        let breaker = self.list.read().unwrap_or_else(PoisonError::into_inner).get(tool).cloned();
        breaker.map(|breaker| breaker.reset()).is_some()
    }

    /// Resets all of them.
    pub fn reset_all(&self) {
        for breaker in self.all() {
            breaker.reset();
        }
    }

    /// A copy, so that no lock is held while someone is told of a change.
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
