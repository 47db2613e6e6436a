//! Reranks tables as groups that are joined by foreign keys.
//!
//! Only the top candidates are examined, so each can be scored in detail.

use crate::linking::question_terms::{MAX_NEIGHBOURS, MAX_SEEDS, QuestionTerms};
use crate::linking::ranking_weights::RankingWeights;
use crate::linking::vector_math::{add_scaled, dot, normalize};
use std::collections::{HashMap, HashSet};

use super::inverted_index::{InvertedIndex, TableTerms, TermLocation};

/// Maximum number of tables in a group.
const MAX_GROUP_TABLES: usize = 5;

/// Maximum number of tables explored from one seed.
const MAX_REACHABLE_TABLES: usize = 256;

/// Weight of a table name term in the topic vector, relative to a column name term.
const NAME_TERM_WEIGHT: f32 = 2.0;

/// Maximum number of tables added from the schema of a clearly leading group.
const MAX_EXTRA_SCHEMA_TABLES: usize = 2;

/// Maximum size of a schema whose membership is considered evidence.
const MAX_SCHEMA_TABLES: usize = 32;

/// Base score of a table that the question does not mention.
const UNMENTIONED_SCORE: f32 = 0.5;

/// Factor for a table that is joined to the group by a foreign key.
const NEIGHBOUR_BOOST: f32 = 2.0;

impl RankingWeights {
    /// Returns the weight of a term in a comment or in the schema name.
    pub(super) fn context_weight(&self, place: TermLocation) -> f32 {
        let comment = if place.in_comment { self.comment } else { 0.0 };
        let schema = if place.in_schema { self.schema } else { 0.0 };
        comment.max(schema)
    }

    /// Returns the weight of a table name term, given how many name terms the question covers.
    pub(super) fn name_weight(&self, entry: &TableTerms, covered: f32) -> f32 {
        let cover = (covered / f32::from(entry.name_words.max(1))).min(1.0).powf(self.missing_exponent);
        self.name * (1.0 - self.full_name_share + self.full_name_share * cover)
    }

    /// Returns the factor that damps column scores of wide tables.
    pub(super) fn width_factor(&self, entry: &TableTerms, usual: f32) -> f32 {
        let wide = 1.0 / (1.0 - self.width_penalty + self.width_penalty * entry.columns as f32 / usual.max(1.0));
        wide.min(1.5)
    }
}

/// Scores groups of tables against a question, with memoized scores per table.
pub(super) struct JoinGroupRanker<'r> {
    index: &'r InvertedIndex,
    question: &'r QuestionTerms,
    /// First-pass scores, one row per table.
    direct_scores: &'r [f32],
    weights: &'r RankingWeights,
    score_cache: HashMap<u32, Vec<f32>>,
    topic_similarity_cache: HashMap<u32, f32>,
}

impl<'r> JoinGroupRanker<'r> {
    pub(super) fn new(
        index: &'r InvertedIndex,
        question: &'r QuestionTerms,
        direct_scores: &'r [f32],
        weights: &'r RankingWeights,
    ) -> Self {
        Self {
            index,
            question,
            direct_scores,
            weights,
            score_cache: HashMap::new(),
            topic_similarity_cache: HashMap::new(),
        }
    }

    /// Ranks groups of tables.
    ///
    /// Each seed is extended by reachable tables that cover terms it does not, including the join
    /// tables on the path. Groups that cover most with fewest tables come first.
    pub(super) fn rank(&mut self, order: &[(u32, f32)], max_tables: usize) -> Vec<(u32, f32)> {
        let mut groups: Vec<(f32, Vec<u32>)> = Vec::with_capacity(MAX_SEEDS);
        for (seed, score) in order.iter().take(MAX_SEEDS) {
            let (coverage, group) = self.grow_group(*seed);
            let similarity = group.iter().take(2).map(|table| self.topic_similarity(*table)).fold(0.0, f32::max);
            groups.push(((coverage + self.weights.seed * score) * (1.0 + self.weights.topic * similarity), group));
        }
        groups.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut out: Vec<(u32, f32)> = Vec::with_capacity(max_tables);
        let mut taken: HashSet<u32> = HashSet::new();
        if let Some(more) = self.extra_schema_tables(&groups) {
            groups[0].1.extend(more);
        }
        let grouped = groups.iter().flat_map(|(score, tables)| tables.iter().map(move |table| (*table, *score)));
        for (table, score) in grouped.chain(order.iter().copied()) {
            if taken.insert(table) {
                out.push((table, score));
            }
            if out.len() >= max_tables {
                break;
            }
        }
        out
    }

    /// Returns further tables from the schema of the best group, if it has a clear lead.
    ///
    /// Terms that the question expresses only by a value, or in words that no name contains, are
    /// likely there.
    fn extra_schema_tables(&mut self, groups: &[(f32, Vec<u32>)]) -> Option<Vec<u32>> {
        let index = self.index;
        let ((score, group), others) = groups.split_first()?;
        let schema_of = |tables: &[u32]| tables.first().map(|table| index.schema_by_table[*table as usize]);
        let schema = schema_of(group)?;
        // With a single schema, membership is not evidence.
        let (other, _) = others.iter().find(|(_, tables)| schema_of(tables) != Some(schema))?;
        let tables = &index.tables_by_schema[schema as usize];
        if *score <= other * (1.0 + self.weights.lead_margin) || tables.len() > MAX_SCHEMA_TABLES {
            return None;
        }
        let mut more: Vec<(f32, u32)> = Vec::new();
        for &table in tables.iter().filter(|table| !group.contains(table)) {
            let is_neighbour = index.neighbours[table as usize].iter().any(|other| group.contains(other));
            let relevance = (self.term_scores(table).iter().sum::<f32>() + UNMENTIONED_SCORE)
                * (1.0 + self.weights.topic * self.topic_similarity(table));
            more.push((if is_neighbour { NEIGHBOUR_BOOST * relevance } else { relevance }, table));
        }
        more.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Some(more.into_iter().take(MAX_EXTRA_SCHEMA_TABLES).map(|(_, table)| table).collect())
    }

