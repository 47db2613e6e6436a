//! Answers, and what happens on the way to them, as messages.

use querymend::chart::Chart;
use querymend::event::{Correction, Cost, Metadata};
use querymend::{Answer, Attempt, Choice, Clarification, Confidence, Event, Problem, Stage, Status as Ending};

use super::proto;
use super::proto::ask_event::Event as Told;
use super::sql::small;
use crate::service::word;

/// How a question ended.
pub fn ending(status: Ending) -> proto::AnswerStatus {
    match status {
        Ending::Answered => proto::AnswerStatus::Answered,
        Ending::GaveUp => proto::AnswerStatus::GaveUp,
        Ending::AskUser => proto::AnswerStatus::AskUser,
        Ending::Chat => proto::AnswerStatus::Chat,
        Ending::Failed => proto::AnswerStatus::Failed,
        Ending::Drafted => proto::AnswerStatus::Drafted,
        Ending::Abstained => proto::AnswerStatus::Abstained,
        Ending::Refused => proto::AnswerStatus::Refused,
    }
}

/// How sure something is.
pub fn confidence(confidence: Confidence) -> proto::Confidence {
    match confidence {
        Confidence::Low => proto::Confidence::Low,
        Confidence::Medium => proto::Confidence::Medium,
        Confidence::High => proto::Confidence::High,
    }
}

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
            status: ending(answer.status).into(),
            stop: word(&answer.stop),
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

impl From<Choice> for proto::Choice {
    fn from(choice: Choice) -> Self {
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
            error_type: attempt.error_type.map(|kind| word(&kind)).unwrap_or_default(),
            strategy: attempt.strategy.to_owned(),
            held_back: attempt.held_back,
        }
    }
}

impl From<Chart> for proto::Chart {
    fn from(chart: Chart) -> Self {
        Self {
            kind: word(&chart.kind),
            x: chart.x.map(small),
            y: chart.y.into_iter().map(small).collect(),
            series: chart.series.map(small),
        }
    }
}

impl From<Problem> for proto::Problem {
    fn from(problem: Problem) -> Self {
        Self {
            code: word(&problem.code),
            message: problem.message,
            hint: problem.hint.unwrap_or_default(),
            retry_after_s: problem.retry_after_s,
            ..Self::default()
        }
    }
}

/// What is being done, while events are told.
#[derive(Default)]
pub struct Steps {
    stage: proto::Stage,
    attempt: u32,
}

impl Steps {
    /// The answer, as the last event.
    pub fn answer(&self, answer: Answer) -> proto::AskEvent {
        self.here(Told::Answer(answer.into()))
    }

    /// An event as a message. Nothing is made of the answer: it is told when it is on record.
    pub fn told(&mut self, event: &Event) -> Option<proto::AskEvent> {
        if let Event::Stage { stage: now, attempt } = event {
            (self.stage, self.attempt) = (stage(*now), *attempt);
        }
        let told = self.here(told(event.clone())?);
        Some(proto::AskEvent { attempt: attempt(event).unwrap_or(self.attempt), ..told })
    }

    fn here(&self, event: Told) -> proto::AskEvent {
        proto::AskEvent { stage: self.stage.into(), attempt: self.attempt, event: Some(event) }
    }
}

/// The attempt that an event itself says that it belongs to.
fn attempt(event: &Event) -> Option<u32> {
    match event {
        Event::Stage { attempt, .. }
        | Event::Drafted { attempt, .. }
        | Event::Weighed { attempt, .. }
        | Event::Reviewed { attempt, .. }
        | Event::Mended { attempt, .. }
        | Event::Executed { attempt, .. }
        | Event::Rejected { attempt, .. }
        | Event::Retrying { attempt, .. }
        | Event::Changed { attempt, .. } => Some(*attempt),
        Event::Started { .. }
        | Event::Linked { .. }
        | Event::Recalled { .. }
        | Event::Text { .. }
        | Event::FellBack { .. }
        | Event::Finished { .. } => None,
    }
}

