//! Looks a connection over: is the server there, do the locks hold, what could its user do.

use tokio_postgres::Row;

use super::pool::{Link, Pool};
use super::refusal::{self, Failure};
use super::run::{Step, on_a_connection};
use crate::{Cancel, Check, Error, Limits};

/// Which server it is, who asks, and how.
const SERVER: &str = "SELECT pg_catalog.current_setting('server_version'), pg_catalog.current_user()::text, r.rolsuper, \
    coalesce((SELECT s.ssl FROM pg_catalog.pg_stat_ssl s WHERE s.pid = pg_catalog.pg_backend_pid()), false), \
    pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE') \
    FROM pg_catalog.pg_roles r WHERE r.rolname = current_user";

/// How many tables the user could write to, and how many schemas it could make tables in.
const WRITABLE: &str = "SELECT (SELECT pg_catalog.count(*) FROM pg_catalog.pg_class c \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'f') \
    AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
    AND pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')), \
    (SELECT pg_catalog.count(*) FROM pg_catalog.pg_namespace n WHERE n.nspname !~ '^pg_' \
    AND pg_catalog.has_schema_privilege(n.oid, 'CREATE'))";

/// Would make a table. Where it may only read, the server refuses it before it looks at rights or names.
const WRITE: &str = "CREATE TABLE querymend_lock_test (nothing integer)";

/// How a user is made that may only read.
const READER: &str = "let somebody who may make one for it: CREATE ROLE querymend LOGIN PASSWORD '…'; \
    GRANT pg_read_all_data TO querymend; or GRANT SELECT on the tables that may be asked about";

/// Asks the server about itself, and tries to write.
struct Trial<'a> {
    name: &'a str,
}

impl Step for Trial<'_> {
    /// Who it is, what the user could do, and the code with which the write was refused, if it was.
    type Outcome = (Row, Row, Option<String>);

    async fn take(&self, link: &Link) -> Result<(Row, Row, Option<String>), Failure> {
        let (begun, server, writable, write) = tokio::join!(
            link.client.batch_execute("BEGIN READ ONLY"),
            link.client.query_typed_one(SERVER, &[]),
            link.client.query_typed_one(WRITABLE, &[]),
            link.client.execute_typed(WRITE, &[]),
        );
        let meaning = |error| refusal::of_query(self.name, "", &error);
        begun.map_err(meaning)?;
        let refused = write.err().and_then(|error| error.code().map(|code| code.code().to_string()));
        Ok((server.map_err(meaning)?, writable.map_err(meaning)?, refused))
    }
}

pub(super) async fn examine(pool: &Pool) -> Result<Vec<Check>, Error> {
    let trial = Trial { name: pool.name() };
    let (server, writable, write) = on_a_connection(pool, &Limits::default(), &Cancel::new(), trial).await?;
    let read = |error: tokio_postgres::Error| Error::Internal(format!("{}: {error}", pool.name()));
    let mut checks = vec![connection(pool, &server).map_err(read)?, lock(write.as_deref())];
    checks.push(rights(&server, &writable).map_err(read)?);
    checks.push(secrecy(pool, &server).map_err(read)?);
    Ok(checks)
}

fn connection(pool: &Pool, server: &Row) -> Result<Check, tokio_postgres::Error> {
    let version: String = server.try_get(0)?;
    Ok(Check::good("connection", format!("{} can be read; it is PostgreSQL {version}", pool.name())))
}

/// What came of the write, which was rolled back in any case.
fn lock(refused: Option<&str>) -> Check {
    match refused {
        Some("25006") => Check::good("read-only lock", "a write that was tried was refused"),
        Some(code) => Check::doubtful(
            "read-only lock",
            format!("a write that was tried failed, but not because it was one ({code})"),
            "use a user that may only read",
        ),
        None => Check::bad(
            "read-only lock",
            "a write that was tried was carried out, and undone",
            "the server does not keep to READ ONLY: use a user that may only read",
        ),
    }
}

fn rights(server: &Row, writable: &Row) -> Result<Check, tokio_postgres::Error> {
    let (user, is_superuser, may_create): (String, bool, bool) =
        (server.try_get(1)?, server.try_get(2)?, server.try_get(4)?);
    let (tables, schemas): (i64, i64) = (writable.try_get(0)?, writable.try_get(1)?);
    if is_superuser {
        let seen = format!("`{user}` is a superuser, who may also read and write files of the server");
        return Ok(Check::doubtful("rights", seen, READER));
    }
    let mut could = Vec::new();
    if tables > 0 {
        could.push(format!("write to {tables} tables"));
    }
    if schemas > 0 {
        could.push(format!("make tables in {schemas} schemas"));
    }
    if may_create {
        could.push("make schemas".to_string());
    }
    Ok(if could.is_empty() {
        Check::good("rights", format!("`{user}` may only read"))
    } else {
        Check::doubtful("rights", format!("`{user}` could {}", could.join(" and ")), READER)
    })
}

fn secrecy(pool: &Pool, server: &Row) -> Result<Check, tokio_postgres::Error> {
    let is_encrypted: bool = server.try_get(3)?;
    Ok(if is_encrypted {
        Check::good("encryption", "the connection is encrypted")
    } else if pool.is_local() {
        Check::good("encryption", "the connection is not encrypted, and does not leave this machine")
    } else {
        let hint = "leave sslmode=disable and sslmode=prefer out of the address";
        Check::doubtful("encryption", "the connection leaves this machine and is not encrypted", hint)
    })
}
