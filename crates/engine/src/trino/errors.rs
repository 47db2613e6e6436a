//! Converts errors of the server, and attributes them to the query or the server.

use std::error::Error as _;
use std::time::Duration;

use querymend_net::http::is_tls_error;
use querymend_net::root_cause;
use querymend_sql::EngineError;
use reqwest::StatusCode;

use super::protocol::{TrinoErrorLocation, TrinoQueryError};
use super::settings::TrinoSettings;
use crate::Error;

/// Query as it was sent, with additional lines before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentQuery<'a> {
    /// SQL of the query.
    pub sql: &'a str,
    /// Number of lines before the query.
    pub lines_before: usize,
}

/// Converts an error of a statement; `time` is its time limit.
pub(super) fn to_error(error: TrinoQueryError, sent: SentQuery<'_>, time: Duration, settings: &TrinoSettings) -> Error {
    let name = &settings.name;
    let engine_error =
        to_engine_error(error.message.unwrap_or_default(), &error.error_name, error.error_location, sent);
    match (error.error_type.as_str(), error.error_name.as_str()) {
        (_, "EXCEEDED_TIME_LIMIT") => Error::TimedOut { after: time },
        (_, "USER_CANCELED") => Error::Cancelled,
        (_, "QUERY_QUEUE_FULL" | "CLUSTER_OUT_OF_MEMORY" | "NO_NODES_AVAILABLE") => Error::Unavailable {
            what: format!("{name} is overloaded: {}", engine_error.message),
            hint: "wait a moment, then try again".into(),
            transient: true,
            cause: Some(Box::new(engine_error)),
        },
        (_, "SERVER_STARTING_UP" | "SERVER_SHUTTING_DOWN") => Error::Unavailable {
            what: format!("{name} is starting or stopping"),
            hint: "wait a moment, then try again".into(),
            transient: true,
            cause: Some(Box::new(engine_error)),
        },
        // A query that needs too much memory is at fault itself.
        ("USER_ERROR" | "INSUFFICIENT_RESOURCES", _) => Error::Rejected(engine_error),
        // Failure of the server or of an underlying database.
        _ => Error::Unavailable {
            what: format!("{name} could not run the query: {}", engine_error.message),
            hint: "the error may be temporary: try again, or check the log of the server".into(),
            transient: true,
            cause: Some(Box::new(engine_error)),
        },
    }
}

/// Converts an error, with its location relative to the query.
fn to_engine_error(
    message: String,
    code: &str,
    location: Option<TrinoErrorLocation>,
    sent: SentQuery<'_>,
) -> EngineError {
    let place = location.and_then(|place| {
        let line_number = place.line_number.checked_sub(sent.lines_before).filter(|line| *line > 0)?;
        Some(TrinoErrorLocation { line_number, ..place })
    });
    let message = match (location, place) {
        (Some(there), Some(here)) => {
            let column = here.column_number;
            let rest_of_message = message.strip_prefix(&format!("line {}:{column}: ", there.line_number));
            rest_of_message.map(|rest| format!("line {}:{column}: {rest}", here.line_number)).unwrap_or(message)
        }
        _ => message,
    };
    let position = place.and_then(|place| byte_offset(sent.sql, place));
    EngineError { code: code.to_string(), message, hint: None, position }
}

/// Converts a location to a byte offset, or to the end of the SQL if it is beyond it.
fn byte_offset(sql: &str, location: TrinoErrorLocation) -> Option<usize> {
    let line = sql.split_inclusive('\n').nth(location.line_number.checked_sub(1)?).unwrap_or_default();
    let start = line.as_ptr() as usize;
    let before = if line.is_empty() { sql.len() } else { start - sql.as_ptr() as usize };
    let within = line.char_indices().nth(location.column_number.checked_sub(1)?).map_or(line.len(), |(byte, _)| byte);
    Some(before + within)
}

/// Converts an error of a request.
pub(super) fn unreachable_error(error: &reqwest::Error, settings: &TrinoSettings) -> Error {
    let name = &settings.name;
    if is_tls_error(error) {
        return Error::unavailable(
            format!("cannot establish a TLS connection to {name}: {}", request_error_cause(error)),
            "if its certificate is self-signed or from a private CA, add ?sslrootcert=FILE; if the server does not \
             support TLS and the network can be trusted, add ?tls=false",
        );
    }
    Error::Unavailable {
        what: format!("{name} cannot be reached: {}", request_error_cause(error)),
        hint: format!("check host and port, and that {} is running there", settings.flavor.title),
        transient: true,
        cause: None,
    }
}

