//! Converts errors of the server and the driver.
//!
//! Attributes them to the query, the address or a transient failure.

use std::io::ErrorKind;
use std::time::Duration;

use mysql_async::{DriverError, IoError, ServerError};
use querymend_net::http::is_tls_error;
use querymend_sql::EngineError;

use super::address::MySqlServer;
use crate::Error;

/// Error on a connection.
#[derive(Debug)]
pub(super) enum MySqlError {
    /// Error of the driver, or of the server as reported by the driver.
    Driver(mysql_async::Error),
    /// Rejection by this engine.
    Engine(Error),
}

impl From<mysql_async::Error> for MySqlError {
    fn from(error: mysql_async::Error) -> Self {
        MySqlError::Driver(error)
    }
}

impl MySqlError {
    /// Returns whether the connection was lost, which is unrelated to the query.
    pub(super) fn is_connection_loss(&self) -> bool {
        match self {
            MySqlError::Driver(mysql_async::Error::Server(error)) => CONNECTION_LOST_CODES.contains(&error.code),
            MySqlError::Driver(mysql_async::Error::Io(_)) => true,
            MySqlError::Driver(mysql_async::Error::Driver(error)) => {
                matches!(error, DriverError::ConnectionClosed | DriverError::PacketOutOfOrder)
            }
            MySqlError::Driver(_) | MySqlError::Engine(_) => false,
        }
    }
}

/// Error codes for a closed connection: server shutdown, killed connection, idle timeout.
const CONNECTION_LOST_CODES: [u16; 9] = [1053, 1077, 1079, 1158, 1159, 1160, 1161, 1927, 4031];
/// Error codes for a statement timeout, of MySQL and of MariaDB.
const TIMEOUT_CODES: [u16; 2] = [3024, 1969];

/// Converts an error of a query.
pub(super) fn to_error(error: MySqlError, server: &MySqlServer, sql: &str, time: Duration) -> Error {
    match error {
        MySqlError::Engine(error) => error,
        MySqlError::Driver(mysql_async::Error::Server(server_error)) => match server_error.code {
            code if TIMEOUT_CODES.contains(&code) => Error::TimedOut { after: time },
            code if CONNECTION_LOST_CODES.contains(&code) => {
                connection_lost(server, Some(to_engine_error(server_error, sql)))
            }
            1205 | 1213 | 3572 => Error::Unavailable {
                what: format!(
                    "a table or row that the query reads on {} is locked by another session",
                    server.endpoint
                ),
                hint: "wait for it to finish, then try again".into(),
                transient: true,
                cause: Some(Box::new(to_engine_error(server_error, sql))),
            },
            _ => Error::Rejected(to_engine_error(server_error, sql)),
        },
        MySqlError::Driver(mysql_async::Error::Driver(DriverError::LocalInfile(_))) => Error::Rejected(EngineError {
            code: "1148".into(),
            message: "the server requested a local file (LOAD DATA LOCAL), which is not allowed".into(),
            hint: None,
            position: None,
        }),
        other if other.is_connection_loss() => connection_lost(server, None),
        MySqlError::Driver(other) => Error::Internal(format!("the MySQL driver failed: {other}")),
    }
}

fn connection_lost(server: &MySqlServer, cause: Option<EngineError>) -> Error {
    Error::Unavailable {
        what: format!("the connection to the server at {} was lost", server.endpoint),
        hint: "the server may be restarting: try again, and check its log if it happens again".into(),
        transient: true,
        cause: cause.map(Box::new),
    }
}

/// Converts an error of connecting.
pub(super) fn connection_error(error: mysql_async::Error, server: &MySqlServer) -> Error {
    let place = &server.endpoint;
    match error {
        mysql_async::Error::Server(server_error) => login_error(server_error, server),
        mysql_async::Error::Io(IoError::Tls(why)) => tls_error(&why, place),
        mysql_async::Error::Io(IoError::Io(why)) if is_tls_error(&why) => tls_error(&why, place),
        mysql_async::Error::Io(IoError::Io(why)) => {
            let refused = matches!(why.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound);
            let what = if refused {
                format!("there is no MySQL server at {place}")
            } else {
                format!("the server at {place} cannot be reached: {why}")
            };
            let hint = "is it running, and are host and port right?";
            Error::Unavailable { what, hint: hint.into(), transient: true, cause: None }
        }
        mysql_async::Error::Driver(DriverError::ConnectionClosed) => connection_lost(server, None),
        mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer) => Error::unavailable(
            format!("the server at {place} does not support encrypted connections"),
            "set up TLS on the server, or add ?ssl-mode=disabled to the address if the network can be trusted",
        ),
        mysql_async::Error::Driver(DriverError::UnknownAuthPlugin { name }) => Error::unavailable(
            format!("the server at {place} requires an unsupported authentication plugin: {name}"),
            "set the authentication plugin of the user to caching_sha2_password or mysql_native_password",
        ),
        other => {
            Error::unavailable(format!("{place} does not respond like a MySQL server: {other}"), "check host and port")
        }
    }
}

