//! Inverted index of the terms in a schema, with its foreign key graph.
//!
//! Terms come from table names, column names, schema names and comments.

use std::collections::HashMap;
use std::sync::Arc;

use querymend_model::StaticEmbedder;
use querymend_sql::schema::Table;

use super::tokenize;

/// Terms of one table. Depends only on that table, so it is reused while the table is unchanged.
#[derive(Debug, PartialEq)]
pub(super) struct TableTerms {
    /// Distinct term IDs with their locations in the table.
    pub(super) terms: Vec<(u32, TermLocation)>,
    /// Number of terms in the table name.
    pub(super) name_words: u8,
    /// Number of columns.
    pub(super) columns: u32,
    /// Terms of all column names, concatenated.
    pub(super) column_words: Vec<u32>,
    /// End offset of each column in `column_words`.
    pub(super) column_ends: Vec<u32>,
}

/// Locations of a term in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TermLocation {
    pub(super) in_name: bool,
    pub(super) in_comment: bool,
    pub(super) in_schema: bool,
    /// Minimum number of terms in a column name that contains this term; 0 if no column does.
    pub(super) column_words: u8,
}

/// Posting of a term: table and locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TablePosting {
    pub(super) table: u32,
    pub(super) location: TermLocation,
}

/// All terms of a catalog. It only grows: terms of removed tables have no postings.
#[derive(Debug, Clone, Default)]
pub(super) struct TermVocabulary {
    pub(super) ids: HashMap<Arc<str>, u32>,
    pub(super) words: Vec<Arc<str>>,
    /// Embeddings of all terms, concatenated.
    pub(super) vectors: Vec<f32>,
    pub(super) dimensions: usize,
}

impl TermVocabulary {
    fn id(&mut self, word: &str, embedder: Option<&StaticEmbedder>) -> u32 {
        if let Some(id) = self.ids.get(word) {
            return *id;
        }
        let id = self.words.len() as u32;
        let word: Arc<str> = word.into();
        self.ids.insert(Arc::clone(&word), id);
        if let Some(embedder) = embedder {
            let vector = embedder.topic(&word);
            self.dimensions = vector.len();
            self.vectors.extend(vector);
        }
        self.words.push(word);
        id
    }
}

/// Inverted index from terms to tables, with the foreign key graph.
#[derive(Debug, Clone, Default)]
pub(super) struct InvertedIndex {
    pub(super) entries: Vec<Arc<TableTerms>>,
    pub(super) vocabulary: Arc<TermVocabulary>,
    /// Offset of the first posting of each term.
    pub(super) posting_offsets: Vec<u32>,
    pub(super) postings: Vec<TablePosting>,
    /// Inverse document frequency of each term.
    pub(super) idf: Vec<f32>,
    /// Tables connected to each table by foreign keys, in both directions.
    pub(super) neighbours: Vec<Vec<u32>>,
    /// Schema index of each table, and the tables of each schema.
    pub(super) schema_by_table: Vec<u32>,
    pub(super) tables_by_schema: Vec<Vec<u32>>,
    pub(super) by_name: HashMap<String, u32>,
    pub(super) mean_columns: f32,
}

impl InvertedIndex {
    /// Builds the index. Entries of unchanged tables are reused from `before`.
    pub(super) fn new(tables: &[&Table], before: Option<(&InvertedIndex, &[&Table])>) -> Self {
        let embedder = StaticEmbedder::builtin().ok();
        let known: HashMap<(Option<&str>, &str), usize> = before
            .iter()
            .flat_map(|(_, tables)| tables.iter().enumerate())
            .map(|(i, t)| ((t.schema.as_deref(), t.name.as_str()), i))
            .collect();
        let mut vocabulary = before.map_or_else(Arc::default, |(index, _)| Arc::clone(&index.vocabulary));
        let mut entries: Vec<Arc<TableTerms>> = Vec::with_capacity(tables.len());
        for table in tables {
            let kept = before.and_then(|(index, old)| {
                let at = *known.get(&(table.schema.as_deref(), table.name.as_str()))?;
                (old[at] == *table).then(|| Arc::clone(&index.entries[at]))
            });
            entries.push(match kept {
                Some(entry) => entry,
                None => Arc::new(TableTerms::new(table, Arc::make_mut(&mut vocabulary), embedder.as_ref())),
            });
        }
        let mut index = Self { entries, vocabulary, ..Self::default() };
        index.build_postings();
        // Terms of removed tables are kept until they are the majority.
        let used = index.posting_offsets.windows(2).filter(|w| w[0] < w[1]).count();
        if before.is_some() && used * 2 < index.vocabulary.words.len() {
            return Self::new(tables, None);
        }
        index.link_foreign_keys(tables);
        index
    }

    /// Builds the posting lists of all terms by counting sort.
    fn build_postings(&mut self) {
        let mut starts = vec![0_u32; self.vocabulary.words.len() + 1];
        for (word, _) in self.entries.iter().flat_map(|e| &e.terms) {
            starts[*word as usize + 1] += 1;
        }
        let all = self.entries.len() as f32;
        self.idf = starts[1..].iter().map(|tables| (1.0 + all / (*tables as f32 + 0.5)).ln()).collect();
        for word in 1..starts.len() {
            starts[word] += starts[word - 1];
        }
        let mut next = starts.clone();
        let count = starts.last().map_or(0, |last| *last as usize);
        self.postings = vec![TablePosting { table: 0, location: TermLocation::default() }; count];
        for (table, entry) in self.entries.iter().enumerate() {
            for (word, place) in &entry.terms {
                self.postings[next[*word as usize] as usize] = TablePosting { table: table as u32, location: *place };
                next[*word as usize] += 1;
            }
        }
        self.posting_offsets = starts;
        self.mean_columns = self.entries.iter().map(|e| e.columns as f32).sum::<f32>() / all.max(1.0);
    }

