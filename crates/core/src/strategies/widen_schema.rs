//! A name is missing that is in a table which the model was not shown: now it is.

use querymend_sql::ErrorType;
use querymend_sql::schema::Table;

use super::{Strategy, Trouble, View, advice, told};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "widen_schema",
    fits: |trouble, view| {
        matches!(trouble.error_type, ErrorType::TableNotFound | ErrorType::ColumnNotFound)
            && !unseen(trouble, view).is_empty()
    },
    tell: |trouble, view| {
        let listed = |t: &Table| {
            let columns: Vec<&str> = t.columns.iter().map(|c| c.name.as_str()).collect();
            format!("{}({})", t.full_name(), columns.join(", "))
        };
        let tables: Vec<String> = unseen(trouble, view).into_iter().take(2).map(listed).collect();
        let mut all = vec![told("schema", format!("There is also {}.", tables.join(" and ")))];
        all.extend(advice(trouble));
        all
    },
    anew: false,
};

/// Tables that were not shown and have, or are, what is missing.
fn unseen<'v>(trouble: &Trouble, view: &View<'v>) -> Vec<&'v Table> {
    let name = trouble.subject.as_str();
    let fits = |t: &&Table| !view.shown.contains(&t.full_name());
    let has = |t: &&Table| t.name.eq_ignore_ascii_case(name) || t.column(name).is_some();
    view.schema.tables().iter().filter(fits).filter(has).collect()
}
