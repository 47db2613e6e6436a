//! Ranking of candidate examples, as pure functions that all stores share.

use crate::bm25::{Bm25Index, token_hashes, tokens};
use crate::example::{Example, VerificationStatus};
use crate::query::{ExampleQuery, ScoredExample};
use crate::query_template::template_hash;

/// Number of nearest neighbours that a store should pass to [`rank`].
pub const CANDIDATE_LIMIT: usize = 64;

/// Number of additional candidates for words that hardly any of the nearest neighbours contain.
pub const WORD_MATCH_LIMIT: usize = 16;
/// Maximum number of nearest neighbours with a word for which a word search is still done.
const MAX_COVERED_MATCHES: usize = 2;
/// Maximum number of words to search for; the longest are taken because they are the most specific.
const MAX_MISSED_WORDS: usize = 4;

/// Weight of the BM25 score relative to vector similarity. See docs/measurements/memory.md for the measurements.
const WORD_WEIGHT: f32 = 0.1;
/// Bonus for examples of the queried database.
const SAME_DATABASE_BONUS: f32 = 0.1;
/// Bonus for verified examples, a tie-breaker.
const VERIFIED_BONUS: f32 = 0.01;
/// Penalty for an example that has only ever caused harm.
const HARM_PENALTY: f32 = 0.4;
/// Penalty for each higher-ranked example with the same query template.
const REPEATED_TEMPLATE_PENALTY: f32 = 0.1;

/// Features of an example for ranking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExampleCandidate {
    /// Cosine similarity of the embeddings; 1 is identical.
    pub similarity: f32,
    /// Normalized BM25 score; 1 is identical.
    pub word_score: f32,
    /// `true` if it belongs to the queried database.
    pub is_same_database: bool,
    /// `true` if it is verified.
    pub is_verified: bool,
    /// Number of times it helped.
    pub helped: u32,
    /// Number of times it hurt.
    pub hurt: u32,
    /// [`template_hash`] of its query.
    pub template_hash: u64,
}

impl ExampleCandidate {
    /// Returns the score, without the penalty for repeated templates.
    fn score(&self) -> f32 {
        // Smoothed with two assumed successes, so that a single complaint does not rule an example
        // out.
        let harm = self.hurt as f32 / (self.hurt as f32 + self.helped as f32 + 2.0);
        self.similarity
            + WORD_WEIGHT * self.word_score
            + if self.is_same_database { SAME_DATABASE_BONUS } else { 0.0 }
            + if self.is_verified { VERIFIED_BONUS } else { 0.0 }
            - HARM_PENALTY * harm
    }
}

/// Selects the best candidates, best first, and returns their indices and scores.
///
/// Repeated templates rank below different ones that are nearly as similar.
pub fn select_diverse(candidates: &[ExampleCandidate], limit: usize) -> Vec<(usize, f32)> {
    let mut left: Vec<(usize, f32)> = candidates.iter().map(ExampleCandidate::score).enumerate().collect();
    // The sort is stable: candidates with equal scores keep their order.
    left.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut chosen: Vec<(usize, f32)> = Vec::new();
    while chosen.len() < limit {
        let best = left.iter().enumerate().fold(None, |best: Option<(usize, f32)>, (at, (_, score))| match best {
            Some((_, highest)) if highest >= *score => best,
            _ => Some((at, *score)),
        });
        let Some((at, score)) = best else { break };
        let (candidate, _) = left.remove(at);
        let same = candidates[candidate].template_hash;
        for (other, score) in &mut left {
            if candidates[*other].template_hash == same {
                *score -= REPEATED_TEMPLATE_PENALTY;
            }
        }
        chosen.push((candidate, score));
    }
    chosen
}

/// Returns whether an example may be included in a prompt for this query.
pub fn is_eligible(example: &Example, query: &ExampleQuery<'_>) -> bool {
    let status_allows = match example.standing {
        VerificationStatus::Verified => true,
        VerificationStatus::Unverified => !query.only_verified,
        VerificationStatus::Stale | VerificationStatus::Rejected => false,
    };
    status_allows
        && query.dialect.is_none_or(|dialect| dialect == example.dialect)
        && (!query.only_database || query.database == example.database)
}

/// Returns words of the question that hardly any nearest neighbour contains.
///
/// These are names and codes, which embeddings represent poorly. Stores without a BM25 index search
/// for them separately.
pub fn missed_words<'q>(question: &'q str, nearest: &[(Example, f32)]) -> Vec<&'q str> {
    let texts: Vec<Vec<u32>> = nearest.iter().map(|(example, _)| token_hashes(&example.question)).collect();
    let have = |word: &str| {
        let number = token_hashes(word);
        texts.iter().filter(|text| number.iter().all(|word| text.binary_search(word).is_ok())).count()
    };
    let mut missed: Vec<&str> = tokens(question).filter(|word| word.chars().count() > 2).collect();
    missed.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    missed.dedup_by_key(|word| word.to_lowercase());
    missed.into_iter().filter(|word| have(word) <= MAX_COVERED_MATCHES).take(MAX_MISSED_WORDS).collect()
}

