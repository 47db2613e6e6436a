//! Which tables a question needs: the words of the question against the names of tables and columns, weighed by how rare they
//! are, words that mean nearly the same, values that the question names, and what the tables that keys tie to one hold.

use std::collections::HashMap;

use querymend_model::Static;
use querymend_sql::Hit;

use super::groups::Rows;
use super::index::Index;
use super::words::{self, Said};

/// How much each kind of evidence counts. The default was chosen on one half of Spider's databases (docs/linking.md); others
/// are there for measuring what each is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// A word of the table's name.
    pub name: f32,
    /// The part of `name` that only counts as far as the question has all words of the name.
    pub whole_name: f32,
    /// How fast it counts for less the more of the name is missing.
    pub missing: f32,
    /// A word of a column's name.
    pub column: f32,
    /// How fast a word counts for less the more words the column's name has: 0 not at all, 1 by their number.
    pub long_column: f32,
    /// The same by how many words of the column's name the question lacks; this is asked of likely tables alone.
    pub part_of_column: f32,
    /// How far a table is held back that has many columns.
    pub wide: f32,
    /// A word of a comment.
    pub comment: f32,
    /// A word of the name of the schema that the table lives in.
    pub schema: f32,
    /// A word that means nearly the same.
    pub near: f32,
    /// From which likeness on words mean nearly the same.
    pub near_from: f32,
    /// A word that two of the question are run together and cut short in: `fname` of "first name".
    pub cut_short: f32,
    /// A word of the question that is likely a value: in quotes, or with a capital.
    pub named: f32,
    /// A word of the question that is said to all kinds of databases.
    pub vague: f32,
    /// A value that a column holds.
    pub value: f32,
    /// What tables that are tied to this one say, where it is silent itself.
    pub tied: f32,
    /// What is left of it with each step.
    pub step: f32,
    /// Tables that answer the question together come together, with those that tie them.
    pub paths: bool,
    /// What another table must add to come in, as a share of what the first one says.
    pub gain: f32,
    /// What a group counts for what its first table alone was found by.
    pub first: f32,
    /// How much more a group counts if all its words are about what the question is about.
    pub topic: f32,
    /// How far a group must be ahead of those of other schemas, as a share of them, to bring more of its own schema with it.
    pub ahead: f32,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            name: 1.0,
            whole_name: 0.8,
            missing: 3.0,
            column: 0.5,
            long_column: 0.5,
            part_of_column: 1.0,
            wide: 0.9,
            comment: 0.4,
            schema: 0.3,
            near: 0.6,
            near_from: 0.45,
            cut_short: 0.7,
            named: 0.45,
            vague: 0.2,
            value: 1.0,
            tied: 0.8,
            step: 0.5,
            paths: true,
            gain: 0.15,
            first: 0.5,
            topic: 3.0,
            ahead: 0.15,
        }
    }
}

/// A question of more words is about its rarest.
const MOST_WORDS: usize = 24;

/// Words that mean nearly the same as one of the question: the nearest so many.
const MOST_NEAR: usize = 8;

/// Of two words that are run together, so many letters of the first may be left.
const LEFT: std::ops::RangeInclusive<usize> = 1..=3;

/// A table that is tied to more others is tied to everything: that says nothing about a question.
pub(super) const MOST_TIES: usize = 32;

/// So many of the likeliest tables are looked at together with others.
pub(super) const SEEDS: usize = 64;

/// A word of the catalogue that a word of the question may mean.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    pub(super) word: u32,
    /// How surely it is meant.
    pub(super) sure: f32,
    /// How telling it is.
    pub(super) worth: f32,
}

/// A question, understood against an index.
#[derive(Debug)]
pub(super) struct Asked {
    /// For each word of the question what it may mean.
    pub(super) meant: Vec<Vec<Reading>>,
    /// The same by the words of the catalogue: which word of the question means them.
    pub(super) found: HashMap<u32, Vec<(usize, Reading)>>,
    /// What the whole question is about.
    pub(super) topic: Vec<f32>,
    hits: Vec<Vec<u32>>,
    hit_columns: Vec<(u32, String)>,
}

impl Asked {
    /// How many things it speaks of: words and values.
    pub(super) fn width(&self) -> usize {
        self.meant.len() + self.hits.len()
    }
}

