//! Rows, findings, corrections, tables, conversations and breakers, as messages.

use querymend::correct::{Corrected, Placed};
use querymend::direct::Checked;
use querymend::guard::{State, Stats};
use querymend::records::ErrorRecord;
use querymend_sql::schema::{Table, TableKind};
use querymend_sql::{
    Applicability, Applied, Cell, Extracted, Finding, Fix, MeaningClaim, Rows, Severity, Status as Mending, Verdict,
    diff::Change,
};

use super::answer::ending;
use super::proto;
use crate::service::word;
use crate::shelf::Talk;

/// Counts that are larger are not told apart.
pub fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A row.
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
            start: small(edit.span.start),
            end: small(edit.span.end),
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
            start: small(finding.span.start),
            end: small(finding.span.end),
            place: None,
            suggestion: finding.suggestion.unwrap_or_default(),
            evidence: finding.evidence,
            advice: finding.advice,
            fixes: finding.fixes.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<Placed> for proto::Finding {
    fn from(placed: Placed) -> Self {
        let place = proto::Place {
            line: small(placed.line),
            column: small(placed.column),
            end_line: small(placed.end_line),
            end_column: small(placed.end_column),
        };
        Self { place: Some(place), ..placed.finding.into() }
    }
}

impl From<Applied> for proto::Applied {
    fn from(applied: Applied) -> Self {
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
            error_type: word(&record.analysis.error_type),
            summary: record.analysis.summary,
            suggestions: record.analysis.suggestions,
            corrected_sql,
            explanation,
        }
    }
}

impl From<Change> for proto::Change {
    fn from(change: Change) -> Self {
        Self { before: change.before, after: change.after }
    }
}

impl From<Extracted> for proto::Extracted {
    fn from(extracted: Extracted) -> Self {
        let aliases = extracted.aliases.into_iter().map(|(name, of)| proto::Alias { name, of }).collect();
        let Extracted { tables, unknown_tables, ctes, .. } = extracted;
        Self { tables, ctes, aliases, unknown_tables }
    }
}

impl From<Checked> for proto::CheckResponse {
    fn from(checked: Checked) -> Self {
        Self {
            approved: checked.verdict == Verdict::Approved,
            clean: checked.clean,
            dialect: checked.dialect.to_owned(),
            findings: checked.findings.into_iter().map(Into::into).collect(),
            extracted: Some(checked.extracted.into()),
        }
    }
}

impl From<Corrected> for proto::CorrectResponse {
    fn from(corrected: Corrected) -> Self {
        let status = match corrected.status {
            Mending::Untouched => proto::CorrectStatus::Untouched,
            Mending::Mended => proto::CorrectStatus::Mended,
            Mending::GaveUp => proto::CorrectStatus::GaveUp,
            Mending::Refused => proto::CorrectStatus::Refused,
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
            confidence: super::answer::confidence(corrected.confidence).into(),
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

/// A table.
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

impl From<Talk> for proto::Session {
    fn from(talk: Talk) -> Self {
        let turns = talk.conversation.turns.into_iter().map(|turn| proto::Turn {
            question: turn.question,
            sql: turn.sql.unwrap_or_default(),
            status: ending(turn.status).into(),
            trace_id: turn.trace_id,
        });
        Self {
            session_id: talk.conversation.id,
            database: talk.database,
            at: talk.at,
            asked: talk.conversation.asked,
            turns: turns.collect(),
        }
    }
}

impl From<Stats> for proto::Breaker {
    fn from(stats: Stats) -> Self {
        let state = match stats.state {
            State::Closed => proto::BreakerState::Closed,
            State::Open => proto::BreakerState::Open,
            State::HalfOpen => proto::BreakerState::HalfOpen,
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
