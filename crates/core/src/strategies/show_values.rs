//! Strategy for a literal that does not occur in its column: provides similar values that do.

use super::{AttemptFailure, Feedback, Strategy, feedback};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "show_values",
    applies: |failure, _| !failure.values.is_empty(),
    feedback: |failure, _| value_hints(failure),
    restart_conversation: false,
};

fn value_hints(failure: &AttemptFailure) -> Vec<Feedback> {
    let line = |(stated, similar): &(querymend_sql::LiteralFilter, Vec<String>)| {
        let held: Vec<String> = similar.iter().take(8).map(|v| format!("'{}'", v.replace('\'', "''"))).collect();
        feedback(
            "unknown-value",
            format!(
                "{}.{} never holds '{}'. Some of its values: {}.",
                stated.table,
                stated.column,
                stated.value,
                held.join(", ")
            ),
        )
    };
    failure.values.iter().map(line).collect()
}
