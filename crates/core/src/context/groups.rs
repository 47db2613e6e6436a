//! Tables that answer a question together. Few tables are looked at here, so each of them closely.

use std::collections::{HashMap, HashSet};

use super::index::{Entry, Index, Place};
use super::link::{Asked, MOST_TIES, SEEDS, Weights, add, dot, to_unit};

/// A question is answered by a few tables.
const MOST_IN_GROUP: usize = 5;

/// No more tables are looked at from one.
const MOST_REACH: usize = 256;

/// A word of a table's name says as much about what it is about as so many of its columns.
const NAME_SAYS: f32 = 2.0;

/// So many more tables of its schema come with a group that is ahead.
const MORE: usize = 2;

/// In a larger schema it says nothing to be of the same one.
const MOST_IN_SCHEMA: usize = 32;

/// What speaks for a table of which the question says nothing.
const UNSAID: f32 = 0.5;

/// How much more speaks for one that is tied to the group.
const TIED: f32 = 2.0;

impl Weights {
    /// What a word counts that stands in a comment, or in the name of the schema.
    pub(super) fn beside(&self, place: Place) -> f32 {
        let comment = if place.in_comment { self.comment } else { 0.0 };
        let schema = if place.in_schema { self.schema } else { 0.0 };
        comment.max(schema)
    }

    /// What a word of the table's name counts if the question has so many of them.
    pub(super) fn of_name(&self, entry: &Entry, covered: f32) -> f32 {
        let cover = (covered / f32::from(entry.name_words.max(1))).min(1.0).powf(self.missing);
        self.name * (1.0 - self.whole_name + self.whole_name * cover)
    }

    /// What is left of what columns say in a table of many.
    pub(super) fn of_width(&self, entry: &Entry, usual: f32) -> f32 {
        let wide = 1.0 / (1.0 - self.wide + self.wide * entry.columns as f32 / usual.max(1.0));
        wide.min(1.5)
    }
}

/// What tables say to each word of a question, found out as it is asked for.
pub(super) struct Rows<'r> {
    index: &'r Index,
    asked: &'r Asked,
    /// What each table says at first sight.
    own: &'r [f32],
    weights: &'r Weights,
    known: HashMap<u32, Vec<f32>>,
    likenesses: HashMap<u32, f32>,
}

impl<'r> Rows<'r> {
    pub(super) fn new(index: &'r Index, asked: &'r Asked, own: &'r [f32], weights: &'r Weights) -> Self {
        Self { index, asked, own, weights, known: HashMap::new(), likenesses: HashMap::new() }
    }

    /// Each of the likeliest tables with those within reach that speak of what it does not, and with the tables on the way to
    /// them. Groups that say most with fewest tables come first.
    pub(super) fn in_groups(&mut self, order: &[(u32, f32)], most: usize) -> Vec<(u32, f32)> {
        let mut groups: Vec<(f32, Vec<u32>)> = Vec::with_capacity(SEEDS);
        for (seed, score) in order.iter().take(SEEDS) {
            let (says, group) = self.group(*seed);
            let likeness = group.iter().take(2).map(|table| self.likeness(*table)).fold(0.0, f32::max);
            groups.push(((says + self.weights.first * score) * (1.0 + self.weights.topic * likeness), group));
        }
        groups.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut out: Vec<(u32, f32)> = Vec::with_capacity(most);
        let mut taken: HashSet<u32> = HashSet::new();
        if let Some(more) = self.more_of_schema(&groups) {
            groups[0].1.extend(more);
        }
        let grouped = groups.iter().flat_map(|(score, tables)| tables.iter().map(move |table| (*table, *score)));
        for (table, score) in grouped.chain(order.iter().copied()) {
            if taken.insert(table) {
                out.push((table, score));
            }
            if out.len() >= most {
                break;
            }
        }
        out
    }

    /// Tables of the schema that the best group is of, if no other schema comes near: what the question only says by a value, or
    /// in words that no name has, is likely there.
    fn more_of_schema(&mut self, groups: &[(f32, Vec<u32>)]) -> Option<Vec<u32>> {
        let index = self.index;
        let ((score, group), others) = groups.split_first()?;
        let schema_of = |tables: &[u32]| tables.first().map(|table| index.schema_of[*table as usize]);
        let schema = schema_of(group)?;
        // Where there is one schema alone it says nothing to be of it.
        let (other, _) = others.iter().find(|(_, tables)| schema_of(tables) != Some(schema))?;
        let tables = &index.in_schema[schema as usize];
        if *score <= other * (1.0 + self.weights.ahead) || tables.len() > MOST_IN_SCHEMA {
            return None;
        }
        let mut more: Vec<(f32, u32)> = Vec::new();
        for &table in tables.iter().filter(|table| !group.contains(table)) {
            let tied = index.ties[table as usize].iter().any(|other| group.contains(other));
            let says =
                (self.row(table).iter().sum::<f32>() + UNSAID) * (1.0 + self.weights.topic * self.likeness(table));
            more.push((if tied { TIED * says } else { says }, table));
        }
        more.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Some(more.into_iter().take(MORE).map(|(_, table)| table).collect())
    }

