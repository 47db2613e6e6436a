//! Health checks of a server.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use querymend_sql::EngineError;

use super::client::TrinoClient;
use super::errors::SentQuery;
use super::introspect::quote_identifier;
use super::session::TrinoSession;
use crate::{CancelFlag, Error, HealthCheck};

/// Time limit of each check.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs all health checks except that the address is valid.
pub(super) async fn check_health(server: &Arc<TrinoClient>) -> Result<Vec<HealthCheck>, Error> {
    let settings = &server.settings;
    let title = settings.flavor.title;
    let info = server.info().await?;
    let version =
        info.pointer("/nodeVersion/version").and_then(serde_json::Value::as_str).unwrap_or("(unknown version)");
    let mut checks =
        vec![HealthCheck::passed("connection", format!("{} can be read; it is {title} {version}", settings.name))];
    checks.extend(check_read_only(server).await?);
    if settings.is_encrypted() {
        checks.push(HealthCheck::passed("encryption", "the connection is encrypted"));
    } else if !settings.is_local {
        checks.push(HealthCheck::warning(
            "encryption",
            "queries and rows are sent over the network unencrypted",
            "remove tls=false if the server supports TLS",
        ));
    }
    Ok(checks)
}

/// Attempts a write in a read-only transaction, bypassing the keyword check.
async fn check_read_only(server: &Arc<TrinoClient>) -> Result<Vec<HealthCheck>, Error> {
    let settings = &server.settings;
    let catalog = quote_identifier(&settings.catalog);
    let thing = format!("querymend_lock_{}", std::process::id());
    let (make, unmake) = match &settings.schema {
        Some(schema) => {
            let table = format!("{catalog}.{}.{}", quote_identifier(schema), quote_identifier(&thing));
            (format!("CREATE TABLE {table} (a INTEGER)"), format!("DROP TABLE {table}"))
        }
        None => {
            let schema = format!("{catalog}.{}", quote_identifier(&thing));
            (format!("CREATE SCHEMA {schema}"), format!("DROP SCHEMA {schema}"))
        }
    };
    let cancel = CancelFlag::new();
    let mut session = TrinoSession::new(server, CHECK_TIMEOUT, &cancel);
    session.begin_read_only().await?;
    let tried = run_statement(&mut session, &make).await;
    session.finish().await;
    Ok(match tried {
        Err(Error::Rejected(EngineError { code, .. })) if code == "READ_ONLY_VIOLATION" => vec![
            HealthCheck::passed("read-only", "a test write that bypassed the query review was rejected by the server"),
            HealthCheck::warning(
                "rights",
                format!("only the read-only transaction keeps the user from writing to `{}`", settings.catalog),
                "use a read-only user: a rule with `\"privileges\": [\"SELECT\"]` in the server's access control, or \
                 `security=read-only` in the properties of the catalog",
            ),
        ],
        Err(Error::Rejected(EngineError { code, .. })) if code == "PERMISSION_DENIED" => vec![
            HealthCheck::passed("read-only", "a test write that bypassed the query review was rejected by the server"),
            HealthCheck::passed("rights", "the user has no CREATE privileges"),
        ],
        Err(Error::Rejected(error)) => vec![HealthCheck::warning(
            "read-only",
            format!("a test write that bypassed the query review was rejected, but not as a write: {}", error.message),
            "check the message of the server; nothing was written",
        )],
        Err(error) => return Err(error),
        Ok(()) => {
            let mut session = TrinoSession::new(server, CHECK_TIMEOUT, &cancel);
            let undone = run_statement(&mut session, &unmake).await;
            session.finish().await;
            let left = if undone.is_ok() { "and was undone" } else { "and could not be undone" };
            vec![HealthCheck::failed(
                "read-only",
                format!("a test write succeeded in a READ ONLY transaction, {left}"),
                "use a read-only user; otherwise only the query review prevents writes",
            )]
        }
    })
}

async fn run_statement(session: &mut TrinoSession<'_>, sql: &str) -> Result<(), Error> {
    session.run(SentQuery { sql, lines_before: 0 }, sql, &mut |_| ControlFlow::Continue(())).await
}
