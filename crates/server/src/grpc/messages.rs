//! Conversion of rows, findings, corrections, tables, sessions and breakers to messages.

use querymend::correction::{CorrectionResponse, LocatedFinding};
use querymend::error_history::ErrorRecord;
use querymend::resilience::{BreakerState, BreakerStats};
use querymend::sql_api::CheckReport;
use querymend_sql::schema::{Table, TableKind};
use querymend_sql::{
    Applicability, AppliedFix, Cell, Finding, Fix, MeaningClaim, QueryReferences, RepairStatus, Rows, Severity,
    Verdict, diff::DiffHunk,
};

use super::fields::{answer_status, confidence, to_u32};
use super::proto;
use crate::store::StoredSession;
use crate::wire_name::wire_name;

/// Converts a row.
pub fn row(cells: Vec<Cell>) -> proto::Row {
    use proto::cell::Value;
    let cell = |cell| match cell {
        Cell::Null => Value::Null(true),
        Cell::Boolean(value) => Value::Boolean(value),
        Cell::Integer(value) => Value::Integer(value),
        Cell::Number(value) => Value::Number(value),
        Cell::Decimal(value) => Value::Decimal(value),
        Cell::Text(value) => Value::Text(value),
        Cell::Binary(value) => Value::Binary(value),
    };
    proto::Row { cells: cells.into_iter().map(|one| proto::Cell { value: Some(cell(one)) }).collect() }
}

impl From<Rows> for proto::Rows {
    fn from(rows: Rows) -> Self {
        Self { columns: rows.columns, rows: rows.rows.into_iter().map(row).collect(), truncated: rows.truncated }
    }
}

fn severity(severity: Severity) -> proto::Severity {
    match severity {
        Severity::Error => proto::Severity::Error,
        Severity::Warning => proto::Severity::Warning,
        Severity::Info => proto::Severity::Info,
    }
}

fn applicability(applicability: Applicability) -> proto::Applicability {
    match applicability {
        Applicability::Safe => proto::Applicability::Safe,
        Applicability::Likely => proto::Applicability::Likely,
        Applicability::Suggested => proto::Applicability::Suggested,
    }
}

impl From<Fix> for proto::Fix {
    fn from(fix: Fix) -> Self {
        let edits = fix.edits.into_iter().map(|edit| proto::Edit {
            start: to_u32(edit.span.start),
            end: to_u32(edit.span.end),
            text: edit.text,
        });
        Self { edits: edits.collect(), applicability: applicability(fix.applicability).into(), why: fix.why }
    }
}

