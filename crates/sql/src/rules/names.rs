//! Names that mean nothing, or too much.

pub mod alias_reference;
pub mod ambiguous_column;
mod by_value;
mod column_fixes;
mod date_columns;
mod joined_twice;
mod junction;
mod junction_inside;
mod kinship;
mod named_query;
mod owner;
pub mod reserved_word;
mod self_join;
mod table_fixes;
pub mod unknown_alias;
pub mod unknown_column;
pub mod unknown_function;
pub mod unknown_table;
pub mod unquoted_name;
pub mod wrong_argument_count;
pub mod wrong_quotes;

use sqlparser::ast::Ident;

use crate::rules::Subject;

/// Whether a name is a function that is called without parentheses, such as `current_role`: reserved, and known.
fn is_bare_function(name: &Ident, subject: &Subject<'_>) -> bool {
    let dialect = subject.context.dialect;
    name.quote_style.is_none()
        && dialect.reserved.contains(&name.value)
        && dialect.functions.get(&name.value.to_lowercase()).is_some_and(|f| f.scalar)
}

/// ` (did you mean …?)`, or nothing.
fn meant(near: Option<&str>) -> String {
    near.map_or(String::new(), |n| format!(" (did you mean `{n}`?)"))
}
