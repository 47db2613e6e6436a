//! Terms of a question, matched against the vocabulary of a schema.

use std::collections::HashMap;

/// Maximum degree in the foreign key graph. Tables with more neighbors are hubs, which carry no
/// information about a question.
pub(crate) const MAX_NEIGHBOURS: usize = 32;

/// Number of top-ranked tables that seed groups.
pub(crate) const MAX_SEEDS: usize = 64;

/// Catalog term that a question term may refer to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TermMatch {
    pub(super) term: u32,
    /// Confidence of the match.
    pub(super) confidence: f32,
    /// Weight of the term (IDF).
    pub(super) weight: f32,
}

/// Question matched against an index.
#[derive(Debug)]
pub(crate) struct QuestionTerms {
    /// Matching catalog terms for each question term.
    pub(super) matches: Vec<Vec<TermMatch>>,
    /// Question terms with their match, by catalog term.
    pub(super) by_term: HashMap<u32, Vec<(usize, TermMatch)>>,
    /// Embedding of the entire question.
    pub(super) topic_vector: Vec<f32>,
    pub(super) value_tables: Vec<Vec<u32>>,
    pub(super) value_columns: Vec<(u32, String)>,
}

impl QuestionTerms {
    /// Number of features: question terms and values.
    pub(super) fn feature_count(&self) -> usize {
        self.matches.len() + self.value_tables.len()
    }
}
