//! System under test of an evaluation: one `Querymend` instance per database.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use querymend::resilience::Breakers;
use querymend::{Answer, AskInput, CancellationToken, Clarify, Config, Querymend, log};
use querymend_eval::{EvalCase, SystemUnderTest};
use querymend_model::Model;

/// Model and configuration under test.
pub struct QuerymendSystem {
    model: Arc<dyn Model>,
    config: Config,
    cancel: CancellationToken,
    instances: Mutex<HashMap<String, Arc<Querymend>>>,
    /// Each database has its own circuit breaker; the model has one for all databases.
    breakers: Arc<Breakers>,
}

impl QuerymendSystem {
    /// Creates a system with no open databases.
    pub fn new(model: Arc<dyn Model>, config: Config, cancel: CancellationToken) -> Self {
        let breakers = Arc::new(Breakers::new(config.circuit_breaker));
        Self { model, config, cancel, instances: Mutex::new(HashMap::new()), breakers }
    }

    fn instance_for(&self, address: &str) -> anyhow::Result<Arc<Querymend>> {
        let mut open = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(querymend) = open.get(address) {
            return Ok(Arc::clone(querymend));
        }
        let engine = querymend_engine::open(address)?;
        let (model, breakers) = (Arc::clone(&self.model), Arc::clone(&self.breakers));
        let querymend =
            Arc::new(Querymend::with_shared_breakers(Arc::from(engine), model, self.config.clone(), breakers));
        open.insert(address.to_string(), Arc::clone(&querymend));
        Ok(querymend)
    }
}

impl SystemUnderTest for QuerymendSystem {
    fn ask<'a>(&'a self, case: &'a EvalCase) -> Pin<Box<dyn Future<Output = anyhow::Result<Answer>> + Send + 'a>> {
        Box::pin(async move {
            let querymend = self.instance_for(&case.database)?;
            // The measurement must not depend on whether value sampling finishes in time.
            querymend.wait_for_values().await;
            let ask = AskInput {
                question: case.question.clone(),
                evidence: case.evidence.clone(),
                clarify: Some(Clarify::Off),
                ..AskInput::default()
            };
            Ok(querymend.ask_with(ask, &mut |event| log(event), &self.cancel).await)
        })
    }
}
