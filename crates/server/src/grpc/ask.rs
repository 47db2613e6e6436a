//! `Ask` and `AskStream`: the answer alone, or every event as it happens.

use std::sync::Arc;

use querymend::{AnswerStatus, CancellationToken, Clarify, Event};
use tonic::Status;

use super::answer::EventMapper;
use super::fields::non_empty;
use super::proto::{self, Answer, AskEvent};
use super::status::{problem_status, unanswered_status};
use super::stream::{ResponseStream, channel};
use crate::caller::Caller;
use crate::request_task::{CancelOnDisconnect, run_ask};
use crate::service::{AskRequest, Service};

/// Maximum number of events queued for a slow client. If the queue overflows, the question is
/// cancelled.
const EVENT_QUEUE_SIZE: usize = 256;

fn to_ask_request(request: proto::AskRequest) -> AskRequest {
    let clarify = clarify(request.clarify());
    AskRequest {
        question: request.question,
        database: non_empty(request.database),
        evidence: non_empty(request.evidence),
        session_id: non_empty(request.session_id),
        fresh: request.fresh,
        summary: request.summary,
        clarify,
        choice: non_empty(request.choice),
        ..AskRequest::default()
    }
}

fn clarify(mode: proto::Clarify) -> Option<Clarify> {
    match mode {
        proto::Clarify::Unspecified => None,
        proto::Clarify::Ask => Some(Clarify::Ask),
        proto::Clarify::Assume => Some(Clarify::Assume),
        proto::Clarify::Off => Some(Clarify::Off),
    }
}

/// Returns the error status of an answer that failed.
fn failure_status(answer: &querymend::Answer) -> Option<Status> {
    match (&answer.problem, answer.status) {
        (Some(problem), AnswerStatus::GaveUp | AnswerStatus::Failed) => {
            Some(unanswered_status(problem.clone(), &answer.trace_id))
        }
        _ => None,
    }
}

/// Answers a question.
pub async fn ask(service: Arc<Service>, caller: Arc<Caller>, request: proto::AskRequest) -> Result<Answer, Status> {
    let answer = run_ask(service, caller, to_ask_request(request)).await.map_err(problem_status)?;
    match failure_status(&answer) {
        Some(status) => Err(status),
        None => Ok(answer.into()),
    }
}

/// Streams every event as it happens, then the answer, and an error status if there is none.
pub fn stream(service: Arc<Service>, caller: Arc<Caller>, request: proto::AskRequest) -> ResponseStream<AskEvent> {
    let cancel = CancellationToken::new();
    let (sender, responses) = channel(EVENT_QUEUE_SIZE, CancelOnDisconnect(cancel.clone()));
    tokio::spawn(async move {
        let cancel_slow = cancel.clone();
        let mut mapper = EventMapper::default();
        let mut on_event = |event: &Event| {
            let Some(message) = mapper.map_event(event) else { return };
            // Text deltas are repeated in the draft, so they may be dropped. A client that misses
            // any other event has stopped reading.
            if !sender.try_send(message) && !matches!(event, Event::Text { .. }) {
                cancel_slow.cancel();
            }
        };
        let answered = service.ask(&caller.context(), &to_ask_request(request), &mut on_event, &cancel).await;
        match answered {
            Ok(answer) => {
                let status = failure_status(&answer);
                sender.finish(Some(mapper.map_answer(answer)), status).await;
            }
            Err(problem) => sender.finish(None, Some(problem_status(problem))).await,
        }
        drop(caller);
    });
    responses
}