impl From<Finding> for proto::Finding {
    fn from(finding: Finding) -> Self {
        Self {
            code: finding.code.to_owned(),
            severity: severity(finding.severity).into(),
            message: finding.message,
            subject: finding.subject,
            start: to_u32(finding.span.start),
            end: to_u32(finding.span.end),
            place: None,
            suggestion: finding.suggestion.unwrap_or_default(),
            evidence: finding.evidence,
            advice: finding.advice,
            fixes: finding.fixes.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<LocatedFinding> for proto::Finding {
    fn from(located: LocatedFinding) -> Self {
        let place = proto::Place {
            line: to_u32(located.line),
            column: to_u32(located.column),
            end_line: to_u32(located.end_line),
            end_column: to_u32(located.end_column),
        };
        Self { place: Some(place), ..located.finding.into() }
    }
}

impl From<AppliedFix> for proto::Applied {
    fn from(applied: AppliedFix) -> Self {
        Self {
            code: applied.code.to_owned(),
            applicability: applicability(applied.applicability).into(),
            why: applied.why,
        }
    }
}

impl From<ErrorRecord> for proto::ErrorRecord {
    fn from(record: ErrorRecord) -> Self {
        let (corrected_sql, explanation) =
            record.correction.map(|correction| (correction.corrected, correction.explanation)).unwrap_or_default();
        Self {
            sql: record.sql,
            code: record.code,
            message: record.message,
            at_unix_ms: record.at_unix_ms,
            attempts: record.attempts,
            previous_attempts: record.previous_attempts.into(),
            error_type: wire_name(&record.analysis.error_type),
            summary: record.analysis.summary,
            suggestions: record.analysis.suggestions,
            corrected_sql,
            explanation,
        }
    }
}

impl From<DiffHunk> for proto::Change {
    fn from(hunk: DiffHunk) -> Self {
        Self { before: hunk.before, after: hunk.after }
    }
}

impl From<QueryReferences> for proto::Extracted {
    fn from(references: QueryReferences) -> Self {
        let aliases = references.aliases.into_iter().map(|(name, of)| proto::Alias { name, of }).collect();
        let QueryReferences { tables, unknown_tables, ctes, .. } = references;
        Self { tables, ctes, aliases, unknown_tables }
    }
}

impl From<CheckReport> for proto::CheckResponse {
    fn from(checked: CheckReport) -> Self {
        Self {
            approved: checked.verdict == Verdict::Approved,
            clean: checked.clean,
            dialect: checked.dialect.to_owned(),
            findings: checked.findings.into_iter().map(Into::into).collect(),
            extracted: Some(checked.extracted.into()),
        }
    }
}

impl From<CorrectionResponse> for proto::CorrectResponse {
    fn from(corrected: CorrectionResponse) -> Self {
        let status = match corrected.status {
            RepairStatus::Untouched => proto::CorrectStatus::Untouched,
            RepairStatus::Mended => proto::CorrectStatus::Mended,
            RepairStatus::GaveUp => proto::CorrectStatus::GaveUp,
            RepairStatus::Refused => proto::CorrectStatus::Refused,
        };
        Self {
            corrected_sql: corrected.corrected_sql,
            correction_applied: corrected.correction_applied,
            success: corrected.success,
            trace_id: corrected.trace_id,
            status: status.into(),
            fixes: corrected.fixes.into_iter().map(Into::into).collect(),
            findings: corrected.findings.into_iter().map(Into::into).collect(),
            session_id: corrected.session_id.unwrap_or_default(),
            user_id: corrected.user_id.unwrap_or_default(),
            confidence: confidence(corrected.confidence).into(),
            best_attempt: corrected.best_attempt.unwrap_or_default(),
            names_resolved: corrected.names_resolved,
            meaning: match corrected.meaning {
                None => proto::MeaningClaim::Unspecified,
                Some(MeaningClaim::Likely) => proto::MeaningClaim::Likely,
                Some(MeaningClaim::Doubtful) => proto::MeaningClaim::Doubtful,
            }
            .into(),
            doubts: corrected.doubts,
        }
    }
}

/// Converts a table.
pub fn table(table: &Table) -> proto::Table {
    let columns = table.columns.iter().cloned().map(|column| proto::Column {
        name: column.name,
        r#type: column.type_name,
        nullable: column.nullable,
        comment: column.comment.unwrap_or_default(),
        samples: column.samples,
    });
    let foreign_keys = table.foreign_keys.iter().cloned().map(|key| proto::ForeignKey {
        columns: key.columns,
        table: key.table,
        references: key.references,
        inferred: key.inferred,
    });
    proto::Table {
        name: table.name.clone(),
        schema: table.schema.clone().unwrap_or_default(),
        view: table.kind == TableKind::View,
        columns: columns.collect(),
        primary_key: table.primary_key.clone(),
        foreign_keys: foreign_keys.collect(),
        unique: table.unique.iter().cloned().map(|columns| proto::ColumnSet { columns }).collect(),
        comment: table.comment.clone().unwrap_or_default(),
    }
}

impl From<StoredSession> for proto::Session {
    fn from(session: StoredSession) -> Self {
        let turns = session.conversation.turns.into_iter().map(|turn| proto::Turn {
            question: turn.question,
            sql: turn.sql.unwrap_or_default(),
            status: answer_status(turn.status).into(),
            trace_id: turn.trace_id,
        });
        Self {
            session_id: session.conversation.id,
            database: session.database,
            at: session.at,
            asked: session.conversation.asked,
            turns: turns.collect(),
        }
    }
}

impl From<BreakerStats> for proto::Breaker {
    fn from(stats: BreakerStats) -> Self {
        let state = match stats.state {
            BreakerState::Closed => proto::BreakerState::Closed,
            BreakerState::Open => proto::BreakerState::Open,
            BreakerState::HalfOpen => proto::BreakerState::HalfOpen,
        };
        Self {
            tool: stats.tool,
            state: state.into(),
            consecutive_failures: stats.consecutive_failures,
            probe_successes: stats.probe_successes,
            consecutive_opens: stats.consecutive_opens,
            opens: stats.opens,
            successes: stats.successes,
            failures: stats.failures,
            rejected: stats.rejected,
            retry_after_ms: stats.retry_after_ms,
            last_failure_unix_ms: stats.last_failure_unix_ms,
            last_change_unix_ms: stats.last_change_unix_ms,
        }
    }
}
