//! Parsing: tokens, statements, limits and parser differentials.

pub(crate) mod parsed_query;
pub(crate) mod parser_differential;
pub(crate) mod token_stream;
