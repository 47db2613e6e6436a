//! BM25 scoring of questions by the tokens that they share.

use crate::int_map::IntMap;

/// BM25 parameters for term-frequency saturation ([`K1`]) and length normalization ([`B`]), at
/// their usual values.
const K1: f32 = 1.2;
const B: f32 = 0.75;
/// Maximum number of questions per posting list.
///
/// More frequent tokens are a poor way to find a question: vectors do it better, and long lists are
/// slow to scan.
const MAX_POSTINGS: usize = 512;

/// Splits a text into its alphanumeric tokens, in their original spelling.
pub fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns the sorted hashes of the distinct tokens in a text, ignoring case and punctuation.
pub fn token_hashes(text: &str) -> Vec<u32> {
    let mut all: Vec<u32> = tokens(text)
        .map(|word| {
            // FNV-1a: the occasional hash collision does little harm.
            word.chars()
                .flat_map(char::to_lowercase)
                .fold(0x811c_9dc5_u32, |sum, letter| (sum ^ u32::from(letter)).wrapping_mul(0x0100_0193))
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Inverted index of the tokens in stored questions.
#[derive(Debug, Default)]
pub struct Bm25Index {
    documents: usize,
    total_tokens: usize,
    postings: IntMap<u32, PostingList>,
}

#[derive(Debug, Default)]
struct PostingList {
    count: usize,
    /// Rows of the questions that contain this token; empty once there are more than
    /// [`MAX_POSTINGS`].
    rows: Vec<u32>,
}

impl Bm25Index {
    /// Indexes the tokens of the question stored at `row`.
    pub fn add(&mut self, row: u32, words: &[u32]) {
        self.documents += 1;
        self.total_tokens += words.len();
        for word in words {
            let posting = self.postings.entry(*word).or_default();
            posting.count += 1;
            if posting.count <= MAX_POSTINGS {
                posting.rows.push(row);
            } else {
                posting.rows = Vec::new();
            }
        }
    }

    /// Removes a question from the index.
    pub fn remove(&mut self, row: u32, words: &[u32]) {
        self.documents = self.documents.saturating_sub(1);
        self.total_tokens = self.total_tokens.saturating_sub(words.len());
        for word in words {
            if let Some(posting) = self.postings.get_mut(word) {
                posting.count = posting.count.saturating_sub(1);
                posting.rows.retain(|known| *known != row);
                if posting.count == 0 {
                    self.postings.remove(word);
                }
            }
        }
    }

    /// Weights the tokens of a question by their inverse document frequency.
    pub fn query(&self, words: &[u32]) -> Bm25Query {
        let questions = self.documents as f32;
        let weights: Vec<(u32, f32)> = words
            .iter()
            .map(|word| {
                let count = self.postings.get(word).map_or(0, |posting| posting.count) as f32;
                (*word, (1.0 + (questions - count + 0.5).max(0.5) / (count + 0.5)).ln())
            })
            .collect();
        let whole = weights.iter().map(|(_, weight)| weight).sum();
        Bm25Query { weights, max_score: whole, average_length: self.total_tokens as f32 / questions.max(1.0) }
    }

    /// Returns the rows that contain rare tokens of a question, rarest token first.
    pub fn rare_term_rows(&self, words: &[u32]) -> impl Iterator<Item = u32> {
        let mut rare: Vec<&PostingList> = words
            .iter()
            .filter_map(|word| self.postings.get(word))
            .filter(|posting| !posting.rows.is_empty())
            .collect();
        rare.sort_by_key(|posting| posting.rows.len());
        rare.into_iter().flat_map(|posting| posting.rows.iter().copied())
    }
}

/// Question with the weight of each token.
#[derive(Debug)]
pub struct Bm25Query {
    /// Token hashes with their weights, sorted by hash.
    weights: Vec<(u32, f32)>,
    max_score: f32,
    /// Average number of distinct tokens per stored question.
    average_length: f32,
}

impl Bm25Query {
    /// Returns the BM25 score of a question with these tokens, as a fraction of the total weight of
    /// the query.
    pub fn normalized_score(&self, words: &[u32]) -> f32 {
        if self.max_score <= 0.0 {
            return 0.0;
        }
        let length = K1 * (1.0 - B + B * words.len() as f32 / self.average_length.max(1.0));
        let mut shared = 0.0;
        let mut at = 0;
        for (word, weight) in &self.weights {
            while words.get(at).is_some_and(|other| other < word) {
                at += 1;
            }
            if words.get(at) == Some(word) {
                shared += weight * (K1 + 1.0) / (1.0 + length);
            }
        }
        (shared / self.max_score).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_terms_outweigh_frequent_terms() {
        let mut all = Bm25Index::default();
        let questions = ["How many orders?", "How many singers?", "How many zebras are there?"].map(token_hashes);
        for (row, question) in (0..).zip(&questions) {
            all.add(row, question);
        }
        let asked = token_hashes("how many ZEBRAS");
        let weighed = all.query(&asked);
        let shares: Vec<f32> = questions.iter().map(|question| weighed.normalized_score(question)).collect();
        assert!(shares[2] > shares[0] && (shares[0] - shares[1]).abs() < 1e-6 && shares[0] > 0.0, "{shares:?}");
        assert_eq!(all.rare_term_rows(&token_hashes("zebras")).collect::<Vec<_>>(), [2]);
        all.remove(2, &questions[2]);
        assert_eq!(all.rare_term_rows(&token_hashes("zebras")).count(), 0);
        assert_eq!(weighed.normalized_score(&[]), 0.0);
        assert_eq!(all.query(&[]).normalized_score(&questions[0]), 0.0);
    }

    #[test]
    fn ignores_terms_that_occur_everywhere() {
        let mut all = Bm25Index::default();
        for row in 0..2000 {
            all.add(row, &token_hashes("same"));
        }
        assert_eq!(all.rare_term_rows(&token_hashes("same")).count(), 0);
    }
}
