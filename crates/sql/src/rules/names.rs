//! Names that do not resolve, or are ambiguous.

pub mod alias_reference;
pub mod ambiguous_column;
pub mod reserved_word;
pub mod unknown_alias;
pub mod unknown_column;
pub mod unknown_function;
pub mod unknown_table;
pub mod unquoted_name;
pub mod wrong_argument_count;
pub mod wrong_quote_style;

use sqlparser::ast::Ident;

use crate::rule::RuleContext;

/// Returns whether a name is a function that is called without parentheses, such as `current_role`:
/// reserved, and known.
fn is_bare_function(name: &Ident, ctx: &RuleContext<'_>) -> bool {
    let dialect = ctx.context.dialect;
    name.quote_style.is_none()
        && dialect.reserved_words.contains(&name.value)
        && dialect.functions.get(&name.value.to_lowercase()).is_some_and(|f| f.scalar)
}

/// Returns ` (did you mean …?)`, or an empty string.
fn did_you_mean(best_match: Option<&str>) -> String {
    best_match.map_or(String::new(), |n| format!(" (did you mean `{n}`?)"))
}
