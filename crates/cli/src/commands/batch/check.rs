//! `check --batch`: a verdict for every line.

use querymend_sql::{NotIndexed, Verdict, review};
use serde::Serialize;

use super::task::{BatchFinding, BatchTask, TaskInput, TaskOutput};
use crate::error::CliError;

/// Batch task that reviews every line.
pub struct CheckTask;

#[derive(Serialize)]
struct CheckTaskBody {
    verdict: Verdict,
    findings: Vec<BatchFinding>,
    /// Columns of the query's tables whose values are not indexed; omitted if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_indexed: Vec<NotIndexed>,
}

impl BatchTask for CheckTask {
    const OUTCOMES: &'static [&'static str] = &["approved", "refused"];

    type WorkerState = ();

    fn new_state(&self) {}

    fn run(&self, input: &TaskInput<'_>, (): &mut ()) -> Result<TaskOutput<impl Serialize>, CliError> {
        let review = review(input.sql, &input.context());
        let verdict = review.verdict();
        let outcome = match verdict {
            Verdict::Approved => "approved",
            Verdict::Refused => "refused",
        };
        let not_indexed = input.loaded.unindexed_columns(&review.references.tables);
        let findings = review.findings.into_iter().map(BatchFinding::from).collect();
        Ok(TaskOutput { outcome, body: CheckTaskBody { verdict, findings, not_indexed } })
    }

    /// A query that was not reviewed counts as refused.
    fn error_output(&self, _sql: &str) -> impl Serialize {
        CheckTaskBody { verdict: Verdict::Refused, findings: Vec::new(), not_indexed: Vec::new() }
    }
}