/// Ranks examples with known similarity and drops those that are not eligible.
///
/// Inverse document frequencies are computed over these examples alone.
pub fn rank(found: Vec<(Example, f32)>, query: &ExampleQuery<'_>) -> Vec<ScoredExample> {
    let mut found: Vec<Option<(Example, f32)>> =
        found.into_iter().filter(|(example, _)| is_eligible(example, query)).map(Some).collect();
    let texts: Vec<Vec<u32>> = found.iter().flatten().map(|(example, _)| token_hashes(&example.question)).collect();
    let mut all = Bm25Index::default();
    for (row, text) in (0..).zip(&texts) {
        all.add(row, text);
    }
    let bm25_query = all.query(&token_hashes(query.question));
    let candidates: Vec<ExampleCandidate> = found
        .iter()
        .flatten()
        .zip(&texts)
        .map(|((example, similarity), text)| ExampleCandidate {
            similarity: *similarity,
            word_score: bm25_query.normalized_score(text),
            is_same_database: example.database == query.database,
            is_verified: example.standing == VerificationStatus::Verified,
            helped: example.helped,
            hurt: example.hurt,
            template_hash: template_hash(&example.sql),
        })
        .collect();
    select_diverse(&candidates, query.limit)
        .into_iter()
        .filter_map(|(at, score)| {
            found[at].take().map(|(example, similarity)| ScoredExample { example, similarity, score })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ExampleCandidate = ExampleCandidate {
        similarity: 0.8,
        word_score: 0.5,
        is_same_database: false,
        is_verified: true,
        helped: 0,
        hurt: 0,
        template_hash: 1,
    };

    fn first(candidates: &[ExampleCandidate]) -> usize {
        select_diverse(candidates, 1)[0].0
    }

    #[test]
    fn ranks_the_better_of_equally_similar_examples_first() {
        for better in [
            ExampleCandidate { is_same_database: true, ..PLAIN },
            ExampleCandidate { word_score: 0.6, ..PLAIN },
            ExampleCandidate { similarity: 0.81, ..PLAIN },
        ] {
            assert_eq!(first(&[PLAIN, better]), 1, "{better:?}");
        }
        for worse in [
            ExampleCandidate { is_verified: false, ..PLAIN },
            ExampleCandidate { hurt: 1, ..PLAIN },
            ExampleCandidate { hurt: 5, similarity: 0.95, ..PLAIN },
        ] {
            assert_eq!(first(&[worse, PLAIN]), 1, "{worse:?}");
        }
        // One complaint among many successes changes little.
        assert_eq!(first(&[PLAIN, ExampleCandidate { hurt: 1, helped: 20, similarity: 0.83, ..PLAIN }]), 1);
        assert_eq!(first(&[PLAIN, PLAIN]), 0);
    }

    #[test]
    fn selects_diverse_examples_over_similar_ones() {
        let copies = (0..8).map(|at| ExampleCandidate { similarity: 0.9 - at as f32 / 1000.0, ..PLAIN });
        let other = (2..6).map(|template_hash| ExampleCandidate { similarity: 0.85, template_hash, ..PLAIN });
        let all: Vec<ExampleCandidate> = copies.chain(other).collect();
        let chosen: Vec<usize> = select_diverse(&all, 5).into_iter().map(|(at, _)| at).collect();
        assert_eq!(chosen, [0, 8, 9, 10, 11]);
        // If nothing else is similar, repeated templates are better than unrelated examples.
        let far: Vec<ExampleCandidate> =
            [PLAIN, PLAIN, ExampleCandidate { similarity: 0.1, template_hash: 2, ..PLAIN }].into_iter().collect();
        assert_eq!(select_diverse(&far, 2).into_iter().map(|(at, _)| at).collect::<Vec<_>>(), [0, 1]);
        assert!(select_diverse(&[], 5).is_empty() && select_diverse(&far, 0).is_empty());
    }

    #[test]
    fn searches_for_rare_terms_that_vectors_missed() {
        let near = |question: &str| (Example::new(question, "SELECT 1", "shop", "sqlite"), 0.9);
        let nearest: Vec<(Example, f32)> =
            (0..9).map(|at| near(&format!("How many parcels went to town {at}?"))).collect();
        assert_eq!(missed_words("how many PARCELS went to Xanadu or to Ys?", &nearest), ["Xanadu"]);
        assert!(missed_words("How many parcels?", &nearest).is_empty());
        assert_eq!(missed_words("one three seventeen twenty five", &[]), ["seventeen", "twenty", "three", "five"]);
    }

    #[test]
    fn filters_examples_by_status_database_and_limit() {
        let example =
            |question: &str, standing| Example { standing, ..Example::new(question, "SELECT 1", "shop", "sqlite") };
        let all = || {
            VerificationStatus::ALL
                .iter()
                .map(|standing| (example(standing.name(), *standing), 0.5))
                .collect::<Vec<_>>()
        };
        let sought = ExampleQuery {
            question: "x",
            database: "shop",
            dialect: None,
            only_database: false,
            only_verified: false,
            limit: 9,
        };
        for (sought, count) in [
            (sought, 2),
            (ExampleQuery { only_verified: true, ..sought }, 1),
            (ExampleQuery { dialect: Some("postgres"), ..sought }, 0),
            (ExampleQuery { only_database: true, ..sought }, 2),
            (ExampleQuery { only_database: true, database: "other", ..sought }, 0),
            (ExampleQuery { limit: 1, ..sought }, 1),
        ] {
            assert_eq!(rank(all(), &sought).len(), count, "{sought:?}");
        }
    }
}
