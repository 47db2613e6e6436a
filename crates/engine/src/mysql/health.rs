//! Health checks: read-only enforcement, privileges of the user, encryption.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use super::address::MySqlServer;
use super::errors::MySqlError;
use super::introspect::text_columns;
use super::pool::{Completed, MySqlOperation, completed};
use super::read_only::MySqlFlavor;
use crate::HealthCheck;

/// Collects server properties and attempts a write.
pub(super) struct MySqlHealthProbe<'a>(pub(super) &'a MySqlServer);

/// Result of [`MySqlHealthProbe`].
#[derive(Debug, Default)]
pub(super) struct MySqlHealthReport {
    version: String,
    /// `true` if the session's transactions are read-only by default.
    is_read_only: bool,
    /// Outcome of a write that affects no row, or the server's message. `None` if there is no table
    /// to write to.
    write: Option<Result<(), String>>,
    grants: Vec<String>,
    /// Cipher of the connection; empty if it is not encrypted.
    cipher: String,
}

impl MySqlOperation for MySqlHealthProbe<'_> {
    type Output = MySqlHealthReport;

    async fn run(&self, connection: &mut Conn, _: MySqlFlavor) -> Result<Completed<MySqlHealthReport>, MySqlError> {
        let mut seen = MySqlHealthReport::default();
        let version: Option<Row> = connection.query_first("SELECT VERSION()").await?;
        seen.version = version.and_then(first_text).unwrap_or_default();
        // The variable's name depends on the flavor and on the version of MySQL.
        let settings: Vec<Row> = connection
            .query("SHOW SESSION VARIABLES WHERE Variable_name IN ('tx_read_only', 'transaction_read_only')")
            .await?;
        seen.is_read_only =
            settings.into_iter().any(|row| matches!(text_columns(row), [_, Some(value)] if value == "ON"));
        let cipher: Option<Row> = connection.query_first("SHOW SESSION STATUS LIKE 'Ssl_cipher'").await?;
        seen.cipher = cipher.and_then(|row| text_columns::<2>(row)[1].take()).unwrap_or_default();
        let grants: Vec<Row> = connection.query("SHOW GRANTS").await?;
        seen.grants = grants.into_iter().filter_map(first_text).collect();
        let within = match self.0.database {
            Some(_) => "TABLE_SCHEMA = DATABASE()",
            None => "TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'mysql', 'sys')",
        };
        let table = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE {within} AND TABLE_TYPE = 'BASE TABLE' LIMIT 1"
        );
        if let Some(row) = connection.query_first::<Row, _>(table).await?
            && let [Some(schema), Some(table)] = text_columns(row)
        {
            let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
            let write = format!("DELETE FROM {}.{} WHERE FALSE", quoted(&schema), quoted(&table));
            seen.write = Some(match connection.query_drop(write).await {
                Ok(()) => Ok(()),
                Err(mysql_async::Error::Server(server_error)) => Err(server_error.message),
                Err(error) => return Err(error.into()),
            });
        }
        completed(seen)
    }
}

fn first_text(row: Row) -> Option<String> {
    match row.unwrap().into_iter().next() {
        Some(Value::Bytes(bytes)) => String::from_utf8(bytes).ok(),
        _ => None,
    }
}

/// Evaluates a report.
pub(super) fn health_checks(report: &MySqlHealthReport, server: &MySqlServer) -> Vec<HealthCheck> {
    let mut checks =
        vec![HealthCheck::passed("connection", format!("{} answers, version {}", server.name, report.version))];
    checks.push(read_only_check(report));
    checks.push(privilege_check(&report.grants, server));
    if !server.is_local {
        checks.push(match report.cipher.as_str() {
            "" => HealthCheck::warning(
                "encryption",
                "queries and rows are sent over the network unencrypted",
                "remove ?ssl-mode=disabled from the address",
            ),
            cipher => HealthCheck::passed("encryption", format!("the connection is encrypted with {cipher}")),
        });
    }
    checks
}

