//! The engine's own read-only lock, which holds whatever the critic let through.
//!
//! The file is already opened without write access, and `query_only` and defensive mode refuse writes a second time. The
//! authorizer knows only reading: it also refuses what would change the connection itself (settings, transactions,
//! attached and temporary databases), so that one query cannot prepare the ground for the next.

use std::sync::{Arc, Mutex, PoisonError};

use querymend_sql::Policy;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

use super::behind::Behind;

/// Functions that reach beyond the answer: files, code, logs, or the index of a full-text table. Most are not even
/// compiled in; they are refused by name in case the library that is linked has them.
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

/// Pragmas that only read, whatever argument they are given. They also stand behind table-valued functions such as
/// `pragma_table_info('t')`.
const READING_PRAGMAS: &[&str] = &[
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

/// Pragmas that read when they stand alone and write when they are given a value. Full-text tables ask for them.
const READING_WITHOUT_VALUE: &[&str] = &["data_version", "encoding", "page_size", "user_version"];

/// The policy of the queries that a connection works on. SQLite names the tables behind views, which the critic does not
/// see.
#[derive(Clone, Default)]
pub(super) struct House(Arc<Mutex<Option<Policy>>>);

impl House {
    /// Whether this is the policy.
    pub(super) fn is_of(&self, policy: Option<&Policy>) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == policy
    }

    /// From now on this is the policy.
    pub(super) fn set(&self, policy: Option<Policy>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = policy;
    }
}

/// Locks a fresh connection down. This is also the first time that the file is read.
pub(super) fn lock_down(connection: &mut Connection) -> Result<House> {
    settings(connection)?;
    limits(connection)?;
    connect_virtual_tables(connection)?;
    let behind = Behind::read(connection)?;
    let house = House::default();
    let asked = house.clone();
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        let policy = asked.0.lock().unwrap_or_else(PoisonError::into_inner);
        if policy.as_ref().is_some_and(|p| !behind.may(p, &context)) {
            Authorization::Deny
        } else {
            permission(context.action)
        }
    }))?;
    Ok(house)
}

fn settings(connection: &Connection) -> Result<()> {
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
    // What is sorted or kept on the way stays in memory, where it is bounded (`memory.rs`), and off the disk.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cell_size_check", true)
}

fn limits(connection: &Connection) -> Result<()> {
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

/// Virtual tables are connected before the authorizer is there. An R-tree prepares the statements it would write with
/// as soon as it is connected, though it never runs them for a reader, and would fail on an authorizer that refuses
/// them. What cannot be connected (its module is not compiled in) fails later, for the query that names it.
fn connect_virtual_tables(connection: &Connection) -> Result<()> {
    let mut virtual_tables =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage = 0")?;
    let mut rows = virtual_tables.raw_query();
    while let Some(row) = rows.next()? {
        if let Ok(name) = row.get_ref(0)?.as_str() {
            connection.prepare(&format!("SELECT * FROM {}", quoted(name))).ok();
        }
    }
    Ok(())
}

/// A name as SQLite reads it back, whatever it is made of.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn permission(action: AuthAction<'_>) -> Authorization {
    let named = |list: &[&str], name: &str| list.iter().any(|known| known.eq_ignore_ascii_case(name));
    let allowed = match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !named(FORBIDDEN_FUNCTIONS, function_name),
        AuthAction::Pragma { pragma_name, pragma_value } => {
            named(READING_PRAGMAS, pragma_name) || (pragma_value.is_none() && named(READING_WITHOUT_VALUE, pragma_name))
        }
        // Everything else changes something, here or in a later version of SQLite.
        _ => false,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}
