//! Read-only enforcement, independent of query review.
//!
//! It also ensures that the server parses a query as the review did.
//!
//! - Settings that change the meaning of SQL are pinned before each query, and the connection is
//!   reset after it, so that no query can affect the next one.
//! - Each query runs in a read-only transaction, in a session whose transactions are all read-only.
//! - Each query is prepared: the server accepts exactly one statement, and reports before execution
//!   whether it returns rows. Statements without a result set are not run; these include everything
//!   that commits implicitly (creating, dropping or altering tables), sets variables or writes to a
//!   file.
//! - Of the statements that return rows, only those that begin with a query keyword are run: not
//!   `OPTIMIZE TABLE`, `ANALYZE TABLE` or `INSERT … RETURNING`.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Statement};
use mysql_common::named_params::ParsedNamedParams;
use querymend_sql::EngineError;

use super::errors::MySqlError;
use crate::Error;

/// Server flavor. Both accept the same SQL but differ in how a timeout is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MySqlFlavor {
    MySql,
    MariaDb,
}

impl MySqlFlavor {
    /// Detects the flavor from the server's version.
    pub(super) fn from_version(version: &str) -> Self {
        if version.to_ascii_lowercase().contains("mariadb") { MySqlFlavor::MariaDb } else { MySqlFlavor::MySql }
    }

    /// Returns the SQL mode: double quotes delimit strings, backslashes escape, `||` is OR.
    ///
    /// Under `ONLY_FULL_GROUP_BY`, only MySQL recognizes columns that depend on a key, as query
    /// review does. MariaDB would reject such queries, so it runs without the mode; query review
    /// has already rejected those queries where it matters.
    fn sql_mode(self) -> &'static str {
        match self {
            MySqlFlavor::MySql => {
                "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
            }
            MySqlFlavor::MariaDb => "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        }
    }

    /// Returns the setting for the maximum run time of a statement.
    fn timeout_setting(self, time: Duration) -> String {
        let ms = time.as_micros().div_ceil(1_000).clamp(1, 31_536_000_000);
        match self {
            MySqlFlavor::MySql => format!("max_execution_time = {}", ms.min(u32::MAX.into())),
            MySqlFlavor::MariaDb => format!("max_statement_time = {}.{:03}", ms / 1_000, ms % 1_000),
        }
    }
}

/// Pins the settings and begins a read-only transaction, in one round trip.
pub(super) async fn begin_read_only(
    connection: &mut Conn,
    flavor: MySqlFlavor,
    time: Duration,
) -> Result<(), MySqlError> {
    let seconds = time.as_secs().clamp(1, 31_536_000);
    let (mode, time) = (flavor.sql_mode(), flavor.timeout_setting(time));
    // Messages must be in English for `classify`. The last two settings would otherwise truncate
    // results silently.
    let text = format!(
        "SET NAMES utf8mb4; \
         SET SESSION sql_mode = '{mode}', time_zone = '+00:00', lc_messages = 'en_US', autocommit = 1, {time}, \
         lock_wait_timeout = {seconds}, innodb_lock_wait_timeout = {seconds}, \
         group_concat_max_len = 1048576, sql_select_limit = 18446744073709551615; \
         SET SESSION TRANSACTION READ ONLY; \
         START TRANSACTION READ ONLY"
    );
    Ok(connection.query_drop(text).await?)
}

/// Prepares a query. Returns an error unless it is a single statement that returns rows.
pub(super) async fn prepare_query(connection: &mut Conn, sql: &str) -> Result<Statement, MySqlError> {
    if !is_query(sql) {
        return Err(rejection("1792", "Cannot execute statement in a READ ONLY transaction"));
    }
    let statement = connection.prep(escape_named_params(sql)?).await?;
    if statement.num_columns() == 0 {
        return Err(rejection("1792", "Cannot execute statement in a READ ONLY transaction"));
    }
    if statement.num_params() > 0 {
        return Err(rejection("1210", "no value was given for the parameter ?"));
    }
    Ok(statement)
}

