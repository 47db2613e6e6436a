//! Which of the examples that were found are shown, and in which order. Pure; every store ranks by it.

use crate::example::{Example, Standing};
use crate::skeleton::skeleton;
use crate::sought::{Found, Sought};
use crate::words::{Words, said, words};

/// How many examples a store should find, by vectors alone, for [`rank`] to choose from.
pub const POOL: usize = 64;

/// How many more a store should find by words that hardly any of those has.
pub const BY_WORDS: usize = 16;
/// A word that more of the nearest have needs no search of its own.
const FEW_HAVE_IT: usize = 2;
/// So many words are looked for, the longest: they are the most telling.
const MOST_MISSED: usize = 4;

/// What the words are worth beside the vectors. docs/memory.md has what was measured.
const WORDS: f32 = 0.1;
/// What it is worth to be an example of the database that is asked.
const OWN: f32 = 0.1;
/// Of two that are alike, the one that somebody looked at.
const VERIFIED: f32 = 0.01;
/// What an example that only ever did harm loses.
const HARM: f32 = 0.4;
/// What an example loses for each one before it that has the same skeleton.
const REPEATED: f32 = 0.1;

/// What ranking needs to know of an example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// By the vectors: 1 is the same.
    pub similarity: f32,
    /// By the words: 1 is the same.
    pub words: f32,
    /// Whether it is of the database that is asked.
    pub own: bool,
    /// Whether it can be trusted.
    pub verified: bool,
    /// How often it helped.
    pub helped: u32,
    /// How often it hurt.
    pub hurt: u32,
    /// [`skeleton`] of its query.
    pub skeleton: u64,
}

impl Candidate {
    /// How good it is by itself.
    fn score(&self) -> f32 {
        // Two good ones are lent to it, so that one complaint does not condemn it.
        let harm = self.hurt as f32 / (self.hurt as f32 + self.helped as f32 + 2.0);
        self.similarity
            + WORDS * self.words
            + if self.own { OWN } else { 0.0 }
            + if self.verified { VERIFIED } else { 0.0 }
            - HARM * harm
    }
}

/// The best of the candidates, best first, with what they were ranked by. Repeated skeletons stand back for others that are
/// nearly as alike.
pub fn order(candidates: &[Candidate], most: usize) -> Vec<(usize, f32)> {
    let mut left: Vec<(usize, f32)> = candidates.iter().map(Candidate::score).enumerate().collect();
    // Those that are equal stay in the order that they were given in.
    left.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut chosen: Vec<(usize, f32)> = Vec::new();
    while chosen.len() < most {
        let best = left.iter().enumerate().fold(None, |best: Option<(usize, f32)>, (at, (_, score))| match best {
            Some((_, highest)) if highest >= *score => best,
            _ => Some((at, *score)),
        });
        let Some((at, score)) = best else { break };
        let (candidate, _) = left.remove(at);
        let same = candidates[candidate].skeleton;
        for (other, score) in &mut left {
            if candidates[*other].skeleton == same {
                *score -= REPEATED;
            }
        }
        chosen.push((candidate, score));
    }
    chosen
}

/// Whether an example may be shown for what is sought.
pub fn may_be_shown(example: &Example, sought: &Sought<'_>) -> bool {
    let standing = match example.standing {
        Standing::Verified => true,
        Standing::Unverified => !sought.only_verified,
        Standing::Stale | Standing::Rejected => false,
    };
    standing
        && sought.dialect.is_none_or(|dialect| dialect == example.dialect)
        && (!sought.only_database || sought.database == example.database)
}

/// Words of the question that hardly any of the nearest has: names and codes, which vectors know little about. Stores that
/// keep no counts of words look for these.
pub fn missed<'q>(question: &'q str, nearest: &[(Example, f32)]) -> Vec<&'q str> {
    let texts: Vec<Vec<u32>> = nearest.iter().map(|(example, _)| words(&example.question)).collect();
    let have = |word: &str| {
        let number = words(word);
        texts.iter().filter(|text| number.iter().all(|word| text.binary_search(word).is_ok())).count()
    };
    let mut missed: Vec<&str> = said(question).filter(|word| word.chars().count() > 2).collect();
    missed.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    missed.dedup_by_key(|word| word.to_lowercase());
    missed.into_iter().filter(|word| have(word) <= FEW_HAVE_IT).take(MOST_MISSED).collect()
}

