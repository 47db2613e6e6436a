//! Renders ranked tables as DDL within a byte budget.

use crate::linking::question_terms::QuestionTerms;
use crate::linking::ranking_weights::RankingWeights;
use querymend_sql::ValueMention;
use querymend_sql::schema::{Column, Table, render_ddl_with_comments};

use super::{LinkedSchema, SchemaLinker};

/// Packing of tables into the budget. The defaults performed best in measurements
/// (docs/measurements/linking.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackingOptions {
    /// Number of tables that are included before any is rendered with all its columns.
    pub leading_tables: usize,
    /// Maximum number of columns of a table that is always rendered in full.
    pub wide_table_columns: usize,
    /// Minimum number of columns, besides keys, in a partially rendered table.
    pub min_columns: usize,
}

impl Default for PackingOptions {
    fn default() -> Self {
        Self { leading_tables: 6, wide_table_columns: 10, min_columns: 8 }
    }
}

/// Maximum number of tables considered for a question.
const MAX_TABLES: usize = 400;

/// Maximum length of a column comment with sample values, in characters.
const MAX_COMMENT_CHARS: usize = 60;

/// Level of detail of a rendered table.
enum TableDetail {
    Full,
    Partial(String),
}

impl SchemaLinker {
    /// Renders the most relevant tables for a question in at most `max_bytes`.
    pub fn pack_tables(
        &self,
        question: &str,
        hits: &[ValueMention],
        max_bytes: usize,
        packing: &PackingOptions,
    ) -> LinkedSchema {
        let weights = RankingWeights::default();
        let index = self.index();
        let question_terms = index.match_question(question, hits, &weights);
        let mut ranked: Vec<u32> =
            index.rank_tables(&question_terms, &weights, MAX_TABLES).into_iter().map(|(at, _)| at).collect();
        let listed = ranked.len();
        // Tables without a score come last, in schema order.
        if listed < MAX_TABLES {
            let rest = (0..self.readable.len() as u32).filter(|at| !ranked[..listed].contains(at));
            let rest: Vec<u32> = rest.take(MAX_TABLES - listed).collect();
            ranked.extend(rest);
        }
        let mut bytes_left = max_bytes;
        let mut chosen: Vec<(u32, TableDetail)> = Vec::new();
        let (first, others) = ranked.split_at(packing.leading_tables.min(ranked.len()));
        for &at in first {
            let text = self.partial_ddl(at, &question_terms, packing.min_columns, packing);
            let whole = self.readable[at as usize].1.len();
            match text.filter(|t| t.len() < whole) {
                Some(text) if text.len() <= bytes_left => {
                    bytes_left -= text.len();
                    chosen.push((at, TableDetail::Partial(text)));
                }
                None if whole <= bytes_left => {
                    bytes_left -= whole;
                    chosen.push((at, TableDetail::Full));
                }
                Some(_) | None => {
                    // Minimal form of a table.
                    if let Some(text) =
                        self.partial_ddl(at, &question_terms, 1, &PackingOptions { wide_table_columns: 1, ..*packing })
                        && text.len() <= bytes_left
                    {
                        bytes_left -= text.len();
                        chosen.push((at, TableDetail::Partial(text)));
                    }
                }
            }
        }
        for (at, form) in &mut chosen {
            let whole = self.readable[*at as usize].1.len();
            if let TableDetail::Partial(text) = form
                && whole - text.len().min(whole) <= bytes_left
            {
                bytes_left -= whole - text.len().min(whole);
                *form = TableDetail::Full;
            }
        }
        for &at in others {
            let whole = self.readable[at as usize].1.len();
            if whole <= bytes_left {
                bytes_left -= whole;
                chosen.push((at, TableDetail::Full));
            }
        }
        chosen.sort_unstable_by_key(|(at, _)| *at);
        let mut linked = LinkedSchema { total_tables: self.readable.len(), ..LinkedSchema::default() };
        for (at, form) in &chosen {
            linked.tables.push(self.table(*at).full_name());
            match form {
                TableDetail::Full => linked.text.push_str(&self.readable[*at as usize].1),
                TableDetail::Partial(text) => linked.text.push_str(text),
            }
        }
        linked.text.truncate(linked.text.trim_end().len());
        linked
    }

    /// Renders a wide table with only its keys and relevant columns. Adds the number of omitted
    /// columns.
    fn partial_ddl(
        &self,
        at: u32,
        question_terms: &QuestionTerms,
        columns: usize,
        packing: &PackingOptions,
    ) -> Option<String> {
        let table = self.table(at);
        if table.columns.len() <= packing.wide_table_columns {
            return None;
        }
        let index = self.index();
        let mut scores = index.column_scores(question_terms, at);
        for hit in index.value_columns(question_terms, at) {
            if let Some(i) = table.columns.iter().position(|c| c.name.eq_ignore_ascii_case(hit)) {
                scores[i] += 100.0;
            }
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        let mentioned = scores.iter().filter(|s| **s > 0.0).count();
        let mut keep: Vec<usize> = order[..columns.max(mentioned.min(2 * columns)).min(order.len())].to_vec();
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
        let comment_of = |column: &Column| {
            let at = table.columns.iter().position(|c| c.name == column.name)?;
            (scores[at] > 0.0).then(|| column_comment(column)).flatten()
        };
        let last = match more {
            0 => None,
            1 => Some("and 1 more column".to_string()),
            more => Some(format!("and {more} more columns")),
        };
        Some(render_ddl_with_comments(&less, self.dialect, &comment_of, last.as_deref()))
    }
}

/// Returns the database comment and sample values of a column.
fn column_comment(column: &Column) -> Option<String> {
    let mut text = column.comment.clone().unwrap_or_default();
    if !column.samples.is_empty() {
        let values: Vec<String> =
            column.samples.iter().take(3).map(|v| format!("'{}'", truncate_chars(v, 20))).collect();
        let before = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!("{before}such as {}", values.join(", ")));
    }
    (!text.trim().is_empty()).then(|| truncate_chars(text.trim(), MAX_COMMENT_CHARS).to_string())
}

fn truncate_chars(text: &str, max_chars: usize) -> &str {
    text.char_indices().nth(max_chars).map_or(text, |(end, _)| &text[..end])
}
