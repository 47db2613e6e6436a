//! The log of a server. Every line that is written while a request is answered says which request that is, who sent it, and by which
//! the run is found again.

use std::time::Duration;

use querymend::Event;
use querymend::correct::Corrected;
use tracing::{Span, Subscriber, info};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::registry::LookupSpan;

use crate::heard::{Hearing, Listener, Place};
use crate::service::word;

/// One object of JSON on each line: `timestamp`, `level`, `target`, `message`, the fields of the line itself, and in `span` those of
/// the request (`request_id`, `method`, `route`, `user`, `trace_id`).
pub fn json_logs<S, W>(writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'l> LookupSpan<'l>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer().json().flatten_event(true).with_span_list(false).with_writer(writer)
}

/// Writes what happens to the log.
pub struct Logging;

impl Listener for Logging {
    fn question(&self, _: &Place<'_>, trace_id: &str) -> Box<dyn Hearing> {
        named(trace_id);
        Box::new(Written)
    }

    fn corrected(&self, place: &Place<'_>, corrected: &Corrected, took: Duration) {
        named(&corrected.trace_id);
        let (status, ms) = (word(&corrected.status), took.as_secs_f64() * 1e3);
        info!(database = place.database, status, ms, "a query was looked at");
    }
}

/// From now on lines of this request say by which the run is found again.
fn named(trace_id: &str) {
    Span::current().record("trace_id", trace_id);
}

struct Written;

impl Hearing for Written {
    fn hear(&mut self, event: &Event) {
        querymend::log(event);
    }
}
