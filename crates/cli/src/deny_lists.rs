//! Warnings about deny-list entries that match nothing.

use querymend::Config;
use querymend_engine::Engine;
use querymend_sql::{Policy, Schema};
use tokio::runtime::Runtime;

use crate::output::Out;
use crate::output::text::one_line;

/// Warns about entries of the configured deny lists that match nothing in the database.
pub fn check_deny_lists(config: &Config, engine: &dyn Engine, runtime: &Runtime, out: &Out) {
    if config.policy.deny_tables.is_empty() && config.policy.deny_columns.is_empty() {
        return;
    }
    // An unreadable database is reported when it is queried.
    if let Ok(schema) = runtime.block_on(engine.schema()) {
        warn_unmatched_denies(&config.policy, &schema, out);
    }
}

/// Warns about deny-list entries that match nothing in the database: a misspelled entry denies
/// nothing.
pub fn warn_unmatched_denies(policy: &Policy, schema: &Schema, out: &Out) {
    for entry in policy.unmatched_denies(schema) {
        let (list, what) = match policy.deny_columns.iter().any(|column| column == entry) {
            true => ("deny_columns", "column"),
            false => ("deny_tables", "table"),
        };
        let entry = one_line(entry);
        out.message(&format!("warning: `{entry}` in {list} matches no {what} of the database, so it has no effect"));
    }
}