/// Error for a pool whose connections were all in use for the time limit of the query.
pub(super) fn pool_exhausted(server: &MySqlServer) -> Error {
    Error::Unavailable {
        what: format!("all connections to {} are in use", server.name),
        hint: "try again when other queries are done, or send fewer at once".into(),
        transient: true,
        cause: None,
    }
}

/// Error for a connection that was not established in time.
pub(super) fn connect_timed_out(server: &MySqlServer) -> Error {
    Error::Unavailable {
        what: format!("the server at {} does not answer", server.endpoint),
        hint: "is it running, are host and port right, and does a firewall block the connection?".into(),
        transient: true,
        cause: None,
    }
}

fn tls_error(why: &dyn std::fmt::Display, place: &str) -> Error {
    Error::unavailable(
        format!("cannot establish a TLS connection to {place}: {why}"),
        "if its certificate is self-signed or from a private CA, add ?ssl-ca=FILE to the address",
    )
}

fn login_error(error: ServerError, server: &MySqlServer) -> Error {
    let (place, user) = (&server.endpoint, &server.user);
    let database = server.database.as_deref().unwrap_or_default();
    let (what, hint) = match error.code {
        1045 | 1698 | 1862 => (
            format!("the server at {place} rejected the login of `{user}`"),
            "check the user and the password; it is read from the address, QUERYMEND_DB_PASSWORD or MYSQL_PWD",
        ),
        1044 => (
            format!("`{user}` may not read the database `{database}`"),
            "check its name, or grant the user SELECT on it",
        ),
        1049 => (
            format!("there is no database `{database}` on {place}"),
            "check its name; SHOW DATABASES lists those there are",
        ),
        1130 => (
            format!("the server at {place} does not accept logins of `{user}` from this machine"),
            "create the user for this host: 'name'@'host'",
        ),
        1129 => (
            format!("the server at {place} has blocked this machine"),
            "too many connections failed; run FLUSH HOSTS on the server to unblock it",
        ),
        3159 => (
            format!("the server at {place} accepts only encrypted connections"),
            "add ?ssl-mode=required to the address",
        ),
        1040 | 1203 | 1226 => (
            format!("the server at {place} has no connection left for `{user}`"),
            "try again a moment later, or raise max_connections",
        ),
        _ => (format!("the server at {place} rejected the connection: {}", error.message), "check its log"),
    };
    let transient = matches!(error.code, 1040 | 1203) || CONNECTION_LOST_CODES.contains(&error.code);
    Error::Unavailable { what, hint: hint.into(), transient, cause: Some(Box::new(to_engine_error(error, ""))) }
}

/// Converts a server error and locates it in the query.
pub(super) fn to_engine_error(error: ServerError, sql: &str) -> EngineError {
    let position = error_position(&error.message, sql);
    EngineError { code: error.code.to_string(), message: error.message, hint: None, position }
}

/// Length from which a quote of the query may be truncated. The server quotes at most eighty
/// characters; a shorter quote extends to the end of the query.
const TRUNCATED_QUOTE_LEN: usize = 70;

/// Returns the byte offset of `near '…' at line N`.
///
/// It is the matching suffix of the query or, for a truncated quote, its only occurrence.
fn error_position(message: &str, sql: &str) -> Option<usize> {
    let (_, near) = message.split_once("near '")?;
    let (near, line) = near.rsplit_once("' at line ")?;
    let line: usize = line.trim().parse().ok()?;
    // The quote is empty if the query ends unexpectedly.
    if near.is_empty() {
        return None;
    }
    let is_on_line = |at: &usize| sql[..*at].matches('\n').count() + 1 == line;
    let all = sql.trim_end_matches(|c: char| c.is_ascii_whitespace() || c == ';');
    let at_end = [sql, all].iter().find_map(|sql| Some(sql.strip_suffix(near)?.len()));
    if near.len() < TRUNCATED_QUOTE_LEN {
        return at_end.filter(is_on_line);
    }
    // A longer quote may be truncated, and MariaDB then appends an ellipsis.
    let near = near.strip_suffix("...").filter(|_| at_end.is_none()).unwrap_or(near);
    let mut places = sql.match_indices(near).map(|(at, _)| at).filter(is_on_line);
    places.next().filter(|_| places.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_an_error_position_only_if_unambiguous() {
        let message = |near: &str, line: usize| format!("You have an error … to use near '{near}' at line {line}");
        let sql = "SELECT 'ü'\nFROM FROM t;";
        assert_eq!(error_position(&message("FROM t", 2), sql), sql.find("FROM t"));
        assert_eq!(error_position(&message("FROM t", 1), sql), None);
        assert_eq!(error_position(&message("", 2), sql), None);
        assert_eq!(error_position("Unknown column 'x' in 'SELECT'", sql), None);
        let long = format!("SELECT 1 1 {}", (2..60).map(|i| format!("+ {i} ")).collect::<String>());
        assert_eq!(error_position(&message(&long[9..89], 1), &long), Some(9));
        assert_eq!(error_position(&message(&format!("{}...", &long[9..86]), 1), &long), Some(9));
        let often = format!("SELECT {}", "1 ".repeat(100));
        assert_eq!(error_position(&message(&often[9..89], 1), &often), None);
    }
}
