//! Ranks tables by relevance to a question.
//!
//! The features are IDF-weighted term overlap with table and column names, synonyms by embedding,
//! values that the question mentions, and scores propagated along foreign keys.

use crate::linking::question_terms::{MAX_NEIGHBOURS, MAX_SEEDS, QuestionTerms, TermMatch};
use crate::linking::ranking_weights::RankingWeights;
use crate::linking::vector_math::{add_scaled, dot, normalize};
use std::collections::HashMap;

use querymend_model::StaticEmbedder;
use querymend_sql::ValueMention;

use super::inverted_index::InvertedIndex;
use super::join_groups::JoinGroupRanker;
use super::tokenize::{self, QuestionToken};

/// Maximum number of question terms; only the rarest are used.
const MAX_TERMS: usize = 24;

/// Maximum number of synonyms per question term.
const MAX_SYNONYMS: usize = 8;

/// Number of letters that an abbreviated compound may keep of its first word.
const ABBREVIATION_LENGTHS: std::ops::RangeInclusive<usize> = 1..=3;

impl InvertedIndex {
    /// Matches the terms of a question against the vocabulary.
    pub(super) fn match_question(
        &self,
        question: &str,
        hits: &[ValueMention],
        weights: &RankingWeights,
    ) -> QuestionTerms {
        let tokens = tokenize::question_tokens(question);
        let embedder = StaticEmbedder::builtin().ok();
        let vectors: Vec<Vec<f32>> =
            tokens.iter().map(|word| embedder.as_ref().map(|e| e.topic(&word.word)).unwrap_or_default()).collect();
        let mut matches: Vec<Vec<TermMatch>> =
            tokens.iter().zip(&vectors).map(|(word, vector)| self.match_term(word, vector, weights)).collect();
        self.match_compounds(&tokens, &mut matches, weights);
        let mut topic = vec![0.0; self.vocabulary.dimensions];
        for ((token, term_matches), vector) in tokens.iter().zip(&mut matches).zip(&vectors) {
            let by = if token.is_value_like { weights.value_like } else { 1.0 }
                * if token.is_low_signal { weights.low_signal } else { 1.0 };
            term_matches.iter_mut().for_each(|term_match| term_match.weight *= by);
            // A term that the catalog lacks may be as distinctive as any.
            add_scaled(&mut topic, vector, by * self.idf_of(token).unwrap_or(UNKNOWN_TERM_IDF));
        }
        normalize(&mut topic);
        matches.retain(|term_matches| !term_matches.is_empty());
        let rarest =
            |term_matches: &[TermMatch]| term_matches.iter().map(|r| r.confidence * r.weight).fold(0.0, f32::max);
        matches.sort_by(|a, b| rarest(b).total_cmp(&rarest(a)));
        let mut values: Vec<((usize, usize), Vec<u32>)> = Vec::new();
        let mut hit_columns = Vec::new();
        for hit in hits {
            let Some(&table) = self.by_name.get(&hit.table) else { continue };
            hit_columns.push((table, hit.column.clone()));
            match values.iter_mut().find(|(span, _)| *span == (hit.start, hit.end)) {
                Some((_, tables)) => tables.push(table),
                None => values.push(((hit.start, hit.end), vec![table])),
            }
        }
        values.truncate(MAX_TERMS / 2);
        matches.truncate(MAX_TERMS - values.len());
        let mut found: HashMap<u32, Vec<(usize, TermMatch)>> = HashMap::new();
        for (at, term_matches) in matches.iter().enumerate() {
            for term_match in term_matches {
                found.entry(term_match.term).or_default().push((at, *term_match));
            }
        }
        QuestionTerms {
            matches,
            by_term: found,
            topic_vector: topic,
            value_tables: values.into_iter().map(|(_, tables)| tables).collect(),
            value_columns: hit_columns,
        }
    }

    /// Returns whether any table contains the term.
    fn is_used(&self, word: usize) -> bool {
        self.posting_offsets[word] < self.posting_offsets[word + 1]
    }

