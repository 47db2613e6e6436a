//! Text utilities: lexical scanning and similarity of identifiers.

pub(crate) mod lexical;
pub(crate) mod semantic_similarity;
pub(crate) mod similarity;
