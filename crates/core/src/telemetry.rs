//! Events as log lines and spans' fields. Nothing of the rows is logged, and of keys nothing is ever in an event.

use querymend_sql::{Extracted, Finding, Severity};
use serde::Serialize;
use tracing::{debug, info, warn};

use crate::event::{Event, Status};

/// Writes an event to the log.
pub fn log(event: &Event) {
    match event {
        Event::Started { trace_id, database, model, max_attempts, .. } => {
            info!(trace_id, database, model, max_attempts, "question taken on");
        }
        Event::Stage { stage, attempt } => debug!(stage = word(stage), attempt, "stage"),
        Event::Linked { tables, of } => debug!(shown = tables.len(), of, "tables linked, once for all attempts"),
        Event::Recalled { known, examples, stale, trouble } => {
            let known = known.is_some();
            debug!(known, shown = examples.len(), stale = stale.len(), "memory asked");
            if let Some(trouble) = trouble {
                warn!(trouble, "memory cannot be asked");
            }
        }
        Event::Text { .. } => {}
        Event::Drafted { attempt, text, usage } => {
            debug!(attempt, bytes = text.len(), input = usage.input_tokens, output = usage.output_tokens, "drafted");
        }
        Event::Weighed { attempt, drafts, agree, of } => {
            debug!(attempt, drafts = drafts.len(), agree, of, "drafts weighed");
        }
        Event::Reviewed { attempt, sql, approved, findings, extracted } => {
            let errors: Vec<String> = findings.iter().filter(|f| f.severity == Severity::Error).map(named).collect();
            if *approved && errors.is_empty() {
                let codes: Vec<&str> = findings.iter().map(|f| f.code).collect();
                debug!(attempt, sql, ?codes, "reviewed");
            } else {
                // What was extracted tells why a name was taken for a table.
                let Extracted { tables, unknown_tables, ctes, aliases, allowed_tables, .. } = extracted;
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
        Event::Mended { attempt, applied, changes, .. } => {
            let codes: Vec<&str> = applied.iter().map(|a| a.code).collect();
            info!(attempt, ?codes, diff = %written(changes), "mended without the model");
        }
        Event::Executed { attempt, rows, ms, .. } => info!(attempt, rows, ms, "ran"),
        Event::Rejected { attempt, error, error_type, .. } => {
            warn!(
                attempt,
                error_type = word(error_type),
                code = error.code,
                message = error.message,
                "the database refused"
            );
        }
        Event::Retrying { attempt, of, strategy, feedback } => {
            let kinds: Vec<&str> = feedback.iter().map(|f| f.kind.as_str()).collect();
            info!(attempt, of, strategy, ?kinds, "asking the model again");
        }
        Event::Changed { attempt, changes } => info!(attempt, diff = %written(changes), "the model changed"),
        Event::FellBack { tables } => warn!(?tables, "attempts are spent: plain rows are analysed here"),
        Event::Finished { answer } => {
            let (outcome, stop) = (word(&answer.status), word(&answer.stop));
            let (confidence, attempt_count) = (word(&answer.confidence), answer.attempts.len());
            let error_type = answer.attempts.iter().rev().find_map(|a| a.error_type).map(|kind| word(&kind));
            match answer.status {
                Status::Answered | Status::Drafted | Status::Chat => {
                    info!(outcome, confidence, attempt_count, error_type, stop, "done");
                }
                Status::GaveUp | Status::AskUser | Status::Failed | Status::Abstained | Status::Refused => {
                    warn!(outcome, attempt_count, error_type, stop, "no answer");
                }
            }
        }
    }
}

/// The rule with the name that it speaks of: `unknown-column flurb`.
fn named(finding: &Finding) -> String {
    format!("{} {}", finding.code, finding.subject).trim_end().to_string()
}

/// The word of the protocol for an enum value: `column_not_found`.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn written(changes: &[querymend_sql::diff::Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
