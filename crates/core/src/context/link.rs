//! Which tables a question needs: the words of the question against the names of tables and columns, weighed by how rare they
//! are, words that mean nearly the same, values that the question names, and what the tables that keys tie to one hold.

use std::collections::{HashMap, HashSet};

use querymend_model::Static;

use super::index::Index;
use super::words::{self, Said};

/// A value that the question names and that a column holds. Whoever keeps an index of values finds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueHit {
    /// The value, as the question has it.
    pub value: String,
    /// The table, by its full name.
    pub table: String,
    /// Its column.
    pub column: String,
}

/// How much each kind of evidence counts. The default was chosen on one half of Spider's databases (docs/linking.md); others
/// are there for measuring what each is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// A word of the table's name.
    pub name: f32,
    /// The part of `name` that only counts as far as the question has all words of the name.
    pub whole_name: f32,
    /// A word of a column's name.
    pub column: f32,
    /// How fast a word counts for less the more words the column's name has: 0 not at all, 1 by their number.
    pub long_column: f32,
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
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            name: 1.0,
            whole_name: 0.8,
            column: 0.45,
            long_column: 0.5,
            wide: 0.6,
            comment: 0.4,
            schema: 0.3,
            near: 0.45,
            near_from: 0.5,
            value: 1.0,
            tied: 0.8,
            step: 0.4,
            paths: true,
            gain: 0.1,
        }
    }
}

/// A question of more words is about its rarest.
const MOST_WORDS: usize = 24;

/// Words that mean nearly the same as one of the question: the nearest so many.
const MOST_NEAR: usize = 8;

/// A table that is tied to more others is tied to everything: that says nothing about a question.
const MOST_TIES: usize = 32;

/// So many of the likeliest tables are looked at together with others.
const SEEDS: usize = 64;

/// A question is answered by a few tables.
const MOST_IN_GROUP: usize = 5;

/// No more tables are looked at from one.
const MOST_REACH: usize = 256;

/// What a word of the question finds: words of the catalogue with how surely they are meant.
#[derive(Debug)]
struct Meant {
    words: Vec<(u32, f32)>,
}

/// A question, understood against an index.
#[derive(Debug)]
pub(super) struct Asked {
    meant: Vec<Meant>,
    hits: Vec<Vec<u32>>,
    hit_columns: Vec<(u32, String)>,
}

impl Index {
    /// Which words of the catalogue the question means.
    pub(super) fn asked(&self, question: &str, hits: &[ValueHit], weights: &Weights) -> Asked {
        let said = words::of_question(question);
        let mut meant: Vec<Meant> = said.iter().map(|word| self.meant(word, weights)).collect();
        // "home town" may be the column `hometown`.
        for (i, pair) in said.windows(2).enumerate() {
            let joined = words::stem(&format!("{}{}", pair[0].word, pair[1].word));
            if let Some(id) = self.vocabulary.ids.get(joined.as_str()) {
                meant[i].words.push((*id, 1.0));
                meant[i + 1].words.push((*id, 1.0));
            }
        }
        meant.retain(|m| !m.words.is_empty());
        let rarest = |m: &Meant| m.words.iter().map(|(id, sure)| sure * self.rarity[*id as usize]).fold(0.0, f32::max);
        meant.sort_by(|a, b| rarest(b).total_cmp(&rarest(a)));
        let mut values: Vec<(&str, Vec<u32>)> = Vec::new();
        let mut hit_columns = Vec::new();
        for hit in hits {
            let Some(&table) = self.by_name.get(&hit.table) else { continue };
            hit_columns.push((table, hit.column.clone()));
            match values.iter_mut().find(|(value, _)| *value == hit.value) {
                Some((_, tables)) => tables.push(table),
                None => values.push((&hit.value, vec![table])),
            }
        }
        values.truncate(MOST_WORDS / 2);
        meant.truncate(MOST_WORDS - values.len());
        Asked { meant, hits: values.into_iter().map(|(_, tables)| tables).collect(), hit_columns }
    }

    /// Whether a table still has the word.
    fn is_used(&self, word: usize) -> bool {
        self.starts[word] < self.starts[word + 1]
    }

