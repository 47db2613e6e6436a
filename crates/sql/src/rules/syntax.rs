//! Text that is almost a query: its tokens are in the wrong order, or one is missing or
//! superfluous.
//!
//! A rule of this group offers only fixes that make the text parse, and the result is reviewed like
//! any other query.

pub mod bare_subquery;
pub mod between_bounds;
pub mod cast_syntax;
pub mod clause_order;
pub mod cte_list_syntax;
pub mod dangling_keyword;
pub mod function_without_parentheses;
pub mod in_list_without_parentheses;
pub mod misplaced_distinct;
pub mod misplaced_quote;
pub mod missing_comma;
pub mod missing_end;
pub mod missing_on;
pub mod missing_operand;
pub mod missing_select;
pub mod misspelt_keyword;
pub mod percent_literal;
pub mod set_operand_order_limit;
pub mod sort_direction_in_call;
pub mod sort_direction_in_group_by;
pub mod subquery_arithmetic;
pub mod thousands_separator;
pub mod trailing_comma;
pub mod trailing_garbage;
pub mod unbalanced_parenthesis;
pub mod unfinished;
pub mod using_columns;
pub mod where_after_aggregate;
