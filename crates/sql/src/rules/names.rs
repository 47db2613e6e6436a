//! Names that mean nothing, or too much.

pub mod alias_reference;
pub mod ambiguous_column;
pub mod reserved_word;
pub mod unknown_alias;
pub mod unknown_column;
pub mod unknown_function;
pub mod unknown_table;
pub mod wrong_argument_count;
pub mod wrong_quotes;

/// ` (did you mean …?)`, or nothing.
fn meant(near: Option<&str>) -> String {
    near.map_or(String::new(), |n| format!(" (did you mean `{n}`?)"))
}
