//! The connection, looked over for whoever sets it up.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use querymend_sql::EngineError;

use super::introspect::quoted;
use super::refusal::Sent;
use super::server::Server;
use super::session::Session;
use crate::{Cancel, Check, Error};

/// So long may each look take.
const TIME: Duration = Duration::from_secs(30);

/// Everything about the connection that is not that it is there.
pub(super) async fn examine(server: &Arc<Server>) -> Result<Vec<Check>, Error> {
    let settings = &server.settings;
    let title = settings.family.title;
    let info = server.info().await?;
    let version = info.pointer("/nodeVersion/version").and_then(serde_json::Value::as_str).unwrap_or("of some version");
    let mut checks = vec![Check::good("connection", format!("{} can be read; it is {title} {version}", settings.name))];
    checks.extend(lock(server).await?);
    if settings.encrypted() {
        checks.push(Check::good("encryption", "the connection is encrypted"));
    } else if !settings.local {
        checks.push(Check::doubtful(
            "encryption",
            "what is asked and answered can be read on the way",
            "leave out tls=false, if the server can do TLS",
        ));
    }
    Ok(checks)
}

/// Tries to write, past everything that would keep it from being sent.
async fn lock(server: &Arc<Server>) -> Result<Vec<Check>, Error> {
    let settings = &server.settings;
    let catalog = quoted(&settings.catalog);
    let thing = format!("querymend_lock_{}", std::process::id());
    let (make, unmake) = match &settings.schema {
        Some(schema) => {
            let table = format!("{catalog}.{}.{}", quoted(schema), quoted(&thing));
            (format!("CREATE TABLE {table} (a INTEGER)"), format!("DROP TABLE {table}"))
        }
        None => {
            let schema = format!("{catalog}.{}", quoted(&thing));
            (format!("CREATE SCHEMA {schema}"), format!("DROP SCHEMA {schema}"))
        }
    };
    let cancel = Cancel::new();
    let mut session = Session::new(server, TIME, &cancel);
    session.lock().await?;
    let tried = run(&mut session, &make).await;
    session.end().await;
    Ok(match tried {
        Err(Error::Rejected(EngineError { code, .. })) if code == "READ_ONLY_VIOLATION" => vec![
            Check::good("read-only lock", "a write that was sent past the critic was refused by the server"),
            Check::doubtful(
                "rights",
                format!("nothing but that lock keeps the user from writing to `{}`", settings.catalog),
                "give a user that may only read: a rule with `\"privileges\": [\"SELECT\"]` in the server's access control, or \
                 `security=read-only` in the properties of the catalog",
            ),
        ],
        Err(Error::Rejected(EngineError { code, .. })) if code == "PERMISSION_DENIED" => vec![
            Check::good("read-only lock", "a write that was sent past the critic was refused by the server"),
            Check::good("rights", "the user may not create anything"),
        ],
        Err(Error::Rejected(error)) => vec![Check::doubtful(
            "read-only lock",
            format!("a write that was sent past the critic was refused, but not as a write: {}", error.message),
            "look at what the server says; the write did not happen",
        )],
        Err(error) => return Err(error),
        Ok(()) => {
            let mut session = Session::new(server, TIME, &cancel);
            let undone = run(&mut session, &unmake).await;
            session.end().await;
            let left = if undone.is_ok() { "and was undone" } else { "and could not be undone" };
            vec![Check::bad(
                "read-only lock",
                format!("a write went through in a transaction that is READ ONLY, {left}"),
                "use a user that may only read; only the critic stands before others",
            )]
        }
    })
}

async fn run(session: &mut Session<'_>, sql: &str) -> Result<(), Error> {
    session.run(Sent { sql, lines_before: 0 }, sql, &mut |_| ControlFlow::Continue(())).await
}
