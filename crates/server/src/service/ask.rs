//! Answering of questions, with audit logging.

use querymend::{Answer, AnswerStatus, AskInput, CancellationToken, Clarify, Event, Problem, ProblemCode};

use super::{AnalysisTarget, AskRequest, MAX_QUESTION_BYTES, Service, check_length};
use crate::audit::entries::{audit_entry, query_entries};
use crate::audit::log::AuditEntry;
use crate::audit::query_log::{ExecutedQuery, QueryLog};
use crate::clock::now;
use crate::request_context::RequestContext;
use crate::store::StoredSession;
use crate::wire_name::wire_name;

impl Service {
    /// Answers a question and reports events on the way.
    pub async fn ask(
        &self,
        ctx: &RequestContext<'_>,
        request: &AskRequest,
        on_event: &mut (dyn FnMut(&Event) + Send),
        cancel: &CancellationToken,
    ) -> Result<Answer, Problem> {
        let (evidence, choice) = (request.evidence.as_ref(), request.choice.as_ref());
        for (what, text) in [("question", Some(&request.question)), ("evidence", evidence), ("choice", choice)] {
            check_length(what, text.map_or("", String::as_str), MAX_QUESTION_BYTES)?;
        }
        let user = ctx.user;
        let stored = match &request.session_id {
            Some(id) => Some(self.session(user, id).await?),
            None => None,
        };
        let named = match (&stored, &request.database) {
            (Some(stored), Some(named)) if stored.database != *named => {
                let message = format!("the session belongs to the database `{}`", stored.database);
                return Err(Problem::new(ProblemCode::BadRequest, message));
            }
            (Some(stored), _) => Some(stored.database.as_str()),
            (None, named) => named.as_deref(),
        };
        let tenant = self.tenant(user, named)?;
        let stored = match stored {
            Some(stored) if tenant.querymend.memory().is_some() => Some(self.claim_pending_feedback(stored).await?),
            stored => stored,
        };
        let trace_id = querymend::trace_id();
        let origin = tenant.origin(ctx);
        let mut observers: Vec<_> = self.observers.iter().map(|one| one.on_question(&origin, &trace_id)).collect();
        // Without a tracing observer, the caller's trace context is propagated unchanged.
        let own = observers.iter().find_map(|observer| observer.traceparent());
        let traceparent = own.or_else(|| ctx.traceparent.map(str::to_owned));
        let mut events: Vec<Event> = Vec::new();
        let mut observe = |event: &Event| {
            // Clients see the public name of the database, not its address.
            let named = match event.clone() {
                Event::Started { trace_id, question, model, dialect, max_attempts, .. } => {
                    let database = tenant.name.clone();
                    Some(Event::Started { trace_id, question, database, model, dialect, max_attempts })
                }
                _ => None,
            };
            let event = named.as_ref().unwrap_or(event);
            observers.iter_mut().for_each(|observer| observer.on_event(event));
            on_event(event);
            if !matches!(event, Event::Text { .. } | Event::Finished { .. }) {
                events.push(event.clone());
            }
        };
        let ask = AskInput {
            question: request.question.clone(),
            evidence: request.evidence.clone(),
            bypass_memory: request.fresh,
            clarify: request.clarify.or_else(|| {
                let setting = tenant.querymend.config().self_correction.ask_user;
                request.is_interactive.then(|| Clarify::from_setting(setting, true))
            }),
            choice: request.choice.clone(),
            client_analysis: request.analysis == AnalysisTarget::Browser,
            trace_id: Some(trace_id.clone()),
            traceparent,
            ..AskInput::default()
        };
        let conversation = stored.as_ref().map(|stored| stored.conversation.clone());
        let mut session = conversation.map(|conversation| tenant.querymend.resume(conversation));
        let query_log = QueryLog::default();
        let run_future = async {
            match &mut session {
                Some(session) => session.ask_with(ask, &mut observe, cancel).await.clone(),
                None => tenant.querymend.ask_with(ask, &mut observe, cancel).await,
            }
        };
        let mut answer = query_log.scope(run_future).await;
        if request.summary && answer.status == AnswerStatus::Answered {
            let summary = tenant.querymend.summarise(&answer, cancel).await.ok().flatten();
            answer.text = summary.or(answer.text);
        }
        self.audit_question(ctx, &tenant.name, &answer, &events, &query_log.take()).await?;
        events.push(Event::Finished { answer: Box::new(answer.clone()) });
        if let Err(problem) = self.session_store.save_trace(user.id(), &answer.trace_id, &events).await {
            tracing::warn!(message = problem.message, "failed to save a trace");
        }
        if let (Some(stored), Some(session)) = (stored, session) {
            let conversation = session.into_conversation();
            let next = StoredSession { at: now(), version: stored.version + 1, conversation, ..stored };
            if !self.session_store.save_session(&next).await? {
                return Err(session_conflict());
            }
        }
        Ok(answer)
    }

    /// Claims the pending feedback of a session.
    ///
    /// The next message of a session is implicit feedback on the previous answer, which memory
    /// records. Of several concurrent messages only the first may count: it removes the pending
    /// feedback from the stored session (optimistic concurrency), and the others fail with a
    /// conflict.
    async fn claim_pending_feedback(&self, session: StoredSession) -> Result<StoredSession, Problem> {
        if session.conversation.unjudged.is_none() {
            return Ok(session);
        }
        let mut claimed = StoredSession { version: session.version + 1, ..session.clone() };
        claimed.conversation.unjudged = None;
        if !self.session_store.save_session(&claimed).await? {
            return Err(session_conflict());
        }
        Ok(StoredSession { version: claimed.version, ..session })
    }

    /// Writes one audit entry per query that was executed or rejected, and one for the question.
    async fn audit_question(
        &self,
        ctx: &RequestContext<'_>,
        database: &str,
        answer: &Answer,
        events: &[Event],
        executed: &[ExecutedQuery],
    ) -> Result<(), Problem> {
        let trace_id = Some(answer.trace_id.as_str());
        let mut entries = query_entries(executed, ctx, database, trace_id);
        for event in events {
            if let Event::Reviewed { sql, approved: false, .. } = event {
                entries.push(AuditEntry {
                    sql: Some(sql),
                    trace_id,
                    ..audit_entry(ctx, "query", database, "held back")
                });
            }
        }
        let outcome = wire_name(&answer.status);
        let (question, sql) = (Some(answer.question.as_str()), answer.sql.as_deref());
        let rows = answer.rows.as_ref().map(|rows| rows.rows.len());
        entries.push(AuditEntry { question, sql, rows, trace_id, ..audit_entry(ctx, "ask", database, &outcome) });
        self.audit.write_all(&entries).await
    }
}

fn session_conflict() -> Problem {
    let message = "the session was changed or deleted by a concurrent request";
    Problem::new(ProblemCode::Conflict, message).hint("send the questions of a session one after the other")
}
