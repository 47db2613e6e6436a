//! What a model sees of a database: the tables as text, all of them if they fit, else those that the question needs most.

mod groups;
mod index;
mod link;
mod pack;
#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests;
pub mod values;
mod words;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use link::Weights;
pub use pack::Packing;

use index::Index;
use querymend_model::Names;
use querymend_sql::schema::{Schema, Table, as_ddl};
use querymend_sql::{Dialect, Hit, Policy};

/// The tables that a model is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linked {
    /// Their names.
    pub tables: Vec<String>,
    /// How many there are that may be read.
    pub of: usize,
    /// As text.
    pub text: String,
}

/// The tables of a database with their text. The text is the same for every question, so it is written once; so is the index of
/// their words, as soon as a question needs it.
#[derive(Debug)]
pub struct Tables {
    schema: Arc<Schema>,
    dialect: &'static Dialect,
    /// Which of them may be read, each with its text.
    readable: Vec<(usize, Arc<str>)>,
    whole: Linked,
    /// The length of all texts.
    bytes: usize,
    index: OnceLock<Index>,
    names: OnceLock<Arc<Names>>,
}

impl Default for Tables {
    /// No tables at all.
    fn default() -> Self {
        Self::of(Arc::default(), &querymend_sql::dialect::SQLITE, Vec::new())
    }
}

impl Tables {
    /// Those of a schema that the policy allows to be read.
    pub fn new(schema: Arc<Schema>, dialect: &'static Dialect, policy: &Policy) -> Self {
        let all = schema.tables().iter().enumerate().filter(|(_, t)| allows(policy, t));
        let readable = all.map(|(i, t)| (i, as_ddl(t, dialect).into())).collect();
        Self::of(schema, dialect, readable)
    }

    /// The same for a schema that has changed since. What is known about tables that are as they were is kept.
    #[must_use]
    pub fn changed(&self, schema: Arc<Schema>, policy: &Policy) -> Self {
        let before: HashMap<String, &(usize, Arc<str>)> =
            self.readable.iter().map(|known| (self.schema.tables()[known.0].full_name(), known)).collect();
        let text = |table: &Table| match before.get(&table.full_name()) {
            Some((i, text)) if self.schema.tables()[*i] == *table => Arc::clone(text),
            _ => as_ddl(table, self.dialect).into(),
        };
        let all = schema.tables().iter().enumerate().filter(|(_, t)| allows(policy, t));
        let readable: Vec<(usize, Arc<str>)> = all.map(|(i, t)| (i, text(t))).collect();
        let changed = Self::of(schema, self.dialect, readable);
        if let Some(index) = self.index.get() {
            let _ = changed.index.set(Index::new(&changed.tables(), Some((index, &self.tables()))));
        }
        changed
    }

    fn of(schema: Arc<Schema>, dialect: &'static Dialect, readable: Vec<(usize, Arc<str>)>) -> Self {
        let bytes = readable.iter().map(|(_, text)| text.len()).sum();
        let mut whole = Linked { of: readable.len(), ..Linked::default() };
        for (i, text) in &readable {
            whole.tables.push(schema.tables()[*i].full_name());
            whole.text.push_str(text);
        }
        whole.text.truncate(whole.text.trim_end().len());
        Self { schema, dialect, readable, whole, bytes, index: OnceLock::new(), names: OnceLock::new() }
    }

    /// All of them, as queries are held against.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Whether all of them fit.
    pub fn fit(&self, most_bytes: usize) -> bool {
        self.bytes <= most_bytes
    }

    /// Chooses tables. A schema that fits is shown whole: leaving out part of a small one only hurts.
    pub fn link(&self, question: &str, most_bytes: usize) -> Linked {
        self.link_with(question, &[], most_bytes)
    }

    /// The same, knowing where values stand that the question names.
    pub fn link_with(&self, question: &str, hits: &[Hit], most_bytes: usize) -> Linked {
        if self.fit(most_bytes) {
            return self.whole.clone();
        }
        self.packed(question, hits, most_bytes, &Packing::default())
    }

    /// The tables that a question needs most, best first, with how much speaks for each.
    pub fn ranked(&self, question: &str, hits: &[Hit], weights: &Weights, most: usize) -> Vec<(&Table, f32)> {
        let index = self.index();
        let ranked = index.ranked(&index.asked(question, hits, weights), weights, most);
        ranked.into_iter().map(|(at, score)| (self.table(at), score)).collect()
    }

    /// The names that a query may use, for models that can be held to them.
    pub fn names(&self) -> Arc<Names> {
        let names = || {
            let tables = self.tables();
            let schemas = tables.iter().filter_map(|table| Some((table.schema.as_deref()?, Vec::new())));
            let columns = |table: &&Table| table.columns.iter().map(|column| column.name.clone()).collect();
            let known = tables.iter().map(|table| (table.name.as_str(), columns(table)));
            Arc::new(Names::new(schemas.chain(known)))
        };
        Arc::clone(self.names.get_or_init(names))
    }

    /// How many bytes the index of words takes, nearly. It is made if it is not there yet.
    pub fn index_bytes(&self) -> usize {
        self.index().bytes()
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(&self.tables(), None))
    }

    fn tables(&self) -> Vec<&Table> {
        self.readable.iter().map(|(i, _)| &self.schema.tables()[*i]).collect()
    }

    fn table(&self, at: u32) -> &Table {
        &self.schema.tables()[self.readable[at as usize].0]
    }
}

fn allows(policy: &Policy, table: &Table) -> bool {
    match &table.schema {
        Some(schema) => policy.allows_table(&[schema, &table.name]),
        None => policy.allows_table(&[&table.name]),
    }
}
