//! Those who hear what happens, and have no say in it: figures, traces, logs.

use std::time::Duration;

use querymend::Event;
use querymend::correct::Corrected;
use querymend::direct::{NotRun, Ran};

use crate::service::Asking;

/// Where something happens.
#[derive(Debug, Clone, Copy)]
pub struct Place<'p> {
    /// The request.
    pub request: &'p Asking<'p>,
    /// The database that is asked, by the name that clients use.
    pub database: &'p str,
    /// The model that is asked, if one is.
    pub model: &'p str,
    /// The SQL that the database speaks.
    pub dialect: &'static str,
}

/// Somebody who hears what happens. Whoever is slow makes requests slow, and nobody is waited for.
pub trait Listener: Send + Sync {
    /// A question is about to be answered. What is given back hears of it alone, and is dropped when it is over, even where nobody
    /// waited for the end.
    fn question(&self, place: &Place<'_>, trace_id: &str) -> Box<dyn Hearing>;

    /// A query was mended without a model, or could not be.
    fn corrected(&self, _place: &Place<'_>, _corrected: &Corrected, _took: Duration) {}

    /// A query was run as it is, or was not.
    fn ran(&self, _place: &Place<'_>, _ran: &Result<Ran, NotRun>, _took: Duration) {}

    /// What it could not pass on to whoever it listens for, by kind.
    fn lost(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Hears what happens while one question is answered.
pub trait Hearing: Send {
    /// Something happened.
    fn hear(&mut self, event: &Event);

    /// What servers that are asked on the way are told about the trace that this belongs to (W3C `traceparent`).
    fn traceparent(&self) -> Option<String> {
        None
    }
}