/// Ranks examples that were found elsewhere, each with its similarity, leaving out what may not be shown. How telling a word
/// is, is judged by these examples alone.
pub fn rank(found: Vec<(Example, f32)>, sought: &Sought<'_>) -> Vec<Found> {
    let mut found: Vec<Option<(Example, f32)>> =
        found.into_iter().filter(|(example, _)| may_be_shown(example, sought)).map(Some).collect();
    let texts: Vec<Vec<u32>> = found.iter().flatten().map(|(example, _)| words(&example.question)).collect();
    let mut all = Words::default();
    for (row, text) in (0..).zip(&texts) {
        all.add(row, text);
    }
    let asked = all.asked(&words(sought.question));
    let candidates: Vec<Candidate> = found
        .iter()
        .flatten()
        .zip(&texts)
        .map(|((example, similarity), text)| Candidate {
            similarity: *similarity,
            words: asked.share(text),
            own: example.database == sought.database,
            verified: example.standing == Standing::Verified,
            helped: example.helped,
            hurt: example.hurt,
            skeleton: skeleton(&example.sql),
        })
        .collect();
    order(&candidates, sought.most)
        .into_iter()
        .filter_map(|(at, score)| found[at].take().map(|(example, similarity)| Found { example, similarity, score }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Candidate =
        Candidate { similarity: 0.8, words: 0.5, own: false, verified: true, helped: 0, hurt: 0, skeleton: 1 };

    fn first(candidates: &[Candidate]) -> usize {
        order(candidates, 1)[0].0
    }

    #[test]
    fn f06_of_two_that_are_as_like_the_better_one_is_first() {
        for better in [
            Candidate { own: true, ..PLAIN },
            Candidate { words: 0.6, ..PLAIN },
            Candidate { similarity: 0.81, ..PLAIN },
        ] {
            assert_eq!(first(&[PLAIN, better]), 1, "{better:?}");
        }
        for worse in [
            Candidate { verified: false, ..PLAIN },
            Candidate { hurt: 1, ..PLAIN },
            Candidate { hurt: 5, similarity: 0.95, ..PLAIN },
        ] {
            assert_eq!(first(&[worse, PLAIN]), 1, "{worse:?}");
        }
        // One complaint among many that were content changes little.
        assert_eq!(first(&[PLAIN, Candidate { hurt: 1, helped: 20, similarity: 0.83, ..PLAIN }]), 1);
        assert_eq!(first(&[PLAIN, PLAIN]), 0);
    }

    #[test]
    fn f06_near_copies_do_not_fill_the_answer() {
        let copies = (0..8).map(|at| Candidate { similarity: 0.9 - at as f32 / 1000.0, ..PLAIN });
        let other = (2..6).map(|skeleton| Candidate { similarity: 0.85, skeleton, ..PLAIN });
        let all: Vec<Candidate> = copies.chain(other).collect();
        let chosen: Vec<usize> = order(&all, 5).into_iter().map(|(at, _)| at).collect();
        assert_eq!(chosen, [0, 8, 9, 10, 11]);
        // Where there is nothing else that is alike, copies are better than strangers.
        let far: Vec<Candidate> =
            [PLAIN, PLAIN, Candidate { similarity: 0.1, skeleton: 2, ..PLAIN }].into_iter().collect();
        assert_eq!(order(&far, 2).into_iter().map(|(at, _)| at).collect::<Vec<_>>(), [0, 1]);
        assert!(order(&[], 5).is_empty() && order(&far, 0).is_empty());
    }

    #[test]
    fn f06_words_that_hardly_any_has_are_looked_for() {
        let near = |question: &str| (Example::new(question, "SELECT 1", "shop", "sqlite"), 0.9);
        let nearest: Vec<(Example, f32)> =
            (0..9).map(|at| near(&format!("How many parcels went to town {at}?"))).collect();
        assert_eq!(missed("how many PARCELS went to Xanadu or to Ys?", &nearest), ["Xanadu"]);
        assert!(missed("How many parcels?", &nearest).is_empty());
        assert_eq!(missed("one three seventeen twenty five", &[]), ["seventeen", "twenty", "three", "five"]);
    }

    #[test]
    fn f06_what_may_not_be_shown_is_left_out() {
        let example =
            |question: &str, standing| Example { standing, ..Example::new(question, "SELECT 1", "shop", "sqlite") };
        let all =
            || Standing::ALL.iter().map(|standing| (example(standing.name(), *standing), 0.5)).collect::<Vec<_>>();
        let sought = Sought {
            question: "x",
            database: "shop",
            dialect: None,
            only_database: false,
            only_verified: false,
            most: 9,
        };
        for (sought, count) in [
            (sought, 2),
            (Sought { only_verified: true, ..sought }, 1),
            (Sought { dialect: Some("postgres"), ..sought }, 0),
            (Sought { only_database: true, ..sought }, 2),
            (Sought { only_database: true, database: "other", ..sought }, 0),
            (Sought { most: 1, ..sought }, 1),
        ] {
            assert_eq!(rank(all(), &sought).len(), count, "{sought:?}");
        }
    }
}
