//! Settings that a session needs before it runs queries.
//!
//! They fix how SQL is parsed, and shadow functions that run arbitrary code on the server.

use super::{HiveSession, Product};
use crate::deadline::Deadline;
use crate::hive::hive_error::HiveError;

/// Configuration requested when a session is opened: a short long-polling timeout.
///
/// It limits the time that a server blocks a connection before it reports that a query is still
/// running. Until then, it cannot receive a cancel request on that connection.
pub(super) const OPEN_SESSION_CONFIG: &[(&str, &str)] = &[("set:hiveconf:hive.server2.long.polling.timeout", "100ms")];

/// Spark settings that change how SQL is parsed or what it can access.
const SPARK_SETTINGS: &[(&str, &str)] = &[
    ("spark.sql.variable.substitute", "false"),
    ("spark.sql.runSQLOnFiles", "false"),
    ("spark.sql.parser.escapedStringLiterals", "false"),
    ("spark.sql.parser.quotedRegexColumnNames", "false"),
    ("spark.sql.ansi.doubleQuotedIdentifiers", "false"),
    ("spark.sql.ansi.relationPrecedence", "false"),
    ("spark.sql.legacy.setopsPrecedence.enabled", "false"),
    ("spark.sql.caseSensitive", "false"),
    ("spark.sql.session.timeZone", "UTC"),
    ("spark.sql.thriftServer.interruptOnCancel", "true"),
];

/// Functions that call arbitrary Java methods on the server.
const REFLECTION_FUNCTIONS: &[&str] = &["reflect", "java_method", "try_reflect"];

/// Hive settings of the same kind, and whether a session is unusable without them.
const HIVE_SETTINGS: &[(&str, &str, bool)] = &[
    ("hive.support.quoted.identifiers", "column", true),
    ("hive.variable.substitute", "false", true),
    // Pins the plan format that is parsed here, because a server may default to another one.
    ("hive.explain.user", "false", true),
    ("hive.resultset.use.unique.column.names", "false", false),
    ("hive.local.time.zone", "UTC", false),
];

/// Prepares a session for unreviewed queries.
pub(super) fn prepare_session(session: &mut HiveSession, database: &str, deadline: &Deadline) -> Result<(), HiveError> {
    match session.product {
        Product::Spark => {
            for (name, value) in SPARK_SETTINGS {
                session.command(&format!("SET {name}={value}"), deadline)?;
            }
            for name in REFLECTION_FUNCTIONS {
                // Only for this session. The class is not a valid function, which Spark detects
                // when it is called.
                session
                    .command(&format!("CREATE OR REPLACE TEMPORARY FUNCTION {name} AS 'java.lang.Object'"), deadline)?;
            }
        }
        Product::Hive => {
            for (name, value, needed) in HIVE_SETTINGS {
                match session.command(&format!("SET {name}={value}"), deadline) {
                    Err(HiveError::ServerError(_)) if !needed => {}
                    outcome => outcome?,
                }
            }
        }
    }
    match session.command(&format!("USE `{database}`"), deadline) {
        Err(HiveError::ServerError(status)) if !status.is_unknown_handle() => Err(HiveError::UnknownDatabase(status)),
        outcome => outcome,
    }
}
