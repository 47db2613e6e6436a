//! Observers of requests, which cannot influence them: metrics, traces, logs.

use std::time::Duration;

use querymend::Event;
use querymend::correction::CorrectionResponse;
use querymend::sql_api::{QueryError, QueryResult};

use crate::request_context::RequestContext;

/// Context of an event.
#[derive(Debug, Clone, Copy)]
pub struct EventOrigin<'p> {
    /// Context of the request.
    pub request: &'p RequestContext<'p>,
    /// Database name, as known to clients.
    pub database: &'p str,
    /// Name of the model in use.
    pub model: &'p str,
    /// SQL dialect of the database.
    pub dialect: &'static str,
}

/// Observer of requests. Calls are synchronous, so a slow observer slows down requests.
pub trait Observer: Send + Sync {
    /// Called before a question is answered.
    ///
    /// The returned observer receives the events of this question only, and is dropped at its end,
    /// even if the client did not wait for it.
    fn on_question(&self, origin: &EventOrigin<'_>, trace_id: &str) -> Box<dyn RunObserver>;

    /// Called after a query was corrected, or could not be.
    fn on_correction(&self, _origin: &EventOrigin<'_>, _corrected: &CorrectionResponse, _took: Duration) {}

    /// Called after a query was executed without changes, or was rejected.
    fn on_run(&self, _origin: &EventOrigin<'_>, _ran: &Result<QueryResult, QueryError>, _took: Duration) {}

    /// Returns the number of items that could not be delivered, by signal.
    fn dropped(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Observer of one question.
pub trait RunObserver: Send {
    /// Called for every event of the run.
    fn on_event(&mut self, event: &Event);

    /// Returns the W3C `traceparent` to propagate to servers called during the run.
    fn traceparent(&self) -> Option<String> {
        None
    }
}
