//! `/v1/ask`: the answer alone, or every event as it happens (server-sent events).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use querymend::{Answer, AnswerStatus, CancellationToken, Event};
use tokio::sync::mpsc;
use tracing::Instrument;

use crate::caller::Caller;
use crate::http::extract::ValidJson;
use crate::http::row_response::{self, RowFormat};
use crate::limits::idempotency::IdempotencyLookup;
use crate::problem::ApiError;
use crate::request_task::{CancelOnDisconnect, run_ask};
use crate::service::{AskRequest, Service};

/// Maximum number of events queued for a slow client. If the queue overflows, the question is
/// cancelled.
const EVENT_QUEUE_SIZE: usize = 256;

/// Answers a question.
pub async fn ask(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    ValidJson(request): ValidJson<AskRequest>,
) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.contains("text/event-stream") {
        return event_stream(service, caller, request).into_response();
    }
    let format = RowFormat::from_accept(accept);
    let reservation = match service.idempotency.reserve(&headers, &caller.user, caller.config_version) {
        Ok(IdempotencyLookup::Replay(response)) => return response,
        Ok(IdempotencyLookup::New(reservation)) => reservation,
        Err(problem) => return ApiError::from(problem).into_response(),
    };
    let caller = Arc::new(caller);
    let response = match run_ask(service, Arc::clone(&caller), request).await {
        Ok(answer) => answer_response(answer, format),
        Err(problem) => ApiError::from(problem).into_response(),
    };
    let response = match reservation {
        Some(reservation) => reservation.complete(response).await,
        None => response,
    };
    row_response::hold_until_sent(response, caller)
}

fn answer_response(answer: Answer, format: RowFormat) -> Response {
    match (&answer.problem, answer.status) {
        (Some(problem), AnswerStatus::GaveUp | AnswerStatus::Failed | AnswerStatus::Refused) => {
            let problem = problem.clone();
            ApiError::unanswered(problem, answer).into_response()
        }
        _ => match (format, &answer.rows) {
            (RowFormat::Json, _) | (_, None) => row_response::json_response(&answer),
            (format, Some(rows)) => {
                let mut response = row_response::rows_response(rows, None, format);
                let name = HeaderValue::from_str(&answer.trace_id);
                name.ok().and_then(|id| response.headers_mut().insert("x-trace-id", id));
                response
            }
        },
    }
}

/// Streams every event as it happens. The last one is `finished` with the answer, or `problem`.
fn event_stream(service: Arc<Service>, caller: Caller, request: AskRequest) -> impl IntoResponse {
    let (sender, receiver) = mpsc::channel::<SseEvent>(EVENT_QUEUE_SIZE);
    let cancel = CancellationToken::new();
    let guard = CancelOnDisconnect(cancel.clone());
    let work = async move {
        let cancel_slow = cancel.clone();
        let mut send = |event: &Event| {
            // The answer is sent at the end, after it is in the audit log.
            if matches!(event, Event::Finished { .. }) {
                return;
            }
            match sender.try_send(sse_event(event_name(event), event)) {
                // Text deltas are repeated in the draft, so they may be dropped. A client that
                // misses any other event has stopped reading.
                Err(_) if matches!(event, Event::Text { .. }) => {}
                Err(_) => cancel_slow.cancel(),
                Ok(()) => {}
            }
        };
        let last = match service.ask(&caller.context(), &request, &mut send, &cancel).await {
            Ok(answer) => sse_event("finished", &Event::Finished { answer: Box::new(answer) }),
            Err(problem) => sse_event("problem", &ApiError::from(problem).into_details()),
        };
        drop(caller);
        sender.send_timeout(last, Duration::from_secs(10)).await.ok();
    };
    tokio::spawn(work.in_current_span());
    let events = stream::unfold((receiver, guard), |(mut receiver, guard)| async move {
        let event = receiver.recv().await?;
        Some((Ok::<SseEvent, Infallible>(event), (receiver, guard)))
    });
    let keep_alive = KeepAlive::new().interval(Duration::from_secs(15));
    (
        [(header::CACHE_CONTROL, "no-store"), (header::HeaderName::from_static("x-accel-buffering"), "no")],
        Sse::new(events).keep_alive(keep_alive),
    )
}

fn sse_event(name: &str, value: &impl serde::Serialize) -> SseEvent {
    let data = serde_json::to_string(value).unwrap_or_default();
    SseEvent::default().event(name).data(data)
}

/// Returns the name of an event, which equals its tag in JSON.
fn event_name(event: &Event) -> &'static str {
    match event {
        Event::Started { .. } => "started",
        Event::Stage { .. } => "stage",
        Event::SchemaLinked { .. } => "schema_linked",
        Event::ExamplesRetrieved { .. } => "examples_retrieved",
        Event::Text { .. } => "text",
        Event::Drafted { .. } => "drafted",
        Event::CandidatesCompared { .. } => "candidates_compared",
        Event::Reviewed { .. } => "reviewed",
        Event::Repaired { .. } => "repaired",
        Event::Executed { .. } => "executed",
        Event::Rejected { .. } => "rejected",
        Event::Retrying { .. } => "retrying",
        Event::Changed { .. } => "changed",
        Event::FallbackStarted { .. } => "fallback_started",
        Event::Finished { .. } => "finished",
    }
}
