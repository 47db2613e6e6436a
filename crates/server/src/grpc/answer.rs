//! Conversion of answers and events to protobuf messages.

use querymend::chart::Chart;
use querymend::event::{Correction, Cost, Metadata};
use querymend::{Answer, Attempt, Clarification, ClarificationChoice, Event, Problem, Stage};

use super::fields::{answer_status, confidence, to_u32};
use super::proto;
use super::proto::ask_event::Event as EventMessage;
use crate::wire_name::wire_name;

fn stage(stage: Stage) -> proto::Stage {
    match stage {
        Stage::PatternSelection => proto::Stage::PatternSelection,
        Stage::SchemaDiscovery => proto::Stage::SchemaDiscovery,
        Stage::Generation => proto::Stage::Generation,
        Stage::GuardrailCheck => proto::Stage::GuardrailCheck,
        Stage::ToolExecution => proto::Stage::ToolExecution,
        Stage::SelfCorrection => proto::Stage::SelfCorrection,
        Stage::Completed => proto::Stage::Completed,
        Stage::Failed => proto::Stage::Failed,
        Stage::HumanInTheLoop => proto::Stage::HumanInTheLoop,
    }
}

impl From<Answer> for proto::Answer {
    fn from(answer: Answer) -> Self {
        Self {
            status: answer_status(answer.status).into(),
            stop: wire_name(&answer.stop),
            trace_id: answer.trace_id,
            question: answer.question,
            sql: answer.sql.unwrap_or_default(),
            rows: answer.rows.map(Into::into),
            chart: answer.chart.map(Into::into),
            text: answer.text.unwrap_or_default(),
            confidence: confidence(answer.confidence).into(),
            reasons: answer.reasons,
            fixes: answer.fixes.into_iter().map(Into::into).collect(),
            warnings: answer.warnings.into_iter().map(Into::into).collect(),
            attempts: answer.attempts.into_iter().map(Into::into).collect(),
            corrections: answer.corrections.into_iter().map(Into::into).collect(),
            examples: answer.examples,
            remembered: answer.remembered.unwrap_or_default(),
            choices: labels(answer.clarification.as_ref()),
            fallback: answer.fallback,
            problem: answer.problem.map(Into::into),
            metadata: Some(answer.metadata.into()),
            cost: Some(answer.cost.into()),
            clarification: answer.clarification.map(Into::into),
        }
    }
}

fn labels(clarification: Option<&Clarification>) -> Vec<String> {
    clarification.iter().flat_map(|c| &c.options).map(|choice| choice.label.clone()).collect()
}

impl From<Clarification> for proto::Clarification {
    fn from(clarification: Clarification) -> Self {
        Self { question: clarification.question, options: clarification.options.into_iter().map(Into::into).collect() }
    }
}

impl From<ClarificationChoice> for proto::Choice {
    fn from(choice: ClarificationChoice) -> Self {
        Self { label: choice.label, sql: choice.sql, why: choice.why, preview: Some(choice.preview.into()) }
    }
}

impl From<Correction> for proto::Correction {
    fn from(correction: Correction) -> Self {
        Self {
            original_error: correction.original_error,
            strategy: correction.strategy,
            successful: correction.successful,
            confidence: confidence(correction.confidence).into(),
            duration_ms: correction.duration_ms,
        }
    }
}

impl From<Metadata> for proto::Metadata {
    fn from(metadata: Metadata) -> Self {
        Self {
            turns: metadata.turns,
            llm_calls: metadata.llm_calls,
            tool_executions: metadata.tool_executions,
            correction_attempts: metadata.correction_attempts,
            total_duration_ms: metadata.total_duration_ms,
            guardrails_checked: metadata.guardrails_checked,
            reviews: metadata.reviews,
        }
    }
}

impl From<Cost> for proto::Cost {
    fn from(cost: Cost) -> Self {
        Self { input_tokens: cost.input_tokens, output_tokens: cost.output_tokens, usd: cost.usd }
    }
}

impl From<Attempt> for proto::Attempt {
    fn from(attempt: Attempt) -> Self {
        Self {
            number: attempt.number,
            sql: attempt.sql,
            mended: attempt.mended.unwrap_or_default(),
            fixes: attempt.fixes.into_iter().map(Into::into).collect(),
            error: attempt.error.unwrap_or_default(),
            finding: attempt.finding.unwrap_or_default(),
            error_type: attempt.error_type.map(|kind| wire_name(&kind)).unwrap_or_default(),
            strategy: attempt.strategy.to_owned(),
            held_back: attempt.held_back,
        }
    }
}

impl From<Chart> for proto::Chart {
    fn from(chart: Chart) -> Self {
        Self {
            kind: wire_name(&chart.kind),
            x: chart.x.map(to_u32),
            y: chart.y.into_iter().map(to_u32).collect(),
            series: chart.series.map(to_u32),
        }
    }
}

impl From<Problem> for proto::Problem {
    fn from(problem: Problem) -> Self {
        Self {
            code: wire_name(&problem.code),
            message: problem.message,
            hint: problem.hint.unwrap_or_default(),
            retry_after_s: problem.retry_after_s,
            ..Self::default()
        }
    }
}

/// Converts events to messages, tracking the current stage and attempt.
#[derive(Default)]
pub struct EventMapper {
    stage: proto::Stage,
    attempt: u32,
}

impl EventMapper {
    /// Returns the last event of a stream, with the answer.
    pub fn map_answer(&self, answer: Answer) -> proto::AskEvent {
        self.wrap(EventMessage::Answer(answer.into()))
    }

