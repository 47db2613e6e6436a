//! What the server or the driver says when something goes wrong, and whether the query, the address or the moment is to blame.

use std::io::ErrorKind;
use std::time::Duration;

use mysql_async::{DriverError, IoError, ServerError};
use querymend_net::http::is_tls;
use querymend_sql::EngineError;

use super::address::Server;
use crate::Error;

/// What went wrong on a connection.
#[derive(Debug)]
pub(super) enum Fault {
    /// The driver's words, or the server's behind them.
    Theirs(mysql_async::Error),
    /// What this engine refuses.
    Ours(Error),
}

impl From<mysql_async::Error> for Fault {
    fn from(error: mysql_async::Error) -> Self {
        Fault::Theirs(error)
    }
}

impl Fault {
    /// Whether the connection was lost, which says nothing about the query.
    pub(super) fn is_loss(&self) -> bool {
        match self {
            Fault::Theirs(mysql_async::Error::Server(error)) => GONE.contains(&error.code),
            Fault::Theirs(mysql_async::Error::Io(_)) => true,
            Fault::Theirs(mysql_async::Error::Driver(error)) => {
                matches!(error, DriverError::ConnectionClosed | DriverError::PacketOutOfOrder)
            }
            Fault::Theirs(_) | Fault::Ours(_) => false,
        }
    }
}

/// Numbers with which a server says that it ends the connection: it shuts down, somebody else ended it, nobody spoke for long.
const GONE: [u16; 9] = [1053, 1077, 1079, 1158, 1159, 1160, 1161, 1927, 4031];
/// The statement ran longer than it may, in the words of MySQL and of MariaDB.
const TOO_LONG: [u16; 2] = [3024, 1969];

/// The error that a fault of a query is.
pub(super) fn meaning(fault: Fault, server: &Server, sql: &str, time: Duration) -> Error {
    match fault {
        Fault::Ours(error) => error,
        Fault::Theirs(mysql_async::Error::Server(said)) => match said.code {
            code if TOO_LONG.contains(&code) => Error::TimedOut { after: time },
            code if GONE.contains(&code) => lost(server, Some(words(said, sql))),
            1205 | 1213 | 3572 => Error::Unavailable {
                what: format!("what the query reads on {} is locked by somebody else", server.place),
                hint: "wait for them to finish, then try again".into(),
                transient: true,
                cause: Some(Box::new(words(said, sql))),
            },
            _ => Error::Rejected(words(said, sql)),
        },
        Fault::Theirs(mysql_async::Error::Driver(DriverError::LocalInfile(_))) => Error::Rejected(EngineError {
            code: "1148".into(),
            message: "the server asked for a file of this machine, and does not get it".into(),
            hint: None,
            position: None,
        }),
        other if other.is_loss() => lost(server, None),
        Fault::Theirs(other) => Error::Internal(format!("MySQL's driver could not go on: {other}")),
    }
}

fn lost(server: &Server, cause: Option<EngineError>) -> Error {
    Error::Unavailable {
        what: format!("the connection to the server at {} was lost", server.place),
        hint: "the server may be restarting: try again, and look into its log if it happens again".into(),
        transient: true,
        cause: cause.map(Box::new),
    }
}

/// The error that there is no connection for.
pub(super) fn no_connection(error: mysql_async::Error, server: &Server) -> Error {
    let place = &server.place;
    match error {
        mysql_async::Error::Server(said) => not_let_in(said, server),
        mysql_async::Error::Io(IoError::Tls(why)) => insecure(&why, place),
        mysql_async::Error::Io(IoError::Io(why)) if is_tls(&why) => insecure(&why, place),
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
        mysql_async::Error::Driver(DriverError::ConnectionClosed) => lost(server, None),
        mysql_async::Error::Driver(DriverError::NoClientSslFlagFromServer) => Error::unavailable(
            format!("the server at {place} offers no encrypted connections"),
            "set up TLS on the server, or write ?ssl-mode=disabled behind the address where the network can be trusted",
        ),
        mysql_async::Error::Driver(DriverError::UnknownAuthPlugin { name }) => Error::unavailable(
            format!("the server at {place} asks for a proof of identity that is not known here: {name}"),
            "give the user a password of the kind caching_sha2_password or mysql_native_password",
        ),
        other => Error::unavailable(
            format!("what is at {place} does not answer as a MySQL server does: {other}"),
            "check host and port",
        ),
    }
}

