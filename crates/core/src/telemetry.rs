//! Events as log lines and spans' fields. Nothing of the rows is logged, and of keys nothing is ever in an event.

use tracing::{debug, info, warn};

use crate::event::{Event, Status};

/// Writes an event to the log.
pub fn log(event: &Event) {
    match event {
        Event::Started { trace_id, database, model, max_attempts, .. } => {
            info!(trace_id, database, model, max_attempts, "question taken on");
        }
        Event::Stage { stage, attempt } => debug!(?stage, attempt, "stage"),
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
            let codes: Vec<&str> = findings.iter().map(|f| f.code).collect();
            if *approved {
                debug!(attempt, sql, ?codes, "reviewed");
            } else {
                // What was extracted tells why a name was taken for a table.
                warn!(attempt, sql, ?codes, ?extracted, "held back");
            }
        }
        Event::Mended { attempt, applied, changes, .. } => {
            let codes: Vec<&str> = applied.iter().map(|a| a.code).collect();
            info!(attempt, ?codes, diff = %written(changes), "mended without the model");
        }
        Event::Executed { attempt, rows, ms, .. } => info!(attempt, rows, ms, "ran"),
        Event::Rejected { attempt, error, error_type, .. } => {
            warn!(attempt, error_type = ?error_type, code = error.code, message = error.message, "the database refused");
        }
        Event::Retrying { attempt, of, strategy, feedback } => {
            let kinds: Vec<&str> = feedback.iter().map(|f| f.kind.as_str()).collect();
            info!(attempt, of, strategy, ?kinds, "asking the model again");
        }
        Event::Changed { attempt, changes } => info!(attempt, diff = %written(changes), "the model changed"),
        Event::FellBack { tables } => warn!(?tables, "attempts are spent: plain rows are analysed here"),
        Event::Finished { answer } => {
            let outcome = &answer.status;
            let (confidence, attempt_count) = (answer.confidence, answer.attempts.len());
            let error_type = answer.attempts.iter().rev().find_map(|a| a.error_type);
            match answer.status {
                Status::Answered | Status::Chat => {
                    info!(?outcome, ?confidence, attempt_count, ?error_type, stop = ?answer.stop, "done");
                }
                Status::GaveUp | Status::AskUser | Status::Failed => {
                    warn!(?outcome, attempt_count, ?error_type, stop = ?answer.stop, "no answer");
                }
            }
        }
    }
}

fn written(changes: &[querymend_sql::diff::Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
