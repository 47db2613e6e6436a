//! Server log.
//!
//! Every line written during a request carries the request id, the user and the trace id of the
//! run.

use std::time::Duration;

use querymend::Event;
use querymend::correction::CorrectionResponse;
use tracing::{Span, Subscriber, info};
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::registry::LookupSpan;

use crate::observe::observer::{EventOrigin, Observer, RunObserver};
use crate::wire_name::wire_name;

/// Returns a layer that writes one JSON object per line.
///
/// Its fields are `timestamp`, `level`, `target`, `message`, the fields of the event, and in `span`
/// those of the request (`request_id`, `method`, `route`, `user`, `trace_id`).
pub fn json_logs<S, W>(writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'l> LookupSpan<'l>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer().json().flatten_event(true).with_span_list(false).with_writer(writer)
}

/// Observer that writes events to the log.
pub struct LogObserver;

impl Observer for LogObserver {
    fn on_question(&self, _: &EventOrigin<'_>, trace_id: &str) -> Box<dyn RunObserver> {
        record_trace_id(trace_id);
        Box::new(RunLogger)
    }

    fn on_correction(&self, origin: &EventOrigin<'_>, corrected: &CorrectionResponse, took: Duration) {
        record_trace_id(&corrected.trace_id);
        let (status, ms) = (wire_name(&corrected.status), took.as_secs_f64() * 1e3);
        info!(database = origin.database, status, ms, "correction finished");
    }
}

/// Adds the trace id of the run to the log lines of this request.
fn record_trace_id(trace_id: &str) {
    Span::current().record("trace_id", trace_id);
}

struct RunLogger;

impl RunObserver for RunLogger {
    fn on_event(&mut self, event: &Event) {
        querymend::log(event);
    }
}