impl Index {
    /// Which words of the catalogue the question means.
    pub(super) fn asked(&self, question: &str, hits: &[Hit], weights: &Weights) -> Asked {
        let said = words::of_question(question);
        let embedder = Static::builtin().ok();
        let vectors: Vec<Vec<f32>> =
            said.iter().map(|word| embedder.as_ref().map(|e| e.topic(&word.word)).unwrap_or_default()).collect();
        let mut meant: Vec<Vec<Reading>> =
            said.iter().zip(&vectors).map(|(word, vector)| self.meant(word, vector, weights)).collect();
        self.run_together(&said, &mut meant, weights);
        let mut topic = vec![0.0; self.vocabulary.dimensions];
        for ((said, readings), vector) in said.iter().zip(&mut meant).zip(&vectors) {
            let by = if said.named { weights.named } else { 1.0 } * if said.vague { weights.vague } else { 1.0 };
            readings.iter_mut().for_each(|reading| reading.worth *= by);
            // A word that the catalogue does not have may be as telling as any.
            add(&mut topic, vector, by * self.rarity_of(said).unwrap_or(UNKNOWN));
        }
        to_unit(&mut topic);
        meant.retain(|readings| !readings.is_empty());
        let rarest = |readings: &[Reading]| readings.iter().map(|r| r.sure * r.worth).fold(0.0, f32::max);
        meant.sort_by(|a, b| rarest(b).total_cmp(&rarest(a)));
        let mut values: Vec<((usize, usize), Vec<u32>)> = Vec::new();
        let mut hit_columns = Vec::new();
        for hit in hits {
            let Some(&table) = self.by_name.get(&hit.table) else { continue };
            hit_columns.push((table, hit.column.clone()));
            match values.iter_mut().find(|(place, _)| *place == (hit.start, hit.end)) {
                Some((_, tables)) => tables.push(table),
                None => values.push(((hit.start, hit.end), vec![table])),
            }
        }
        values.truncate(MOST_WORDS / 2);
        meant.truncate(MOST_WORDS - values.len());
        let mut found: HashMap<u32, Vec<(usize, Reading)>> = HashMap::new();
        for (at, readings) in meant.iter().enumerate() {
            for reading in readings {
                found.entry(reading.word).or_default().push((at, *reading));
            }
        }
        Asked { meant, found, topic, hits: values.into_iter().map(|(_, tables)| tables).collect(), hit_columns }
    }

    /// Whether a table still has the word.
    fn is_used(&self, word: usize) -> bool {
        self.starts[word] < self.starts[word + 1]
    }

    fn rarity_of(&self, said: &Said) -> Option<f32> {
        self.vocabulary.ids.get(said.stem.as_str()).map(|id| self.rarity[*id as usize])
    }

