//! Parses errors of Spark and Hive, and locates them in the query.
//!
//! Messages are wrapped in Java output: exception class names before them, a query plan and a stack
//! trace after them. The message itself is kept verbatim except for its line numbers, because the
//! query is sent below a line that this engine adds.

use querymend_sql::EngineError;

use super::address::{AuthMechanism, HiveSettings};
use super::hive_error::{HiveError, ThriftStatus};
use crate::deadline::Deadline;
use crate::{Error, introspection_limits};

/// Error location, as zero-based line and character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineColumn {
    line: usize,
    character: usize,
}

/// Converts a rejection of a query that was sent with `lines_before` additional lines above it.
pub(super) fn query_error(status: &ThriftStatus, sql: &str, lines_before: usize) -> EngineError {
    let (class, text) = strip_java_wrapping(&status.message);
    let (words, seen) = strip_query_and_plan(text);
    let mut message = words.to_string();
    let place = seen
        .or_else(|| find_location(words))
        .map(|place| LineColumn { line: place.line.wrapping_sub(lines_before), ..place });
    for line in (0..=sql.lines().count()).filter(|_| lines_before > 0) {
        for form in [["line ", " pos "], ["(line ", ", pos "], ["ine ", ":"]] {
            let [before, after] = form;
            let from = format!("{before}{}{after}", line + lines_before + 1);
            message = message.replace(&from, &format!("{before}{}{after}", line + 1));
        }
    }
    EngineError {
        code: error_code(status, class, words),
        message,
        hint: None,
        position: place.and_then(|place| byte_offset(sql, place)),
    }
}

/// Returns the last exception class before the message, and the message without its Java wrapping.
fn strip_java_wrapping(message: &str) -> (&str, &str) {
    // The rest is the stack trace or a repetition of the message.
    let end = ["\n\tat ", "\nDriver stacktrace:", "\nCaused by: "].iter().filter_map(|end| message.find(end)).min();
    let mut text = message[..end.unwrap_or(message.len())].trim();
    let mut class = "";
    // These prefixes of Hive add nothing to its error code.
    for prefix in ["Error while compiling statement: ", "Error while processing statement: "] {
        text = text.strip_prefix(prefix).unwrap_or(text);
    }
    loop {
        let before = text;
        if let Some(rest) = text.strip_prefix("Error running query: ") {
            text = rest;
        }
        // `[CLASS] package.Exception: message`; the message repeats the error class unless it is a
        // legacy one.
        if let Some((named, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] "))
            && split_exception(rest).is_some()
        {
            (class, text) = (named, rest);
        }
        if let Some((name, rest)) = split_exception(text) {
            if class.is_empty() || !class.contains('_') {
                class = name;
            }
            text = rest;
        }
        // Skips the description of the worker that failed.
        if text.starts_with("Job aborted due to stage failure: Task ")
            && let Some((_, rest)) = text.split_once(" executor ").and_then(|(_, rest)| rest.split_once("): "))
        {
            text = rest;
        }
        text = text.trim();
        if text == before {
            return (class, text);
        }
    }
}

/// Splits text into the simple name of the exception that it begins with, and the rest.
fn split_exception(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(':')?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "._$".contains(c);
    let (package, class) = name.rsplit_once('.')?;
    let known = class.ends_with("Exception") || class.ends_with("Error");
    (known && !package.is_empty() && name.chars().all(fits)).then(|| (class, rest.trim()))
}

/// Removes the repeated query and the plan from a message.
///
/// Returns the error location as well if only the repeated query contains it.
fn strip_query_and_plan(text: &str) -> (&str, Option<LineColumn>) {
    let mut place = None;
    let mut kept = text;
    if let Some((before, repeated)) = text.split_once("\n== SQL") {
        kept = before;
        place = last_number_pair(repeated.split_once("==").map_or("", |(head, _)| head), "(line ", ", position ")
            .map(|(line, position)| LineColumn { line: line.wrapping_sub(1), character: position.wrapping_sub(1) });
    }
    // A plan begins with the name of an operator, marked with `'` or `!` if it is unresolved.
    let plan = kept.match_indices(";\n").find(|(at, _)| {
        let plan = kept[at + 2..].trim_start_matches(['\'', '!']);
        let name = plan.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && (plan.contains("\n+- ") || plan.contains("\n:- ") || plan.contains('['))
    });
    (plan.map_or(kept, |(at, _)| &kept[..at]).trim_end_matches([';', '\n', ' ']), place)
}

fn find_location(text: &str) -> Option<LineColumn> {
    let place = |(line, character): (usize, usize)| LineColumn { line: line.wrapping_sub(1), character };
    last_number_pair(text, "line ", ", pos ")
        .or_else(|| last_number_pair(text, "line ", " pos "))
        .or_else(|| last_number_pair(text, "ine ", ":"))
        .or_else(|| {
            // Hive sometimes omits `line`.
            let rest = text.strip_prefix("FAILED: SemanticException ")?;
            last_number_pair(rest.split(' ').next()?, "", ":")
        })
        .map(place)
}

/// Returns the last pair of numbers in the form `{before}N{between}M`.
fn last_number_pair(text: &str, before: &str, between: &str) -> Option<(usize, usize)> {
    text.match_indices(before)
        .filter_map(|(at, _)| {
            let rest = &text[at + before.len()..];
            let (first, rest) = rest.split_once(between)?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            Some((first.parse().ok()?, rest[..digits].parse().ok()?))
        })
        .last()
}

/// Converts a location to a byte offset.
fn byte_offset(sql: &str, location: LineColumn) -> Option<usize> {
    let mut start = 0;
    for _ in 0..location.line {
        start += sql.get(start..)?.find('\n')? + 1;
    }
    let line = sql[start..].split('\n').next()?;
    let within = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(location.character)?;
    Some(start + within)
}

/// Returns Spark's error class, Hive's error number, the SQLSTATE, or the name of the exception.
fn error_code(status: &ThriftStatus, class: &str, text: &str) -> String {
    let fits = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
    if let Some((named, _)) =
        text.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|(name, _)| fits(name))
    {
        return named.to_string();
    }
    if let Some((number, _)) = text.split_once("[Error ").and_then(|(_, rest)| rest.split_once(']'))
        && number.parse::<u32>().is_ok()
    {
        return number.to_string();
    }
    if class.contains('_') {
        return class.to_string();
    }
    match status {
        ThriftStatus { code, .. } if *code != 0 => code.to_string(),
        ThriftStatus { sql_state: state, .. } if !state.is_empty() => state.clone(),
        _ if class.is_empty() => "ERROR".into(),
        _ => class.to_string(),
    }
}

