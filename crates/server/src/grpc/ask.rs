//! Questions: the answer at the end, or every step as it happens.

use std::sync::Arc;

use querymend::{Cancel, Clarify, Event, Status as Ending};
use tonic::Status;

use super::answer::Steps;
use super::call::given;
use super::proto::{self, Answer, AskEvent, AskRequest};
use super::status::{refused, unanswered};
use super::stream::{Told, pieces};
use crate::http::{Caller, Gone, answered};
use crate::service::{Question, Service};

/// Events that wait for a client that reads slowly. Who does not read them at all is not waited for.
const WAITING: usize = 256;

fn question(request: AskRequest) -> Question {
    let clarify = clarify(request.clarify());
    Question {
        question: request.question,
        database: given(request.database),
        evidence: given(request.evidence),
        session_id: given(request.session_id),
        fresh: request.fresh,
        summary: request.summary,
        clarify,
        choice: given(request.choice),
        ..Question::default()
    }
}

fn clarify(asked: proto::Clarify) -> Option<Clarify> {
    match asked {
        proto::Clarify::Unspecified => None,
        proto::Clarify::Ask => Some(Clarify::Ask),
        proto::Clarify::Assume => Some(Clarify::Assume),
        proto::Clarify::Off => Some(Clarify::Off),
    }
}

/// The error that says why there is no answer.
fn why_not(answer: &querymend::Answer) -> Option<Status> {
    match (&answer.problem, answer.status) {
        (Some(problem), Ending::GaveUp | Ending::Failed) => Some(unanswered(problem.clone(), &answer.trace_id)),
        _ => None,
    }
}

/// The answer.
pub async fn ask(service: Arc<Service>, caller: Arc<Caller>, request: AskRequest) -> Result<Answer, Status> {
    let answer = answered(service, caller, question(request)).await.map_err(refused)?;
    match why_not(&answer) {
        Some(status) => Err(status),
        None => Ok(answer.into()),
    }
}

/// Every event as it happens, and the answer last. Where there is none, the error that says why follows.
pub fn stream(service: Arc<Service>, caller: Arc<Caller>, request: AskRequest) -> Told<AskEvent> {
    let cancel = Cancel::new();
    let (teller, told) = pieces(WAITING, Gone(cancel.clone()));
    tokio::spawn(async move {
        let slow = cancel.clone();
        let mut steps = Steps::default();
        let mut tell = |event: &Event| {
            // The answer is told once, at the end, when it is on record; nothing is made of it here.
            let Some(told) = steps.told(event) else { return };
            // Pieces of text come again in the draft; a client that misses anything else has stopped reading.
            if !teller.offer(told) && !matches!(event, Event::Text { .. }) {
                slow.cancel();
            }
        };
        let asked = service.ask(&caller.asking(), &question(request), &mut tell, &cancel).await;
        match asked {
            Ok(answer) => {
                let status = why_not(&answer);
                teller.end(Some(steps.answer(answer)), status).await;
            }
            Err(problem) => teller.end(None, Some(refused(problem))).await,
        }
        drop(caller);
    });
    told
}