    fn grow_group(&mut self, seed: u32) -> (f32, Vec<u32>) {
        let mut covered = self.term_scores(seed).to_vec();
        let alone: f32 = covered.iter().sum();
        let mut group = vec![seed];
        // Tables reachable in one or two joins, each with the intermediate table.
        let mut reach: Vec<(u32, Option<u32>, f32)> = Vec::new();
        let ties = &self.index.neighbours;
        let few = |table: u32| Some(&ties[table as usize]).filter(|ties| ties.len() <= MAX_NEIGHBOURS);
        for &near in few(seed).into_iter().flatten() {
            reach.push((near, None, 1.0));
            for &far in few(near).into_iter().flatten() {
                if far != seed && reach.len() < MAX_REACHABLE_TABLES {
                    reach.push((far, Some(near), self.weights.decay));
                }
            }
        }
        while group.len() < MAX_GROUP_TABLES {
            let mut best: Option<(f32, u32, Option<u32>, f32)> = None;
            for &(table, way, share) in reach.iter().filter(|(table, ..)| !group.contains(table)) {
                let gain: f32 =
                    self.term_scores(table).iter().zip(&covered).map(|(there, here)| (there - here).max(0.0)).sum();
                let gain = gain * share;
                if best.is_none_or(|(most, first, ..)| gain > most || (gain == most && table < first)) {
                    best = Some((gain, table, way, share));
                }
            }
            let Some((_, table, way, share)) = best.filter(|(gained, ..)| *gained > self.weights.min_gain * alone)
            else {
                break;
            };
            if let Some(way) = way
                && !group.contains(&way)
            {
                group.push(way);
            }
            group.push(table);
            for (here, there) in covered.iter_mut().zip(self.term_scores(table)) {
                *here += (there - *here).max(0.0) * share;
            }
        }
        let all: f32 = covered.iter().sum();
        (alone + self.weights.neighbour * (all - alone), group)
    }

    /// Returns the score of a table for each question term.
    fn term_scores(&mut self, table: u32) -> &[f32] {
        let (index, asked, own, weights) = (self.index, self.question, self.direct_scores, self.weights);
        self.score_cache.entry(table).or_insert_with(|| score_terms(index, asked, own, weights, table))
    }

    /// Returns the cosine similarity of a table's terms to the question. Independent of shared
    /// terms.
    fn topic_similarity(&mut self, table: u32) -> f32 {
        let (index, asked, weights) = (self.index, self.question, self.weights);
        let dimensions = index.vocabulary.dimensions;
        if weights.topic == 0.0 || dimensions == 0 {
            return 0.0;
        }
        *self.topic_similarity_cache.entry(table).or_insert_with(|| {
            let mut about = vec![0.0; dimensions];
            for (word, place) in &index.entries[table as usize].terms {
                let says = if place.in_name { NAME_TERM_WEIGHT } else { 1.0 };
                let from = *word as usize * dimensions;
                let vector = &index.vocabulary.vectors[from..from + dimensions];
                add_scaled(&mut about, vector, says * index.idf[*word as usize]);
            }
            normalize(&mut about);
            dot(&about, &asked.topic_vector).max(0.0)
        })
    }
}

/// Scores a table for each question term.
///
/// Like the first pass, but the terms of one column are scored jointly.
fn score_terms(
    index: &InvertedIndex,
    asked: &QuestionTerms,
    own: &[f32],
    weights: &RankingWeights,
    table: u32,
) -> Vec<f32> {
    let entry = &index.entries[table as usize];
    let width = asked.feature_count();
    let mut names = vec![0.0_f32; width];
    let mut sides = vec![0.0_f32; width];
    let mut covered = 0.0_f32;
    for (word, place) in &entry.terms {
        let Some(found) = asked.by_term.get(word) else { continue };
        for (at, reading) in found {
            let strength = reading.confidence * reading.weight;
            if place.in_name {
                names[*at] = names[*at].max(strength);
            }
            sides[*at] = sides[*at].max(strength * weights.context_weight(*place));
        }
        if place.in_name {
            covered += found.iter().map(|(_, reading)| reading.confidence).fold(0.0, f32::max);
        }
    }
    for words in entry.column_terms() {
        let found = || words.iter().filter_map(|word| asked.by_term.get(word));
        let cover: f32 = found().map(|found| found.iter().map(|(_, r)| r.confidence).fold(0.0, f32::max)).sum();
        if cover > 0.0 {
            let whole = (cover / words.len() as f32).min(1.0).powf(weights.column_coverage_exponent);
            for (at, reading) in found().flatten() {
                sides[*at] = sides[*at].max(reading.confidence * reading.weight * weights.column * whole);
            }
        }
    }
    let (name, side) = (weights.name_weight(entry, covered), weights.width_factor(entry, index.mean_columns));
    for ((column_score, in_name), at) in sides.iter_mut().zip(names).zip(0..) {
        // Value matches are not rescored.
        *column_score = if at < asked.matches.len() {
            (*column_score * side).max(in_name * name)
        } else {
            own[table as usize * width + at]
        };
    }
    sides
}