/// Converts to the engine's error type.
pub(super) fn to_error(error: HiveError, settings: &HiveSettings, deadline: &Deadline) -> Error {
    let name = &settings.name;
    let unavailable = |what: String, hint: &str, transient: bool, cause: Option<Box<EngineError>>| Error::Unavailable {
        what,
        hint: hint.into(),
        transient,
        cause,
    };
    match error {
        HiveError::Interrupted => deadline.stop_reason().unwrap_or(Error::Cancelled),
        HiveError::TimedOut => Error::TimedOut { after: deadline.time_limit() },
        HiveError::Rejected(error) => Error::Rejected(error),
        HiveError::CatalogTooLarge => introspection_limits::catalog_too_large(name),
        HiveError::ConnectionLost { reason: why, is_tls: true } => unavailable(
            format!("cannot establish a TLS connection to {name}: {why}"),
            "if its certificate is self-signed or from a private CA, add sslrootcert=FILE to the address; if the \
             server does not support TLS, add tls=false",
            false,
            None,
        ),
        HiveError::ConnectionLost { reason: why, .. } => unavailable(
            format!("{name} cannot be reached: {why}"),
            match settings.auth {
                AuthMechanism::Plain => {
                    "is the server running, and are host and port right? If it was set up with \
                     hive.server2.authentication=NOSASL, write auth=nosasl in the address"
                }
                AuthMechanism::NoSasl => {
                    "is the server running, and are host and port right? If it requires a user name and a password, \
                     write auth=plain in the address"
                }
            },
            true,
            None,
        ),
        HiveError::AuthenticationFailed(words) => {
            let engine_error = EngineError { code: "28000".into(), message: words, hint: None, position: None };
            unavailable(
                format!("{name} rejected the user name and password"),
                "check them in the address, or set the password in QUERYMEND_DB_PASSWORD",
                false,
                Some(Box::new(engine_error)),
            )
        }
        HiveError::InvalidResponse(why) => unavailable(
            format!("{name} returned an invalid response: {why}"),
            "is it a HiveServer2 or Spark's Thrift server, in binary mode? If the response is too large, select fewer \
             or shorter columns",
            false,
            None,
        ),
        HiveError::UnknownDatabase(status) => unavailable(
            format!("{name} has no such database"),
            "check the name after the last / of the address; SHOW DATABASES lists them",
            false,
            Some(Box::new(query_error(&status, "", 0))),
        ),
        HiveError::ServerError(status) => {
            let engine_error = query_error(&status, "", 0);
            let transient = status.is_unknown_handle();
            unavailable(
                format!("{name} rejected the request: {}", engine_error.message),
                "check the message and the log of the server",
                transient,
                Some(Box::new(engine_error)),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(message: &str, sql: &str, above: usize) -> EngineError {
        query_error(&ThriftStatus { message: message.into(), ..ThriftStatus::default() }, sql, above)
    }

    #[test]
    fn strips_java_stack_traces_and_finds_the_position() {
        let error = refused(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: [UNRESOLVED_COLUMN.WITH_SUGGESTION] \
             org.apache.spark.sql.AnalysisException: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nmae` cannot be \
             resolved. Did you mean one of the following? [`id`].; line 3 pos 5;\n'Project ['nmae]\n+- SubqueryAlias things\n\
             \tat org.apache.spark.X.y(Z.scala:1)\nCaused by: org.apache.spark.sql.AnalysisException: again",
            "SELECT\n 'ü', nmae FROM things",
            1,
        );
        assert_eq!(error.code, "UNRESOLVED_COLUMN.WITH_SUGGESTION");
        assert_eq!(
            error.message,
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `nmae` cannot be resolved. Did you mean one of the \
             following? [`id`].; line 2 pos 5"
        );
        assert_eq!(error.position, Some(13));

        let error = refused(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: [PARSE_SYNTAX_ERROR] \
             org.apache.spark.sql.catalyst.parser.ParseException: \n[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'.(line 2, \
             pos 13)\n\n== SQL ==\nDESCRIBE QUERY\nSELECT (name FROM things\n-------------^^^\n\n\tat org.apache",
            "SELECT (name FROM things",
            1,
        );
        assert_eq!(error.message, "[PARSE_SYNTAX_ERROR] Syntax error at or near 'FROM'.(line 1, pos 13)");
        assert_eq!((error.code.as_str(), error.position), ("PARSE_SYNTAX_ERROR", Some(13)));

        let error = refused(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: org.apache.spark.SparkException: Job aborted due \
             to stage failure: Task 1 in stage 10.0 failed 1 times, most recent failure: Lost task 1.0 in stage 10.0 (TID 14) \
             (localhost executor driver): org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.\n\
             == SQL(line 2, position 8) ==\nSELECT 1/(id-1) FROM things\n       ^^^^^^^^\n\n\tat x\nDriver stacktrace:",
            "SELECT 1/(id-1) FROM things",
            1,
        );
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("DIVIDE_BY_ZERO", "[DIVIDE_BY_ZERO] Division by zero.")
        );
        assert_eq!(error.position, Some(7));

        let error = refused(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: [_LEGACY_ERROR_TEMP_1034] \
             org.apache.spark.sql.AnalysisException: It is not allowed to use window functions inside WHERE clause.",
            "SELECT 1",
            1,
        );
        assert_eq!(error.code, "_LEGACY_ERROR_TEMP_1034");
        assert_eq!(error.message, "It is not allowed to use window functions inside WHERE clause.");

        let error = refused("Error running query: java.lang.RuntimeException: boom", "SELECT 1", 1);
        assert_eq!((error.code.as_str(), error.message.as_str()), ("RuntimeException", "boom"));
    }

    #[test]
    fn parses_hive_error_messages() {
        let sql = "SELECT x.name FROM products p";
        let status = ThriftStatus {
            code: 10_004,
            sql_state: "42000".into(),
            message: "Error while compiling statement: FAILED: SemanticException [Error 10004]: Line 1:7 Invalid table alias or \
                      column reference 'x': (possible column names are: name)"
                .into(),
        };
        let error = query_error(&status, sql, 0);
        assert_eq!((error.code.as_str(), error.position), ("10004", Some(7)));
        assert!(
            error.message.starts_with("FAILED: SemanticException [Error 10004]: Line 1:7 Invalid"),
            "{}",
            error.message
        );
        let status = ThriftStatus {
            code: 40_000,
            message: "Error while compiling statement: FAILED: ParseException line 2:9 missing EOF at 'FORM' near '*'"
                .into(),
            ..ThriftStatus::default()
        };
        let error = query_error(&status, "SELECT * FORM products", 1);
        assert_eq!((error.code.as_str(), error.position), ("40000", Some(9)));
        assert_eq!(error.message, "FAILED: ParseException line 1:9 missing EOF at 'FORM' near '*'");
    }

    #[test]
    fn ignores_positions_outside_the_query() {
        for message in ["x; line 9 pos 1", "x; line 1 pos 99", "x (line 0, pos 3)", "Line 0:-1 wrong", "a line up to 7"]
        {
            assert_eq!(refused(message, "SELECT 1", 1).position, None, "{message}");
        }
    }
}
