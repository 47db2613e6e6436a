//! Read-only enforcement, independent of query review. Neither Spark nor Hive has read-only
//! transactions, so it depends on how a query is sent.
//!
//! Spark receives a query only as a subquery: `SELECT * FROM (…)`. Its grammar accepts nothing but
//! a query there, and nothing after it; commands of any kind do not parse. Functions that run
//! arbitrary Java code are shadowed by functions that cannot be called, files cannot be queried as
//! tables, and variables are not substituted (`session/prepare.rs`). Script transformations, which
//! pipe rows through programs, are detected in the query plan.
//!
//! Hive receives a query only after its plan was checked: a plan that does more than read and fetch
//! is rejected.

use std::mem::size_of;
use std::time::Duration;

use querymend_sql::{Cell, EngineError};

use super::cells::FetchedRows;
use super::errors;
use super::hive_error::HiveError;
use super::session::{HiveSession, Product};
use crate::Limits;
use crate::deadline::Deadline;

/// Hive functions that run arbitrary code or read files on the server.
const HIVE_UNSAFE_FUNCTIONS: &[&str] = &["reflect(", "reflect2(", "java_method(", "in_file("];

/// Checks whether the server would run the query, without running it.
pub(super) fn probe(session: &mut HiveSession, sql: &str, deadline: &Deadline) -> Result<(), HiveError> {
    let sql = strip_semicolon(sql)?;
    match session.product {
        // EXPLAIN also accepts commands, and hides errors of a query in the plan.
        Product::Spark => match session.command(&format!("DESCRIBE QUERY\n{sql}"), deadline) {
            Err(HiveError::ServerError(status)) if !status.is_unknown_handle() => {
                Err(HiveError::Rejected(errors::query_error(&status, sql, 1)))
            }
            outcome => outcome,
        },
        Product::Hive => {
            explain(session, &format!("EXPLAIN\n{sql}"), sql, deadline).and_then(|plan| check_plan_reads_only(&plan))
        }
    }
}

/// Runs a query and returns its rows within the limits.
pub(super) fn execute(
    session: &mut HiveSession,
    sql: &str,
    limits: &Limits,
    deadline: &Deadline,
) -> Result<FetchedRows, HiveError> {
    let sql = strip_semicolon(sql)?;
    let (text, lines_before) = match session.product {
        Product::Spark => {
            if may_use_script_transform(sql) {
                let plan = explain(session, &format!("EXPLAIN SELECT * FROM (\n{sql}\n)"), sql, deadline)?;
                if plan.contains("ScriptTransformation") {
                    return Err(rejection("sending rows through programs on the server is not allowed"));
                }
            }
            (format!("SELECT * FROM (\n{sql}\n) LIMIT {}", fetch_limit(limits)), 1)
        }
        Product::Hive => {
            probe(session, sql, deadline)?;
            (sql.to_string(), 0)
        }
    };
    let operation = match session.execute(&text, deadline) {
        Err(HiveError::ServerError(status)) if !status.is_unknown_handle() => {
            // Reports the error that the query causes without the wrapping subquery.
            if session.product == Product::Spark {
                probe(session, sql, deadline)?;
            }
            return Err(HiveError::Rejected(errors::query_error(&status, sql, lines_before)));
        }
        outcome => outcome?,
    };
    let fetched = session.fetch_rows(&operation, limits, deadline);
    session.release_operation(&operation, matches!(fetched, Err(HiveError::Interrupted)));
    fetched.map_err(|fault| match fault {
        HiveError::ServerError(status) if !status.is_unknown_handle() => {
            HiveError::Rejected(errors::query_error(&status, sql, lines_before))
        }
        other => other,
    })
}

/// Removes trailing semicolons. Returns an error if the query is empty or contains a NUL character.
fn strip_semicolon(sql: &str) -> Result<&str, HiveError> {
    if sql.contains('\0') {
        return Err(rejection("the query contains a NUL character"));
    }
    let sql = sql.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    if sql.trim().is_empty() { Err(rejection("the query is empty")) } else { Ok(sql) }
}

/// Returns the number of rows to request: one more than can be returned, to detect truncation.
fn fetch_limit(limits: &Limits) -> usize {
    let most = limits.rows.min(limits.bytes / size_of::<Cell>()).saturating_add(1);
    most.min(i32::MAX as usize - 1)
}

/// Returns whether a query contains the keywords of a script transformation.
///
/// Compares in uppercase, as the server's lexer does: there is more than one character whose
/// uppercase form is S or I.
fn may_use_script_transform(sql: &str) -> bool {
    let sql = sql.to_uppercase();
    sql.contains("USING") && ["TRANSFORM", "MAP", "REDUCE"].iter().any(|word| sql.contains(word))
}

