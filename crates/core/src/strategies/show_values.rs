//! A text that the query looks for is never in its column: the model is shown what is.

use super::{Feedback, Strategy, Trouble, told};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "show_values",
    fits: |trouble, _| !trouble.values.is_empty(),
    tell: |trouble, _| values(trouble),
    anew: false,
};

fn values(trouble: &Trouble) -> Vec<Feedback> {
    let line = |(stated, held): &(querymend_sql::Stated, Vec<String>)| {
        let held: Vec<String> = held.iter().take(8).map(|v| format!("'{}'", v.replace('\'', "''"))).collect();
        told(
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
    trouble.values.iter().map(line).collect()
}
