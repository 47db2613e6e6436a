//! The loop as an evaluation asks it: one for each database.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use querymend::guard::Breakers;
use querymend::{Answer, Ask, Cancel, Clarify, Config, Querymend, log};
use querymend_eval::{Asker, Case};
use querymend_model::Model;

/// A model and a way of using it.
pub struct Loop {
    model: Arc<dyn Model>,
    config: Config,
    cancel: Cancel,
    open: Mutex<HashMap<String, Arc<Querymend>>>,
    /// Each database has a breaker of its own, and the model one for all of them.
    breakers: Arc<Breakers>,
}

impl Loop {
    /// Nothing is open yet.
    pub fn new(model: Arc<dyn Model>, config: Config, cancel: Cancel) -> Self {
        let breakers = Arc::new(Breakers::new(config.circuit_breaker));
        Self { model, config, cancel, open: Mutex::new(HashMap::new()), breakers }
    }

    fn querymend(&self, address: &str) -> anyhow::Result<Arc<Querymend>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(querymend) = open.get(address) {
            return Ok(Arc::clone(querymend));
        }
        let engine = querymend_engine::open(address)?;
        let (model, breakers) = (Arc::clone(&self.model), Arc::clone(&self.breakers));
        let querymend = Arc::new(Querymend::guarded(Arc::from(engine), model, self.config.clone(), breakers));
        open.insert(address.to_string(), Arc::clone(&querymend));
        Ok(querymend)
    }
}

impl Asker for Loop {
    fn ask<'a>(&'a self, case: &'a Case) -> Pin<Box<dyn Future<Output = anyhow::Result<Answer>> + Send + 'a>> {
        Box::pin(async move {
            let querymend = self.querymend(&case.database)?;
            // What is measured must not hang on whether the values were read in time.
            querymend.learned().await;
            let ask = Ask {
                question: case.question.clone(),
                evidence: case.evidence.clone(),
                clarify: Some(Clarify::Off),
                ..Ask::default()
            };
            Ok(querymend.ask_with(ask, &mut |event| log(event), &self.cancel).await)
        })
    }
}
