//! What keeps a query from writing, whatever it says, and from being read otherwise than the critic has read it.
//!
//! - Settings that change the meaning of a text are pinned before each query, and the connection is reset after it, so that
//!   no query can leave anything for the next.
//! - Each query runs in a read-only transaction, in a session that makes read-only transactions alone.
//! - Each text is prepared: the server takes one statement and no more, and says before anything is run whether rows will
//!   come of it. What gives no rows is not run; that is all that commits by itself (tables made, dropped, altered), all that sets
//!   something, and all that writes to a file.
//! - Of what gives rows, only what begins like a question is run: not `OPTIMIZE TABLE`, `ANALYZE TABLE` or `INSERT … RETURNING`.

use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Statement};
use mysql_common::named_params::ParsedNamedParams;
use querymend_sql::EngineError;

use super::refusal::Fault;
use crate::Error;

/// The two families of servers: they speak alike, but not of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    MySql,
    MariaDb,
}

impl Family {
    /// Which one it is, by the version that a server says.
    pub(super) fn of(version: &str) -> Self {
        if version.to_ascii_lowercase().contains("mariadb") { Family::MariaDb } else { Family::MySql }
    }

    /// How texts are read: double quotes are text, backslashes escape, `||` is OR. Only MySQL knows which columns depend on a
    /// key, as the critic does; MariaDB would refuse such queries, and the critic has refused those where it matters.
    fn mode(self) -> &'static str {
        match self {
            Family::MySql => "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
            Family::MariaDb => "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",
        }
    }

    /// The longest that a statement may run.
    fn time(self, time: Duration) -> String {
        let ms = time.as_micros().div_ceil(1_000).clamp(1, 31_536_000_000);
        match self {
            Family::MySql => format!("max_execution_time = {}", ms.min(u32::MAX.into())),
            Family::MariaDb => format!("max_statement_time = {}.{:03}", ms / 1_000, ms % 1_000),
        }
    }
}

/// Pins the settings and begins a transaction that only reads, in one round trip.
pub(super) async fn begin(connection: &mut Conn, family: Family, time: Duration) -> Result<(), Fault> {
    let seconds = time.as_secs().clamp(1, 31_536_000);
    let (mode, time) = (family.mode(), family.time(time));
    // The words of the server are read by people and by `classify`, which know them in English. The others would cut an answer
    // short without a word.
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

/// Prepares the one statement of the text, and makes sure that it is one and gives rows.
pub(super) async fn prepare(connection: &mut Conn, sql: &str) -> Result<Statement, Fault> {
    if !asks(sql) {
        return Err(refused("1792", "Cannot execute statement in a READ ONLY transaction"));
    }
    let statement = connection.prep(as_sent(sql)?).await?;
    if statement.num_columns() == 0 {
        return Err(refused("1792", "Cannot execute statement in a READ ONLY transaction"));
    }
    if statement.num_params() > 0 {
        return Err(refused("1210", "no value was given for the parameter ?"));
    }
    Ok(statement)
}

/// The text that the driver sends just as it is. It takes `:name` for a parameter and puts a question mark there, also inside of
/// some texts that it takes for something else (`5 -'a :b'`). It can be kept from that: it does not see the end of `/**/`.
fn as_sent(sql: &str) -> Result<String, Fault> {
    for sent in [sql.to_string(), format!("/**/{sql}")] {
        if ParsedNamedParams::parse(sent.as_bytes()).is_ok_and(|parsed| parsed.params().is_empty()) {
            return Ok(sent);
        }
    }
    Err(refused("1210", "no value was given for the parameter after a colon"))
}

/// A refusal that this engine speaks in the server's place.
fn refused(code: &str, message: &str) -> Fault {
    Fault::Ours(Error::Rejected(EngineError { code: code.into(), message: message.into(), hint: None, position: None }))
}

/// Whether a text begins like a question. Comments that MySQL runs are none.
fn asks(sql: &str) -> bool {
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
    fn c01_only_what_begins_like_a_question_asks() {
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
            assert_eq!(asks(sql), expected, "{sql}");
        }
    }

    #[test]
    fn what_is_sent_is_what_was_approved() {
        let sent = |sql: &str| as_sent(sql).ok();
        for sql in ["SELECT 'a :b', \":c\", `:d` -- :e\n", "SELECT TIME '12:30' /* :x */", "SELECT ?"] {
            assert_eq!(sent(sql).as_deref(), Some(sql));
        }
        assert_eq!(sent("SELECT 5 -'3 :b'").as_deref(), Some("/**/SELECT 5 -'3 :b'"));
        // The server says what it thinks of it.
        assert_eq!(sent("SELECT :b").as_deref(), Some("/**/SELECT :b"));
        assert_eq!(sent("SELECT /* x */ :b"), None);
    }

    #[test]
    fn times_are_written_as_each_family_wants_them() {
        assert_eq!(
            Family::of("10.11.19-MariaDB-0+deb12u1").time(Duration::from_micros(1_500)),
            "max_statement_time = 0.002"
        );
        assert_eq!(Family::of("8.4.2").time(Duration::from_secs(30)), "max_execution_time = 30000");
        assert_eq!(Family::of("8.0.11-TiDB-v8.1.0"), Family::MySql);
    }
}
