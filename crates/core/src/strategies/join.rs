//! A column or a name belongs to a table that is not joined: the model is told the keys that lead there.

use querymend_sql::ErrorType;

use super::{Feedback, Strategy, Trouble, View, advice, told};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "join",
    fits: |trouble, view| {
        matches!(trouble.error_type, ErrorType::ColumnNotFound | ErrorType::AmbiguousColumn)
            && !keys(trouble, view).is_empty()
    },
    tell: |trouble, view| {
        let mut all = advice(trouble);
        all.extend(keys(trouble, view));
        all
    },
    anew: false,
};

/// The keys of the tables that have a column of the name that is missing.
fn keys(trouble: &Trouble, view: &View<'_>) -> Vec<Feedback> {
    let owners: Vec<_> = view.schema.tables().iter().filter(|t| t.column(&trouble.subject).is_some()).take(3).collect();
    let mut lines: Vec<String> = Vec::new();
    for table in view.schema.tables() {
        for key in &table.foreign_keys {
            let touches = |name: &str| owners.iter().any(|o| o.name.eq_ignore_ascii_case(name));
            if let ([own], [there]) = (key.columns.as_slice(), key.references.as_slice())
                && (touches(&table.name) || touches(&key.table))
            {
                lines.push(format!("{}.{own} = {}.{there}", table.name, key.table));
            }
        }
    }
    lines.truncate(4);
    if lines.is_empty() { Vec::new() } else { vec![told("join", format!("Keys: {}.", lines.join(", ")))] }
}
