//! Queries, filters and updates of example stores.

use crate::example::{Example, Provenance, VerificationStatus};

/// Search for similar examples.
#[derive(Debug, Clone, Copy)]
pub struct ExampleQuery<'s> {
    /// Question to find similar examples for.
    pub question: &'s str,
    /// Database that the question refers to; its own examples rank above equally similar ones of
    /// other databases.
    pub database: &'s str,
    /// Restricts the search to one SQL dialect.
    pub dialect: Option<&'s str>,
    /// Restricts the search to examples of `database`.
    pub only_database: bool,
    /// Restricts the search to verified examples.
    pub only_verified: bool,
    /// Maximum number of examples to return.
    pub limit: usize,
}

/// Search result.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoredExample {
    /// Example that was found.
    pub example: Example,
    /// Cosine similarity of the questions' embeddings; 1 for identical questions.
    pub similarity: f32,
    /// Ranking score that combines vector and word similarity with penalties for harm; only
    /// meaningful for comparison.
    pub score: f32,
}

/// Filter for examples; all conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExampleFilter {
    /// Required database.
    pub database: Option<String>,
    /// Required SQL dialect.
    pub dialect: Option<String>,
    /// Required provenance.
    pub provenance: Option<Provenance>,
    /// Required verification status.
    pub standing: Option<VerificationStatus>,
}

impl ExampleFilter {
    /// Returns whether an example satisfies all conditions.
    pub fn matches(&self, example: &Example) -> bool {
        self.database.as_ref().is_none_or(|database| *database == example.database)
            && self.dialect.as_ref().is_none_or(|dialect| *dialect == example.dialect)
            && self.provenance.is_none_or(|provenance| provenance == example.provenance)
            && self.standing.is_none_or(|standing| standing == example.standing)
    }
}

/// Update of an example; counters are increments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExampleUpdate {
    /// New verification status; unchanged if `None`.
    pub standing: Option<VerificationStatus>,
    /// New provenance; unchanged if `None`.
    pub provenance: Option<Provenance>,
    /// Increment of the number of prompts that included the example.
    pub uses: u32,
    /// Increment of the number of times it helped.
    pub helped: u32,
    /// Increment of the number of times it hurt.
    pub hurt: u32,
}
