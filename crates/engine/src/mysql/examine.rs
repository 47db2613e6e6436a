//! What whoever sets up a connection should know: does the lock hold, could the user write, can others listen.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use super::address::Server;
use super::introspect::texts;
use super::lock::Family;
use super::pool::{Done, Work, done};
use super::refusal::Fault;
use crate::Check;

/// Looks at the server, and tries to write.
pub(super) struct Look<'a>(pub(super) &'a Server);

/// What was seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    version: String,
    /// The session makes transactions that only read.
    is_read_only: bool,
    /// What came of a write that would change no row: the server's words, or nothing if it went through.
    write: Option<Result<(), String>>,
    grants: Vec<String>,
    /// How the connection is encrypted; empty if it is not.
    cipher: String,
}

impl Work for Look<'_> {
    type Outcome = Seen;

    async fn run(&self, connection: &mut Conn, _: Family) -> Result<Done<Seen>, Fault> {
        let mut seen = Seen::default();
        let version: Option<Row> = connection.query_first("SELECT VERSION()").await?;
        seen.version = version.and_then(first).unwrap_or_default();
        // Named differently by the two families, and by MySQL's ages.
        let settings: Vec<Row> = connection
            .query("SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_read_only', 'transaction_read_only')")
            .await?;
        seen.is_read_only = settings.into_iter().any(|row| matches!(texts(row), [_, Some(value)] if value == "ON"));
        let cipher: Option<Row> = connection.query_first("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await?;
        seen.cipher = cipher.and_then(|row| texts::<2>(row)[1].take()).unwrap_or_default();
        let grants: Vec<Row> = connection.query("SHOW GRANTS").await?;
        seen.grants = grants.into_iter().filter_map(first).collect();
        let within = match self.0.database {
            Some(_) => "TABLE_SCHEMA = DATABASE()",
            None => "TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')",
        };
        let table = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {within} AND TABLE_TYPE = 'BASE TABLE' LIMIT 1"
        );
        if let Some(row) = connection.query_first::<Row, _>(table).await?
            && let [Some(schema), Some(table)] = texts(row)
        {
            let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
            let write = format!("DELETE FROM {}.{} WHERE FALSE", quoted(&schema), quoted(&table));
            seen.write = Some(match connection.query_drop(write).await {
                Ok(()) => Ok(()),
                Err(mysql_async::Error::Server(said)) => Err(said.message),
                Err(error) => return Err(error.into()),
            });
        }
        done(seen)
    }
}

fn first(row: Row) -> Option<String> {
    match row.unwrap().into_iter().next() {
        Some(Value::Bytes(bytes)) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// What to make of it.
pub(super) fn checks(seen: &Seen, server: &Server) -> Vec<Check> {
    let mut checks = vec![Check::good("connection", format!("{} answers, version {}", server.name, seen.version))];
    checks.push(lock(seen));
    checks.push(rights(&seen.grants, server));
    if !server.is_local {
        checks.push(match seen.cipher.as_str() {
            "" => Check::doubtful(
                "encryption",
                "what is asked and answered goes over the network for all to read",
                "take ?ssl-mode=disabled away from the address",
            ),
            cipher => Check::good("encryption", format!("the connection is encrypted with {cipher}")),
        });
    }
    checks
}

fn lock(seen: &Seen) -> Check {
    match &seen.write {
        Some(Err(said)) => Check::good("read-only lock", format!("a write was tried and refused: {said}")),
        Some(Ok(())) => Check::bad(
            "read-only lock",
            "a write (of no rows) was not refused",
            "this server does not keep read-only transactions: give it a user who may only SELECT",
        ),
        None if seen.is_read_only => {
            Check::good("read-only lock", "there is no table to try it on; transactions are read-only")
        }
        None => Check::bad(
            "read-only lock",
            "transactions are not read-only",
            "this server does not keep read-only transactions: give it a user who may only SELECT",
        ),
    }
}

/// Rights with which nothing can be changed.
const READING: [&str; 6] = ["SELECT", "USAGE", "SHOW VIEW", "SHOW DATABASES", "PROCESS", "REPLICATION CLIENT"];

fn rights(grants: &[String], server: &Server) -> Check {
    let mut more: Vec<&str> = Vec::new();
    for grant in grants {
        // `GRANT SELECT, INSERT (a, b) ON …`; what has no ON is a role, whose rights stand in lines of their own.
        let Some((listed, _)) = grant.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON ")) else { continue };
        for right in listed.split([',', '(', ')']).map(str::trim) {
            let is_right = !right.is_empty() && right.chars().all(|c| c.is_ascii_uppercase() || c == ' ' || c == '_');
            if is_right && !READING.contains(&right) && !more.contains(&right) {
                more.push(right);
            }
        }
    }
    let user = &server.user;
    if more.is_empty() {
        return Check::good("rights", format!("`{user}` may only read"));
    }
    let database = server.database.as_deref().map_or("*".to_string(), |name| format!("`{name}`"));
    let shown = more.iter().take(6).copied().collect::<Vec<_>>().join(", ");
    let shown = if more.len() > 6 { format!("{shown} and {} more", more.len() - 6) } else { shown };
    Check::doubtful(
        "rights",
        format!("`{user}` may do more than read: {shown}"),
        format!(
            "a user who may only read is made by: CREATE USER 'reader'@'%' IDENTIFIED BY '…'; \
             GRANT SELECT, SHOW VIEW ON {database}.* TO 'reader'@'%'"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Standing;

    fn server() -> Server {
        Server::read("mysql://me@db.example/shop", &|_| None).unwrap()
    }

    #[test]
    fn rights_are_read_from_grants() {
        for (grants, expected) in [
            (vec!["GRANT USAGE ON *.* TO `me`@`%`", "GRANT SELECT, SHOW VIEW ON `shop`.* TO `me`@`%`"], None),
            (vec!["GRANT SELECT (`id`, `INSERT`) ON `shop`.`t` TO `me`@`%`"], None),
            (vec!["GRANT `app_writer`@`%` TO `me`@`%`"], None),
            (vec!["GRANT ALL PRIVILEGES ON *.* TO `me`@`%` WITH GRANT OPTION"], Some("ALL PRIVILEGES")),
            (vec!["GRANT SELECT, INSERT, UPDATE (`a`) ON `shop`.* TO `me`@`%`"], Some("INSERT, UPDATE")),
        ] {
            let grants: Vec<String> = grants.into_iter().map(str::to_string).collect();
            let check = rights(&grants, &server());
            assert_eq!(check.standing == Standing::Doubtful, expected.is_some(), "{grants:?}: {check:?}");
            assert!(expected.is_none_or(|expected| check.seen.ends_with(expected)), "{check:?}");
        }
    }

    #[test]
    fn what_was_seen_is_judged() {
        let seen = Seen { write: Some(Ok(())), ..Seen::default() };
        let standings: Vec<(&str, Standing)> =
            checks(&seen, &server()).iter().map(|check| (check.what, check.standing)).collect();
        assert_eq!(
            standings,
            [
                ("connection", Standing::Good),
                ("read-only lock", Standing::Bad),
                ("rights", Standing::Good),
                ("encryption", Standing::Doubtful)
            ]
        );
    }
}
