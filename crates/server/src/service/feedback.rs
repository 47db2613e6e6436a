//! Feedback of users on answers and examples.

use querymend::memory::PendingFeedback;
use querymend::{Problem, ProblemCode};
use querymend_memory::{Example, ExampleUpdate, Provenance, VerificationStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CreateExampleRequest, Service};
use crate::audit::entries::audit_entry;
use crate::audit::log::AuditEntry;
use crate::error::memory_problem;
use crate::request_context::RequestContext;
use crate::store::TraceSummary;

/// Feedback on an answer or example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FeedbackRequest {
    /// `true` if the answer or example is correct.
    pub good: bool,
}

/// Result of feedback on an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FeedbackResponse {
    /// Id of the example stored from the answer; `null` if none is.
    pub example_id: Option<String>,
}

impl Service {
    /// Records feedback on a past answer.
    ///
    /// A correct answer is stored as an example; everything learned from a wrong one is removed.
    pub async fn record_feedback(
        &self,
        ctx: &RequestContext<'_>,
        trace_id: &str,
        feedback: FeedbackRequest,
    ) -> Result<FeedbackResponse, Problem> {
        let events = self.trace(ctx.user, trace_id).await?;
        let unfinished = || Problem::new(ProblemCode::NotFound, "the trace is incomplete");
        let trace = TraceSummary::from_events(trace_id, ctx.user.id(), &events).ok_or_else(unfinished)?;
        let (Some(sql), "answered") = (trace.sql, trace.status.as_str()) else {
            return Err(Problem::new(ProblemCode::BadRequest, "the question has no answer to give feedback on"));
        };
        let database = Some(trace.database.clone());
        if feedback.good {
            let new = CreateExampleRequest { question: trace.question, sql, database, shared: false };
            return Ok(FeedbackResponse { example_id: Some(self.add_example(ctx, &new).await?.id) });
        }
        let answer = events.iter().find(|event| event["event"] == "finished").map(|event| &event["answer"]);
        let listed = |name: &str| answer.and_then(|answer| answer[name].as_array()).into_iter().flatten();
        let ids = listed("examples").chain(answer.map(|answer| &answer["remembered"]));
        let shown = ids.filter_map(|id| id.as_str().map(str::to_owned)).collect();
        let answer =
            PendingFeedback { question: trace.question.clone(), sql: Some(sql.clone()), worth_keeping: false, shown };
        let memory = self.memory(ctx.user, database.as_deref())?;
        memory.record_complaint(&answer).await.map_err(memory_problem)?;
        // Reject the example that was captured from this answer or approved before.
        let id = querymend_memory::example_id(&trace.question, &memory.namespace());
        let kept = memory.store().get(&id).await.map_err(memory_problem)?.filter(|example| example.sql == sql);
        if let Some(example) = kept {
            self.set_example_status(ctx, &example, VerificationStatus::Rejected).await?;
        } else {
            let entry = AuditEntry {
                question: Some(&trace.question),
                sql: Some(&sql),
                ..audit_entry(ctx, "judge", &trace.database, "wrong")
            };
            self.audit.write(&entry).await?;
        }
        Ok(FeedbackResponse { example_id: None })
    }

    /// Records feedback on an example.
    pub async fn record_example_feedback(
        &self,
        ctx: &RequestContext<'_>,
        database: Option<&str>,
        id: &str,
        feedback: FeedbackRequest,
    ) -> Result<(), Problem> {
        let example = self.editable_example(ctx, database, id).await?;
        let status = if feedback.good { VerificationStatus::Verified } else { VerificationStatus::Rejected };
        if feedback.good {
            let tenant = self.tenant(ctx.user, database)?;
            if !tenant.querymend.check(&example.sql, None).await?.clean {
                let problem = Problem::new(
                    ProblemCode::PreflightValidationFailed,
                    "the query of the example does not match the schema",
                );
                return Err(problem.hint("correct the query and save it"));
            }
        }
        self.set_example_status(ctx, &example, status).await
    }

    async fn set_example_status(
        &self,
        ctx: &RequestContext<'_>,
        example: &Example,
        standing: VerificationStatus,
    ) -> Result<(), Problem> {
        let memory = self.example_store()?;
        // Approval by a person is equivalent to saving the example.
        let provenance = (standing == VerificationStatus::Verified && example.provenance == Provenance::Auto)
            .then_some(Provenance::Saved);
        let change = ExampleUpdate { standing: Some(standing), provenance, ..ExampleUpdate::default() };
        memory.update(&[(&example.id, change)]).await.map_err(memory_problem)?;
        let (question, sql) = (Some(example.question.as_str()), Some(example.sql.as_str()));
        let entry = AuditEntry { question, sql, ..audit_entry(ctx, "example", &example.database, standing.name()) };
        self.audit.write(&entry).await
    }
}
