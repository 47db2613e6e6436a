//! The scorer that `link` had before, to be measured beside it: words of the question counted in names.

use std::collections::HashMap;

use querymend_sql::schema::{Schema, Table};

pub struct Scorer<'s> {
    tables: Vec<&'s Table>,
    parts: Vec<(Vec<String>, Vec<Vec<String>>)>,
    by_name: HashMap<String, usize>,
}

impl<'s> Scorer<'s> {
    pub fn new(schema: &'s Schema) -> Self {
        let tables: Vec<&Table> = schema.tables().iter().collect();
        let parts =
            tables.iter().map(|t| (parts(&t.name), t.columns.iter().map(|c| parts(&c.name)).collect())).collect();
        let mut by_name = HashMap::new();
        for (i, table) in tables.iter().enumerate() {
            by_name.entry(table.name.to_lowercase()).or_insert(i);
        }
        Self { tables, parts, by_name }
    }

    /// Best first, each followed by the tables that its keys point at.
    pub fn ranked(&self, question: &str, most: usize) -> Vec<&'s Table> {
        let words: Vec<String> = parts(question);
        let hits = |parts: &[String]| words.iter().filter(|w| parts.iter().any(|p| alike(p, w))).count();
        let mut order: Vec<(usize, usize)> = self
            .parts
            .iter()
            .map(|(name, columns)| 4 * hits(name) + columns.iter().map(|c| hits(c)).sum::<usize>())
            .zip(0..)
            .collect();
        order.sort_by_key(|(score, i)| (usize::MAX - score, *i));
        let mut chosen: Vec<usize> = Vec::new();
        for (_, i) in order {
            let keys = self.tables[i].foreign_keys.iter().filter_map(|k| self.by_name.get(&k.table.to_lowercase()));
            for at in std::iter::once(i).chain(keys.copied()) {
                if !chosen.contains(&at) {
                    chosen.push(at);
                }
            }
            if chosen.len() >= most {
                break;
            }
        }
        chosen.truncate(most);
        chosen.into_iter().map(|i| self.tables[i]).collect()
    }
}

fn alike(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long == short || (short.len() > 3 && long.starts_with(short))
}

fn parts(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|w| w.chars().count() > 2).map(str::to_string).collect()
}

/// The tables that were shown where not all fit.
pub fn fitting(tables: &[Table], texts: &[String], question: &str, most_bytes: usize) -> Vec<usize> {
    let words = parts(question);
    let hits = |name: &str| {
        let parts = parts(name);
        words.iter().filter(|w| parts.iter().any(|p| alike(p, w))).count()
    };
    let score = |t: &Table| 4 * hits(&t.name) + t.columns.iter().map(|c| hits(&c.name)).sum::<usize>();
    let mut order: Vec<(usize, usize)> = tables.iter().map(score).zip(0..).collect();
    order.sort_by_key(|(score, i)| (usize::MAX - score, *i));
    let (mut chosen, mut room) = (Vec::new(), most_bytes);
    for (score, i) in order {
        if score == 0 && !chosen.is_empty() {
            break;
        }
        let keys = tables[i].foreign_keys.iter();
        let tied = keys.filter_map(|key| tables.iter().position(|t| t.name.eq_ignore_ascii_case(&key.table)));
        for at in std::iter::once(i).chain(tied) {
            if !chosen.contains(&at) && texts[at].len() <= room {
                room -= texts[at].len();
                chosen.push(at);
            }
        }
    }
    chosen
}
