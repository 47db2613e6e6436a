//! Logs events as structured log lines and span fields. Rows are never logged, and events never
//! contain keys.

use querymend_sql::{Finding, QueryReferences, Severity};
use serde::Serialize;
use tracing::{debug, info, warn};

use crate::event::{AnswerStatus, Event};

/// Writes an event to the log.
pub fn log(event: &Event) {
    match event {
        Event::Started { trace_id, database, model, max_attempts, .. } => {
            info!(trace_id, database, model, max_attempts, "question accepted");
        }
        Event::Stage { stage, attempt } => debug!(stage = wire_name(stage), attempt, "stage"),
        Event::SchemaLinked { tables, of } => debug!(shown = tables.len(), of, "tables linked, once for all attempts"),
        Event::ExamplesRetrieved { known, examples, stale, trouble } => {
            let known = known.is_some();
            debug!(known, shown = examples.len(), stale = stale.len(), "examples retrieved");
            if let Some(trouble) = trouble {
                warn!(trouble, "memory is unavailable");
            }
        }
        Event::Text { .. } => {}
        Event::Drafted { attempt, text, usage } => {
            debug!(attempt, bytes = text.len(), input = usage.input_tokens, output = usage.output_tokens, "drafted");
        }
        Event::CandidatesCompared { attempt, drafts, agree, of } => {
            debug!(attempt, drafts = drafts.len(), agree, of, "drafts compared");
        }
        Event::Reviewed { attempt, sql, approved, findings, extracted } => {
            let errors: Vec<String> =
                findings.iter().filter(|f| f.severity == Severity::Error).map(rule_and_subject).collect();
            if *approved && errors.is_empty() {
                let codes: Vec<&str> = findings.iter().map(|f| f.code).collect();
                debug!(attempt, sql, ?codes, "reviewed");
            } else {
                // The extracted references explain why a name was resolved to a table.
                let QueryReferences { tables, unknown_tables, ctes, aliases, allowed_tables, .. } = extracted;
                let aliases: Vec<String> = aliases.iter().map(|(name, of)| format!("{name} = {of}")).collect();
                let outcome = if *approved { "has errors" } else { "held back" };
                warn!(
                    attempt,
                    sql,
                    errors = errors.join(", "),
                    tables = tables.join(", "),
                    unknown_tables = unknown_tables.join(", "),
                    ctes = ctes.join(", "),
                    aliases = aliases.join(", "),
                    allowed_tables = allowed_tables.as_ref().map_or("all".to_string(), |all| all.join(", ")),
                    "{outcome}"
                );
            }
        }
        Event::Repaired { attempt, applied, changes, .. } => {
            let codes: Vec<&str> = applied.iter().map(|a| a.code).collect();
            info!(attempt, ?codes, diff = %format_changes(changes), "repaired without the model");
        }
        Event::Executed { attempt, rows, ms, .. } => info!(attempt, rows, ms, "ran"),
        Event::Rejected { attempt, error, error_type, .. } => {
            warn!(
                attempt,
                error_type = wire_name(error_type),
                code = error.code,
                message = error.message,
                "the database rejected the query"
            );
        }
        Event::Retrying { attempt, of, strategy, feedback } => {
            let kinds: Vec<&str> = feedback.iter().map(|f| f.kind.as_str()).collect();
            info!(attempt, of, strategy, ?kinds, "asking the model again");
        }
        Event::Changed { attempt, changes } => info!(attempt, diff = %format_changes(changes), "the model changed"),
        Event::FallbackStarted { tables } => warn!(?tables, "attempts exhausted: analysing plain rows locally"),
        Event::Finished { answer } => {
            let (outcome, stop) = (wire_name(&answer.status), wire_name(&answer.stop));
            let (confidence, attempt_count) = (wire_name(&answer.confidence), answer.attempts.len());
            let error_type = answer.attempts.iter().rev().find_map(|a| a.error_type).map(|kind| wire_name(&kind));
            match answer.status {
                AnswerStatus::Answered | AnswerStatus::Drafted | AnswerStatus::Chat => {
                    info!(outcome, confidence, attempt_count, error_type, stop, "done");
                }
                AnswerStatus::GaveUp
                | AnswerStatus::AskUser
                | AnswerStatus::Failed
                | AnswerStatus::Abstained
                | AnswerStatus::Refused => {
                    warn!(outcome, attempt_count, error_type, stop, "no answer");
                }
            }
        }
    }
}

/// Formats the rule and the name that it refers to: `unknown-column flurb`.
fn rule_and_subject(finding: &Finding) -> String {
    format!("{} {}", finding.code, finding.subject).trim_end().to_string()
}

/// Returns the serialized name of an enum value: `column_not_found`.
fn wire_name(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn format_changes(changes: &[querymend_sql::diff::DiffHunk]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
