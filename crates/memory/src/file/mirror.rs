//! What a search needs of the file, in memory: vectors, words, and who may be shown. It follows the file, whoever writes it.

use std::collections::HashMap;

use rusqlite::{Connection, Row};

use super::rows::{about, standing_named};
use crate::example::Standing;
use crate::numbers::Numbered;
use crate::rank::{Candidate, POOL};
use crate::sought::Sought;
use crate::vectors::{Centres, Query, Vectors, width};
use crate::words::{Words, words};

/// A database with at most so many examples has all of its own looked at, whatever the index says.
const OWN: usize = 4_096;
/// With a filter by database, so many rows are rather looked at one by one than sought in the index.
const FEW: usize = 65_536;
/// So many rows with rare words are weighed, those of the rarest first, and so many of the best taken.
const RARE: usize = 256;
const RARE_TAKEN: usize = 16;

/// One example, as far as searching needs it.
#[derive(Debug)]
struct Entry {
    number: i64,
    skeleton: u64,
    database: u32,
    dialect: u32,
    helped: u32,
    hurt: u32,
    standing: Standing,
    words: Box<[u32]>,
}

/// One that was found, by its number in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Near {
    pub(super) row: u32,
    pub(super) number: i64,
    pub(super) candidate: Candidate,
}

/// The examples of a file, as they were at its write `applied`.
#[derive(Debug)]
pub(super) struct Mirror {
    pub(super) applied: i64,
    pub(super) vectors: Vectors,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    rows: Numbered<i64, u32>,
    databases: HashMap<String, (u32, Vec<u32>)>,
    dialects: HashMap<String, u32>,
    words: Words,
}

impl Mirror {
    pub(super) fn new(dimensions: usize) -> Self {
        Self {
            applied: 0,
            vectors: Vectors::new(dimensions),
            entries: Vec::new(),
            free: Vec::new(),
            rows: Numbered::default(),
            databases: HashMap::new(),
            dialects: HashMap::new(),
            words: Words::default(),
        }
    }

