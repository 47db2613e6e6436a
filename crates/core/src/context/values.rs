//! Reads what text columns hold into an index, within bounds on rows, values and bytes.
//!
//! The bounds are counted and never timed, and tables and columns are read in the order of the schema: the same database gives
//! the same index on an idle machine and on a busy one. Columns that a bound leaves out are listed in the index. How it is
//! searched is in `querymend_sql::values`, how it is kept between runs in `cache.rs`.
//!
//! Columns that look like secrets or like data about people who could be reached by it are never read, by their names or by
//! what their values look like, unless the configuration allows them. What the policy denies is not in the schema.

mod cache;
mod private;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use querymend_engine::{Cancel, Engine, Error, Limits};
use querymend_sql::schema::{Column, Schema, Table, TableKind, Type};
use querymend_sql::values::{Held, cost};
use querymend_sql::{Cell, Context, NotIndexed, NotIndexedReason, Policy, Rows, Values, review};
use serde::{Deserialize, Serialize};

pub use cache::load;

use crate::config::duration;

/// Which values are read, how many, and how long they are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValuesSection {
    /// Off, no value is read.
    pub enabled: bool,
    /// The most values that are kept of a column. One that holds more is known in part.
    pub most_values: usize,
    /// The most rows that are looked at in a table. One that has more is known in part.
    pub rows: usize,
    /// Maximum number of rows that are read in all tables together. A table that would exceed it is not indexed.
    pub total_rows: usize,
    /// Maximum memory for the values of a column with their index, in bytes. A column that holds more is known in part.
    pub column_bytes: usize,
    /// Maximum memory for the values of a table with their index, in bytes. A column that would exceed it is not indexed.
    pub table_bytes: usize,
    /// The most memory that values may take in all, with their index, in bytes. A column that would exceed it is not indexed.
    pub bytes: usize,
    /// Safety limit on the time of the reading, against a database that hangs. Columns that it leaves out are reported.
    #[serde(with = "duration")]
    pub time: Duration,
    /// Columns that are not read: `table.column` or `column`, with `*` for any letters.
    pub exclude: Vec<String>,
    /// Columns that are read although they look like secrets.
    pub allow: Vec<String>,
    /// Whether the index is kept on disk between runs.
    pub cache: bool,
    /// Folder of the indexes that are kept. Without one the library keeps none; the command uses the user's cache folder.
    pub cache_folder: Option<PathBuf>,
    /// Maximum size of that folder, in bytes. The indexes that were not used for longest are evicted.
    pub cache_bytes: u64,
    /// Age at which the index of a database on a server is read again. That of a file is read again when the file changes.
    #[serde(with = "duration")]
    pub cache_ttl: Duration,
}

impl Default for ValuesSection {
    fn default() -> Self {
        Self {
            enabled: true,
            most_values: 5_000,
            rows: 100_000,
            total_rows: 2_000_000,
            column_bytes: 8 << 20,
            table_bytes: 32 << 20,
            bytes: 64 << 20,
            time: Duration::from_secs(60),
            exclude: Vec::new(),
            allow: Vec::new(),
            cache: true,
            cache_folder: None,
            cache_bytes: 256 << 20,
            cache_ttl: Duration::from_secs(60 * 60),
        }
    }
}

/// A longer value is a text that nobody compares with; a column that holds one is known in part.
const LONGEST_VALUE: usize = 120;
/// Stretches of a big table that are looked at.
const STRETCHES: usize = 4;
/// Safety limit on one statement. A statement reads a bounded number of rows, so that only a database that hangs exceeds it.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads what the columns of a database hold. Columns that a bound or a failure leaves out are listed in the result.
pub async fn read(engine: &dyn Engine, schema: &Schema, policy: &Policy, settings: &ValuesSection) -> Values {
    let mut reading = Reading {
        engine,
        context: Context { schema: Some(schema), dialect: engine.dialect(), policy, question: None },
        settings,
        deadline: Instant::now() + settings.time,
        rows_left: settings.total_rows,
        bytes_left: settings.bytes,
        ended: None,
        held: Vec::new(),
        not_indexed: Vec::new(),
    };
    if settings.enabled {
        for table in schema.tables().iter().filter(|t| t.kind == TableKind::Table) {
            reading.table(table).await;
        }
    }
    let Reading { held, not_indexed, .. } = reading;
    for column in not_indexed.iter().filter(|column| column.reason != NotIndexedReason::Sensitive) {
        tracing::debug!("{}.{} is not indexed: {}", column.table, column.column, column.reason.as_str());
    }
    Values::new(held).with_not_indexed(not_indexed)
}

/// Whether a column's values may be read at all, by its name and type.
pub fn is_readable(table: &Table, column: &Column, settings: &ValuesSection) -> bool {
    column.kind() == Type::Text
        && !is_listed(&settings.exclude, table, column)
        && !is_sensitive_by_name(table, column, settings)
}

