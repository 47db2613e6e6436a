//! Samples the values of text columns into an index, limited by rows, values and bytes.
//!
//! The limits are counted and never timed, and tables and columns are read in schema order, so the
//! same database results in the same index regardless of machine load. Columns that a limit
//! excludes are listed in the index. Lookup is in `querymend_sql::schema::value_index`, persistence
//! between runs in `disk_cache.rs`.
//!
//! Columns that look like secrets or personal contact data, by name or by values, are never read
//! unless the configuration allows them. Columns that the policy denies are not part of the schema.

mod disk_cache;
use crate::linking::sensitive_columns;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use querymend_engine::{CancelFlag, Engine, Error, Limits};
use querymend_sql::schema::value_index::{ColumnValues, estimated_bytes};
use querymend_sql::schema::{Column, Schema, Table, TableKind, Type};
use querymend_sql::{Cell, NotIndexed, NotIndexedReason, Policy, ReviewContext, Rows, ValueIndex, review};
use serde::{Deserialize, Serialize};

pub use disk_cache::load_or_sample;

use crate::config::duration;

/// Selection, limits and caching of sampled values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValuesSection {
    /// `false` to sample no values.
    pub enabled: bool,
    /// Maximum number of values indexed per column. Columns with more are indexed partially.
    pub max_values_per_column: usize,
    /// Maximum number of rows read per table. Tables with more are indexed partially.
    pub rows: usize,
    /// Maximum number of rows read from all tables together. A table that would exceed it is not
    /// indexed.
    pub total_rows: usize,
    /// Maximum memory for the values of a column with their index, in bytes. Columns with more are
    /// indexed partially.
    pub column_bytes: usize,
    /// Maximum memory for the values of a table with their index, in bytes. A column that would
    /// exceed it is not indexed.
    pub table_bytes: usize,
    /// Maximum memory for all values with their index, in bytes. A column that would exceed it is
    /// not indexed.
    pub bytes: usize,
    /// Timeout of the sampling, a safety limit against a hanging database. Columns that it excludes
    /// are reported.
    #[serde(with = "duration")]
    pub time: Duration,
    /// Columns that are not read: `table.column` or `column`, with `*` as wildcard.
    pub exclude: Vec<String>,
    /// Columns that are read although they look sensitive.
    pub allow: Vec<String>,
    /// `true` to cache the index on disk between runs.
    pub cache: bool,
    /// Directory of the cached indexes. If absent, the library does not cache; the command uses the
    /// user's cache directory.
    pub cache_folder: Option<PathBuf>,
    /// Maximum size of that directory, in bytes. The least recently used indexes are evicted.
    pub cache_bytes: u64,
    /// Time to live of a cached index of a database server. The index of a database file is
    /// invalidated when the file changes.
    #[serde(with = "duration")]
    pub cache_ttl: Duration,
}