fn read_only_check(report: &MySqlHealthReport) -> HealthCheck {
    match &report.write {
        Some(Err(message)) => HealthCheck::passed("read-only", format!("a test write was rejected: {message}")),
        Some(Ok(())) => HealthCheck::failed(
            "read-only",
            "a test write (of no rows) was not rejected",
            "this server does not enforce read-only transactions: use a user with the SELECT privilege only",
        ),
        None if report.is_read_only => {
            HealthCheck::passed("read-only", "there is no table to test it with; transactions are read-only")
        }
        None => HealthCheck::failed(
            "read-only",
            "transactions are not read-only",
            "this server does not enforce read-only transactions: use a user with the SELECT privilege only",
        ),
    }
}

/// Privileges that do not allow any change.
const READ_ONLY_PRIVILEGES: [&str; 6] =
    ["SELECT", "USAGE", "SHOW VIEW", "SHOW DATABASES", "PROCESS", "REPLICATION CLIENT"];

fn privilege_check(grants: &[String], server: &MySqlServer) -> HealthCheck {
    let mut more: Vec<&str> = Vec::new();
    for grant in grants {
        // `GRANT SELECT, INSERT (a, b) ON …`; a grant without ON is a role, whose privileges are
        // listed separately.
        let Some((listed, _)) = grant.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON ")) else { continue };
        for right in listed.split([',', '(', ')']).map(str::trim) {
            let is_right = !right.is_empty() && right.chars().all(|c| c.is_ascii_uppercase() || c == ' ' || c == '_');
            if is_right && !READ_ONLY_PRIVILEGES.contains(&right) && !more.contains(&right) {
                more.push(right);
            }
        }
    }
    let user = &server.user;
    if more.is_empty() {
        return HealthCheck::passed("rights", format!("`{user}` is read-only"));
    }
    let database = server.database.as_deref().map_or("*".to_string(), |name| format!("`{name}`"));
    let shown = more.iter().take(6).copied().collect::<Vec<_>>().join(", ");
    let shown = if more.len() > 6 { format!("{shown} and {} more", more.len() - 6) } else { shown };
    HealthCheck::warning(
        "rights",
        format!("`{user}` has more than read privileges: {shown}"),
        format!(
            "create a read-only user: CREATE USER 'reader'@'%' IDENTIFIED BY '…'; GRANT SELECT, SHOW VIEW ON \
             {database}.* TO 'reader'@'%'"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CheckStatus;

    fn server() -> MySqlServer {
        MySqlServer::parse("mysql://me@db.example/shop", &|_| None).unwrap()
    }

    #[test]
    fn detects_write_privileges_in_grants() {
        for (grants, expected) in [
            (vec!["GRANT USAGE ON *.* TO `me`@`%`", "GRANT SELECT, SHOW VIEW ON `shop`.* TO `me`@`%`"], None),
            (vec!["GRANT SELECT (`id`, `INSERT`) ON `shop`.`t` TO `me`@`%`"], None),
            (vec!["GRANT `app_writer`@`%` TO `me`@`%`"], None),
            (vec!["GRANT ALL PRIVILEGES ON *.* TO `me`@`%` WITH GRANT OPTION"], Some("ALL PRIVILEGES")),
            (vec!["GRANT SELECT, INSERT, UPDATE (`a`) ON `shop`.* TO `me`@`%`"], Some("INSERT, UPDATE")),
        ] {
            let grants: Vec<String> = grants.into_iter().map(str::to_string).collect();
            let check = privilege_check(&grants, &server());
            assert_eq!(check.status == CheckStatus::Warning, expected.is_some(), "{grants:?}: {check:?}");
            assert!(expected.is_none_or(|expected| check.detail.ends_with(expected)), "{check:?}");
        }
    }

    #[test]
    fn maps_observations_to_check_statuses() {
        let seen = MySqlHealthReport { write: Some(Ok(())), ..MySqlHealthReport::default() };
        let standings: Vec<(&str, CheckStatus)> =
            health_checks(&seen, &server()).iter().map(|check| (check.name, check.status)).collect();
        assert_eq!(
            standings,
            [
                ("connection", CheckStatus::Passed),
                ("read-only", CheckStatus::Failed),
                ("rights", CheckStatus::Passed),
                ("encryption", CheckStatus::Warning)
            ]
        );
    }
}