/// That all connections are in use, and stay so for as long as a query may take.
pub(super) fn busy(server: &Server) -> Error {
    Error::Unavailable {
        what: format!("all connections to {} are in use", server.name),
        hint: "try again once other queries are done, or ask fewer at once".into(),
        transient: true,
        cause: None,
    }
}

/// That a connection did not come about in time.
pub(super) fn too_slow(server: &Server) -> Error {
    Error::Unavailable {
        what: format!("the server at {} does not answer", server.place),
        hint: "is it running, are host and port right, and does a firewall let us through?".into(),
        transient: true,
        cause: None,
    }
}

fn insecure(why: &dyn std::fmt::Display, place: &str) -> Error {
    Error::unavailable(
        format!("there can be no secure connection to {place}: {why}"),
        "if its certificate is signed by an authority of your own, name that with ?ssl-ca=FILE behind the address",
    )
}

fn not_let_in(said: ServerError, server: &Server) -> Error {
    let (place, user) = (&server.place, &server.user);
    let database = server.database.as_deref().unwrap_or_default();
    let (what, hint) = match said.code {
        1045 | 1698 | 1862 => (
            format!("the server at {place} does not let `{user}` in"),
            "check the name and the password; it is looked for in the address, in QUERYMEND_DB_PASSWORD and in MYSQL_PWD",
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
            format!("the server at {place} lets nobody in from this machine as `{user}`"),
            "create the user for this host: 'name'@'host'",
        ),
        1129 => (
            format!("the server at {place} has blocked this machine"),
            "too many connections failed; FLUSH HOSTS on the server takes it back",
        ),
        3159 => (
            format!("the server at {place} only takes encrypted connections"),
            "write ?ssl-mode=required behind the address",
        ),
        1040 | 1203 | 1226 => (
            format!("the server at {place} has no connection left for `{user}`"),
            "try again a moment later, or raise max_connections",
        ),
        _ => (format!("the server at {place} gives no connection: {}", said.message), "look into its log"),
    };
    let transient = matches!(said.code, 1040 | 1203) || GONE.contains(&said.code);
    Error::Unavailable { what, hint: hint.into(), transient, cause: Some(Box::new(words(said, ""))) }
}

/// The server's own words, and the place in the query where it stumbled.
pub(super) fn words(said: ServerError, sql: &str) -> EngineError {
    let position = place(&said.message, sql);
    EngineError { code: said.code.to_string(), message: said.message, hint: None, position }
}

/// The server repeats eighty characters of the query, at most; with less than this, it has repeated it up to its end.
const LONG: usize = 70;

/// The byte where `near '…' at line N` begins: the end of the query repeats it, or only one place does where it was cut off.
fn place(message: &str, sql: &str) -> Option<usize> {
    let (_, near) = message.split_once("near '")?;
    let (near, line) = near.rsplit_once("' at line ")?;
    let line: usize = line.trim().parse().ok()?;
    // Nothing is repeated when the end came too early.
    if near.is_empty() {
        return None;
    }
    let is_on_line = |at: &usize| sql[..*at].matches('\n').count() + 1 == line;
    let all = sql.trim_end_matches(|c: char| c.is_ascii_whitespace() || c == ';');
    let at_end = [sql, all].iter().find_map(|sql| Some(sql.strip_suffix(near)?.len()));
    if near.len() < LONG {
        return at_end.filter(is_on_line);
    }
    // What is longer may have been cut off there, and MariaDB puts dots where it did.
    let near = near.strip_suffix("...").filter(|_| at_end.is_none()).unwrap_or(near);
    let mut places = sql.match_indices(near).map(|(at, _)| at).filter(is_on_line);
    places.next().filter(|_| places.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l03_the_place_of_an_error_is_found_where_it_can_be_only_one() {
        let said = |near: &str, line: usize| format!("You have an error … to use near '{near}' at line {line}");
        let sql = "SELECT 'ü'\nFROM FROM t;";
        assert_eq!(place(&said("FROM t", 2), sql), sql.find("FROM t"));
        assert_eq!(place(&said("FROM t", 1), sql), None);
        assert_eq!(place(&said("", 2), sql), None);
        assert_eq!(place("Unknown column 'x' in 'SELECT'", sql), None);
        let long = format!("SELECT 1 1 {}", (2..60).map(|i| format!("+ {i} ")).collect::<String>());
        assert_eq!(place(&said(&long[9..89], 1), &long), Some(9));
        assert_eq!(place(&said(&format!("{}...", &long[9..86]), 1), &long), Some(9));
        let often = format!("SELECT {}", "1 ".repeat(100));
        assert_eq!(place(&said(&often[9..89], 1), &often), None);
    }
}