    fn meant(&self, said: &Said, weights: &Weights) -> Meant {
        let all = &*self.vocabulary;
        let mut found: Vec<(u32, f32)> = Vec::new();
        if let Some(id) = all.ids.get(said.stem.as_str()) {
            found.push((*id, 1.0));
        }
        if weights.near > 0.0
            && all.dimensions > 0
            && let Ok(embedder) = Static::builtin()
        {
            let vector = embedder.topic(&said.word);
            let mut near: Vec<(f32, u32)> = Vec::new();
            for (id, other) in all.vectors.chunks_exact(all.dimensions).enumerate() {
                let likeness = dot(&vector, other);
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
        Meant { words: found }
    }

    /// The tables that the question needs most, best first, at most so many, each with how much speaks for it.
    pub(super) fn ranked(&self, asked: &Asked, weights: &Weights, most: usize) -> Vec<(u32, f32)> {
        let own = self.own(asked, weights);
        let width = asked.meant.len() + asked.hits.len();
        if width == 0 || self.entries.is_empty() {
            return Vec::new();
        }
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
            return self.in_groups(&order, &own, width, weights, most);
        }
        order
    }

    /// What each table says to each word of the question: one row for each table.
    fn own(&self, asked: &Asked, weights: &Weights) -> Vec<f32> {
        let width = asked.meant.len() + asked.hits.len();
        let mut names = vec![0.0_f32; self.entries.len() * width];
        let mut columns = vec![0.0_f32; self.entries.len() * width];
        let mut covers = vec![0.0_f32; self.entries.len()];
        let of_column: Vec<f32> = (0..=u8::MAX)
            .map(|n| if n == 0 { 0.0 } else { weights.column * f32::from(n).powf(-weights.long_column) })
            .collect();
        for (at, meant) in asked.meant.iter().enumerate() {
            for &(word, sure) in &meant.words {
                let strength = sure * self.rarity[word as usize];
                let range = self.starts[word as usize] as usize..self.starts[word as usize + 1] as usize;
                for posting in &self.postings[range] {
                    let cell = posting.table as usize * width + at;
                    let place = posting.place;
                    if place.in_name {
                        names[cell] = names[cell].max(strength);
                        covers[posting.table as usize] += sure;
                    }
                    let mut side = of_column[usize::from(place.column_words)];
                    if place.in_comment {
                        side = side.max(weights.comment);
                    }
                    if place.in_schema {
                        side = side.max(weights.schema);
                    }
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
            let cover = (covers[table] / f32::from(entry.name_words.max(1))).min(1.0);
            let name = weights.name * (1.0 - weights.whole_name + weights.whole_name * cover);
            let wide = 1.0 / (1.0 - weights.wide + weights.wide * entry.columns as f32 / self.mean_columns.max(1.0));
            for (column, in_name) in columns[row.clone()].iter_mut().zip(&names[row]) {
                *column = (*column * wide.min(1.5)).max(in_name * name);
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

    /// Tables that answer the question together: each of the likeliest with those within reach that speak of what it does not,
    /// and with the tables on the way to them. Groups that say most with fewest tables come first.
    fn in_groups(
        &self,
        order: &[(u32, f32)],
        own: &[f32],
        width: usize,
        weights: &Weights,
        most: usize,
    ) -> Vec<(u32, f32)> {
        let mut groups: Vec<(f32, Vec<u32>)> =
            order.iter().take(SEEDS).map(|(seed, _)| self.group(*seed, own, width, weights)).collect();
        groups.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut out: Vec<(u32, f32)> = Vec::with_capacity(most);
        let mut taken: HashSet<u32> = HashSet::new();
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

    fn group(&self, seed: u32, own: &[f32], width: usize, weights: &Weights) -> (f32, Vec<u32>) {
        let row = |table: u32| &own[table as usize * width..(table as usize + 1) * width];
        let mut covered = row(seed).to_vec();
        let alone: f32 = covered.iter().sum();
        let mut group = vec![seed];
        // Within reach: tied to it, or tied to what is; each with the table on the way.
        let mut reach: Vec<(u32, Option<u32>, f32)> = Vec::new();
        let few = |table: u32| Some(&self.ties[table as usize]).filter(|ties| ties.len() <= MOST_TIES);
        for &near in few(seed).into_iter().flatten() {
            reach.push((near, None, 1.0));
            for &far in few(near).into_iter().flatten() {
                if far != seed && reach.len() < MOST_REACH {
                    reach.push((far, Some(near), weights.step));
                }
            }
        }
        while group.len() < MOST_IN_GROUP {
            let gain = |table: u32| -> f32 {
                row(table).iter().zip(&covered).map(|(there, here)| (there - here).max(0.0)).sum()
            };
            let best = reach
                .iter()
                .filter(|(table, _, _)| !group.contains(table))
                .map(|(table, way, share)| (gain(*table) * share, *table, *way, *share))
                .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
            let Some((_, table, way, share)) = best.filter(|(gained, ..)| *gained > weights.gain * alone) else {
                break;
            };
            if let Some(way) = way
                && !group.contains(&way)
            {
                group.push(way);
            }
            group.push(table);
            for (here, there) in covered.iter_mut().zip(row(table)) {
                *here += (there - *here).max(0.0) * share;
            }
        }
        let all: f32 = covered.iter().sum();
        (alone + weights.tied * (all - alone), group)
    }

    /// How much speaks for each column of a table.
    pub(super) fn columns(&self, asked: &Asked, table: u32) -> Vec<f32> {
        let entry = &self.entries[table as usize];
        let mut begin = 0;
        let mut sure: HashMap<u32, f32> = HashMap::new();
        for (word, how) in asked.meant.iter().flat_map(|m| &m.words) {
            let best = sure.entry(*word).or_default();
            *best = best.max(*how);
        }
        let of_word = |word: &u32| sure.get(word).copied().unwrap_or_default() * self.rarity[*word as usize];
        let mut scores = Vec::with_capacity(entry.column_ends.len());
        for end in &entry.column_ends {
            scores.push(entry.column_words[begin as usize..*end as usize].iter().map(of_word).sum());
            begin = *end;
        }
        scores
    }

    /// Columns of a table that hold a value of the question.
    pub(super) fn hit_columns<'a>(&self, asked: &'a Asked, table: u32) -> impl Iterator<Item = &'a str> {
        asked.hit_columns.iter().filter(move |(t, _)| *t == table).map(|(_, column)| column.as_str())
    }
}

/// The product of two vectors, in lanes that the machine can work on at once.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    for (a, b) in a.iter().zip(b) {
        for lane in 0..16 {
            lanes[lane] += a[lane] * b[lane];
        }
    }
    lanes.iter().sum()
}