fn explain(session: &mut HiveSession, text: &str, sql: &str, deadline: &Deadline) -> Result<String, HiveError> {
    let operation = match session.execute(text, deadline) {
        Err(HiveError::ServerError(status)) if !status.is_unknown_handle() => {
            return Err(HiveError::Rejected(errors::query_error(&status, sql, 1)));
        }
        outcome => outcome?,
    };
    let limits = Limits { rows: 100_000, bytes: 16 << 20, time: Duration::MAX, memory: 0, steps: None };
    let fetched = session.fetch_rows(&operation, &limits, deadline);
    session.release_operation(&operation, matches!(fetched, Err(HiveError::Interrupted)));
    let rows = fetched?.collector.into_rows();
    if rows.truncated {
        return Err(rejection("the query plan is too long to be checked"));
    }
    let line = |row: &Vec<Cell>| match row.first() {
        Some(Cell::Text(line)) => format!("{line}\n"),
        _ => String::new(),
    };
    Ok(rows.rows.iter().map(line).collect())
}

/// Returns an error unless a Hive plan only reads. The name of each stage describes its operation;
/// unknown operations are rejected.
fn check_plan_reads_only(plan: &str) -> Result<(), HiveError> {
    const READING: &[&str] =
        &["Map Reduce", "Map Reduce Local Work", "Tez", "Spark", "Fetch Operator", "Conditional Operator"];
    // SQL of the query must not be mistaken for the beginning of the plan.
    if !plan.trim_start().starts_with("STAGE DEPENDENCIES:") {
        return Err(rejection("the query plan cannot be parsed"));
    }
    let Some((_, stages)) = plan.split_once("STAGE PLANS:") else {
        return Err(rejection("the query plan cannot be parsed"));
    };
    let mut lines = stages.lines().filter(|line| !line.trim().is_empty()).peekable();
    let mut found = false;
    while let Some(line) = lines.next() {
        if !line.trim_start().starts_with("Stage: ") {
            continue;
        }
        let Some(work) = lines.peek().filter(|next| !next.trim_start().starts_with("Stage: ")) else { continue };
        found = true;
        if !READING.contains(&work.trim()) {
            return Err(rejection(&format!("the query does more than read: {}", work.trim())));
        }
    }
    if !found {
        return Err(rejection("the query plan cannot be parsed"));
    }
    if plan.contains("Transform Operator") || plan.contains("Script Operator") {
        return Err(rejection("sending rows through programs on the server is not allowed"));
    }
    if let Some(function) = HIVE_UNSAFE_FUNCTIONS.iter().find(|function| plan.contains(*function)) {
        return Err(rejection(&format!("the function {function}…) is not allowed")));
    }
    Ok(())
}

/// Creates a rejection by this engine, in the form of a server error.
fn rejection(message: &str) -> HiveError {
    HiveError::Rejected(EngineError { code: "25006".into(), message: message.into(), hint: None, position: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_hive_plans_that_do_more_than_read() {
        let plan = |work: &str| {
            format!(
                "STAGE DEPENDENCIES:\n  Stage-1 is a root stage\n\nSTAGE PLANS:\n  Stage: Stage-1\n    Map Reduce\n      Map \
                 Operator Tree:\n          TableScan\n\n  Stage: Stage-0\n    {work}\n      limit: -1\n"
            )
        };
        assert_eq!(check_plan_reads_only(&plan("Fetch Operator")), Ok(()));
        for work in ["Move Operator", "Create Table", "Drop Table", "Stats Work", "Explain", "Something New"] {
            assert!(check_plan_reads_only(&plan(work)).is_err(), "{work}");
        }
        assert!(
            check_plan_reads_only(&plan("Fetch Operator\n      expressions: reflect('java.lang.System','exit',1)"))
                .is_err()
        );
        assert!(
            check_plan_reads_only(&plan("Fetch Operator\n      Transform Operator\n        command: cat")).is_err()
        );
        assert!(check_plan_reads_only("Vertex: 'STAGE PLANS:\n Stage: x\n Fetch Operator\n'").is_err());
        assert!(
            may_use_script_transform("select transform(a) U\u{17f}ING 'cat' from t")
                && may_use_script_transform("map a us\u{131}ng 'x'")
        );
        assert!(check_plan_reads_only("").is_err() && check_plan_reads_only("STAGE PLANS:\n").is_err());
    }
}
