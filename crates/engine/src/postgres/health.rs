//! Health checks: connection, read-only enforcement, privileges of the user, encryption.

use tokio_postgres::Row;

use super::errors::{self, PgError};
use super::pool::{PgConnection, PgPool};
use super::run::{PgOperation, with_connection};
use crate::{CancelFlag, Error, HealthCheck, Limits};

/// Reads the server's version, the user, and whether TLS is used.
const SERVER_QUERY: &str = "SELECT pg_catalog.current_setting('server_version'), pg_catalog.current_user()::text, r.rolsuper, \
    coalesce((SELECT s.ssl FROM pg_catalog.pg_stat_ssl s WHERE s.pid = pg_catalog.pg_backend_pid()), false), \
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') \
    FROM pg_catalog.pg_roles r WHERE r.rolname = current_user";

/// Counts the tables that the user could write to and the schemas that it could create tables in.
const PRIVILEGES_QUERY: &str = "SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'f') \
    AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
    AND pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')), \
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' \
    AND pg_catalog.has_schema_privilege(n.oid, 'CREATE'))";

/// Write for the read-only check. In a read-only transaction, the server rejects it before it
/// checks privileges or names.
const PROBE_WRITE: &str = "CREATE TABLE querymend_lock_test (nothing integer)";

/// Hint for creating a user with only read privileges.
const READER_HINT: &str = "have an administrator create a read-only role: CREATE ROLE querymend LOGIN PASSWORD '…'; GRANT pg_read_all_data TO \
 querymend; or GRANT SELECT on the tables that may be queried";

/// Reads server properties and attempts a write.
struct PgHealthProbe<'a> {
    name: &'a str,
}

impl PgOperation for PgHealthProbe<'_> {
    /// Server properties, privileges, and the error code of the write if it was rejected.
    type Output = (Row, Row, Option<String>);

    async fn perform(&self, connection: &PgConnection) -> Result<(Row, Row, Option<String>), PgError> {
        let (begun, server, writable, write) = tokio::join!(
            connection.client.batch_execute("BEGIN READ ONLY"),
            connection.client.query_typed_one(SERVER_QUERY, &[]),
            connection.client.query_typed_one(PRIVILEGES_QUERY, &[]),
            connection.client.execute_typed(PROBE_WRITE, &[]),
        );
        let to_error = |error| errors::query_error(self.name, "", &error);
        begun.map_err(to_error)?;
        let refused = write.err().and_then(|error| error.code().map(|code| code.code().to_string()));
        Ok((server.map_err(to_error)?, writable.map_err(to_error)?, refused))
    }
}

pub(super) async fn check_health(pool: &PgPool) -> Result<Vec<HealthCheck>, Error> {
    let trial = PgHealthProbe { name: pool.name() };
    let (server, writable, write) = with_connection(pool, &Limits::default(), &CancelFlag::new(), trial).await?;
    let read = |error: tokio_postgres::Error| Error::Internal(format!("{}: {error}", pool.name()));
    let mut checks = vec![connection_check(pool, &server).map_err(read)?, read_only_check(write.as_deref())];
    checks.push(privilege_check(&server, &writable).map_err(read)?);
    checks.push(encryption_check(pool, &server).map_err(read)?);
    Ok(checks)
}

fn connection_check(pool: &PgPool, server: &Row) -> Result<HealthCheck, tokio_postgres::Error> {
    let version: String = server.try_get(0)?;
    Ok(HealthCheck::passed("connection", format!("{} can be read; it is PostgreSQL {version}", pool.name())))
}

/// Evaluates the outcome of the write, which was rolled back in any case.
fn read_only_check(refused: Option<&str>) -> HealthCheck {
    match refused {
        Some("25006") => HealthCheck::passed("read-only", "a test write was rejected"),
        Some(code) => HealthCheck::warning(
            "read-only",
            format!("a test write failed, but not because it is a write ({code})"),
            "use a read-only user",
        ),
        None => HealthCheck::failed(
            "read-only",
            "a test write succeeded and was rolled back",
            "the server does not enforce READ ONLY transactions: use a read-only user",
        ),
    }
}

fn privilege_check(server: &Row, writable: &Row) -> Result<HealthCheck, tokio_postgres::Error> {
    let (user, is_superuser, may_create): (String, bool, bool) =
        (server.try_get(1)?, server.try_get(2)?, server.try_get(4)?);
    let (tables, schemas): (i64, i64) = (writable.try_get(0)?, writable.try_get(1)?);
    if is_superuser {
        let seen = format!("`{user}` is a superuser, who may also read and write files of the server");
        return Ok(HealthCheck::warning("rights", seen, READER_HINT));
    }
    let mut could = Vec::new();
    if tables > 0 {
        could.push(format!("write to {tables} tables"));
    }
    if schemas > 0 {
        could.push(format!("create tables in {schemas} schemas"));
    }
    if may_create {
        could.push("create schemas".to_string());
    }
    Ok(if could.is_empty() {
        HealthCheck::passed("rights", format!("`{user}` is read-only"))
    } else {
        HealthCheck::warning("rights", format!("`{user}` could {}", could.join(" and ")), READER_HINT)
    })
}

fn encryption_check(pool: &PgPool, server: &Row) -> Result<HealthCheck, tokio_postgres::Error> {
    let is_encrypted: bool = server.try_get(3)?;
    Ok(if is_encrypted {
        HealthCheck::passed("encryption", "the connection is encrypted")
    } else if pool.is_local() {
        HealthCheck::passed("encryption", "the connection is not encrypted, and does not leave this machine")
    } else {
        let hint = "remove sslmode=disable or sslmode=prefer from the address";
        HealthCheck::warning("encryption", "the connection leaves this machine and is not encrypted", hint)
    })
}
