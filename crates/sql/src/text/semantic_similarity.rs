//! Semantic similarity of short phrases, so that a rule can tell a synonym from an unrelated word.
//!
//! This crate is pure and has no embeddings: the code that loads a schema attaches an
//! implementation with [`Schema::set_similarity`](crate::Schema::set_similarity). Without one,
//! rules compare spelling alone.

use std::fmt;
use std::sync::Arc;

/// Minimum similarity of a phrase to a name that can replace it as a synonym.
///
/// On 402 synonyms of Spider-Syn, the accepted share and the share of accepted pairs that are
/// synonyms: 0.45: 67 %, 92 %; 0.50: 56 %, 94 %; 0.55: 48 %, 96 %; 0.60: 37 %, 97 %. Measured by
/// `scripts/synonym_threshold.py --data DIR`.
pub const MIN_SYNONYM_SIMILARITY: f32 = 0.55;

/// Compares the meaning of two short phrases, such as a word of a question and the name of a table.
pub trait Similarity: Send + Sync {
    /// Returns the semantic similarity, from 0 (unrelated) to 1 (same meaning). Deterministic and
    /// symmetric.
    fn similarity(&self, left: &str, right: &str) -> f32;
}

/// Returns the similarity of two names, the maximum over their singular and plural forms.
///
/// Embeddings of singular and plural differ, and either may be the one that texts use.
pub fn name_similarity(similarity: &dyn Similarity, left: &str, right: &str) -> f32 {
    let (one, other) = (singular(left), singular(right));
    let as_written = similarity.similarity(left, right);
    let singulars = similarity.similarity(&one, &other);
    as_written.max(singulars).max(similarity.similarity(&plural(&one), &plural(&other)))
}

/// Returns the singular of a regular plural.
fn singular(name: &str) -> String {
    if let Some(stem) = name.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    let is_plural = |stem: &&str| stem.len() > 2 && !stem.ends_with(['s', 'u', 'i']);
    let sibilant = |stem: &&str| ["ss", "x", "ch", "sh"].iter().any(|end| stem.ends_with(end));
    let stem = name.strip_suffix("es").filter(sibilant).or(name.strip_suffix('s').filter(is_plural));
    stem.unwrap_or(name).to_string()
}

/// Returns the regular plural of a singular.
fn plural(name: &str) -> String {
    let is_after_vowel = |stem: &&str| stem.ends_with(['a', 'e', 'i', 'o', 'u']);
    match name.strip_suffix('y').filter(|stem| !is_after_vowel(stem)) {
        Some(stem) => format!("{stem}ies"),
        None if ["s", "x", "ch", "sh"].iter().any(|end| name.ends_with(end)) => format!("{name}es"),
        None => format!("{name}s"),
    }
}

/// Similarity implementation that schemas share.
#[derive(Clone)]
pub(crate) struct SharedSimilarity(pub Arc<dyn Similarity>);

impl fmt::Debug for SharedSimilarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSimilarity")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn converts_between_singular_and_plural() {
        for (one, many) in
            [("city", "cities"), ("box", "boxes"), ("order item", "order items"), ("day", "days"), ("class", "classes")]
        {
            assert_eq!((singular(many).as_str(), singular(one).as_str(), plural(one).as_str()), (one, one, many));
        }
        assert_eq!(singular("status"), "status");
    }
}
