//! Keywords that cannot be identifiers without quotes.

use std::collections::HashSet;

/// Reserved words of a dialect.
pub struct ReservedWords {
    words: HashSet<&'static str>,
}

impl ReservedWords {
    pub(super) fn parse(text: &'static str) -> Self {
        Self { words: text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).collect() }
    }

    /// Returns whether a word is reserved, ignoring ASCII case.
    pub fn contains(&self, word: &str) -> bool {
        self.words.contains(word)
            || (word.bytes().any(|b| b.is_ascii_uppercase()) && self.words.contains(word.to_ascii_lowercase().as_str()))
    }
}
