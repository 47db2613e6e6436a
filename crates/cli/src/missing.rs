//! No model: for commands that have other things to do than to ask one.

use querymend_model::{Answer, Cancel, Error, Model, Reply, Request};

/// Says, whenever it is asked, that there is no model, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    what: String,
    hint: String,
}

impl Missing {
    /// What is missing, and what can be done about it.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

impl Model for Missing {
    fn name(&self) -> &str {
        "none"
    }

    fn complete<'a>(&'a self, _: &'a Request, _: &'a mut (dyn FnMut(&str) + Send), _: &'a Cancel) -> Answer<'a, Reply> {
        Box::pin(async move { Err(Error::Configuration { what: self.what.clone(), hint: self.hint.clone() }) })
    }
}
