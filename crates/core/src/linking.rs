//! Schema linking: selects the part of the schema that a prompt contains.
//!
//! All tables if they fit, otherwise those most relevant to the question.

mod inverted_index;
mod join_groups;
mod question_terms;
mod rank;
mod ranking_weights;
mod schema_prompt;
pub(crate) mod sensitive_columns;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests;
mod tokenize;
pub mod value_sampling;
mod vector_math;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use ranking_weights::RankingWeights;
pub use schema_prompt::PackingOptions;

use inverted_index::InvertedIndex;
use querymend_model::AllowedNames;
use querymend_sql::schema::{Schema, Table, render_ddl};
use querymend_sql::{Dialect, Policy, ValueMention};

/// Tables included in a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkedSchema {
    /// Qualified names of the tables.
    pub tables: Vec<String>,
    /// Total number of readable tables.
    pub total_tables: usize,
    /// DDL of the tables.
    pub text: String,
}

/// Schema of a database, prepared for linking.
///
/// The DDL does not depend on the question and is rendered once; the term index is built when a
/// question first needs it.
#[derive(Debug)]
pub struct SchemaLinker {
    schema: Arc<Schema>,
    dialect: &'static Dialect,
    /// Indexes of readable tables, each with its DDL.
    readable: Vec<(usize, Arc<str>)>,
    full: LinkedSchema,
    /// Total length of all DDL texts, in bytes.
    full_bytes: usize,
    index: OnceLock<InvertedIndex>,
    names: OnceLock<Arc<AllowedNames>>,
}

impl Default for SchemaLinker {
    /// Creates a linker without tables.
    fn default() -> Self {
        Self::from_readable(Arc::default(), &querymend_sql::dialect::SQLITE, Vec::new())
    }
}

impl SchemaLinker {
    /// Creates a linker for the tables that the policy allows to be read.
    pub fn new(schema: Arc<Schema>, dialect: &'static Dialect, policy: &Policy) -> Self {
        let all = schema.tables().iter().enumerate().filter(|(_, t)| is_allowed(policy, t));
        let readable = all.map(|(i, t)| (i, render_ddl(t, dialect).into())).collect();
        Self::from_readable(schema, dialect, readable)
    }

    /// Creates a linker for a changed schema. The DDL and index entries of unchanged tables are
    /// reused.
    #[must_use]
    pub fn with_schema(&self, schema: Arc<Schema>, policy: &Policy) -> Self {
        let before: HashMap<String, &(usize, Arc<str>)> =
            self.readable.iter().map(|known| (self.schema.tables()[known.0].full_name(), known)).collect();
        let text = |table: &Table| match before.get(&table.full_name()) {
            Some((i, text)) if self.schema.tables()[*i] == *table => Arc::clone(text),
            _ => render_ddl(table, self.dialect).into(),
        };
        let all = schema.tables().iter().enumerate().filter(|(_, t)| is_allowed(policy, t));
        let readable: Vec<(usize, Arc<str>)> = all.map(|(i, t)| (i, text(t))).collect();
        let changed = Self::from_readable(schema, self.dialect, readable);
        if let Some(index) = self.index.get() {
            let _ = changed.index.set(InvertedIndex::new(&changed.tables(), Some((index, &self.tables()))));
        }
        changed
    }

    fn from_readable(schema: Arc<Schema>, dialect: &'static Dialect, readable: Vec<(usize, Arc<str>)>) -> Self {
        let bytes = readable.iter().map(|(_, text)| text.len()).sum();
        let mut whole = LinkedSchema { total_tables: readable.len(), ..LinkedSchema::default() };
        for (i, text) in &readable {
            whole.tables.push(schema.tables()[*i].full_name());
            whole.text.push_str(text);
        }
        whole.text.truncate(whole.text.trim_end().len());
        Self {
            schema,
            dialect,
            readable,
            full: whole,
            full_bytes: bytes,
            index: OnceLock::new(),
            names: OnceLock::new(),
        }
    }

    /// Returns the full schema that queries are reviewed against.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns whether the DDL of all tables fits.
    pub fn fits_in(&self, max_bytes: usize) -> bool {
        self.full_bytes <= max_bytes
    }

    /// Selects the tables for a question.
    ///
    /// A schema that fits is included as a whole: omitting parts of a small one only hurts
    /// accuracy.
    pub fn link(&self, question: &str, max_bytes: usize) -> LinkedSchema {
        self.link_with_values(question, &[], max_bytes)
    }

    /// Selects the tables for a question, given the columns that contain values it mentions.
    pub fn link_with_values(&self, question: &str, hits: &[ValueMention], max_bytes: usize) -> LinkedSchema {
        if self.fits_in(max_bytes) {
            return self.full.clone();
        }
        self.pack_tables(question, hits, max_bytes, &PackingOptions::default())
    }

    /// Ranks tables by relevance to a question; returns them best first with their scores.
    pub fn rank_tables(
        &self,
        question: &str,
        hits: &[ValueMention],
        weights: &RankingWeights,
        max_tables: usize,
    ) -> Vec<(&Table, f32)> {
        let index = self.index();
        let ranked = index.rank_tables(&index.match_question(question, hits, weights), weights, max_tables);
        ranked.into_iter().map(|(at, score)| (self.table(at), score)).collect()
    }

    /// Returns the names that a query may use, for constrained decoding.
    pub fn names(&self) -> Arc<AllowedNames> {
        let names = || {
            let tables = self.tables();
            let schemas = tables.iter().filter_map(|table| Some((table.schema.as_deref()?, Vec::new())));
            let columns = |table: &&Table| table.columns.iter().map(|column| column.name.clone()).collect();
            let known = tables.iter().map(|table| (table.name.as_str(), columns(table)));
            Arc::new(AllowedNames::new(schemas.chain(known)))
        };
        Arc::clone(self.names.get_or_init(names))
    }

    /// Returns the approximate size of the term index, in bytes. Builds the index if necessary.
    pub fn index_bytes(&self) -> usize {
        self.index().memory_bytes()
    }

    fn index(&self) -> &InvertedIndex {
        self.index.get_or_init(|| InvertedIndex::new(&self.tables(), None))
    }

    fn tables(&self) -> Vec<&Table> {
        self.readable.iter().map(|(i, _)| &self.schema.tables()[*i]).collect()
    }

    fn table(&self, at: u32) -> &Table {
        &self.schema.tables()[self.readable[at as usize].0]
    }
}

fn is_allowed(policy: &Policy, table: &Table) -> bool {
    match &table.schema {
        Some(schema) => policy.allows_table(&[schema, &table.name]),
        None => policy.allows_table(&[&table.name]),
    }
}