    fn meant(&self, said: &Said, vector: &[f32], weights: &Weights) -> Vec<Reading> {
        let all = &*self.vocabulary;
        let mut found: Vec<(u32, f32)> = Vec::new();
        if let Some(id) = all.ids.get(said.stem.as_str()) {
            found.push((*id, 1.0));
        }
        if weights.near > 0.0 && all.dimensions > 0 && vector.len() == all.dimensions {
            let mut near: Vec<(f32, u32)> = Vec::new();
            for (id, other) in all.vectors.chunks_exact(all.dimensions).enumerate() {
                let likeness = dot(vector, other);
                if likeness >= weights.near_from && self.is_used(id) {
                    near.push((likeness, id as u32));
                }
            }
            near.sort_by(|a, b| {
                b.0.total_cmp(&a.0).then_with(|| all.words[a.1 as usize].cmp(&all.words[b.1 as usize]))
            });
            found.extend(near.into_iter().take(MOST_NEAR).map(|(likeness, id)| (id, weights.near * likeness)));
        }
        // The surest reading of each word of the catalogue, in an order that does not depend on when words came in.
        found.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
        found.dedup_by_key(|(id, _)| *id);
        found.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| all.words[a.0 as usize].cmp(&all.words[b.0 as usize])));
        found.into_iter().map(|(word, sure)| Reading { word, sure, worth: self.rarity[word as usize] }).collect()
    }

    /// "home town" may be the column `hometown`, and "first name" `fname`. Run together they are no more telling than apart, however
    /// few tables write them so.
    fn run_together(&self, said: &[Said], meant: &mut [Vec<Reading>], weights: &Weights) {
        for (i, pair) in said.windows(2).enumerate() {
            let short = LEFT.filter_map(|end| pair[0].word.get(..end).filter(|left| left.len() < pair[0].word.len()));
            let short =
                short.filter(|_| pair[1].follows && weights.cut_short > 0.0).map(|left| (left, weights.cut_short));
            for (left, sure) in short.chain([(pair[0].word.as_str(), 1.0)]) {
                let joined = words::stem(&format!("{left}{}", pair[1].word));
                let Some(&word) = self.vocabulary.ids.get(joined.as_str()) else { continue };
                let rarity = self.rarity[word as usize];
                for (at, said) in [(i, &pair[0]), (i + 1, &pair[1])] {
                    let worth = self.rarity_of(said).map_or(rarity / 2.0, |own| own.min(rarity));
                    meant[at].push(Reading { word, sure, worth });
                }
            }
        }
    }

    /// The tables that the question needs most, best first, at most so many, each with how much speaks for it.
    pub(super) fn ranked(&self, asked: &Asked, weights: &Weights, most: usize) -> Vec<(u32, f32)> {
        let width = asked.width();
        if width == 0 || self.entries.is_empty() {
            return Vec::new();
        }
        let own = self.own(asked, weights);
        let mut scores: Vec<f32> = own.chunks_exact(width).map(|row| row.iter().sum()).collect();
        if weights.tied > 0.0 {
            let mut reached = own.clone();
            for _ in 0..2 {
                reached = self.passed_on(&reached, width, weights.step);
            }
            for (score, row) in scores.iter_mut().zip(reached.chunks_exact(width)) {
                *score += weights.tied * (row.iter().sum::<f32>() - *score);
            }
        }
        let mut order: Vec<(u32, f32)> =
            scores.iter().enumerate().filter(|(_, s)| **s > 0.0).map(|(i, s)| (i as u32, *s)).collect();
        let better = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        let enough = most.max(SEEDS);
        if order.len() > enough {
            order.select_nth_unstable_by(enough - 1, better);
            order.truncate(enough);
        }
        order.sort_by(better);
        if weights.paths {
            return Rows::new(self, asked, &own, weights).in_groups(&order, most);
        }
        order
    }

    /// What each table says to each word of the question: one row for each table.
    fn own(&self, asked: &Asked, weights: &Weights) -> Vec<f32> {
        let width = asked.width();
        let mut names = vec![0.0_f32; self.entries.len() * width];
        let mut columns = vec![0.0_f32; self.entries.len() * width];
        let mut covers = vec![0.0_f32; self.entries.len()];
        let of_column: Vec<f32> = (0..=u8::MAX)
            .map(|n| if n == 0 { 0.0 } else { weights.column * f32::from(n).powf(-weights.long_column) })
            .collect();
        for (at, readings) in asked.meant.iter().enumerate() {
            for &Reading { word, sure, worth } in readings {
                let strength = sure * worth;
                let range = self.starts[word as usize] as usize..self.starts[word as usize + 1] as usize;
                for posting in &self.postings[range] {
                    let cell = posting.table as usize * width + at;
                    let place = posting.place;
                    if place.in_name {
                        names[cell] = names[cell].max(strength);
                        covers[posting.table as usize] += sure;
                    }
                    let side = of_column[usize::from(place.column_words)].max(weights.beside(place));
                    columns[cell] = columns[cell].max(strength * side);
                }
            }
        }
        for (at, tables) in asked.hits.iter().enumerate() {
            let strength = weights.value * (1.0 + self.entries.len() as f32 / (tables.len() as f32 + 0.5)).ln();
            for table in tables {
                columns[*table as usize * width + asked.meant.len() + at] = strength;
            }
        }
        for (table, entry) in self.entries.iter().enumerate() {
            let row = table * width..(table + 1) * width;
            let (name, side) = (weights.of_name(entry, covers[table]), weights.of_width(entry, self.mean_columns));
            for (column, in_name) in columns[row.clone()].iter_mut().zip(&names[row]) {
                *column = (*column * side).max(in_name * name);
            }
        }
        columns
    }

    /// Each table hears what those that are tied to it say, a little weaker.
    fn passed_on(&self, said: &[f32], width: usize, step: f32) -> Vec<f32> {
        let mut heard = said.to_vec();
        for (table, ties) in self.ties.iter().enumerate() {
            if ties.len() > MOST_TIES {
                continue;
            }
            for &other in ties {
                if self.ties[other as usize].len() > MOST_TIES {
                    continue;
                }
                let other = &said[other as usize * width..(other as usize + 1) * width];
                for (here, there) in heard[table * width..(table + 1) * width].iter_mut().zip(other) {
                    *here = here.max(there * step);
                }
            }
        }
        heard
    }

    /// How much speaks for each column of a table.
    pub(super) fn columns(&self, asked: &Asked, table: u32) -> Vec<f32> {
        let entry = &self.entries[table as usize];
        let of_word = |word: &u32| {
            let sure = asked.found.get(word).map(|found| found.iter().map(|(_, r)| r.sure).fold(0.0, f32::max));
            sure.unwrap_or_default() * self.rarity[*word as usize]
        };
        entry.columns_of_words().map(|words| words.iter().map(of_word).sum()).collect()
    }

    /// Columns of a table that hold a value of the question.
    pub(super) fn hit_columns<'a>(&self, asked: &'a Asked, table: u32) -> impl Iterator<Item = &'a str> {
        asked.hit_columns.iter().filter(move |(t, _)| *t == table).map(|(_, column)| column.as_str())
    }
}

/// How telling a word is that no table has.
const UNKNOWN: f32 = 4.0;

/// Adds a vector, so many times, to another.
pub(super) fn add(sum: &mut [f32], vector: &[f32], times: f32) {
    for (sum, number) in sum.iter_mut().zip(vector) {
        *sum += times * number;
    }
}

/// Brings a vector to length one, unless it is zero.
pub(super) fn to_unit(vector: &mut [f32]) {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|number| *number /= length);
    }
}

/// The product of two vectors, in lanes that the machine can work on at once.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum()
}
