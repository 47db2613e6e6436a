//! Strategy for a column of a table that is not joined: provides the foreign keys that lead to it.

use querymend_sql::ErrorType;

use super::{AttemptFailure, Feedback, Strategy, StrategyContext, advice, feedback};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "join",
    applies: |failure, context| {
        matches!(failure.error_type, ErrorType::ColumnNotFound | ErrorType::AmbiguousColumn)
            && !key_hints(failure, context).is_empty()
    },
    feedback: |failure, context| {
        let mut all = advice(failure);
        all.extend(key_hints(failure, context));
        all
    },
    restart_conversation: false,
};

/// Returns the foreign keys of the tables that have a column of the missing name.
fn key_hints(failure: &AttemptFailure, context: &StrategyContext<'_>) -> Vec<Feedback> {
    let owners: Vec<_> =
        context.schema.tables().iter().filter(|t| t.column(&failure.subject).is_some()).take(3).collect();
    let mut lines: Vec<String> = Vec::new();
    for table in context.schema.tables() {
        for key in &table.foreign_keys {
            let is_owner = |name: &str| owners.iter().any(|o| o.name.eq_ignore_ascii_case(name));
            if let ([own], [there]) = (key.columns.as_slice(), key.references.as_slice())
                && (is_owner(&table.name) || is_owner(&key.table))
            {
                lines.push(format!("{}.{own} = {}.{there}", table.name, key.table));
            }
        }
    }
    lines.truncate(4);
    if lines.is_empty() { Vec::new() } else { vec![feedback("join", format!("Keys: {}.", lines.join(", ")))] }
}
