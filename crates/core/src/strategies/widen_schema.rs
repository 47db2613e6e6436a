//! Strategy for a missing name that exists in a table outside the prompt: adds the table.

use querymend_sql::ErrorType;
use querymend_sql::schema::Table;

use super::{AttemptFailure, Strategy, StrategyContext, advice, feedback};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "widen_schema",
    applies: |failure, context| {
        matches!(failure.error_type, ErrorType::TableNotFound | ErrorType::ColumnNotFound)
            && !unlinked_tables(failure, context).is_empty()
    },
    feedback: |failure, context| {
        let listed = |t: &Table| {
            let columns: Vec<&str> = t.columns.iter().map(|c| c.name.as_str()).collect();
            format!("{}({})", t.full_name(), columns.join(", "))
        };
        let tables: Vec<String> = unlinked_tables(failure, context).into_iter().take(2).map(listed).collect();
        let mut all = vec![feedback("schema", format!("There is also {}.", tables.join(" and ")))];
        all.extend(advice(failure));
        all
    },
    restart_conversation: false,
};

/// Returns the tables outside the prompt that match the missing name, or have such a column.
fn unlinked_tables<'v>(failure: &AttemptFailure, context: &StrategyContext<'v>) -> Vec<&'v Table> {
    let name = failure.subject.as_str();
    let fits = |t: &&Table| !context.linked_tables.contains(&t.full_name());
    let has = |t: &&Table| t.name.eq_ignore_ascii_case(name) || t.column(name).is_some();
    context.schema.tables().iter().filter(fits).filter(has).collect()
}
