//! Conversion of PostgreSQL errors to user-facing store errors.

use std::error::Error as _;

use querymend_net::root_cause;

use crate::error::Error;

/// Converts a PostgreSQL error to a store error with a suggested fix.
pub(super) fn to_store_error(name: &str, error: &tokio_postgres::Error) -> Error {
    let unusable = |message: String, hint: &str| Error::Unusable { message, hint: hint.into() };
    let unavailable = |message: String, hint: &str| Error::Unavailable { message, hint: hint.into() };
    let Some(db_error) = error.as_db_error() else { return connection_error(name, error) };
    let message = format!("{name}: {}", db_error.message());
    match db_error.code().code() {
        "28P01" | "28000" => unusable(
            message,
            "check the user and the password: QUERYMEND_STORE_PASSWORD, PGPASSWORD, or the file that PGPASSFILE names",
        ),
        "3D000" => unusable(message, "name a database that exists, or create this one"),
        "3F000" => unusable(message, "name a schema that exists, or leave it out"),
        "42501" => unusable(
            message,
            "the user must be able to read and write the table, and to create it the first time; or have an \
             administrator run CREATE EXTENSION vector and open the store once",
        ),
        "25006" => unusable(message, "use a server that accepts writes"),
        "0A000" | "58P01" if db_error.message().contains("vector") => {
            unusable(message, "install the extension pgvector on the server; its version 0.5 or later is needed")
        }
        "42704" => unusable(message, "pgvector 0.5 or later is needed on the server"),
        "42P01" | "42703" | "42804" => {
            unusable(message, "the table was changed or dropped; reopen the store to create a new one")
        }
        "22021" => unusable(message, "PostgreSQL does not store NUL characters; remove them"),
        "57014" => unavailable(format!("{name} took too long"), "try again; is the server busy?"),
        code if ["53", "57", "08", "40", "55"].contains(&&code[..2]) => unavailable(message, "try again in a moment"),
        code => unusable(format!("{message} ({code})"), "check the log of the server"),
    }
}

/// Converts an error without a server response to a store error.
fn connection_error(name: &str, error: &tokio_postgres::Error) -> Error {
    let why = root_cause(error);
    let message = format!("{name} cannot be reached: {why}");
    // The library distinguishes these only by their messages.
    match error.to_string().as_str() {
        "error performing TLS handshake" => Error::Unusable {
            message,
            hint:
                "add sslrootcert=FILE with the certificate of its CA, or sslmode=disable if the network can be trusted"
                    .into(),
        },
        "authentication error" | "invalid configuration" => Error::Unusable {
            message,
            hint: "set QUERYMEND_STORE_PASSWORD, PGPASSWORD, or PGPASSFILE to a file of passwords".into(),
        },
        "error connecting to server"
        | "connection closed"
        | "error communicating with the server"
        | "timeout waiting for server" => {
            Error::Unavailable { message, hint: "is the server running, and are host and port right?".into() }
        }
        _ => Error::Unusable { message: format!("{name}: {error}: {why}"), hint: "is it a PostgreSQL server?".into() },
    }
}

/// Creates the error for an expired deadline.
pub(super) fn timeout_error(name: &str) -> Error {
    Error::Unavailable { message: format!("{name} does not answer"), hint: "try again; is the server busy?".into() }
}

/// Returns whether the connection was lost during a statement, so that it is unknown if the server
/// executed it.
pub(super) fn is_connection_lost(error: &tokio_postgres::Error) -> bool {
    error.is_closed()
        || error.code().is_some_and(|code| ["57P01", "57P02", "57P03"].contains(&code.code()))
        || error.source().is_some_and(|cause| cause.is::<std::io::Error>())
}
