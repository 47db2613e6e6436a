//! Words that cannot be used as a name without quotes.

use std::collections::HashSet;

/// The reserved words of a dialect.
pub struct WordList {
    words: HashSet<&'static str>,
}

impl WordList {
    pub(super) fn parse(text: &'static str) -> Self {
        Self { words: text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).collect() }
    }

    /// Whether the word, in any case, is reserved.
    pub fn contains(&self, word: &str) -> bool {
        self.words.contains(word)
            || (word.bytes().any(|b| b.is_ascii_uppercase()) && self.words.contains(word.to_ascii_lowercase().as_str()))
    }
}
