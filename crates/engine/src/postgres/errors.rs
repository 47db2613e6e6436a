//! Converts errors of PostgreSQL, and attributes them to the query, the server or the connection.

use querymend_net::root_cause;
use querymend_sql::EngineError;
use tokio_postgres::error::{DbError, ErrorPosition};

use crate::Error;

/// Error of an operation on a connection.
pub(super) enum PgError {
    /// The connection is closed.
    ConnectionLost(Error),
    /// The server reported an error, and the connection is still usable.
    Server(Error),
}

impl From<Error> for PgError {
    fn from(error: Error) -> Self {
        PgError::Server(error)
    }
}

/// Converts an error of a query.
pub(super) fn query_error(name: &str, sql: &str, error: &tokio_postgres::Error) -> PgError {
    match error.as_db_error() {
        Some(db_error) if !is_connection_ending(db_error) => PgError::Server(to_error(name, Some(sql), db_error)),
        Some(db_error) => PgError::ConnectionLost(to_error(name, None, db_error)),
        None => PgError::ConnectionLost(transport_error(name, error)),
    }
}

/// Converts an error of connecting.
pub(super) fn connection_error(name: &str, error: &tokio_postgres::Error) -> Error {
    match error.as_db_error() {
        Some(db_error) => to_error(name, None, db_error),
        None => transport_error(name, error),
    }
}

/// Error for a pool without a free connection.
pub(super) fn pool_exhausted(name: &str) -> Error {
    Error::Unavailable {
        what: format!("{name} timed out: it does not respond, or all connections to it are in use"),
        hint: "try again in a moment, or allow more connections with `pool=` in the address".into(),
        transient: true,
        cause: None,
    }
}

/// Returns whether the server is shutting down or closing this connection.
fn is_connection_ending(db_error: &DbError) -> bool {
    matches!(db_error.code().code(), "57P01" | "57P02" | "57P03" | "57P05" | "25P03")
        || db_error.code().code().starts_with("08")
}

fn to_error(name: &str, sql: Option<&str>, db_error: &DbError) -> Error {
    let words = to_engine_error(sql, db_error);
    let message = db_error.message();
    let (what, hint, transient) = match words.code.as_str() {
        // Only the caller knows the reason.
        "57014" => return Error::Cancelled,
        "28P01" | "28000" => (
            format!("{name} rejected the login: {message}"),
            "check the user and the password: in the address, in QUERYMEND_DB_PASSWORD, PGPASSWORD, or the file that \
             PGPASSFILE names",
            false,
        ),
        "3D000" => (format!("{name} cannot be read: {message}"), "name a database that exists", false),
        "42501" if sql.is_none() => {
            (format!("{name} cannot be read: {message}"), "grant the user CONNECT on the database", false)
        }
        "55P03" => (format!("{name}: {message}"), "another program holds a lock on the table; try again later", true),
        "53300" => (
            format!("{name} accepts no more connections: {message}"),
            "try again in a moment, or use fewer connections: `pool=` in the address",
            true,
        ),
        code if is_connection_ending(db_error) || code.get(..2).is_some_and(|class| ["53", "58"].contains(&class)) => (
            format!("{name} cannot be read: {message}"),
            "try again in a moment, and check the log of the server",
            true,
        ),
        _ if sql.is_none() => (format!("{name} cannot be read: {message}"), "check the log of the server", false),
        _ => return Error::Rejected(words),
    };
    Error::Unavailable { what, hint: hint.into(), transient, cause: Some(Box::new(words)) }
}

/// Converts an error of the server. The hint falls back to the error's detail.
fn to_engine_error(sql: Option<&str>, db_error: &DbError) -> EngineError {
    let position = match db_error.position() {
        Some(ErrorPosition::Original(character)) => sql.and_then(|sql| byte_offset(sql, *character)),
        // The position refers to the body of a function.
        Some(ErrorPosition::Internal { .. }) | None => None,
    };
    EngineError {
        code: db_error.code().code().to_string(),
        message: db_error.message().to_string(),
        hint: db_error.hint().or(db_error.detail()).map(str::to_string),
        position,
    }
}

/// Converts PostgreSQL's one-based character position to a byte offset.
fn byte_offset(sql: &str, character: u32) -> Option<usize> {
    let before = usize::try_from(character).ok()?.checked_sub(1)?;
    sql.char_indices().map(|(at, _)| at).chain([sql.len()]).nth(before)
}

/// Converts an error without a response of the server.
fn transport_error(name: &str, error: &tokio_postgres::Error) -> Error {
    let why = root_cause(error);
    // The library distinguishes these errors only by their messages.
    let (hint, transient) = match error.to_string().as_str() {
        "error performing TLS handshake" => (
            "add sslrootcert=FILE with the certificate of its CA, or sslmode=disable if the network can be trusted",
            false,
        ),
        "authentication error" | "invalid configuration" => {
            ("set a password in QUERYMEND_DB_PASSWORD, PGPASSWORD, or the password file that PGPASSFILE names", false)
        }
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
    fn converts_character_positions_to_byte_offsets() {
        let sql = "SELECT 'ü日🦀', nmae";
        assert_eq!(byte_offset(sql, 1), Some(0));
        assert_eq!(byte_offset(sql, 15), sql.find("nmae"));
        assert_eq!(byte_offset(sql, 19), Some(sql.len()));
        assert_eq!((byte_offset(sql, 0), byte_offset(sql, 99)), (None, None));
    }
}
