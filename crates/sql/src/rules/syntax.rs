//! Text that is almost a query: the words are there, their order or a sign is not.
//!
//! A rule of this group offers only what makes the text parse, and what comes out is reviewed like anything else.

pub mod arithmetic_of_queries;
pub mod broken_rest;
pub mod cast_syntax;
pub mod clause_order;
pub mod condition_behind_aggregate;
pub mod dangling_word;
pub mod misplaced_quote;
pub mod missing_select;
pub mod misspelt_keyword;
pub mod sorted_group_by;
pub mod trailing_comma;
pub mod unbalanced_parenthesis;
pub mod unfinished;
