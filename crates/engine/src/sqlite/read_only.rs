//! Read-only enforcement, independent of query review.
//!
//! The file is opened without write access, and `query_only` and defensive mode reject writes a
//! second time. The authorizer allows only reads: it also rejects changes to the connection itself
//! (settings, transactions, attached and temporary databases), so that no query can affect the next
//! one.

use std::sync::{Arc, Mutex, PoisonError};

use querymend_sql::Policy;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

use super::underlying_tables::UnderlyingTables;

/// Functions with effects beyond the result: files, code, logs, or the index of a full-text table.
/// Most are not compiled in; they are rejected by name in case the linked library has them.
const FORBIDDEN_FUNCTIONS: &[&str] = &[
    "edit",
    "eval",
    "fsdir",
    "fts3_tokenizer",
    "icu_load_collation",
    "load_extension",
    "lsmode",
    "optimize",
    "readfile",
    "sqlite_log",
    "writefile",
];

/// Pragmas that only read, with any argument. They also implement table-valued functions such as
/// `pragma_table_info('t')`.
const READ_ONLY_PRAGMAS: &[&str] = &[
    "collation_list",
    "compile_options",
    "database_list",
    "foreign_key_list",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "module_list",
    "pragma_list",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Pragmas that read without a value and write with one. Full-text tables use them.
const READ_ONLY_PRAGMAS_WITHOUT_VALUE: &[&str] = &["data_version", "encoding", "page_size", "user_version"];

/// Policy of the queries on a connection. SQLite reports the tables that a view reads, which query
/// review does not see.
#[derive(Clone, Default)]
pub(super) struct ActivePolicy(Arc<Mutex<Option<Policy>>>);

impl ActivePolicy {
    /// Returns whether `policy` is the active policy.
    pub(super) fn is_policy(&self, policy: Option<&Policy>) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == policy
    }

    /// Sets the active policy.
    pub(super) fn set(&self, policy: Option<Policy>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = policy;
    }
}

/// Locks down a new connection. This is also the first access to the file.
pub(super) fn lock_down(connection: &mut Connection) -> Result<ActivePolicy> {
    apply_settings(connection)?;
    apply_limits(connection)?;
    connect_virtual_tables(connection)?;
    let underlying = UnderlyingTables::load(connection)?;
    let active_policy = ActivePolicy::default();
    let asked = active_policy.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        let policy = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
        if policy.as_ref().is_some_and(|p| !underlying.is_allowed(p, &context)) {
            Authorization::Deny
        } else {
            authorize(context.action)
        }
    }))?;
    Ok(active_policy)
}

fn apply_settings(connection: &Connection) -> Result<()> {
    for (setting, on) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_CREATE, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_ATTACH_WRITE, false),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        connection.set_db_config(setting, on)?;
    }
    connection.pragma_update(None, "query_only", true)?;
    // Sorting and temporary tables stay in memory, where they are bounded (`heap_limit.rs`), and
    // off the disk.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cell_size_check", true)
}

fn apply_limits(connection: &Connection) -> Result<()> {
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 1_000),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 500),
        (Limit::SQLITE_LIMIT_VDBE_OP, 10_000_000),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    ] {
        connection.set_limit(limit, most)?;
    }
    Ok(())
}

/// Connects virtual tables before the authorizer is installed.
///
/// An R-tree prepares its write statements as soon as it is connected, although it never runs them
/// for a reader, and would fail if the authorizer rejected them. A virtual table that cannot be
/// connected (its module is not compiled in) fails later, for the query that references it.
fn connect_virtual_tables(connection: &Connection) -> Result<()> {
    let mut virtual_tables =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage = 0")?;
    let mut rows = virtual_tables.raw_query();
    while let Some(row) = rows.next()? {
        if let Ok(name) = row.get_ref(0)?.as_str() {
            connection.prepare(&format!("SELECT * FROM {}", quote_identifier(name))).ok();
        }
    }
    Ok(())
}

/// Quotes an identifier.
pub(super) fn quote_identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn authorize(action: AuthAction<'_>) -> Authorization {
    let named = |list: &[&str], name: &str| list.iter().any(|known| known.eq_ignore_ascii_case(name));
    let allowed = match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !named(FORBIDDEN_FUNCTIONS, function_name),
        AuthAction::Pragma { pragma_name, pragma_value } => {
            named(READ_ONLY_PRAGMAS, pragma_name)
                || (pragma_value.is_none() && named(READ_ONLY_PRAGMAS_WITHOUT_VALUE, pragma_name))
        }
        // Everything else changes something, in this or a later version of SQLite.
        _ => false,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}