    fn idf_of(&self, token: &QuestionToken) -> Option<f32> {
        self.vocabulary.ids.get(token.stem.as_str()).map(|id| self.idf[*id as usize])
    }

    fn match_term(&self, token: &QuestionToken, vector: &[f32], weights: &RankingWeights) -> Vec<TermMatch> {
        let all = &*self.vocabulary;
        let mut found: Vec<(u32, f32)> = Vec::new();
        if let Some(id) = all.ids.get(token.stem.as_str()) {
            found.push((*id, 1.0));
        }
        if weights.synonym > 0.0 && all.dimensions > 0 && vector.len() == all.dimensions {
            let mut near: Vec<(f32, u32)> = Vec::new();
            for (id, other) in all.vectors.chunks_exact(all.dimensions).enumerate() {
                let similarity = dot(vector, other);
                if similarity >= weights.min_synonym_similarity && self.is_used(id) {
                    near.push((similarity, id as u32));
                }
            }
            near.sort_by(|a, b| {
                b.0.total_cmp(&a.0).then_with(|| all.words[a.1 as usize].cmp(&all.words[b.1 as usize]))
            });
            found
                .extend(near.into_iter().take(MAX_SYNONYMS).map(|(similarity, id)| (id, weights.synonym * similarity)));
        }
        // Keep the best match per catalog term, in an order independent of insertion.
        found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        found.dedup_by_key(|(id, _)| *id);
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| all.words[a.0 as usize].cmp(&all.words[b.0 as usize])));
        found
            .into_iter()
            .map(|(word, confidence)| TermMatch { term: word, confidence, weight: self.idf[word as usize] })
            .collect()
    }

    /// Matches adjacent question words as compounds.
    ///
    /// "home town" may be the column `hometown`, and "first name" `fname`. A compound gets no more
    /// weight than its parts, however few tables contain it.
    fn match_compounds(&self, tokens: &[QuestionToken], matches: &mut [Vec<TermMatch>], weights: &RankingWeights) {
        for (i, pair) in tokens.windows(2).enumerate() {
            let short = ABBREVIATION_LENGTHS
                .filter_map(|end| pair[0].word.get(..end).filter(|left| left.len() < pair[0].word.len()));
            let short = short
                .filter(|_| pair[1].is_adjacent && weights.abbreviation > 0.0)
                .map(|left| (left, weights.abbreviation));
            for (left, confidence) in short.chain([(pair[0].word.as_str(), 1.0)]) {
                let joined = tokenize::stem(&format!("{left}{}", pair[1].word));
                let Some(&word) = self.vocabulary.ids.get(joined.as_str()) else { continue };
                let rarity = self.idf[word as usize];
                for (at, token) in [(i, &pair[0]), (i + 1, &pair[1])] {
                    let weight = self.idf_of(token).map_or(rarity / 2.0, |own| own.min(rarity));
                    matches[at].push(TermMatch { term: word, confidence, weight });
                }
            }
        }
    }

    /// Returns up to `max_tables` tables for the question with their scores, best first.
    pub(super) fn rank_tables(
        &self,
        question: &QuestionTerms,
        weights: &RankingWeights,
        max_tables: usize,
    ) -> Vec<(u32, f32)> {
        let width = question.feature_count();
        if width == 0 || self.entries.is_empty() {
            return Vec::new();
        }
        let direct = self.direct_scores(question, weights);
        let mut scores: Vec<f32> = direct.chunks_exact(width).map(|row| row.iter().sum()).collect();
        if weights.neighbour > 0.0 {
            let mut reached = direct.clone();
            for _ in 0..2 {
                reached = self.propagate_scores(&reached, width, weights.decay);
            }
            for (score, row) in scores.iter_mut().zip(reached.chunks_exact(width)) {
                *score += weights.neighbour * (row.iter().sum::<f32>() - *score);
            }
        }
        let mut order: Vec<(u32, f32)> =
            scores.iter().enumerate().filter(|(_, s)| **s > 0.0).map(|(i, s)| (i as u32, *s)).collect();
        let better = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        let enough = max_tables.max(MAX_SEEDS);
        if order.len() > enough {
            order.select_nth_unstable_by(enough - 1, better);
            order.truncate(enough);
        }
        order.sort_by(better);
        if weights.join_paths {
            return JoinGroupRanker::new(self, question, &direct, weights).rank(&order, max_tables);
        }
        order
    }

    /// Returns the first-pass score of each table for each question term, one row per table.
    fn direct_scores(&self, question: &QuestionTerms, weights: &RankingWeights) -> Vec<f32> {
        let width = question.feature_count();
        let mut names = vec![0.0_f32; self.entries.len() * width];
        let mut columns = vec![0.0_f32; self.entries.len() * width];
        let mut covers = vec![0.0_f32; self.entries.len()];
        let of_column: Vec<f32> = (0..=u8::MAX)
            .map(|n| if n == 0 { 0.0 } else { weights.column * f32::from(n).powf(-weights.column_length_exponent) })
            .collect();
        for (at, term_matches) in question.matches.iter().enumerate() {
            for &TermMatch { term: word, confidence, weight } in term_matches {
                let strength = confidence * weight;
                let range =
                    self.posting_offsets[word as usize] as usize..self.posting_offsets[word as usize + 1] as usize;
                for posting in &self.postings[range] {
                    let cell = posting.table as usize * width + at;
                    let place = posting.location;
                    if place.in_name {
                        names[cell] = names[cell].max(strength);
                        covers[posting.table as usize] += confidence;
                    }
                    let side = of_column[usize::from(place.column_words)].max(weights.context_weight(place));
                    columns[cell] = columns[cell].max(strength * side);
                }
            }
        }
        for (at, tables) in question.value_tables.iter().enumerate() {
            let strength = weights.value * (1.0 + self.entries.len() as f32 / (tables.len() as f32 + 0.5)).ln();
            for table in tables {
                columns[*table as usize * width + question.matches.len() + at] = strength;
            }
        }
        for (table, entry) in self.entries.iter().enumerate() {
            let row = table * width..(table + 1) * width;
            let (name, side) =
                (weights.name_weight(entry, covers[table]), weights.width_factor(entry, self.mean_columns));
            for (column, in_name) in columns[row.clone()].iter_mut().zip(&names[row]) {
                *column = (*column * side).max(in_name * name);
            }
        }
        columns
    }

    /// Propagates scores to foreign key neighbors with decay.
    fn propagate_scores(&self, scores: &[f32], width: usize, step: f32) -> Vec<f32> {
        let mut propagated = scores.to_vec();
        for (table, ties) in self.neighbours.iter().enumerate() {
            if ties.len() > MAX_NEIGHBOURS {
                continue;
            }
            for &other in ties {
                if self.neighbours[other as usize].len() > MAX_NEIGHBOURS {
                    continue;
                }
                let other = &scores[other as usize * width..(other as usize + 1) * width];
                for (here, there) in propagated[table * width..(table + 1) * width].iter_mut().zip(other) {
                    *here = here.max(there * step);
                }
            }
        }
        propagated
    }

    /// Returns the score of each column of a table.
    pub(super) fn column_scores(&self, question: &QuestionTerms, table: u32) -> Vec<f32> {
        let entry = &self.entries[table as usize];
        let of_word = |word: &u32| {
            let confidence =
                question.by_term.get(word).map(|found| found.iter().map(|(_, r)| r.confidence).fold(0.0, f32::max));
            confidence.unwrap_or_default() * self.idf[*word as usize]
        };
        entry.column_terms().map(|words| words.iter().map(of_word).sum()).collect()
    }

    /// Returns the columns of a table that contain a value of the question.
    pub(super) fn value_columns<'a>(&self, question: &'a QuestionTerms, table: u32) -> impl Iterator<Item = &'a str> {
        question.value_columns.iter().filter(move |(t, _)| *t == table).map(|(_, column)| column.as_str())
    }
}

/// IDF of terms that no table contains.
const UNKNOWN_TERM_IDF: f32 = 4.0;
