//! `/v1/ask`: the answer at the end, or every step as it happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::sse::{Event as Sent, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use querymend::{Answer, Cancel, Event, Problem, ProblemCode, Status};
use tokio::sync::mpsc;
use tracing::Instrument;

use super::body::Given;
use super::caller::Caller;
use super::idempotency::Replay;
use super::problem::Refused;
use super::rows::{self, Format};
use crate::service::{Question, Service};

/// Events that wait for a client that reads slowly. Who does not read them at all is not waited for.
const WAITING: usize = 256;

/// Answers a question.
pub async fn ask(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    Given(question): Given<Question>,
) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.contains("text/event-stream") {
        return stream_of(service, caller, question).into_response();
    }
    let format = Format::of(accept);
    let seat = match service.answers.seat(&headers, &caller.user, caller.rules) {
        Ok(Replay::Known(response)) => return response,
        Ok(Replay::New(seat)) => seat,
        Err(problem) => return Refused::from(problem).into_response(),
    };
    let caller = Arc::new(caller);
    let response = match answered(service, Arc::clone(&caller), question).await {
        Ok(answer) => told(answer, format),
        Err(problem) => Refused::from(problem).into_response(),
    };
    let response = match seat {
        Some(seat) => seat.keep(response).await,
        None => response,
    };
    rows::held(response, caller)
}

/// Stops a question when nobody waits for its answer any more.
pub struct Gone(pub Cancel);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Some work goes on in a task of its own: when the client is gone it is stopped, and what ran is still written down.
pub async fn to_the_end<T, E>(cancel: Cancel, work: impl Future<Output = Result<T, E>> + Send + 'static) -> Result<T, E>
where
    T: Send + 'static,
    E: From<Problem> + Send + 'static,
{
    let gone = Gone(cancel);
    let done = tokio::spawn(work.in_current_span()).await;
    drop(gone);
    done.unwrap_or_else(|_| Err(Problem::new(ProblemCode::Internal, "something went wrong here").into()))
}

/// Answers a question.
pub async fn answered(service: Arc<Service>, caller: Arc<Caller>, question: Question) -> Result<Answer, Problem> {
    let cancel = Cancel::new();
    to_the_end(cancel.clone(), async move { service.ask(&caller.asking(), &question, &mut |_| {}, &cancel).await })
        .await
}

fn told(answer: Answer, format: Format) -> Response {
    match (&answer.problem, answer.status) {
        (Some(problem), Status::GaveUp | Status::Failed | Status::Refused) => {
            let problem = problem.clone();
            Refused::unanswered(problem, answer).into_response()
        }
        _ => match (format, &answer.rows) {
            (Format::Json, _) | (_, None) => rows::json(&answer),
            (format, Some(found)) => {
                let mut response = rows::written(found, None, format);
                let name = HeaderValue::from_str(&answer.trace_id);
                name.ok().and_then(|id| response.headers_mut().insert("x-trace-id", id));
                response
            }
        },
    }
}

/// Every event as it happens. The last one is `finished` with the answer, or `problem`.
fn stream_of(service: Arc<Service>, caller: Caller, question: Question) -> impl IntoResponse {
    let (tell, hear) = mpsc::channel::<Sent>(WAITING);
    let cancel = Cancel::new();
    let gone = Gone(cancel.clone());
    let asked = async move {
        let slow = cancel.clone();
        let mut send = |event: &Event| {
            // The answer is told once, at the end, when it is on record.
            if matches!(event, Event::Finished { .. }) {
                return;
            }
            match tell.try_send(sent(word_of(event), event)) {
                // Pieces of text come again in the draft; a client that misses anything else has stopped reading.
                Err(_) if matches!(event, Event::Text { .. }) => {}
                Err(_) => slow.cancel(),
                Ok(()) => {}
            }
        };
        let last = match service.ask(&caller.asking(), &question, &mut send, &cancel).await {
            Ok(answer) => sent("finished", &Event::Finished { answer: Box::new(answer) }),
            Err(problem) => sent("problem", &Refused::from(problem).told()),
        };
        drop(caller);
        tell.send_timeout(last, Duration::from_secs(10)).await.ok();
    };
    tokio::spawn(asked.in_current_span());
    let events = stream::unfold((hear, gone), |(mut hear, gone)| async move {
        let event = hear.recv().await?;
        Some((Ok::<Sent, Infallible>(event), (hear, gone)))
    });
    let alive = KeepAlive::new().interval(Duration::from_secs(15));
    (
        [(header::CACHE_CONTROL, "no-store"), (header::HeaderName::from_static("x-accel-buffering"), "no")],
        Sse::new(events).keep_alive(alive),
    )
}

fn sent(name: &str, value: &impl serde::Serialize) -> Sent {
    let data = serde_json::to_string(value).unwrap_or_default();
    Sent::default().event(name).data(data)
}

/// What an event is called: the same word as in its JSON.
fn word_of(event: &Event) -> &'static str {
    match event {
        Event::Started { .. } => "started",
        Event::Stage { .. } => "stage",
        Event::Linked { .. } => "linked",
        Event::Recalled { .. } => "recalled",
        Event::Text { .. } => "text",
        Event::Drafted { .. } => "drafted",
        Event::Weighed { .. } => "weighed",
        Event::Reviewed { .. } => "reviewed",
        Event::Mended { .. } => "mended",
        Event::Executed { .. } => "executed",
        Event::Rejected { .. } => "rejected",
        Event::Retrying { .. } => "retrying",
        Event::Changed { .. } => "changed",
        Event::FellBack { .. } => "fell_back",
        Event::Finished { .. } => "finished",
    }
}