fn is_sensitive_by_name(table: &Table, column: &Column, settings: &ValuesSection) -> bool {
    private::by_name(&column.name) && !is_listed(&settings.allow, table, column)
}

fn is_sensitive_by_values(table: &Table, column: &Column, values: &[String], settings: &ValuesSection) -> bool {
    private::by_look(values) && !is_listed(&settings.allow, table, column)
}

fn is_listed(list: &[String], table: &Table, column: &Column) -> bool {
    list.iter().any(|entry| private::fits(entry, &table.full_name(), &column.name))
}

/// Why a statement gave no rows, and what the database said about it.
type Unread = (NotIndexedReason, Option<String>);

struct Reading<'r> {
    engine: &'r dyn Engine,
    context: Context<'r>,
    settings: &'r ValuesSection,
    deadline: Instant,
    rows_left: usize,
    bytes_left: usize,
    /// Why nothing more is read: a database that hangs or is gone is not asked again for every column.
    ended: Option<Unread>,
    held: Vec<Held>,
    not_indexed: Vec<NotIndexed>,
}

impl Reading<'_> {
    async fn table(&mut self, table: &Table) {
        let mut columns: Vec<&Column> = Vec::new();
        for column in table.columns.iter().filter(|column| column.kind() == Type::Text) {
            if is_readable(table, column, self.settings) {
                columns.push(column);
            } else if !is_listed(&self.settings.exclude, table, column) {
                self.leave_out(table, column, (NotIndexedReason::Sensitive, None));
            }
        }
        if columns.is_empty() {
            return;
        }
        match self.rows_of(table).await {
            Ok((stretches, count)) => {
                let mut table_bytes_left = self.settings.table_bytes;
                for column in columns {
                    if let Err(unread) = self.column(table, column, &stretches, count, &mut table_bytes_left).await {
                        self.leave_out(table, column, unread);
                    }
                }
            }
            Err(unread) => columns.into_iter().for_each(|column| self.leave_out(table, column, unread.clone())),
        }
    }

    fn leave_out(&mut self, table: &Table, column: &Column, (reason, detail): Unread) {
        let (table, column) = (table.full_name(), column.name.clone());
        self.not_indexed.push(NotIndexed { table, column, reason, detail });
    }

    /// Decides which rows of a table are read, and counts them against the limit. Returns what stands in FROM, and how many rows
    /// the table has if all of them are read.
    async fn rows_of(&mut self, table: &Table) -> Result<(Vec<String>, Option<i64>), Unread> {
        let name = self.name(table);
        let rows = self.settings.rows;
        let counted =
            format!("SELECT COUNT(*) FROM (SELECT 1 FROM {name} LIMIT {}) AS some_rows", rows.saturating_add(1));
        let Some(Cell::Integer(count)) = first(self.ask(&counted, 1).await?) else {
            return Err((NotIndexedReason::Failed, Some("it did not say how many rows there are".into())));
        };
        let is_small = usize::try_from(count).is_ok_and(|count| count <= rows);
        let read = if is_small { usize::try_from(count).unwrap_or(rows) } else { rows };
        self.rows_left = self.rows_left.checked_sub(read).ok_or((NotIndexedReason::RowLimit, None))?;
        let stretches = if is_small { vec![name] } else { self.stretches(table, &name).await? };
        Ok((stretches, is_small.then_some(count)))
    }

    /// Where to look in a big table: its first rows and, where a key of numbers orders them, rows from places further on. What
    /// stands in FROM and behind it, up to LIMIT.
    async fn stretches(&mut self, table: &Table, name: &str) -> Result<Vec<String>, Unread> {
        let first = vec![name.to_string()];
        let [key] = table.primary_key.as_slice() else { return Ok(first) };
        if table.column(key).is_none_or(|c| c.kind() != Type::Integer) {
            return Ok(first);
        }
        let key = self.context.dialect.quoted(key);
        let ends = self.ask(&format!("SELECT MIN({key}), MAX({key}) FROM {name}"), 1).await?;
        let Some([Cell::Integer(least), Cell::Integer(most)]) = ends.rows.first().map(Vec::as_slice) else {
            return Ok(first);
        };
        let width = most.saturating_sub(*least) / STRETCHES as i64;
        let from = |at: usize| least.saturating_add(width.saturating_mul(at as i64));
        Ok((0..STRETCHES).map(|at| format!("{name} WHERE {key} >= {} ORDER BY {key}", from(at))).collect())
    }

    async fn column(
        &mut self,
        table: &Table,
        column: &Column,
        stretches: &[String],
        count: Option<i64>,
        table_bytes_left: &mut usize,
    ) -> Result<(), Unread> {
        let most = self.settings.most_values;
        let name = self.context.dialect.quoted(&column.name);
        let each = self.settings.rows / stretches.len().max(1);
        let mut values: Vec<String> = Vec::new();
        let mut whole = count.is_some();
        for stretch in stretches {
            let inner = format!("SELECT {name} FROM {stretch} LIMIT {}", each.max(1));
            let wanted = most.saturating_add(2);
            let sql = format!("SELECT DISTINCT {name} FROM ({inner}) AS some_rows LIMIT {wanted}");
            let rows = self.ask(&sql, wanted).await?;
            whole &= !rows.truncated;
            for cell in rows.rows.into_iter().flatten() {
                match cell {
                    Cell::Text(text) if text.len() <= LONGEST_VALUE => values.push(text),
                    Cell::Null => {}
                    // What is not text, or too long, is not kept, so that the rest is not all.
                    _ => whole = false,
                }
            }
        }
        values.sort_unstable();
        values.dedup();
        if is_sensitive_by_values(table, column, &values, self.settings) {
            return Err((NotIndexedReason::Sensitive, None));
        }
        let fitting = fitting(&values, most, self.settings.column_bytes);
        whole &= fitting.count == values.len();
        values.truncate(fitting.count);
        if values.is_empty() {
            return Ok(());
        }
        let left = (*table_bytes_left).min(self.bytes_left);
        if fitting.bytes > left {
            return Err((NotIndexedReason::ByteLimit, None));
        }
        *table_bytes_left -= fitting.bytes;
        self.bytes_left -= fitting.bytes;
        let unique = whole && count == i64::try_from(values.len()).ok();
        let (table_name, column_name) = (table.full_name(), column.name.clone());
        let mut held = Held { table: table_name, column: column_name, values, whole, caseless: false, unique };
        if held.whole {
            match self.caseless(table, &name, &held.values).await {
                Ok(caseless) => held.caseless = caseless,
                // A timeout would make the column known in part on a busy machine only.
                Err(unread) if unread.0.is_transient() => return Err(unread),
                Err(_) => held.whole = false,
            }
        }
        self.held.push(held);
        Ok(())
    }

    /// Whether the column takes letters of another case for the same.
    async fn caseless(&mut self, table: &Table, column: &str, values: &[String]) -> Result<bool, Unread> {
        let swap = |value: &String| -> String {
            value
                .chars()
                .map(|c| if c.is_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                .collect()
        };
        let other = values
            .iter()
            .map(|value| (value, swap(value)))
            .find(|(value, other)| value.as_str() != other && value.is_ascii() && values.binary_search(other).is_err());
        // Without letters there is no case.
        let Some((_, other)) = other else { return Ok(false) };
        let text = self.context.dialect.text(&other);
        let sql = format!("SELECT 1 FROM {} WHERE {column} = {text} LIMIT 1", self.name(table));
        self.ask(&sql, 1).await.map(|rows| !rows.rows.is_empty())
    }

    fn name(&self, table: &Table) -> String {
        let parts = [table.schema.as_deref(), Some(table.name.as_str())];
        parts.into_iter().flatten().map(|part| self.context.dialect.quoted(part)).collect::<Vec<_>>().join(".")
    }

    /// Returns the rows of a query. After a timeout or a lost connection nothing more is asked.
    async fn ask(&mut self, sql: &str, rows: usize) -> Result<Rows, Unread> {
        if let Some(unread) = &self.ended {
            return Err(unread.clone());
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.ended.insert((NotIndexedReason::TimedOut, None)).clone());
        }
        let Ok(query) = review(sql, &self.context).approve() else {
            return Err((NotIndexedReason::Failed, Some("the query that reads it is not approved".into())));
        };
        let limits = Limits {
            rows,
            bytes: self.settings.column_bytes,
            time: left.min(STATEMENT_TIMEOUT),
            memory: usize::MAX,
            steps: None,
        };
        match self.engine.execute(&query, &limits, &Cancel::new()).await {
            Ok(rows) => Ok(rows),
            Err(Error::TimedOut { .. }) => Err(self.ended.insert((NotIndexedReason::TimedOut, None)).clone()),
            Err(error @ Error::Unavailable { .. }) => {
                Err(self.ended.insert((NotIndexedReason::Unavailable, Some(error.to_string()))).clone())
            }
            Err(error) => Err((NotIndexedReason::Failed, Some(error.to_string()))),
        }
    }
}

/// The first values that are within the limits of a column, and the memory that they take.
struct Fitting {
    count: usize,
    bytes: usize,
}

fn fitting(values: &[String], most: usize, most_bytes: usize) -> Fitting {
    let mut fitting = Fitting { count: 0, bytes: 0 };
    for value in values.iter().take(most) {
        let bytes = fitting.bytes + cost(value);
        if bytes > most_bytes {
            break;
        }
        fitting = Fitting { count: fitting.count + 1, bytes };
    }
    fitting
}

fn first(rows: Rows) -> Option<Cell> {
    rows.rows.into_iter().next()?.into_iter().next()
}
