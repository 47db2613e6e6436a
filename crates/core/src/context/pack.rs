//! Ranked tables as text, in the room there is.

use querymend_sql::Hit;
use querymend_sql::schema::{Column, Table, as_ddl_with};

use super::link::{Asked, Weights};
use super::{Linked, Tables};

/// How tables are packed. The default is what was measured best (docs/linking.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// So many tables come in before any is shown with all its columns.
    pub first: usize,
    /// Tables with more columns may be shown in part.
    pub narrow_from: usize,
    /// Columns that a table shown in part keeps beside its keys, at the least.
    pub columns: usize,
}

impl Default for Packing {
    fn default() -> Self {
        Self { first: 6, narrow_from: 10, columns: 8 }
    }
}

/// No question needs more tables.
const MOST_TABLES: usize = 400;

/// Comments and values behind a column are cut there.
const LONGEST_REMARK: usize = 60;

/// How much of a table is shown.
enum Form {
    Whole,
    Part(String),
}

impl Tables {
    /// The tables that the question needs, in at most so many bytes.
    pub fn packed(&self, question: &str, hits: &[Hit], most_bytes: usize, packing: &Packing) -> Linked {
        let weights = Weights::default();
        let index = self.index();
        let asked = index.asked(question, hits, &weights);
        let mut ranked: Vec<u32> = index.ranked(&asked, &weights, MOST_TABLES).into_iter().map(|(at, _)| at).collect();
        let listed = ranked.len();
        // Tables of which nothing speaks come last, as they stand.
        if listed < MOST_TABLES {
            let rest = (0..self.readable.len() as u32).filter(|at| !ranked[..listed].contains(at));
            let rest: Vec<u32> = rest.take(MOST_TABLES - listed).collect();
            ranked.extend(rest);
        }
        let mut room = most_bytes;
        let mut chosen: Vec<(u32, Form)> = Vec::new();
        let (first, others) = ranked.split_at(packing.first.min(ranked.len()));
        for &at in first {
            let text = self.part(at, &asked, packing.columns, packing);
            let whole = self.readable[at as usize].1.len();
            match text.filter(|t| t.len() < whole) {
                Some(text) if text.len() <= room => {
                    room -= text.len();
                    chosen.push((at, Form::Part(text)));
                }
                None if whole <= room => {
                    room -= whole;
                    chosen.push((at, Form::Whole));
                }
                Some(_) | None => {
                    // The least that says anything about a table.
                    if let Some(text) = self.part(at, &asked, 1, &Packing { narrow_from: 1, ..*packing })
                        && text.len() <= room
                    {
                        room -= text.len();
                        chosen.push((at, Form::Part(text)));
                    }
                }
            }
        }
        for (at, form) in &mut chosen {
            let whole = self.readable[*at as usize].1.len();
            if let Form::Part(text) = form
                && whole - text.len().min(whole) <= room
            {
                room -= whole - text.len().min(whole);
                *form = Form::Whole;
            }
        }
        for &at in others {
            let whole = self.readable[at as usize].1.len();
            if whole <= room {
                room -= whole;
                chosen.push((at, Form::Whole));
            }
        }
        chosen.sort_unstable_by_key(|(at, _)| *at);
        let mut linked = Linked { of: self.readable.len(), ..Linked::default() };
        for (at, form) in &chosen {
            linked.tables.push(self.table(*at).full_name());
            match form {
                Form::Whole => linked.text.push_str(&self.readable[*at as usize].1),
                Form::Part(text) => linked.text.push_str(text),
            }
        }
        linked.text.truncate(linked.text.trim_end().len());
        linked
    }

    /// A wide table with its keys and the columns that the question speaks of, and that there are more.
    fn part(&self, at: u32, asked: &Asked, columns: usize, packing: &Packing) -> Option<String> {
        let table = self.table(at);
        if table.columns.len() <= packing.narrow_from {
            return None;
        }
        let index = self.index();
        let mut scores = index.columns(asked, at);
        for hit in index.hit_columns(asked, at) {
            if let Some(i) = table.columns.iter().position(|c| c.name.eq_ignore_ascii_case(hit)) {
                scores[i] += 100.0;
            }
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        let spoken = scores.iter().filter(|s| **s > 0.0).count();
        let mut keep: Vec<usize> = order[..columns.max(spoken.min(2 * columns)).min(order.len())].to_vec();
        let keys = table.primary_key.iter().chain(table.foreign_keys.iter().flat_map(|k| &k.columns));
        for key in keys.take(2 * columns) {
            if let Some(i) = table.columns.iter().position(|c| c.name.eq_ignore_ascii_case(key)) {
                keep.push(i);
            }
        }
        keep.sort_unstable();
        keep.dedup();
        let kept = |name: &String| keep.iter().any(|i| table.columns[*i].name.eq_ignore_ascii_case(name));
        let less = Table {
            name: table.name.clone(),
            schema: table.schema.clone(),
            kind: table.kind,
            columns: keep.iter().map(|i| table.columns[*i].clone()).collect(),
            primary_key: if table.primary_key.iter().all(kept) { table.primary_key.clone() } else { Vec::new() },
            foreign_keys: table.foreign_keys.iter().filter(|k| k.columns.iter().all(kept)).cloned().collect(),
            unique: table.unique.iter().filter(|u| u.iter().all(kept)).cloned().collect(),
            comment: None,
            hidden: Vec::new(),
        };
        let more = table.columns.len() - keep.len();
        let spoken_of = |column: &Column| {
            let at = table.columns.iter().position(|c| c.name == column.name)?;
            (scores[at] > 0.0).then(|| remark(column)).flatten()
        };
        let last = match more {
            0 => None,
            1 => Some("and 1 more column".to_string()),
            more => Some(format!("and {more} more columns")),
        };
        Some(as_ddl_with(&less, self.dialect, &spoken_of, last.as_deref()))
    }
}

/// What is known about a column beyond its name: what the database says about it, and some of its values.
fn remark(column: &Column) -> Option<String> {
    let mut said = column.comment.clone().unwrap_or_default();
    if !column.samples.is_empty() {
        let values: Vec<String> = column.samples.iter().take(3).map(|v| format!("'{}'", cut(v, 20))).collect();
        let before = if said.is_empty() { "" } else { "; " };
        said.push_str(&format!("{before}such as {}", values.join(", ")));
    }
    (!said.trim().is_empty()).then(|| cut(said.trim(), LONGEST_REMARK).to_string())
}

fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}