    fn group(&mut self, seed: u32) -> (f32, Vec<u32>) {
        let mut covered = self.row(seed).to_vec();
        let alone: f32 = covered.iter().sum();
        let mut group = vec![seed];
        // Within reach: tied to it, or tied to what is; each with the table on the way.
        let mut reach: Vec<(u32, Option<u32>, f32)> = Vec::new();
        let ties = &self.index.ties;
        let few = |table: u32| Some(&ties[table as usize]).filter(|ties| ties.len() <= MOST_TIES);
        for &near in few(seed).into_iter().flatten() {
            reach.push((near, None, 1.0));
            for &far in few(near).into_iter().flatten() {
                if far != seed && reach.len() < MOST_REACH {
                    reach.push((far, Some(near), self.weights.step));
                }
            }
        }
        while group.len() < MOST_IN_GROUP {
            let mut best: Option<(f32, u32, Option<u32>, f32)> = None;
            for &(table, way, share) in reach.iter().filter(|(table, ..)| !group.contains(table)) {
                let gain: f32 = self.row(table).iter().zip(&covered).map(|(there, here)| (there - here).max(0.0)).sum();
                let gain = gain * share;
                if best.is_none_or(|(most, first, ..)| gain > most || (gain == most && table < first)) {
                    best = Some((gain, table, way, share));
                }
            }
            let Some((_, table, way, share)) = best.filter(|(gained, ..)| *gained > self.weights.gain * alone) else {
                break;
            };
            if let Some(way) = way
                && !group.contains(&way)
            {
                group.push(way);
            }
            group.push(table);
            for (here, there) in covered.iter_mut().zip(self.row(table)) {
                *here += (there - *here).max(0.0) * share;
            }
        }
        let all: f32 = covered.iter().sum();
        (alone + self.weights.tied * (all - alone), group)
    }

    /// What a table says to each word.
    fn row(&mut self, table: u32) -> &[f32] {
        let (index, asked, own, weights) = (self.index, self.asked, self.own, self.weights);
        self.known.entry(table).or_insert_with(|| says(index, asked, own, weights, table))
    }

    /// How far a table is about what the question is about: by the words that it has, whether the question has them or not.
    fn likeness(&mut self, table: u32) -> f32 {
        let (index, asked, weights) = (self.index, self.asked, self.weights);
        let dimensions = index.vocabulary.dimensions;
        if weights.topic == 0.0 || dimensions == 0 {
            return 0.0;
        }
        *self.likenesses.entry(table).or_insert_with(|| {
            let mut about = vec![0.0; dimensions];
            for (word, place) in &index.entries[table as usize].words {
                let says = if place.in_name { NAME_SAYS } else { 1.0 };
                let from = *word as usize * dimensions;
                let vector = &index.vocabulary.vectors[from..from + dimensions];
                add(&mut about, vector, says * index.rarity[*word as usize]);
            }
            to_unit(&mut about);
            dot(&about, &asked.topic).max(0.0)
        })
    }
}

/// What a table says to each word: like at first sight, but that the words of one column count together.
fn says(index: &Index, asked: &Asked, own: &[f32], weights: &Weights, table: u32) -> Vec<f32> {
    let entry = &index.entries[table as usize];
    let width = asked.width();
    let mut names = vec![0.0_f32; width];
    let mut sides = vec![0.0_f32; width];
    let mut covered = 0.0_f32;
    for (word, place) in &entry.words {
        let Some(found) = asked.found.get(word) else { continue };
        for (at, reading) in found {
            let strength = reading.sure * reading.worth;
            if place.in_name {
                names[*at] = names[*at].max(strength);
            }
            sides[*at] = sides[*at].max(strength * weights.beside(*place));
        }
        if place.in_name {
            covered += found.iter().map(|(_, reading)| reading.sure).fold(0.0, f32::max);
        }
    }
    for words in entry.columns_of_words() {
        let found = || words.iter().filter_map(|word| asked.found.get(word));
        let cover: f32 = found().map(|found| found.iter().map(|(_, r)| r.sure).fold(0.0, f32::max)).sum();
        if cover > 0.0 {
            let whole = (cover / words.len() as f32).min(1.0).powf(weights.part_of_column);
            for (at, reading) in found().flatten() {
                sides[*at] = sides[*at].max(reading.sure * reading.worth * weights.column * whole);
            }
        }
    }
    let (name, side) = (weights.of_name(entry, covered), weights.of_width(entry, index.mean_columns));
    for ((said, in_name), at) in sides.iter_mut().zip(names).zip(0..) {
        // What values say is the same at second sight.
        *said =
            if at < asked.meant.len() { (*said * side).max(in_name * name) } else { own[table as usize * width + at] };
    }
    sides
}
