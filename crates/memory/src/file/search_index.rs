//! In-memory search index of a file: vectors, tokens and eligibility.
//!
//! It is synchronized with the file, which other processes may write.

use std::collections::HashMap;

use rusqlite::{Connection, Row};

use super::rows::{get_meta, parse_status};
use crate::bm25::{Bm25Index, token_hashes};
use crate::example::VerificationStatus;
use crate::int_map::IntMap;
use crate::query::ExampleQuery;
use crate::rank::{CANDIDATE_LIMIT, ExampleCandidate};
use crate::vector_index::{Centroids, IvfIndex, QuantizedQuery, padded_width};

/// Maximum number of examples of the queried database that are scanned exhaustively in addition to
/// the index.
const MAX_OWN_SCANNED: usize = 4_096;
/// Maximum number of rows that a search restricted to one database scans instead of using the
/// index.
const MAX_FILTERED_SCANNED: usize = 65_536;
/// Number of rows with rare tokens that are scored, rarest token first, and number of the best that
/// become candidates.
const RARE_WORD_CANDIDATES: usize = 256;
const RARE_WORD_LIMIT: usize = 16;

/// Attributes of an example that searches need.
#[derive(Debug)]
struct IndexedExample {
    number: i64,
    template_hash: u64,
    database: u32,
    dialect: u32,
    helped: u32,
    hurt: u32,
    status: VerificationStatus,
    token_hashes: Box<[u32]>,
}

/// Search hit, identified by its row and its number in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexHit {
    pub(super) row: u32,
    pub(super) number: i64,
    pub(super) candidate: ExampleCandidate,
}

/// Search index over the examples of a file, as of write `last_sequence`.
#[derive(Debug)]
pub(super) struct SearchIndex {
    pub(super) last_sequence: i64,
    pub(super) vectors: IvfIndex,
    entries: Vec<Option<IndexedExample>>,
    free_rows: Vec<u32>,
    rows: IntMap<i64, u32>,
    databases: HashMap<String, (u32, Vec<u32>)>,
    dialects: HashMap<String, u32>,
    bm25: Bm25Index,
}