impl Default for ValuesSection {
    fn default() -> Self {
        Self {
            enabled: true,
            max_values_per_column: 5_000,
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

/// Maximum length of an indexed value, in bytes. Longer text is not used in comparisons; a column
/// that contains it is indexed partially.
const MAX_VALUE_BYTES: usize = 120;
/// Number of key ranges sampled from a large table.
const SAMPLE_RANGES: usize = 4;
/// Timeout of one statement. Statements read a bounded number of rows, so only a hanging database
/// exceeds it.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Samples the text columns of a database. Columns excluded by a limit or a failure are listed in
/// the result.
pub async fn sample_values(
    engine: &dyn Engine,
    schema: &Schema,
    policy: &Policy,
    settings: &ValuesSection,
) -> ValueIndex {
    let mut sampler = ValueSampler {
        engine,
        context: ReviewContext { schema: Some(schema), dialect: engine.dialect(), policy, question: None },
        settings,
        deadline: Instant::now() + settings.time,
        rows_left: settings.total_rows,
        bytes_left: settings.bytes,
        aborted: None,
        columns: Vec::new(),
        not_indexed: Vec::new(),
    };
    if settings.enabled {
        for table in schema.tables().iter().filter(|t| t.kind == TableKind::Table) {
            sampler.sample_table(table).await;
        }
    }
    let ValueSampler { columns: held, not_indexed, .. } = sampler;
    for column in not_indexed.iter().filter(|column| column.reason != NotIndexedReason::Sensitive) {
        tracing::debug!("{}.{} is not indexed: {}", column.table, column.column, column.reason.as_str());
    }
    ValueIndex::new(held).with_not_indexed(not_indexed)
}

/// Returns whether the values of a column may be read, by its name and type.
pub fn is_readable(table: &Table, column: &Column, settings: &ValuesSection) -> bool {
    column.kind() == Type::Text
        && !is_listed(&settings.exclude, table, column)
        && !is_sensitive_by_name(table, column, settings)
}

fn is_sensitive_by_name(table: &Table, column: &Column, settings: &ValuesSection) -> bool {
    sensitive_columns::is_sensitive_name(&column.name) && !is_listed(&settings.allow, table, column)
}

fn is_sensitive_by_values(table: &Table, column: &Column, values: &[String], settings: &ValuesSection) -> bool {
    sensitive_columns::has_sensitive_values(values) && !is_listed(&settings.allow, table, column)
}

fn is_listed(list: &[String], table: &Table, column: &Column) -> bool {
    list.iter().any(|entry| sensitive_columns::matches_entry(entry, &table.full_name(), &column.name))
}

/// Reason that a statement returned no rows, with the database message.
type SkipReason = (NotIndexedReason, Option<String>);

struct ValueSampler<'r> {
    engine: &'r dyn Engine,
    context: ReviewContext<'r>,
    settings: &'r ValuesSection,
    deadline: Instant,
    rows_left: usize,
    bytes_left: usize,
    /// Reason that sampling was aborted. A hanging or lost database is not queried again for every
    /// column.
    aborted: Option<SkipReason>,
    columns: Vec<ColumnValues>,
    not_indexed: Vec<NotIndexed>,
}

impl ValueSampler<'_> {
    async fn sample_table(&mut self, table: &Table) {
        let mut columns: Vec<&Column> = Vec::new();
        for column in table.columns.iter().filter(|column| column.kind() == Type::Text) {
            if is_readable(table, column, self.settings) {
                columns.push(column);
            } else if !is_listed(&self.settings.exclude, table, column) {
                self.skip_column(table, column, (NotIndexedReason::Sensitive, None));
            }
        }
        if columns.is_empty() {
            return;
        }
        match self.plan_rows(table).await {
            Ok((stretches, count)) => {
                let mut table_bytes_left = self.settings.table_bytes;
                for column in columns {
                    if let Err(unread) =
                        self.sample_column(table, column, &stretches, count, &mut table_bytes_left).await
                    {
                        self.skip_column(table, column, unread);
                    }
                }
            }
            Err(unread) => columns.into_iter().for_each(|column| self.skip_column(table, column, unread.clone())),
        }
    }

    fn skip_column(&mut self, table: &Table, column: &Column, (reason, detail): SkipReason) {
        let (table, column) = (table.full_name(), column.name.clone());
        self.not_indexed.push(NotIndexed { table, column, reason, detail });
    }

    /// Selects the rows of a table to read, and deducts them from the limit.
    ///
    /// Returns the FROM clauses, and the row count if all rows are read.
    async fn plan_rows(&mut self, table: &Table) -> Result<(Vec<String>, Option<i64>), SkipReason> {
        let name = self.qualified_name(table);
        let rows = self.settings.rows;
        let counted =
            format!("SELECT COUNT(*) FROM (SELECT 1 FROM {name} LIMIT {}) AS some_rows", rows.saturating_add(1));
        let Some(Cell::Integer(count)) = first_cell(self.query(&counted, 1).await?) else {
            return Err((NotIndexedReason::Failed, Some("it did not return the number of rows".into())));
        };
        let is_small = usize::try_from(count).is_ok_and(|count| count <= rows);
        let read = if is_small { usize::try_from(count).unwrap_or(rows) } else { rows };
        self.rows_left = self.rows_left.checked_sub(read).ok_or((NotIndexedReason::RowLimit, None))?;
        let stretches = if is_small { vec![name] } else { self.sample_ranges(table, &name).await? };
        Ok((stretches, is_small.then_some(count)))
    }

    /// Returns the sample ranges of a large table.
    ///
    /// These are its first rows and, if it has an integer key, rows from later key ranges. Each
    /// range is the part of a query from the table name up to LIMIT.
    async fn sample_ranges(&mut self, table: &Table, name: &str) -> Result<Vec<String>, SkipReason> {
        let first = vec![name.to_string()];
        let [key] = table.primary_key.as_slice() else { return Ok(first) };
        if table.column(key).is_none_or(|c| c.kind() != Type::Integer) {
            return Ok(first);
        }
        let key = self.context.dialect.quote_identifier(key);
        let ends = self.query(&format!("SELECT MIN({key}), MAX({key}) FROM {name}"), 1).await?;
        let Some([Cell::Integer(min), Cell::Integer(most)]) = ends.rows.first().map(Vec::as_slice) else {
            return Ok(first);
        };
        let width = most.saturating_sub(*min) / SAMPLE_RANGES as i64;
        let from = |at: usize| min.saturating_add(width.saturating_mul(at as i64));
        Ok((0..SAMPLE_RANGES).map(|at| format!("{name} WHERE {key} >= {} ORDER BY {key}", from(at))).collect())
    }

    async fn sample_column(
        &mut self,
        table: &Table,
        column: &Column,
        stretches: &[String],
        count: Option<i64>,
        table_bytes_left: &mut usize,
    ) -> Result<(), SkipReason> {
        let max_values = self.settings.max_values_per_column;
        let name = self.context.dialect.quote_identifier(&column.name);
        let each = self.settings.rows / stretches.len().max(1);
        let mut values: Vec<String> = Vec::new();
        let mut is_complete = count.is_some();
        for stretch in stretches {
            let inner = format!("SELECT {name} FROM {stretch} LIMIT {}", each.max(1));
            let wanted = max_values.saturating_add(2);
            let sql = format!("SELECT DISTINCT {name} FROM ({inner}) AS some_rows LIMIT {wanted}");
            let rows = self.query(&sql, wanted).await?;
            is_complete &= !rows.truncated;
            for cell in rows.rows.into_iter().flatten() {
                match cell {
                    Cell::Text(text) if text.len() <= MAX_VALUE_BYTES => values.push(text),
                    Cell::Null => {}
                    // Non-text and overlong values are skipped, so the sample is incomplete.
                    _ => is_complete = false,
                }
            }
        }
        values.sort_unstable();
        values.dedup();
        if is_sensitive_by_values(table, column, &values, self.settings) {
            return Err((NotIndexedReason::Sensitive, None));
        }
        let fitting = fit_to_limits(&values, max_values, self.settings.column_bytes);
        is_complete &= fitting.count == values.len();
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
        let unique = is_complete && count == i64::try_from(values.len()).ok();
        let (table_name, column_name) = (table.full_name(), column.name.clone());
        let mut held = ColumnValues {
            table: table_name,
            column: column_name,
            values,
            whole: is_complete,
            caseless: false,
            unique,
        };
        if held.whole {
            match self.is_case_insensitive(table, &name, &held.values).await {
                Ok(caseless) => held.caseless = caseless,
                // Treating a timeout as a partial sample would make the index depend on machine
                // load.
                Err(unread) if unread.0.is_transient() => return Err(unread),
                Err(_) => held.whole = false,
            }
        }
        self.columns.push(held);
        Ok(())
    }

    /// Returns whether the column compares text case-insensitively.
    async fn is_case_insensitive(
        &mut self,
        table: &Table,
        column: &str,
        values: &[String],
    ) -> Result<bool, SkipReason> {
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
        let Some((_, other)) = other else { return Ok(false) };
        let text = self.context.dialect.quote_string(&other);
        let sql = format!("SELECT 1 FROM {} WHERE {column} = {text} LIMIT 1", self.qualified_name(table));
        self.query(&sql, 1).await.map(|rows| !rows.rows.is_empty())
    }

    fn qualified_name(&self, table: &Table) -> String {
        let parts = [table.schema.as_deref(), Some(table.name.as_str())];
        parts
            .into_iter()
            .flatten()
            .map(|part| self.context.dialect.quote_identifier(part))
            .collect::<Vec<_>>()
            .join(".")
    }

    /// Executes a query. After a timeout or a lost connection, all further queries fail.
    async fn query(&mut self, sql: &str, rows: usize) -> Result<Rows, SkipReason> {
        if let Some(unread) = &self.aborted {
            return Err(unread.clone());
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.aborted.insert((NotIndexedReason::TimedOut, None)).clone());
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
        match self.engine.execute(&query, &limits, &CancelFlag::new()).await {
            Ok(rows) => Ok(rows),
            Err(Error::TimedOut { .. }) => Err(self.aborted.insert((NotIndexedReason::TimedOut, None)).clone()),
            Err(error @ Error::Unavailable { .. }) => {
                Err(self.aborted.insert((NotIndexedReason::Unavailable, Some(error.to_string()))).clone())
            }
            Err(error) => Err((NotIndexedReason::Failed, Some(error.to_string()))),
        }
    }
}

/// Number of leading values within the column limits, and their memory.
struct FittedValues {
    count: usize,
    bytes: usize,
}

fn fit_to_limits(values: &[String], max_values: usize, max_bytes: usize) -> FittedValues {
    let mut fitting = FittedValues { count: 0, bytes: 0 };
    for value in values.iter().take(max_values) {
        let bytes = fitting.bytes + estimated_bytes(value);
        if bytes > max_bytes {
            break;
        }
        fitting = FittedValues { count: fitting.count + 1, bytes };
    }
    fitting
}

fn first_cell(rows: Rows) -> Option<Cell> {
    rows.rows.into_iter().next()?.into_iter().next()
}
