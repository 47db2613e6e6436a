//! Read-only enforcement, independent of query review.
//!
//! It has two parts, each sufficient on its own. The first keyword determines the kind of a
//! statement in this grammar, and no statement that begins with a query keyword can write: only
//! those are sent. In addition, they are sent in a READ ONLY transaction, in which the server
//! rejects every change to a catalog (`READ_ONLY_VIOLATION`) and every procedure.
//!
//! A statement cannot affect the next one: settings that it changes are returned as headers, which
//! are ignored, and the server keeps no state between two statements except the transaction.

use querymend_sql::EngineError;

use crate::Error;

/// Keywords that begin a query.
const QUERY_KEYWORDS: [&str; 4] = ["SELECT", "WITH", "VALUES", "TABLE"];

/// Returns an error unless SQL is a query or an EXPLAIN of a query.
pub(super) fn check_is_query(sql: &str) -> Result<(), Error> {
    if is_query(sql) {
        return Ok(());
    }
    let message = "Cannot execute write in a read-only transaction".to_string();
    Err(Error::Rejected(EngineError { code: "READ_ONLY_VIOLATION".into(), message, hint: None, position: None }))
}

fn is_query(sql: &str) -> bool {
    let Some((word, mut rest)) = first_token(sql) else { return false };
    if !word.eq_ignore_ascii_case("EXPLAIN") {
        return is_query_start(word);
    }
    for optional in ["ANALYZE", "VERBOSE"] {
        if let Some((word, behind)) = self::first_token(rest)
            && word.eq_ignore_ascii_case(optional)
        {
            rest = behind;
        }
    }
    // Options are in parentheses, and the query may be, too.
    if let Some(("(", within)) = self::first_token(rest)
        && let Some((option, _)) = self::first_token(within)
        && !is_query_start(option)
    {
        let Some((_, behind)) = within.split_once(')') else { return false };
        rest = behind;
    }
    self::first_token(rest).is_some_and(|(word, _)| is_query_start(word))
}

fn is_query_start(word: &str) -> bool {
    word == "(" || QUERY_KEYWORDS.iter().any(|query| word.eq_ignore_ascii_case(query))
}

/// Returns the first token, a word or a single character, and the rest.
///
/// Skips exactly the whitespace and comments that the server recognizes.
fn first_token(sql: &str) -> Option<(&str, &str)> {
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
    fn accepts_only_queries_and_explain() {
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
