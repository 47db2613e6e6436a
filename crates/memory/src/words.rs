//! The words of questions, as far as ranking needs them: which ones two questions share, and how telling those are.

use crate::numbers::Numbered;

/// How quickly a word that is repeated, or stands in a long question, stops to count; the usual figures of BM25.
const K: f32 = 1.2;
const B: f32 = 0.75;
/// A word in more questions than this is no way to find one: vectors do that better, and following it takes time.
const RARE: usize = 512;

/// The words of a text, as they are written.
pub fn said(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The distinct words of a text, as numbers. Case does not matter, nor do the marks between words.
pub fn words(text: &str) -> Vec<u32> {
    let mut all: Vec<u32> = said(text)
        .map(|word| {
            // FNV-1a: two words that become one number by chance do little harm.
            word.chars()
                .flat_map(char::to_lowercase)
                .fold(0x811c_9dc5_u32, |sum, letter| (sum ^ u32::from(letter)).wrapping_mul(0x0100_0193))
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Which words stand in how many questions, and where the rare ones stand.
#[derive(Debug, Default)]
pub struct Words {
    questions: usize,
    total: usize,
    known: Numbered<u32, Posting>,
}

#[derive(Debug, Default)]
struct Posting {
    count: usize,
    /// The questions with this word; empty once there are more than [`RARE`].
    rows: Vec<u32>,
}

impl Words {
    /// Counts the words of a question that is kept at `row`.
    pub fn add(&mut self, row: u32, words: &[u32]) {
        self.questions += 1;
        self.total += words.len();
        for word in words {
            let posting = self.known.entry(*word).or_default();
            posting.count += 1;
            if posting.count <= RARE {
                posting.rows.push(row);
            } else {
                posting.rows = Vec::new();
            }
        }
    }

    /// Takes a question away again.
    pub fn remove(&mut self, row: u32, words: &[u32]) {
        self.questions = self.questions.saturating_sub(1);
        self.total = self.total.saturating_sub(words.len());
        for word in words {
            if let Some(posting) = self.known.get_mut(word) {
                posting.count = posting.count.saturating_sub(1);
                posting.rows.retain(|known| *known != row);
                if posting.count == 0 {
                    self.known.remove(word);
                }
            }
        }
    }

    /// The words of a question that is asked, weighed.
    pub fn asked(&self, words: &[u32]) -> Asked {
        let questions = self.questions as f32;
        let weights: Vec<(u32, f32)> = words
            .iter()
            .map(|word| {
                let count = self.known.get(word).map_or(0, |posting| posting.count) as f32;
                (*word, (1.0 + (questions - count + 0.5).max(0.5) / (count + 0.5)).ln())
            })
            .collect();
        let whole = weights.iter().map(|(_, weight)| weight).sum();
        Asked { weights, whole, usual: self.total as f32 / questions.max(1.0) }
    }

    /// Where the rare words of a question stand, the rarest first.
    pub fn rare(&self, words: &[u32]) -> impl Iterator<Item = u32> {
        let mut rare: Vec<&Posting> =
            words.iter().filter_map(|word| self.known.get(word)).filter(|posting| !posting.rows.is_empty()).collect();
        rare.sort_by_key(|posting| posting.rows.len());
        rare.into_iter().flat_map(|posting| posting.rows.iter().copied())
    }
}

/// A question that is asked, and what its words are worth.
#[derive(Debug)]
pub struct Asked {
    /// In the order of the words.
    weights: Vec<(u32, f32)>,
    whole: f32,
    /// How many words a question usually has.
    usual: f32,
}

impl Asked {
    /// The BM25 score of a question with these words, as a share of what all words of the asked one are worth.
    pub fn share(&self, words: &[u32]) -> f32 {
        if self.whole <= 0.0 {
            return 0.0;
        }
        let length = K * (1.0 - B + B * words.len() as f32 / self.usual.max(1.0));
        let mut shared = 0.0;
        let mut at = 0;
        for (word, weight) in &self.weights {
            while words.get(at).is_some_and(|other| other < word) {
                at += 1;
            }
            if words.get(at) == Some(word) {
                shared += weight * (K + 1.0) / (1.0 + length);
            }
        }
        (shared / self.whole).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f06_rare_words_count_more_than_frequent_ones() {
        let mut all = Words::default();
        let questions = ["How many orders?", "How many singers?", "How many zebras are there?"].map(words);
        for (row, question) in (0..).zip(&questions) {
            all.add(row, question);
        }
        let asked = words("how many ZEBRAS");
        let weighed = all.asked(&asked);
        let shares: Vec<f32> = questions.iter().map(|question| weighed.share(question)).collect();
        assert!(shares[2] > shares[0] && (shares[0] - shares[1]).abs() < 1e-6 && shares[0] > 0.0, "{shares:?}");
        assert_eq!(all.rare(&words("zebras")).collect::<Vec<_>>(), [2]);
        all.remove(2, &questions[2]);
        assert_eq!(all.rare(&words("zebras")).count(), 0);
        assert_eq!(weighed.share(&[]), 0.0);
        assert_eq!(all.asked(&[]).share(&questions[0]), 0.0);
    }

    #[test]
    fn f06_a_word_that_stands_everywhere_is_not_followed() {
        let mut all = Words::default();
        for row in 0..2000 {
            all.add(row, &words("same"));
        }
        assert_eq!(all.rare(&words("same")).count(), 0);
    }
}
