//! The words of a catalogue's tables, with where they stand, and how the tables hang together.

use std::collections::HashMap;
use std::sync::Arc;

use querymend_model::Static;
use querymend_sql::schema::Table;

use super::words;

/// What is known about the words of one table. It depends on that table alone, so it is kept as long as the table stays as it is.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    /// Each word once, with where it stands.
    pub(super) words: Vec<(u32, Place)>,
    /// How many words the name has.
    pub(super) name_words: u8,
    /// How many columns there are.
    pub(super) columns: u32,
    /// The words of each column's name, one column after the other.
    pub(super) column_words: Vec<u32>,
    /// Where in `column_words` each column ends.
    pub(super) column_ends: Vec<u32>,
}

/// Where in a table a word stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) in_name: bool,
    pub(super) in_comment: bool,
    pub(super) in_schema: bool,
    /// The fewest words that a column's name with this word has; 0 if no column has it.
    pub(super) column_words: u8,
}

/// A word's place in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    pub(super) table: u32,
    pub(super) place: Place,
}

/// All words of a catalogue. It only grows: words of tables that are gone find nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Vocabulary {
    pub(super) ids: HashMap<Arc<str>, u32>,
    pub(super) words: Vec<Arc<str>>,
    /// What each word means, one vector after the other.
    pub(super) vectors: Vec<f32>,
    pub(super) dimensions: usize,
}

impl Vocabulary {
    fn id(&mut self, word: &str, embedder: Option<&Static>) -> u32 {
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

/// The words of a catalogue's tables, and how the tables hang together.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    pub(super) entries: Vec<Arc<Entry>>,
    pub(super) vocabulary: Arc<Vocabulary>,
    /// Where the postings of each word begin.
    pub(super) starts: Vec<u32>,
    pub(super) postings: Vec<Posting>,
    /// How rare each word is.
    pub(super) rarity: Vec<f32>,
    /// Tables that keys tie to each table, in both directions.
    pub(super) ties: Vec<Vec<u32>>,
    /// The number of each table's schema, and the tables of each schema.
    pub(super) schema_of: Vec<u32>,
    pub(super) in_schema: Vec<Vec<u32>>,
    pub(super) by_name: HashMap<String, u32>,
    pub(super) mean_columns: f32,
}

impl Index {
    /// Reads the words of the tables. Those that `before` has under the same name and as they are now are taken from there.
    pub(super) fn new(tables: &[&Table], before: Option<(&Index, &[&Table])>) -> Self {
        let embedder = Static::builtin().ok();
        let known: HashMap<(Option<&str>, &str), usize> = before
            .iter()
            .flat_map(|(_, tables)| tables.iter().enumerate())
            .map(|(i, t)| ((t.schema.as_deref(), t.name.as_str()), i))
            .collect();
        let mut vocabulary = before.map_or_else(Arc::default, |(index, _)| Arc::clone(&index.vocabulary));
        let mut entries: Vec<Arc<Entry>> = Vec::with_capacity(tables.len());
        for table in tables {
            let kept = before.and_then(|(index, old)| {
                let at = *known.get(&(table.schema.as_deref(), table.name.as_str()))?;
                (old[at] == *table).then(|| Arc::clone(&index.entries[at]))
            });
            entries.push(match kept {
                Some(entry) => entry,
                None => Arc::new(Entry::new(table, Arc::make_mut(&mut vocabulary), embedder.as_ref())),
            });
        }
        let mut index = Self { entries, vocabulary, ..Self::default() };
        index.lay_out();
        // Words of tables that are gone are kept until they are the most.
        let used = index.starts.windows(2).filter(|w| w[0] < w[1]).count();
        if before.is_some() && used * 2 < index.vocabulary.words.len() {
            return Self::new(tables, None);
        }
        index.tie(tables);
        index
    }

