//! Text that is almost a query: the words are there, their order or a sign is not.
//!
//! A rule of this group offers only what makes the text parse, and what comes out is reviewed like anything else.

pub mod arithmetic_of_queries;
pub mod bare_call;
pub mod bare_list;
pub mod bare_subquery;
pub mod between_bounds;
pub mod broken_rest;
pub mod cast_syntax;
pub mod clause_order;
pub mod condition_behind_aggregate;
pub mod dangling_word;
pub mod grouped_digits;
pub mod limited_part;
pub mod misplaced_distinct;
pub mod misplaced_quote;
pub mod missing_comma;
pub mod missing_end;
pub mod missing_on;
pub mod missing_operand;
pub mod missing_select;
pub mod misspelt_keyword;
pub mod percent_sign;
pub mod sorted_argument;
pub mod sorted_group_by;
pub mod trailing_comma;
pub mod unbalanced_parenthesis;
pub mod unfinished;
pub mod using_columns;
pub mod with_list;