fn told(event: Event) -> Option<Told> {
    Some(match event {
        Event::Started { trace_id, question, database, model, dialect, max_attempts } => {
            let dialect = dialect.to_owned();
            Told::Started(proto::Started { trace_id, question, database, model, dialect, max_attempts })
        }
        Event::Stage { .. } => Told::StageBegan(proto::StageBegan {}),
        Event::Linked { tables, of } => Told::Linked(proto::Linked { tables, of: small(of) }),
        Event::Recalled { known, examples, stale, trouble } => {
            let examples = examples.into_iter().map(|shown| proto::Shown {
                id: shown.id,
                question: shown.question,
                similarity: shown.similarity,
            });
            Told::Recalled(proto::Recalled {
                known: known.unwrap_or_default(),
                examples: examples.collect(),
                stale,
                trouble: trouble.unwrap_or_default(),
            })
        }
        Event::Text { piece } => Told::Text(piece),
        Event::Drafted { text, usage, .. } => Told::Drafted(proto::Drafted { text, usage: Some(usage.into()) }),
        Event::Weighed { drafts, agree, of, .. } => {
            Told::Weighed(proto::Weighed { drafts, agree: small(agree), of: small(of) })
        }
        Event::Reviewed { sql, approved, findings, extracted, .. } => Told::Reviewed(proto::Reviewed {
            sql,
            approved,
            findings: findings.into_iter().map(Into::into).collect(),
            extracted: Some(extracted.into()),
        }),
        Event::Mended { before, after, applied, changes, .. } => Told::Mended(proto::Mended {
            before,
            after,
            applied: applied.into_iter().map(Into::into).collect(),
            changes: changes.into_iter().map(Into::into).collect(),
        }),
        Event::Executed { sql, rows, truncated, ms, .. } => {
            Told::Executed(proto::Executed { sql, rows: rows as u64, truncated, duration_ms: ms })
        }
        Event::Rejected { sql, error, finding, error_type, .. } => Told::Rejected(proto::Rejected {
            sql,
            code: error.code,
            message: error.message,
            hint: error.hint.unwrap_or_default(),
            position: error.position.map(small),
            finding: finding.to_owned(),
            error_type: word(&error_type),
        }),
        Event::Retrying { of, strategy, feedback, .. } => {
            let feedback = feedback.into_iter().map(|one| proto::Feedback { kind: one.kind, text: one.text });
            Told::Retrying(proto::Retrying { of, strategy: strategy.to_owned(), feedback: feedback.collect() })
        }
        Event::Changed { changes, .. } => {
            Told::Changed(proto::Changed { changes: changes.into_iter().map(Into::into).collect() })
        }
        Event::FellBack { tables } => Told::FellBack(proto::FellBack { tables }),
        Event::Finished { .. } => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l09_every_stage_has_the_same_name_everywhere() {
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
        let mut steps = Steps::default();
        for (number, one) in all.into_iter().enumerate() {
            let told = steps.told(&Event::Stage { stage: one, attempt: 2 });
            let told = told.map(|event| (event.stage, event.stage().as_str_name().to_owned(), event.attempt));
            let name = format!("STAGE_{}", word(&one).to_uppercase());
            assert_eq!(told, Some((number as i32 + 1, name, 2)));
        }
        let endings =
            [Ending::Answered, Ending::GaveUp, Ending::AskUser, Ending::Chat, Ending::Failed, Ending::Drafted];
        for one in endings {
            assert_eq!(ending(one).as_str_name(), format!("ANSWER_STATUS_{}", word(&one).to_uppercase()));
        }
        for one in [Confidence::Low, Confidence::Medium, Confidence::High] {
            assert_eq!(confidence(one).as_str_name(), format!("CONFIDENCE_{}", word(&one).to_uppercase()));
        }
    }
}