    /// Sorts the words of all tables by word.
    fn lay_out(&mut self) {
        let mut starts = vec![0_u32; self.vocabulary.words.len() + 1];
        for (word, _) in self.entries.iter().flat_map(|e| &e.words) {
            starts[*word as usize + 1] += 1;
        }
        let all = self.entries.len() as f32;
        self.rarity = starts[1..].iter().map(|tables| (1.0 + all / (*tables as f32 + 0.5)).ln()).collect();
        for word in 1..starts.len() {
            starts[word] += starts[word - 1];
        }
        let mut next = starts.clone();
        let count = starts.last().map_or(0, |last| *last as usize);
        self.postings = vec![Posting { table: 0, place: Place::default() }; count];
        for (table, entry) in self.entries.iter().enumerate() {
            for (word, place) in &entry.words {
                self.postings[next[*word as usize] as usize] = Posting { table: table as u32, place: *place };
                next[*word as usize] += 1;
            }
        }
        self.starts = starts;
        self.mean_columns = self.entries.iter().map(|e| e.columns as f32).sum::<f32>() / all.max(1.0);
    }

    /// Finds which tables keys tie together, declared or inferred. A key names a table of its own schema, if there is one.
    fn tie(&mut self, tables: &[&Table]) {
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
        self.ties = ties;
        let mut schemas: HashMap<Option<&str>, u32> = HashMap::new();
        for (i, table) in tables.iter().enumerate() {
            let next = schemas.len() as u32;
            let schema = *schemas.entry(table.schema.as_deref()).or_insert(next);
            if schema == next {
                self.in_schema.push(Vec::new());
            }
            self.in_schema[schema as usize].push(i as u32);
            self.schema_of.push(schema);
        }
        self.by_name = tables.iter().enumerate().map(|(i, t)| (t.full_name(), i as u32)).collect();
    }

    /// How many bytes it takes, nearly.
    pub(super) fn bytes(&self) -> usize {
        let of_entry =
            |e: &Arc<Entry>| size_of::<Entry>() + e.words.len() * 12 + (e.column_words.len() + e.column_ends.len()) * 4;
        self.entries.iter().map(of_entry).sum::<usize>()
            + self.vocabulary.vectors.len() * 4
            + self.vocabulary.words.iter().map(|w| w.len() + 64).sum::<usize>()
            + self.postings.len() * size_of::<Posting>()
            + self.starts.len() * 8
            + self.ties.iter().map(|t| 24 + t.len() * 4).sum::<usize>()
            + self.in_schema.iter().map(|t| 24 + t.len() * 8).sum::<usize>()
            + self.by_name.keys().map(|n| n.len() + 40).sum::<usize>()
    }

    /// How many entries are the very ones of another index.
    #[cfg(test)]
    pub(super) fn shared_with(&self, other: &Index) -> usize {
        self.entries.iter().filter(|e| other.entries.iter().any(|o| Arc::ptr_eq(e, o))).count()
    }
}

impl Entry {
    /// The words of each column's name.
    pub(super) fn columns_of_words(&self) -> impl Iterator<Item = &[u32]> {
        let mut begin = 0;
        self.column_ends.iter().map(move |end| {
            let words = &self.column_words[begin as usize..*end as usize];
            begin = *end;
            words
        })
    }

    fn new(table: &Table, vocabulary: &mut Vocabulary, embedder: Option<&Static>) -> Self {
        let mut places: HashMap<u32, Place> = HashMap::new();
        let mut column_words: Vec<u32> = Vec::new();
        let mut column_ends: Vec<u32> = Vec::with_capacity(table.columns.len());
        let mut id = |word: &String| vocabulary.id(word, embedder);
        let name = words::of_name(&table.name);
        for word in &name {
            places.entry(id(word)).or_default().in_name = true;
        }
        for word in table.schema.iter().flat_map(|s| words::of_name(s)) {
            places.entry(id(&word)).or_default().in_schema = true;
        }
        for column in &table.columns {
            let words = words::of_name(&column.name);
            let count = words.len().min(usize::from(u8::MAX)) as u8;
            for word in &words {
                let word = id(word);
                column_words.push(word);
                let place = places.entry(word).or_default();
                place.column_words = if place.column_words == 0 { count } else { place.column_words.min(count) };
            }
            column_ends.push(column_words.len() as u32);
        }
        let comments = table.comment.iter().chain(table.columns.iter().filter_map(|c| c.comment.as_ref()));
        for word in comments.flat_map(|c| words::of_question(c)) {
            places.entry(id(&word.stem)).or_default().in_comment = true;
        }
        let mut words: Vec<(u32, Place)> = places.into_iter().collect();
        words.sort_unstable_by_key(|(word, _)| *word);
        Self {
            words,
            name_words: name.len().min(usize::from(u8::MAX)) as u8,
            columns: table.columns.len() as u32,
            column_words,
            column_ends,
        }
    }
}