impl SearchIndex {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            last_sequence: 0,
            vectors: IvfIndex::new(dimensions),
            entries: Vec::new(),
            free_rows: Vec::new(),
            rows: IntMap::default(),
            databases: HashMap::new(),
            dialects: HashMap::new(),
            bm25: Bm25Index::default(),
        }
    }

    /// Applies all changes since the last synchronization.
    ///
    /// The connection must be in a transaction, so that it sees a consistent snapshot.
    pub(super) fn sync(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let now: i64 = get_meta(connection, "sequence")?.unwrap_or(0);
        let dimensions: Option<i64> = get_meta::<Option<i64>>(connection, "dimensions")?.flatten();
        let pruned: i64 = get_meta(connection, "pruned")?.unwrap_or(0);
        let dimensions = dimensions.and_then(|dimensions| usize::try_from(dimensions).ok()).unwrap_or(0);
        let full_reload =
            self.last_sequence == 0 || pruned > self.last_sequence || dimensions != self.vectors.dimensions();
        if full_reload {
            *self = Self::new(dimensions);
        } else if now == self.last_sequence {
            return Ok(());
        }
        const WHAT: &str = "SELECT number, database, dialect, standing, helped, hurt, scale, skeleton, words, codes
                            FROM example JOIN vector USING (number)";
        if full_reload {
            let mut statement = connection.prepare(&format!("{WHAT} ORDER BY number"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                self.insert(row)?;
            }
            self.load_lists(connection)?;
        } else {
            let mut removed = connection.prepare_cached("SELECT number FROM removed WHERE changed > ?")?;
            for number in removed.query_map([self.last_sequence], |row| row.get(0))? {
                self.remove(number?);
            }
            let mut statement = connection.prepare_cached(&format!("{WHAT} WHERE changed > ?"))?;
            let mut rows = statement.query([self.last_sequence])?;
            while let Some(row) = rows.next()? {
                self.insert(row)?;
            }
        }
        self.last_sequence = now;
        Ok(())
    }

    fn insert(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let number: i64 = row.get(0)?;
        let (scale, codes) = (row.get::<_, f64>(6)? as f32, row.get_ref(9)?.as_blob()?);
        if codes.len() != padded_width(self.vectors.dimensions()) {
            return Err(rusqlite::Error::InvalidColumnType(9, "codes".into(), rusqlite::types::Type::Blob));
        }
        let words: Box<[u32]> =
            row.get_ref(8)?.as_blob()?.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
        let database = row.get_ref(1)?.as_str()?;
        let dialect = row.get_ref(2)?.as_str()?;
        // Counters change often and vectors rarely: a row with the same vector stays in its list.
        let known = self.rows.get(&number).copied();
        let same = known.filter(|at| {
            self.vectors.quantized(*at) == Some((scale, codes))
                && self.entries[*at as usize].as_ref().is_some_and(|entry| {
                    entry.token_hashes == words
                        && self.databases.get(database).is_some_and(|(id, _)| *id == entry.database)
                })
        });
        if same.is_none() && known.is_some() {
            self.remove(number);
        }
        let at = same.or_else(|| self.free_rows.pop()).unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        let ids = self.databases.len() as u32;
        if !self.databases.contains_key(database) {
            self.databases.insert(database.to_string(), (ids, Vec::new()));
        }
        let own = self.databases.get_mut(database);
        let database = own.as_ref().map_or(ids, |own| own.0);
        if same.is_none() {
            if let Some((_, rows)) = own {
                rows.push(at);
            }
            self.rows.insert(number, at);
            self.bm25.add(at, &words);
            self.vectors.insert(at, scale, codes);
        }
        let ids = self.dialects.len() as u32;
        let dialect = match self.dialects.get(dialect) {
            Some(id) => *id,
            None => *self.dialects.entry(dialect.to_string()).or_insert(ids),
        };
        self.entries[at as usize] = Some(IndexedExample {
            number,
            template_hash: row.get::<_, i64>(7)?.cast_unsigned(),
            database,
            dialect,
            helped: row.get(4)?,
            hurt: row.get(5)?,
            status: parse_status(row.get_ref(3)?.as_str()?),
            token_hashes: words,
        });
        Ok(())
    }

    fn remove(&mut self, number: i64) {
        let Some(at) = self.rows.remove(&number) else { return };
        if let Some(entry) = self.entries.get_mut(at as usize).and_then(Option::take) {
            self.bm25.remove(at, &entry.token_hashes);
            if let Some((_, rows)) = self.databases.values_mut().find(|(id, _)| *id == entry.database) {
                rows.retain(|row| *row != at);
            }
        }
        self.vectors.remove(at);
        self.free_rows.push(at);
    }

    /// Loads the IVF lists stored in the file; an index that does not match is ignored, because
    /// rows are found without it.
    fn load_lists(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare("SELECT scale, codes, numbers FROM list ORDER BY list")?;
        let lists: Vec<(f32, Vec<u8>, Vec<u8>)> = statement
            .query_map([], |row| Ok((row.get::<_, f64>(0)? as f32, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let centroids = lists.iter().map(|(scale, codes, _)| (*scale, codes.as_slice()));
        let Some(centroids) = Centroids::from_parts(self.vectors.dimensions(), centroids) else { return Ok(()) };
        self.vectors.set_centroids(centroids);
        let rows = &self.rows;
        let settled = lists.iter().zip(0..).flat_map(|((_, _, numbers), list)| {
            numbers
                .as_chunks()
                .0
                .iter()
                .filter_map(move |number| Some((*rows.get(&i64::from_le_bytes(*number))?, list)))
        });
        // In descending order, each removed row is the last one, so that no other row has to be
        // moved.
        let mut settled: Vec<(u32, u32)> = settled.collect();
        settled.sort_unstable_by_key(|(row, _)| std::cmp::Reverse(*row));
        self.vectors.assign(settled);
        Ok(())
    }

    /// Maps rows to the numbers of their examples in the file.
    pub(super) fn example_numbers(&self, rows: &[u32]) -> Vec<i64> {
        rows.iter().filter_map(|row| Some(self.entry(*row)?.number)).collect()
    }

    /// Returns the scale and codes of an example, or `None` if its row has been reused for another
    /// one.
    pub(super) fn quantized(&self, row: u32, number: i64) -> Option<(f32, &[u8])> {
        self.entry(row).filter(|entry| entry.number == number)?;
        self.vectors.quantized(row)
    }

    fn entry(&self, row: u32) -> Option<&IndexedExample> {
        self.entries.get(row as usize)?.as_ref()
    }

    /// Returns the nearest examples by vector alone.
    pub(super) fn nearest(&self, query: &QuantizedQuery, limit: usize) -> Vec<IndexHit> {
        let found = self.vectors.nearest(query, limit, |_| true);
        found.into_iter().filter_map(|(row, similarity)| self.hit(row, similarity, None, 0.0)).collect()
    }

    /// Returns all candidates for ranking: nearest vectors, the database's own examples and
    /// rare-token matches.
    pub(super) fn candidates(&self, example_query: &ExampleQuery<'_>, query: &QuantizedQuery) -> Vec<IndexHit> {
        let own = self.databases.get(example_query.database);
        let own_id = own.map(|(id, _)| *id);
        let own_rows = own.map_or(&[] as &[u32], |(_, rows)| rows);
        let dialect = example_query.dialect.map(|dialect| self.dialects.get(dialect).copied());
        if dialect == Some(None) || (example_query.only_database && own_rows.is_empty()) {
            return Vec::new();
        }
        let is_eligible = |row: u32| {
            self.entry(row).is_some_and(|entry| {
                let standing = match entry.status {
                    VerificationStatus::Verified => true,
                    VerificationStatus::Unverified => !example_query.only_verified,
                    VerificationStatus::Stale | VerificationStatus::Rejected => false,
                };
                standing
                    && dialect.is_none_or(|dialect| dialect == Some(entry.dialect))
                    && (!example_query.only_database || own_id == Some(entry.database))
            })
        };
        let most = CANDIDATE_LIMIT.max(2 * example_query.limit);
        let mut rows = if example_query.only_database && own_rows.len() <= MAX_FILTERED_SCANNED {
            self.vectors.nearest_among(own_rows, query, most, is_eligible)
        } else {
            let mut rows = self.vectors.nearest(query, most, is_eligible);
            if own_rows.len() <= MAX_OWN_SCANNED {
                rows.extend(self.vectors.nearest_among(own_rows, query, most / 2, is_eligible));
            }
            rows
        };
        let text = token_hashes(example_query.question);
        let bm25_query = self.bm25.query(&text);
        let word_score =
            |row: u32| self.entry(row).map_or(0.0, |entry| bm25_query.normalized_score(&entry.token_hashes));
        let mut rare: Vec<(u32, f32)> = self
            .bm25
            .rare_term_rows(&text)
            .take(RARE_WORD_CANDIDATES)
            .filter(|row| is_eligible(*row))
            .map(|row| (row, word_score(row)))
            .collect();
        rare.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        rare.dedup_by_key(|(row, _)| *row);
        rows.extend(
            rare.iter()
                .take(RARE_WORD_LIMIT)
                .filter_map(|(row, _)| Some((*row, self.vectors.approximate_similarity(*row, query)?))),
        );
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        rows.dedup_by_key(|(row, _)| *row);
        rows.into_iter().filter_map(|(row, similarity)| self.hit(row, similarity, own_id, word_score(row))).collect()
    }

    fn hit(&self, row: u32, similarity: f32, own: Option<u32>, words: f32) -> Option<IndexHit> {
        let entry = self.entry(row)?;
        let candidate = ExampleCandidate {
            similarity,
            word_score: words,
            is_same_database: own == Some(entry.database),
            is_verified: entry.status == VerificationStatus::Verified,
            helped: entry.helped,
            hurt: entry.hurt,
            template_hash: entry.template_hash,
        };
        Some(IndexHit { row, number: entry.number, candidate })
    }

    /// Returns the approximate memory use, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let words: usize = self.entries.iter().flatten().map(|entry| size_of_val(&*entry.token_hashes) + 16).sum();
        self.vectors.bytes()
            + self.entries.capacity() * size_of::<Option<IndexedExample>>()
            + words
            + self.rows.capacity() * 17
    }
}
