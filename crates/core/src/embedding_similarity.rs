//! Similarity of names by the built-in static embeddings, for rules that accept synonyms.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use querymend_model::{StaticEmbedder, similarity};
use querymend_sql::{Schema, Similarity};

/// Maximum number of phrases whose vectors are cached; later phrases are embedded each time.
const MAX_CACHED_PHRASES: usize = 50_000;

/// Attaches the similarity of the built-in embedder to a schema.
pub fn attach(schema: &Schema) {
    schema.set_similarity(builtin());
}

/// Returns the similarity of the built-in embedder, one for the whole process.
pub fn builtin() -> Arc<dyn Similarity> {
    static SHARED: OnceLock<Arc<StaticSimilarity>> = OnceLock::new();
    Arc::clone(SHARED.get_or_init(Arc::default)) as Arc<dyn Similarity>
}

/// Cosine similarity of the topic vectors of the static embedder, memoized per phrase.
///
/// The embedder is loaded at the first comparison, which most reviews never make. If its file is
/// damaged, nothing is similar.
#[derive(Default)]
struct StaticSimilarity {
    cache: RwLock<HashMap<String, Arc<[f32]>>>,
}

impl StaticSimilarity {
    fn vector(&self, phrase: &str) -> Arc<[f32]> {
        if let Some(vector) = self.cache.read().unwrap_or_else(PoisonError::into_inner).get(phrase) {
            return Arc::clone(vector);
        }
        let vector: Arc<[f32]> =
            StaticEmbedder::builtin().map(|embedder| embedder.topic(&split_words(phrase))).unwrap_or_default().into();
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        if cache.len() < MAX_CACHED_PHRASES {
            cache.insert(phrase.to_string(), Arc::clone(&vector));
        }
        vector
    }
}

impl Similarity for StaticSimilarity {
    fn similarity(&self, left: &str, right: &str) -> f32 {
        similarity(&self.vector(left), &self.vector(right)).clamp(0.0, 1.0)
    }
}

/// Splits `order_items` and `OrderItems` into words for the embedder.
fn split_words(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 4);
    let mut after_lowercase = false;
    for c in name.chars() {
        if after_lowercase && c.is_uppercase() {
            text.push(' ');
        }
        after_lowercase = c.is_lowercase();
        text.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_synonyms_above_unrelated_words() {
        let words = builtin();
        for (word, synonym, other) in [
            ("clients", "customers", "reviews"),
            ("doctors", "physicians", "rooms"),
            ("drugs", "medications", "patients"),
        ] {
            assert!(words.similarity(word, synonym) > words.similarity(word, other), "{word}");
        }
        assert!((words.similarity("OrderItems", "order_items") - 1.0).abs() < 1e-4);
        assert_eq!(words.similarity("", "orders"), 0.0);
        assert_eq!(words.similarity("a", "b"), words.similarity("b", "a"));
    }
}
