//! What PostgreSQL says when it refuses, and whether the query, the server or the way to it is to blame.

use std::error::Error as _;

use querymend_sql::EngineError;
use tokio_postgres::Error as Refused;
use tokio_postgres::error::{DbError, ErrorPosition};

use crate::Error;

/// Why something on a connection did not come to an end.
pub(super) enum Failure {
    /// The connection is gone.
    Gone(Error),
    /// The server said so, and goes on.
    Said(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Said(error)
    }
}

/// What went wrong with a query.
pub(super) fn of_query(name: &str, sql: &str, error: &Refused) -> Failure {
    match error.as_db_error() {
        Some(said) if !is_going_away(said) => Failure::Said(meaning(name, Some(sql), said)),
        Some(said) => Failure::Gone(meaning(name, None, said)),
        None => Failure::Gone(without_an_answer(name, error)),
    }
}

/// What went wrong with a connection that does not come about.
pub(super) fn of_connecting(name: &str, error: &Refused) -> Error {
    match error.as_db_error() {
        Some(said) => meaning(name, None, said),
        None => without_an_answer(name, error),
    }
}

/// All connections are in use.
pub(super) fn busy(name: &str) -> Error {
    Error::Unavailable {
        what: format!("{name} could not be asked in time: it does not answer, or all connections to it are in use"),
        hint: "try again in a moment, or allow more connections with `pool=` in the address".into(),
        transient: true,
        cause: None,
    }
}

/// The server ends, or ends this connection.
fn is_going_away(said: &DbError) -> bool {
    matches!(said.code().code(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03")
        || said.code().code().starts_with("08")
}

fn meaning(name: &str, sql: Option<&str>, said: &DbError) -> Error {
    let words = words(sql, said);
    let message = said.message();
    let (what, hint, transient) = match words.code.as_str() {
        // Only the caller knows the reason.
        "57014" => return Error::Cancelled,
        "28P01" | "28000" => (
            format!("{name} does not let this user in: {message}"),
            "check the user and the password: in the address, in QUERYMEND_DB_PASSWORD, PGPASSWORD, or the file that \
             PGPASSFILE names",
            false,
        ),
        "3D000" => (format!("{name} cannot be read: {message}"), "name a database that exists", false),
        "42501" if sql.is_none() => {
            (format!("{name} cannot be read: {message}"), "let the user CONNECT to the database", false)
        }
        "55P03" => (format!("{name}: {message}"), "another program holds a lock on the table; try again later", true),
        "53300" => (
            format!("{name} takes no more connections: {message}"),
            "try again in a moment, or ask with fewer connections at once: `pool=` in the address",
            true,
        ),
        code if is_going_away(said) || code.get(..2).is_some_and(|class| ["53", "58"].contains(&class)) => {
            (format!("{name} cannot be read: {message}"), "try again in a moment; the server's log may say more", true)
        }
        _ if sql.is_none() => (format!("{name} cannot be read: {message}"), "the server's log may say more", false),
        _ => return Error::Rejected(words),
    };
    Error::Unavailable { what, hint: hint.into(), transient, cause: Some(Box::new(words)) }
}

/// The server's own words. What it says besides its message is its hint, or else a detail.
fn words(sql: Option<&str>, said: &DbError) -> EngineError {
    let position = match said.position() {
        Some(ErrorPosition::Original(character)) => sql.and_then(|sql| byte(sql, *character)),
        // It points into the text of a function.
        Some(ErrorPosition::Internal { .. }) | None => None,
    };
    EngineError {
        code: said.code().code().to_string(),
        message: said.message().to_string(),
        hint: said.hint().or(said.detail()).map(str::to_string),
        position,
    }
}

/// The byte at which a character stands, counted from one as PostgreSQL does.
fn byte(sql: &str, character: u32) -> Option<usize> {
    let before = usize::try_from(character).ok()?.checked_sub(1)?;
    sql.char_indices().map(|(at, _)| at).chain([sql.len()]).nth(before)
}

/// The server did not get as far as to say something.
fn without_an_answer(name: &str, error: &Refused) -> Error {
    // The last cause says what it is; those above it say only that something happened.
    let mut why = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        why = inner.to_string();
        cause = inner.source();
    }
    // The library tells these apart in words only.
    let (hint, transient) = match error.to_string().as_str() {
        "error performing TLS handshake" => (
            "give sslrootcert=FILE with the certificate of its authority, or sslmode=disable where the network can be trusted",
            false,
        ),
        "authentication error" | "invalid configuration" => (
            "give a password: in QUERYMEND_DB_PASSWORD, PGPASSWORD, or a file of passwords that PGPASSFILE names",
            false,
        ),
        "error connecting to server"
        | "connection closed"
        | "error communicating with the server"
        | "timeout waiting for server" => ("is the server running, and are host and port right?", true),
        _ => ("is it a PostgreSQL server?", false),
    };
    Error::Unavailable { what: format!("{name} cannot be reached: {why}"), hint: hint.into(), transient, cause: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l03_characters_are_counted_and_bytes_are_given() {
        let sql = "SELECT 'ü日🦀', nmae";
        assert_eq!(byte(sql, 1), Some(0));
        assert_eq!(byte(sql, 15), sql.find("nmae"));
        assert_eq!(byte(sql, 19), Some(sql.len()));
        assert_eq!((byte(sql, 0), byte(sql, 99)), (None, None));
    }
}
