//! `fix --batch`: repairs every line, if possible.

use querymend::correction::is_success;
use querymend_sql::{Applicability, AppliedFix, MeaningClaim, NotIndexed, RepairStatus};
use serde::{Deserialize, Serialize};

use super::task::{BatchFinding, BatchTask, TaskInput, TaskOutput};
use crate::error::CliError;
use crate::repair::{OracleConnection, OraclePool, RepairInput, repair_query};
use querymend::trace_id;

/// Batch task that repairs every line.
pub struct FixTask {
    /// Least certain applicability of fixes to apply.
    pub apply: Applicability,
    /// `true` if the database of a line dry-runs the repaired query.
    pub dry_run: bool,
    /// Maximum number of databases that each thread keeps open.
    pub max_open: usize,
}

/// Fields of a line that only `fix` reads.
#[derive(Deserialize)]
struct FixLine {
    error: Option<String>,
}

#[derive(Serialize)]
struct FixTaskBody {
    status: RepairStatus,
    sql: String,
    fixes: Vec<AppliedFix>,
    findings: Vec<BatchFinding>,
    names_resolved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<MeaningClaim>,
    doubts: Vec<String>,
    trace_id: String,
    /// Columns of the query's tables whose values are not indexed; omitted if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_indexed: Vec<NotIndexed>,
    /// Number of lookups that the database did not answer in time; their results count as unknown.
    /// Omitted if zero.
    #[serde(skip_serializing_if = "is_zero")]
    unanswered_lookups: usize,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl BatchTask for FixTask {
    const OUTCOMES: &'static [&'static str] = &["untouched", "repaired", "given up", "refused"];

    type WorkerState = OraclePool;

    fn new_state(&self) -> OraclePool {
        OraclePool::new(self.max_open)
    }

    fn run(&self, input: &TaskInput<'_>, pool: &mut OraclePool) -> Result<TaskOutput<impl Serialize>, CliError> {
        let fix_line: FixLine = serde_json::from_str(input.line)
            .map_err(|error| CliError::new(format!("the line cannot be read: {error}")).hint("error is a text"))?;
        let repair_input = RepairInput {
            text: input.sql,
            context: input.context(),
            question: input.question.as_deref(),
            error: fix_line.error.as_deref(),
            apply: self.apply,
        };
        let database = input.loaded.database.as_deref().filter(|_| self.dry_run);
        let connection = database.map(|address| pool.connect(address)).transpose()?;
        let repair = repair_query(&repair_input, connection.as_ref())?;
        let outcome = match repair.status {
            RepairStatus::Untouched => "untouched",
            RepairStatus::Mended => "repaired",
            RepairStatus::GaveUp => "given up",
            RepairStatus::Refused => "refused",
        };
        let not_indexed = input.loaded.unindexed_columns_of_query(&repair.sql, &input.context());
        let body = FixTaskBody {
            names_resolved: is_success(repair.status),
            meaning: repair.meaning(),
            doubts: repair.doubts,
            status: repair.status,
            sql: repair.sql,
            fixes: repair.applied,
            findings: repair.findings.into_iter().map(BatchFinding::from).collect(),
            trace_id: trace_id(),
            not_indexed,
            unanswered_lookups: connection.as_ref().map_or(0, OracleConnection::timeouts),
        };
        Ok(TaskOutput { outcome, body })
    }

    /// A query that was not reviewed counts as refused.
    fn error_output(&self, sql: &str) -> impl Serialize {
        FixTaskBody {
            status: RepairStatus::Refused,
            sql: sql.to_string(),
            fixes: Vec::new(),
            findings: Vec::new(),
            names_resolved: false,
            meaning: None,
            doubts: Vec::new(),
            trace_id: trace_id(),
            not_indexed: Vec::new(),
            unanswered_lookups: 0,
        }
    }
}