    /// Builds the graph of declared and inferred foreign keys.
    ///
    /// A key refers to a table of its own schema if there is one of that name.
    fn link_foreign_keys(&mut self, tables: &[&Table]) {
        let mut by_name: HashMap<String, Vec<u32>> = HashMap::with_capacity(tables.len());
        for (i, table) in tables.iter().enumerate() {
            by_name.entry(table.name.to_lowercase()).or_default().push(i as u32);
        }
        let mut ties: Vec<Vec<u32>> = vec![Vec::new(); tables.len()];
        for (i, table) in tables.iter().enumerate() {
            for key in &table.foreign_keys {
                let Some(named) = by_name.get(&key.table.to_lowercase()) else { continue };
                let own = named.iter().find(|&&t| tables[t as usize].schema == table.schema);
                let Some(&there) = own.or(named.first().filter(|_| named.len() == 1)) else { continue };
                if there as usize != i {
                    ties[i].push(there);
                    ties[there as usize].push(i as u32);
                }
            }
        }
        for ties in &mut ties {
            ties.sort_unstable();
            ties.dedup();
        }
        self.neighbours = ties;
        let mut schemas: HashMap<Option<&str>, u32> = HashMap::new();
        for (i, table) in tables.iter().enumerate() {
            let next = schemas.len() as u32;
            let schema = *schemas.entry(table.schema.as_deref()).or_insert(next);
            if schema == next {
                self.tables_by_schema.push(Vec::new());
            }
            self.tables_by_schema[schema as usize].push(i as u32);
            self.schema_by_table.push(schema);
        }
        self.by_name = tables.iter().enumerate().map(|(i, t)| (t.full_name(), i as u32)).collect();
    }

    /// Returns the approximate size of the index, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let of_entry = |e: &Arc<TableTerms>| {
            size_of::<TableTerms>() + e.terms.len() * 12 + (e.column_words.len() + e.column_ends.len()) * 4
        };
        self.entries.iter().map(of_entry).sum::<usize>()
            + self.vocabulary.vectors.len() * 4
            + self.vocabulary.words.iter().map(|w| w.len() + 64).sum::<usize>()
            + self.postings.len() * size_of::<TablePosting>()
            + self.posting_offsets.len() * 8
            + self.neighbours.iter().map(|t| 24 + t.len() * 4).sum::<usize>()
            + self.tables_by_schema.iter().map(|t| 24 + t.len() * 8).sum::<usize>()
            + self.by_name.keys().map(|n| n.len() + 40).sum::<usize>()
    }

    /// Returns the number of entries shared with another index.
    #[cfg(test)]
    pub(super) fn shared_with(&self, other: &InvertedIndex) -> usize {
        self.entries.iter().filter(|e| other.entries.iter().any(|o| Arc::ptr_eq(e, o))).count()
    }
}

impl TableTerms {
    /// Returns the terms of each column name.
    pub(super) fn column_terms(&self) -> impl Iterator<Item = &[u32]> {
        let mut begin = 0;
        self.column_ends.iter().map(move |end| {
            let words = &self.column_words[begin as usize..*end as usize];
            begin = *end;
            words
        })
    }

    fn new(table: &Table, vocabulary: &mut TermVocabulary, embedder: Option<&StaticEmbedder>) -> Self {
        let mut locations: HashMap<u32, TermLocation> = HashMap::new();
        let mut column_words: Vec<u32> = Vec::new();
        let mut column_ends: Vec<u32> = Vec::with_capacity(table.columns.len());
        let mut id = |word: &String| vocabulary.id(word, embedder);
        let name = tokenize::name_stems(&table.name);
        for word in &name {
            locations.entry(id(word)).or_default().in_name = true;
        }
        for word in table.schema.iter().flat_map(|s| tokenize::name_stems(s)) {
            locations.entry(id(&word)).or_default().in_schema = true;
        }
        for column in &table.columns {
            let words = tokenize::name_stems(&column.name);
            let count = words.len().min(usize::from(u8::MAX)) as u8;
            for word in &words {
                let word = id(word);
                column_words.push(word);
                let place = locations.entry(word).or_default();
                place.column_words = if place.column_words == 0 { count } else { place.column_words.min(count) };
            }
            column_ends.push(column_words.len() as u32);
        }
        let comments = table.comment.iter().chain(table.columns.iter().filter_map(|c| c.comment.as_ref()));
        for word in comments.flat_map(|c| tokenize::question_tokens(c)) {
            locations.entry(id(&word.stem)).or_default().in_comment = true;
        }
        let mut words: Vec<(u32, TermLocation)> = locations.into_iter().collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        Self {
            terms: words,
            name_words: name.len().min(usize::from(u8::MAX)) as u8,
            columns: table.columns.len() as u32,
            column_words,
            column_ends,
        }
    }
}