/// Returns whether the connection was closed before the request was sent.
///
/// Only the message of hyper's error reveals that.
pub(super) fn is_unsent_request(error: &reqwest::Error) -> bool {
    request_error_cause(error).contains("dispatch task")
}

/// Returns the root cause of a failed request, without the outer error, whose message would include
/// the URL.
fn request_error_cause(error: &reqwest::Error) -> String {
    error.source().map_or_else(|| "the request failed".into(), |inner| root_cause(inner).to_string())
}

/// Converts an HTTP status that the protocol does not use.
pub(super) fn http_status_error(status: StatusCode, body: &str, settings: &TrinoSettings) -> Error {
    let (name, title) = (&settings.name, settings.flavor.title);
    let body: String = body.chars().take(300).collect();
    let message =
        if body.trim().is_empty() || body.contains('<') { status.to_string() } else { body.trim().to_string() };
    let (what, hint) = match status {
        StatusCode::UNAUTHORIZED => (
            format!("{name} rejected the user, the password or the token: {message}"),
            "check the user in the address, and the password there or in QUERYMEND_DB_PASSWORD or QUERYMEND_DB_TOKEN; \
             passwords require TLS (?tls=true)"
                .to_string(),
        ),
        StatusCode::FORBIDDEN => (
            format!("{name} denied access to this user: {message}"),
            format!(
                "ask the administrator of this {title} for access; behind a proxy, it may need \
             http-server.process-forwarded=true"
            ),
        ),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            (format!("there is no {title} at {name}"), "check host and port".to_string())
        }
        status if status.is_redirection() => (
            format!("{name} returned a redirect, which is not followed"),
            "use the address that it redirects to; the server may require TLS (?tls=true)".to_string(),
        ),
        _ => (format!("{name} rejected the request: {message}"), format!("check that {title} is running there")),
    };
    let transient = status.is_server_error();
    Error::Unavailable { what, hint, transient, cause: None }
}

/// Error for a server that remains busy.
pub(super) fn busy_error(status: StatusCode, settings: &TrinoSettings) -> Error {
    Error::Unavailable {
        what: format!("{} is busy or starting: {status}", settings.name),
        hint: "wait a moment, then try again".into(),
        transient: true,
        cause: None,
    }
}

/// Error for a response that does not follow the protocol.
pub(super) fn protocol_error(why: impl std::fmt::Display, settings: &TrinoSettings) -> Error {
    let title = settings.flavor.title;
    Error::unavailable(
        format!("{} does not respond like {title}: {why}", settings.name),
        format!("check host and port, and whether the server is {title} (Presto and Trino have different protocols)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_locations_to_byte_offsets() {
        let sql = "SELECT '🦀',\r\n  nmae\nFROM t";
        for (line_number, column_number, expected) in [
            (1, 1, Some(0)),
            (1, 11, sql.find(',')),
            (2, 3, sql.find("nmae")),
            (3, 1, sql.find("FROM")),
            (3, 7, Some(sql.len())),
            (3, 99, Some(sql.len())),
            (9, 1, Some(sql.len())),
            (0, 1, None),
            (1, 0, None),
        ] {
            assert_eq!(
                byte_offset(sql, TrinoErrorLocation { line_number, column_number }),
                expected,
                "{line_number}:{column_number}"
            );
        }
    }

    #[test]
    fn excludes_prepended_lines_from_locations() {
        let sent = SentQuery { sql: "SELECT nmae", lines_before: 1 };
        let at = |line_number, column_number| Some(TrinoErrorLocation { line_number, column_number });
        let error =
            to_engine_error("line 2:8: Column 'nmae' cannot be resolved".into(), "COLUMN_NOT_FOUND", at(2, 8), sent);
        assert_eq!((error.message.as_str(), error.position), ("line 1:8: Column 'nmae' cannot be resolved", Some(7)));
        let error = to_engine_error("line 1:3: ours".into(), "X", at(1, 3), sent);
        assert_eq!((error.message.as_str(), error.position), ("line 1:3: ours", None));
    }
}