    /// Catches up with the file. The connection must be in a transaction, so that it sees one state of it.
    pub(super) fn follow(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let now: i64 = about(connection, "sequence")?.unwrap_or(0);
        let dimensions: Option<i64> = about::<Option<i64>>(connection, "dimensions")?.flatten();
        let pruned: i64 = about(connection, "pruned")?.unwrap_or(0);
        let dimensions = dimensions.and_then(|dimensions| usize::try_from(dimensions).ok()).unwrap_or(0);
        let anew = self.applied == 0 || pruned > self.applied || dimensions != self.vectors.dimensions();
        if anew {
            *self = Self::new(dimensions);
        } else if now == self.applied {
            return Ok(());
        }
        const WHAT: &str = "SELECT number, database, dialect, standing, helped, hurt, scale, skeleton, words, codes
                            FROM example JOIN vector USING (number)";
        if anew {
            let mut statement = connection.prepare(&format!("{WHAT} ORDER BY number"))?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                self.put(row)?;
            }
            self.read_lists(connection)?;
        } else {
            let mut removed = connection.prepare_cached("SELECT number FROM removed WHERE changed > ?")?;
            for number in removed.query_map([self.applied], |row| row.get(0))? {
                self.remove(number?);
            }
            let mut statement = connection.prepare_cached(&format!("{WHAT} WHERE changed > ?"))?;
            let mut rows = statement.query([self.applied])?;
            while let Some(row) = rows.next()? {
                self.put(row)?;
            }
        }
        self.applied = now;
        Ok(())
    }

    fn put(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let number: i64 = row.get(0)?;
        let (scale, codes) = (row.get::<_, f64>(6)? as f32, row.get_ref(9)?.as_blob()?);
        if codes.len() != width(self.vectors.dimensions()) {
            return Err(rusqlite::Error::InvalidColumnType(9, "codes".into(), rusqlite::types::Type::Blob));
        }
        let words: Box<[u32]> =
            row.get_ref(8)?.as_blob()?.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect();
        let database = row.get_ref(1)?.as_str()?;
        let dialect = row.get_ref(2)?.as_str()?;
        // Counts change often and vectors hardly ever: a row that only counts more stays in its list.
        let known = self.rows.get(&number).copied();
        let same = known.filter(|at| {
            self.vectors.coded(*at) == Some((scale, codes))
                && self.entries[*at as usize].as_ref().is_some_and(|entry| {
                    entry.words == words && self.databases.get(database).is_some_and(|(id, _)| *id == entry.database)
                })
        });
        if same.is_none() && known.is_some() {
            self.remove(number);
        }
        let at = same.or_else(|| self.free.pop()).unwrap_or_else(|| {
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
            self.words.add(at, &words);
            self.vectors.put(at, scale, codes);
        }
        let ids = self.dialects.len() as u32;
        let dialect = match self.dialects.get(dialect) {
            Some(id) => *id,
            None => *self.dialects.entry(dialect.to_string()).or_insert(ids),
        };
        self.entries[at as usize] = Some(Entry {
            number,
            skeleton: row.get::<_, i64>(7)?.cast_unsigned(),
            database,
            dialect,
            helped: row.get(4)?,
            hurt: row.get(5)?,
            standing: standing_named(row.get_ref(3)?.as_str()?),
            words,
        });
        Ok(())
    }

    fn remove(&mut self, number: i64) {
        let Some(at) = self.rows.remove(&number) else { return };
        if let Some(entry) = self.entries.get_mut(at as usize).and_then(Option::take) {
            self.words.remove(at, &entry.words);
            if let Some((_, rows)) = self.databases.values_mut().find(|(id, _)| *id == entry.database) {
                rows.retain(|row| *row != at);
            }
        }
        self.vectors.remove(at);
        self.free.push(at);
    }

    /// Takes over the index that the file holds. One that does not fit is left: rows are found without it.
    fn read_lists(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement = connection.prepare("SELECT scale, codes, numbers FROM list ORDER BY list")?;
        let lists: Vec<(f32, Vec<u8>, Vec<u8>)> = statement
            .query_map([], |row| Ok((row.get::<_, f64>(0)? as f32, row.get(1)?, row.get(2)?)))?
            .collect::<Result<_, _>>()?;
        let centres = lists.iter().map(|(scale, codes, _)| (*scale, codes.as_slice()));
        let Some(centres) = Centres::read(self.vectors.dimensions(), centres) else { return Ok(()) };
        self.vectors.adopt(centres);
        let rows = &self.rows;
        let settled = lists.iter().zip(0..).flat_map(|((_, _, numbers), list)| {
            numbers
                .as_chunks()
                .0
                .iter()
                .filter_map(move |number| Some((*rows.get(&i64::from_le_bytes(*number))?, list)))
        });
        // From the end to the beginning, each row that leaves is the last one, and no other has to move up.
        let mut settled: Vec<(u32, u32)> = settled.collect();
        settled.sort_unstable_by_key(|(row, _)| std::cmp::Reverse(*row));
        self.vectors.settle(settled);
        Ok(())
    }

    /// The numbers in the file of some rows.
    pub(super) fn numbers(&self, rows: &[u32]) -> Vec<i64> {
        rows.iter().filter_map(|row| Some(self.entry(*row)?.number)).collect()
    }

    /// The scale and the codes of the example with this number, as long as it lies at this row: rows are given to others.
    pub(super) fn coded(&self, row: u32, number: i64) -> Option<(f32, &[u8])> {
        self.entry(row).filter(|entry| entry.number == number)?;
        self.vectors.coded(row)
    }

    fn entry(&self, row: u32) -> Option<&Entry> {
        self.entries.get(row as usize)?.as_ref()
    }

    /// The nearest by vectors alone.
    pub(super) fn nearest(&self, query: &Query, most: usize) -> Vec<Near> {
        let found = self.vectors.nearest(query, most, |_| true);
        found.into_iter().filter_map(|(row, similarity)| self.near(row, similarity, None, 0.0)).collect()
    }

    /// All that are worth ranking.
    pub(super) fn pool(&self, sought: &Sought<'_>, query: &Query) -> Vec<Near> {
        let own = self.databases.get(sought.database);
        let own_id = own.map(|(id, _)| *id);
        let own_rows = own.map_or(&[] as &[u32], |(_, rows)| rows);
        let dialect = sought.dialect.map(|dialect| self.dialects.get(dialect).copied());
        if dialect == Some(None) || (sought.only_database && own_rows.is_empty()) {
            return Vec::new();
        }
        let fits = |row: u32| {
            self.entry(row).is_some_and(|entry| {
                let standing = match entry.standing {
                    Standing::Verified => true,
                    Standing::Unverified => !sought.only_verified,
                    Standing::Stale | Standing::Rejected => false,
                };
                standing
                    && dialect.is_none_or(|dialect| dialect == Some(entry.dialect))
                    && (!sought.only_database || own_id == Some(entry.database))
            })
        };
        let most = POOL.max(2 * sought.most);
        let mut rows = if sought.only_database && own_rows.len() <= FEW {
            self.vectors.nearest_among(own_rows, query, most, fits)
        } else {
            let mut rows = self.vectors.nearest(query, most, fits);
            if own_rows.len() <= OWN {
                rows.extend(self.vectors.nearest_among(own_rows, query, most / 2, fits));
            }
            rows
        };
        let text = words(sought.question);
        let asked = self.words.asked(&text);
        let share = |row: u32| self.entry(row).map_or(0.0, |entry| asked.share(&entry.words));
        let mut rare: Vec<(u32, f32)> =
            self.words.rare(&text).take(RARE).filter(|row| fits(*row)).map(|row| (row, share(row))).collect();
        rare.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        rare.dedup_by_key(|(row, _)| *row);
        rows.extend(rare.iter().take(RARE_TAKEN).filter_map(|(row, _)| Some((*row, self.vectors.about(*row, query)?))));
        rows.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        rows.dedup_by_key(|(row, _)| *row);
        rows.into_iter().filter_map(|(row, similarity)| self.near(row, similarity, own_id, share(row))).collect()
    }

    fn near(&self, row: u32, similarity: f32, own: Option<u32>, words: f32) -> Option<Near> {
        let entry = self.entry(row)?;
        let candidate = Candidate {
            similarity,
            words,
            own: own == Some(entry.database),
            verified: entry.standing == Standing::Verified,
            helped: entry.helped,
            hurt: entry.hurt,
            skeleton: entry.skeleton,
        };
        Some(Near { row, number: entry.number, candidate })
    }

    /// How much memory it takes, in bytes, about.
    pub(super) fn bytes(&self) -> usize {
        let words: usize = self.entries.iter().flatten().map(|entry| size_of_val(&*entry.words) + 16).sum();
        self.vectors.bytes() + self.entries.capacity() * size_of::<Option<Entry>>() + words + self.rows.capacity() * 17
    }
}