/// Returns SQL that the driver sends unchanged.
///
/// The driver replaces `:name` by a placeholder, even inside some string literals that it misparses
/// (`5 -'a :b'`). A leading `/**/` prevents that, because the driver does not recognize the end of
/// this comment.
fn escape_named_params(sql: &str) -> Result<String, MySqlError> {
    for sent in [sql.to_string(), format!("/**/{sql}")] {
        if ParsedNamedParams::parse(sent.as_bytes()).is_ok_and(|parsed| parsed.params().is_empty()) {
            return Ok(sent);
        }
    }
    Err(rejection("1210", "no value was given for the parameter after a colon"))
}

/// Creates a rejection by this engine, in the form of a server error.
fn rejection(code: &str, message: &str) -> MySqlError {
    MySqlError::Engine(Error::Rejected(EngineError {
        code: code.into(),
        message: message.into(),
        hint: None,
        position: None,
    }))
}

/// Returns whether SQL begins with a query keyword. Executable comments (`/*! … */`) are not
/// skipped.
fn is_query(sql: &str) -> bool {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '(');
        if rest.starts_with("/*!") || rest.starts_with("/*M!") {
            return false;
        } else if let Some(comment) = rest.strip_prefix("/*") {
            let Some((_, after)) = comment.split_once("*/") else { return false };
            rest = after;
        } else if rest.starts_with('#')
            || rest.starts_with("-- ")
            || rest.starts_with("--\n")
            || rest.starts_with("--\t")
        {
            let Some((_, after)) = rest.split_once('\n') else { return false };
            rest = after;
        } else {
            break;
        }
    }
    let word: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let questions = ["select", "with", "values", "table", "explain", "describe", "desc", "show"];
    questions.iter().any(|question| word.eq_ignore_ascii_case(question))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_text_that_begins_like_a_query() {
        for (sql, expected) in [
            ("SELECT 1", true),
            (" ((select 1))", true),
            ("/* a */ -- b\n# c\nWITH x AS (SELECT 1) SELECT * FROM x", true),
            ("VALUES (1)", true),
            ("EXPLAIN SELECT 1", true),
            ("/*!50000 SELECT */ 1", false),
            ("/*M! DELETE */ FROM t", false),
            ("OPTIMIZE TABLE t", false),
            ("selected", false),
            ("-- SELECT 1", false),
            ("/* SELECT 1", false),
            ("", false),
        ] {
            assert_eq!(is_query(sql), expected, "{sql}");
        }
    }

    #[test]
    fn sends_exactly_the_approved_sql() {
        let sent = |sql: &str| escape_named_params(sql).ok();
        for sql in ["SELECT 'a :b', \":c\", `:d` -- :e\n", "SELECT TIME '12:30' /* :x */", "SELECT ?"] {
            assert_eq!(sent(sql).as_deref(), Some(sql));
        }
        assert_eq!(sent("SELECT 5 -'3 :b'").as_deref(), Some("/**/SELECT 5 -'3 :b'"));
        // The server reports the error.
        assert_eq!(sent("SELECT :b").as_deref(), Some("/**/SELECT :b"));
        assert_eq!(sent("SELECT /* x */ :b"), None);
    }

    #[test]
    fn formats_timeouts_for_mysql_and_mariadb() {
        assert_eq!(
            MySqlFlavor::from_version("10.11.19-MariaDB-0+deb12u1").timeout_setting(Duration::from_micros(1_500)),
            "max_statement_time = 0.002"
        );
        assert_eq!(
            MySqlFlavor::from_version("8.4.2").timeout_setting(Duration::from_secs(30)),
            "max_execution_time = 30000"
        );
        assert_eq!(MySqlFlavor::from_version("8.0.11-TiDB-v8.1.0"), MySqlFlavor::MySql);
    }
}
