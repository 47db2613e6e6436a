//! What PostgreSQL says when it refuses, for people.

use std::error::Error as _;

use tokio_postgres::Error as Refused;

use crate::error::Error;

/// What is wrong with the table, or its server, and what can be done about it.
pub(super) fn meaning(name: &str, error: &Refused) -> Error {
    let unusable = |message: String, hint: &str| Error::Unusable { message, hint: hint.into() };
    let unavailable = |message: String, hint: &str| Error::Unavailable { message, hint: hint.into() };
    let Some(said) = error.as_db_error() else { return without_an_answer(name, error) };
    let message = format!("{name}: {}", said.message());
    match said.code().code() {
        "28P01" | "28000" => unusable(
            message,
            "check the user and the password: QUERYMEND_STORE_PASSWORD, PGPASSWORD, or the file that PGPASSFILE names",
        ),
        "3D000" => unusable(message, "name a database that exists, or have this one made"),
        "3F000" => unusable(message, "name a schema that exists, or leave it out"),
        "42501" => unusable(
            message,
            "the user needs to read and write the table, and to make it the first time; or have somebody who may run \
             CREATE EXTENSION vector and open the store once",
        ),
        "25006" => unusable(message, "name a server that can be written to"),
        "0A000" | "58P01" if said.message().contains("vector") => {
            unusable(message, "install the extension pgvector on the server; its version 0.5 or later is needed")
        }
        "42704" => unusable(message, "pgvector 0.5 or later is needed on the server"),
        "42P01" | "42703" | "42804" => {
            unusable(message, "somebody has changed or dropped the table; opening the store again makes a new one")
        }
        "22021" => unusable(message, "PostgreSQL keeps no text with a NUL in it; leave it out"),
        "57014" => unavailable(format!("{name} took too long"), "try again; is the server busy?"),
        code if ["53", "57", "08", "40", "55"].contains(&&code[..2]) => unavailable(message, "try again in a moment"),
        code => unusable(format!("{message} ({code})"), "the server's log may say more"),
    }
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
    let message = format!("{name} cannot be reached: {why}");
    // The library tells these apart in words only.
    match error.to_string().as_str() {
        "error performing TLS handshake" => Error::Unusable {
            message,
            hint: "give sslrootcert=FILE with the certificate of its authority, or sslmode=disable where the network can be trusted"
                .into(),
        },
        "authentication error" | "invalid configuration" => Error::Unusable {
            message,
            hint: "set QUERYMEND_STORE_PASSWORD, PGPASSWORD, or PGPASSFILE to a file of passwords".into(),
        },
        "error connecting to server" | "connection closed" | "error communicating with the server"
        | "timeout waiting for server" => {
            Error::Unavailable { message, hint: "is the server running, and are host and port right?".into() }
        }
        _ => Error::Unusable { message: format!("{name}: {error}: {why}"), hint: "is it a PostgreSQL server?".into() },
    }
}

/// It took longer than anybody waits.
pub(super) fn too_slow(name: &str) -> Error {
    Error::Unavailable { message: format!("{name} does not answer"), hint: "try again; is the server busy?".into() }
}

/// Whether the connection went away under a statement that the server then did not carry out, or did for nobody to hear.
pub(super) fn went_away(error: &Refused) -> bool {
    error.is_closed()
        || error.code().is_some_and(|code| ["57P01", "57P02", "57P03"].contains(&code.code()))
        || error.source().is_some_and(|cause| cause.is::<std::io::Error>())
}
