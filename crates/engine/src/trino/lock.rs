//! The second lock: whatever is sent, nothing is written.
//!
//! Two things hold it, each alone. In this grammar the first word decides what a statement is, and no statement that begins
//! as a query does can write: only those are sent. And they are sent in a transaction that is READ ONLY, in which the server
//! refuses every change to a catalog (`READ_ONLY_VIOLATION`) and every procedure.
//!
//! A session leaves nothing behind for the next: what a statement would set comes back as a header, which is not heeded, and
//! the server keeps nothing between two statements but the transaction.

use querymend_sql::EngineError;

use crate::Error;

/// What a query begins with.
const QUERIES: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];

/// Lets queries through, and explanations of queries.
pub(super) fn only_queries(sql: &str) -> Result<(), Error> {
    if is_query(sql) {
        return Ok(());
    }
    let message = "Cannot execute write in a read-only transaction".to_string();
    Err(Error::Rejected(EngineError { code: "READ_ONLY_VIOLATION".into(), message, hint: None, position: None }))
}

fn is_query(sql: &str) -> bool {
    let Some((word, mut rest)) = word(sql) else { return false };
    if !word.eq_ignore_ascii_case("EXPLAIN") {
        return begins_query(word);
    }
    for optional in ["ANALYZE", "VERBOSE"] {
        if let Some((word, behind)) = self::word(rest)
            && word.eq_ignore_ascii_case(optional)
        {
            rest = behind;
        }
    }
    // Options stand in parentheses, and so may the query.
    if let Some(("(", within)) = self::word(rest)
        && let Some((option, _)) = self::word(within)
        && !begins_query(option)
    {
        let Some((_, behind)) = within.split_once(')') else { return false };
        rest = behind;
    }
    self::word(rest).is_some_and(|(word, _)| begins_query(word))
}

fn begins_query(word: &str) -> bool {
    word == "(" || QUERIES.iter().any(|query| word.eq_ignore_ascii_case(query))
}

/// The first word, or the first character if it belongs to none, and what stands behind it. Blanks and comments are those
/// that the server knows: what is none to it must be none here.
fn word(sql: &str) -> Option<(&str, &str)> {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.find(['\r', '\n']).map_or("", |end| &comment[end..]);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/")?.1;
        } else {
            break;
        }
    }
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let end = if end == 0 { rest.chars().next()?.len_utf8() } else { end };
    Some(rest.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c01_only_queries_and_their_explanations_are_let_through() {
        for sql in [
            "SELECT 1",
            " \t\r\n-- a remark\n/* another; DROP */ select 1",
            "(SELECT 1)",
            "((SELECT 1))",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "VALUES 1",
            "TABLE t",
            "EXPLAIN SELECT 1",
            "EXPLAIN (SELECT 1)",
            "EXPLAIN (TYPE LOGICAL, FORMAT JSON) SELECT 1",
            "explain/**/analyze verbose with a as (select 1) table a",
            "--\rSELECT 1",
        ] {
            assert!(is_query(sql), "{sql}");
        }
        for sql in [
            "",
            ";",
            "--",
            "/* SELECT",
            "/* /* */ DROP TABLE t",
            "INSERT INTO t SELECT 1",
            "-- SELECT\rDELETE FROM t",
            "\u{a0}SELECT 1",
            "\u{feff}SELECT 1",
            "SELECTED",
            "\"SELECT\" 1",
            "EXPLAIN INSERT INTO t SELECT 1",
            "EXPLAIN ANALYZE DELETE FROM t",
            "EXPLAIN (TYPE DISTRIBUTED) CALL f()",
            "EXPLAIN (TYPE",
            "EXPLAIN EXPLAIN ANALYZE DELETE FROM t",
            "EXPLAIN",
            "CALL system.runtime.kill_query('x')",
            "EXECUTE IMMEDIATE 'DROP TABLE t'",
            "SET SESSION a = 1",
            "COMMIT",
        ] {
            assert!(!is_query(sql), "{sql}");
        }
    }
}
