//! What the server says when it refuses, and whether the query or the server is to blame.

use std::error::Error as _;
use std::time::Duration;

use querymend_net::http::is_tls;
use querymend_sql::EngineError;
use reqwest::StatusCode;

use super::settings::Settings;
use super::wire::{Failure, Location};
use crate::Error;

/// A text as it was sent: with lines of ours before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent<'a> {
    /// The query.
    pub sql: &'a str,
    /// The lines before it.
    pub lines_before: usize,
}

/// The error that a failed statement is; `time` is what it was allowed.
pub(super) fn meaning(failure: Failure, sent: Sent<'_>, time: Duration, settings: &Settings) -> Error {
    let name = &settings.name;
    let said = words(failure.message.unwrap_or_default(), &failure.error_name, failure.error_location, sent);
    match (failure.error_type.as_str(), failure.error_name.as_str()) {
        (_, "EXCEEDED_TIME_LIMIT") => Error::TimedOut { after: time },
        (_, "USER_CANCELED") => Error::Cancelled,
        (_, "QUERY_QUEUE_FULL" | "CLUSTER_OUT_OF_MEMORY" | "NO_NODES_AVAILABLE") => Error::Unavailable {
            what: format!("{name} has too much to do: {}", said.message),
            hint: "wait a moment, then try again".into(),
            transient: true,
            cause: Some(Box::new(said)),
        },
        (_, "SERVER_STARTING_UP" | "SERVER_SHUTTING_DOWN") => Error::Unavailable {
            what: format!("{name} is starting or stopping"),
            hint: "wait a moment, then try again".into(),
            transient: true,
            cause: Some(Box::new(said)),
        },
        // A query that needs too much memory is a query that asks for too much.
        ("USER_ERROR" | "INSUFFICIENT_RESOURCES", _) => Error::Rejected(said),
        // A fault of the server, or of what stands behind it.
        _ => Error::Unavailable {
            what: format!("{name} could not run the query: {}", said.message),
            hint: "its log says more; try again, as the trouble may pass".into(),
            transient: true,
            cause: Some(Box::new(said)),
        },
    }
}

/// The server's words about the query alone: lines of ours are not counted.
fn words(message: String, code: &str, location: Option<Location>, sent: Sent<'_>) -> EngineError {
    let place = location.and_then(|place| {
        let line_number = place.line_number.checked_sub(sent.lines_before).filter(|line| *line > 0)?;
        Some(Location { line_number, ..place })
    });
    let message = match (location, place) {
        (Some(there), Some(here)) => {
            let column = here.column_number;
            let spoken = message.strip_prefix(&format!("line {}:{column}: ", there.line_number));
            spoken.map(|rest| format!("line {}:{column}: {rest}", here.line_number)).unwrap_or(message)
        }
        _ => message,
    };
    let position = place.and_then(|place| offset(sent.sql, place));
    EngineError { code: code.to_string(), message, hint: None, position }
}

/// The byte at a line and a column; the end of the text, if it is pointed behind it.
fn offset(sql: &str, place: Location) -> Option<usize> {
    let line = sql.split_inclusive('\n').nth(place.line_number.checked_sub(1)?).unwrap_or_default();
    let start = line.as_ptr() as usize;
    let before = if line.is_empty() { sql.len() } else { start - sql.as_ptr() as usize };
    let within = line.char_indices().nth(place.column_number.checked_sub(1)?).map_or(line.len(), |(byte, _)| byte);
    Some(before + within)
}

/// The error that a failed request is.
pub(super) fn unreachable(error: &reqwest::Error, settings: &Settings) -> Error {
    let name = &settings.name;
    if is_tls(error) {
        return Error::unavailable(
            format!("there is no secure connection to {name}: {}", innermost(error)),
            "if the server has a certificate of its own, name the file with ?sslrootcert=FILE; if it has no TLS at all, and you \
             trust the network, add ?tls=false",
        );
    }
    Error::Unavailable {
        what: format!("{name} cannot be reached: {}", innermost(error)),
        hint: format!("check host and port, and that {} is running there", settings.family.title),
        transient: true,
        cause: None,
    }
}

/// Whether the connection ended before anybody sent the request: hyper tells only in words.
pub(super) fn was_not_taken(error: &reqwest::Error) -> bool {
    innermost(error).contains("dispatch task")
}

/// The first cause, which says most. Addresses are left out by reqwest only if they are asked to be.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let mut said = None;
    while let Some(inner) = cause {
        said = Some(inner.to_string());
        cause = inner.source();
    }
    said.unwrap_or_else(|| "the request failed".into())
}

/// The error that an HTTP status is which is none of the protocol's.
pub(super) fn status(status: StatusCode, body: &str, settings: &Settings) -> Error {
    let (name, title) = (&settings.name, settings.family.title);
    let body: String = body.chars().take(300).collect();
    let said = if body.trim().is_empty() || body.contains('<') { status.to_string() } else { body.trim().to_string() };
    let (what, hint) = match status {
        StatusCode::UNAUTHORIZED => (
            format!("{name} does not accept the user, the password or the token: {said}"),
            "check the user in the address, and the password there or in QUERYMEND_DB_PASSWORD or QUERYMEND_DB_TOKEN; passwords \
             are only taken over TLS (?tls=true)"
                .to_string(),
        ),
        StatusCode::FORBIDDEN => (
            format!("{name} does not let this user in: {said}"),
            format!("ask who runs this {title} for access; behind a proxy, it may need http-server.process-forwarded=true"),
        ),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            (format!("there is no {title} at {name}"), "check host and port".to_string())
        }
        status if status.is_redirection() => (
            format!("{name} sends us elsewhere, which is not followed"),
            "write the address that it sends to; perhaps it wants TLS (?tls=true)".to_string(),
        ),
        _ => (format!("{name} did not take the request: {said}"), format!("check that {title} is running there")),
    };
    let transient = status.is_server_error();
    Error::Unavailable { what, hint, transient, cause: None }
}

/// The server is there, but has no time for us.
pub(super) fn busy(status: StatusCode, settings: &Settings) -> Error {
    Error::Unavailable {
        what: format!("{} is busy or starting: {status}", settings.name),
        hint: "wait a moment, then try again".into(),
        transient: true,
        cause: None,
    }
}

/// What was answered is not the protocol.
pub(super) fn nonsense(why: impl std::fmt::Display, settings: &Settings) -> Error {
    let title = settings.family.title;
    Error::unavailable(
        format!("{} does not answer as {title} does: {why}", settings.name),
        format!("check host and port, and that it is {title} and not its sister that runs there"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l03_places_are_bytes_of_the_query() {
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
            assert_eq!(offset(sql, Location { line_number, column_number }), expected, "{line_number}:{column_number}");
        }
    }

    #[test]
    fn l03_lines_of_ours_are_not_counted() {
        let sent = Sent { sql: "SELECT nmae", lines_before: 1 };
        let at = |line_number, column_number| Some(Location { line_number, column_number });
        let error = words("line 2:8: Column 'nmae' cannot be resolved".into(), "COLUMN_NOT_FOUND", at(2, 8), sent);
        assert_eq!((error.message.as_str(), error.position), ("line 1:8: Column 'nmae' cannot be resolved", Some(7)));
        let error = words("line 1:3: ours".into(), "X", at(1, 3), sent);
        assert_eq!((error.message.as_str(), error.position), ("line 1:3: ours", None));
    }
}