    /// Converts an event to a message.
    ///
    /// Returns `None` for [`Event::Finished`]: the answer is sent only after it is in the audit
    /// log.
    pub fn map_event(&mut self, event: &Event) -> Option<proto::AskEvent> {
        if let Event::Stage { stage: now, attempt } = event {
            (self.stage, self.attempt) = (stage(*now), *attempt);
        }
        let message = self.wrap(event_message(event.clone())?);
        Some(proto::AskEvent { attempt: attempt(event).unwrap_or(self.attempt), ..message })
    }

    fn wrap(&self, event: EventMessage) -> proto::AskEvent {
        proto::AskEvent { stage: self.stage.into(), attempt: self.attempt, event: Some(event) }
    }
}

/// Returns the attempt number of an event that carries one.
fn attempt(event: &Event) -> Option<u32> {
    match event {
        Event::Stage { attempt, .. }
        | Event::Drafted { attempt, .. }
        | Event::CandidatesCompared { attempt, .. }
        | Event::Reviewed { attempt, .. }
        | Event::Repaired { attempt, .. }
        | Event::Executed { attempt, .. }
        | Event::Rejected { attempt, .. }
        | Event::Retrying { attempt, .. }
        | Event::Changed { attempt, .. } => Some(*attempt),
        Event::Started { .. }
        | Event::SchemaLinked { .. }
        | Event::ExamplesRetrieved { .. }
        | Event::Text { .. }
        | Event::FallbackStarted { .. }
        | Event::Finished { .. } => None,
    }
}

fn event_message(event: Event) -> Option<EventMessage> {
    Some(match event {
        Event::Started { trace_id, question, database, model, dialect, max_attempts } => {
            let dialect = dialect.to_owned();
            EventMessage::Started(proto::Started { trace_id, question, database, model, dialect, max_attempts })
        }
        Event::Stage { .. } => EventMessage::StageBegan(proto::StageBegan {}),
        Event::SchemaLinked { tables, of } => {
            EventMessage::SchemaLinked(proto::SchemaLinked { tables, of: to_u32(of) })
        }
        Event::ExamplesRetrieved { known, examples, stale, trouble } => {
            let examples = examples.into_iter().map(|shown| proto::Shown {
                id: shown.id,
                question: shown.question,
                similarity: shown.similarity,
            });
            EventMessage::ExamplesRetrieved(proto::ExamplesRetrieved {
                known: known.unwrap_or_default(),
                examples: examples.collect(),
                stale,
                trouble: trouble.unwrap_or_default(),
            })
        }
        Event::Text { piece } => EventMessage::Text(piece),
        Event::Drafted { text, usage, .. } => EventMessage::Drafted(proto::Drafted { text, usage: Some(usage.into()) }),
        Event::CandidatesCompared { drafts, agree, of, .. } => {
            EventMessage::CandidatesCompared(proto::CandidatesCompared { drafts, agree: to_u32(agree), of: to_u32(of) })
        }
        Event::Reviewed { sql, approved, findings, extracted, .. } => EventMessage::Reviewed(proto::Reviewed {
            sql,
            approved,
            findings: findings.into_iter().map(Into::into).collect(),
            extracted: Some(extracted.into()),
        }),
        Event::Repaired { before, after, applied, changes, .. } => EventMessage::Repaired(proto::Repaired {
            before,
            after,
            applied: applied.into_iter().map(Into::into).collect(),
            changes: changes.into_iter().map(Into::into).collect(),
        }),
        Event::Executed { sql, rows, truncated, ms, .. } => {
            EventMessage::Executed(proto::Executed { sql, rows: rows as u64, truncated, duration_ms: ms })
        }
        Event::Rejected { sql, error, finding, error_type, .. } => EventMessage::Rejected(proto::Rejected {
            sql,
            code: error.code,
            message: error.message,
            hint: error.hint.unwrap_or_default(),
            position: error.position.map(to_u32),
            finding: finding.to_owned(),
            error_type: wire_name(&error_type),
        }),
        Event::Retrying { of, strategy, feedback, .. } => {
            let feedback = feedback.into_iter().map(|one| proto::Feedback { kind: one.kind, text: one.text });
            EventMessage::Retrying(proto::Retrying { of, strategy: strategy.to_owned(), feedback: feedback.collect() })
        }
        Event::Changed { changes, .. } => {
            EventMessage::Changed(proto::Changed { changes: changes.into_iter().map(Into::into).collect() })
        }
        Event::FallbackStarted { tables } => EventMessage::FallbackStarted(proto::FallbackStarted { tables }),
        Event::Finished { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_have_the_same_name_in_grpc_and_json() {
        let all = [
            Stage::PatternSelection,
            Stage::SchemaDiscovery,
            Stage::Generation,
            Stage::ToolExecution,
            Stage::GuardrailCheck,
            Stage::SelfCorrection,
            Stage::Completed,
            Stage::Failed,
            Stage::HumanInTheLoop,
        ];
        let mut mapper = EventMapper::default();
        for (number, one) in all.into_iter().enumerate() {
            let message = mapper.map_event(&Event::Stage { stage: one, attempt: 2 });
            let mapped = message.map(|event| (event.stage, event.stage().as_str_name().to_owned(), event.attempt));
            let name = format!("STAGE_{}", wire_name(&one).to_uppercase());
            assert_eq!(mapped, Some((number as i32 + 1, name, 2)));
        }
    }
}
