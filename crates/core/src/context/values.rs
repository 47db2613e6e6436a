//! Reads what text columns hold, within bounds: so many rows of a table, so many values of a column, so many bytes and so much
//! time in all. What is kept, and how it is searched, is in `querymend_sql::values`.
//!
//! Columns that look like secrets or like data about people who could be reached by it are never read, by their names or by
//! what their values look like, unless the configuration allows them. What the policy denies is not in the schema.

mod private;

use std::time::{Duration, Instant};

use querymend_engine::{Cancel, Engine, Limits};
use querymend_sql::schema::{Column, Schema, Table, TableKind, Type};
use querymend_sql::values::{Held, cost};
use querymend_sql::{Cell, Context, Policy, Rows, Values, review};
use serde::{Deserialize, Serialize};

use crate::config::duration;

/// Which values are read, and how many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ValuesSection {
    /// Off, no value is read.
    pub enabled: bool,
    /// The most values that are kept of a column. One that holds more is known in part.
    pub most_values: usize,
    /// The most rows that are looked at in a table. One that has more is known in part.
    pub rows: usize,
    /// The most memory that values may take in all, with their index, in bytes.
    pub bytes: usize,
    /// The longest that the reading may take.
    #[serde(with = "duration")]
    pub time: Duration,
    /// Columns that are not read: `table.column` or `column`, with `*` for any letters.
    pub exclude: Vec<String>,
    /// Columns that are read although they look like secrets.
    pub allow: Vec<String>,
}

impl Default for ValuesSection {
    fn default() -> Self {
        Self {
            enabled: true,
            most_values: 5_000,
            rows: 100_000,
            bytes: 64 << 20,
            time: Duration::from_secs(10),
            exclude: Vec::new(),
            allow: Vec::new(),
        }
    }
}

/// A longer value is a text that nobody compares with; a column that holds one is known in part.
const LONGEST_VALUE: usize = 120;
/// Stretches of a big table that are looked at.
const STRETCHES: usize = 4;

/// Reads what the columns of a database hold. What fails or takes too long is left out.
pub async fn read(engine: &dyn Engine, schema: &Schema, policy: &Policy, settings: &ValuesSection) -> Values {
    let mut reading = Reading {
        engine,
        context: Context { schema: Some(schema), dialect: engine.dialect(), policy, question: None },
        settings,
        until: Instant::now() + settings.time,
        room: settings.bytes,
        held: Vec::new(),
    };
    if settings.enabled {
        for table in schema.tables().iter().filter(|t| t.kind == TableKind::Table) {
            reading.table(table).await;
        }
    }
    Values::new(reading.held)
}

/// Whether a column's values may be read at all, by its name and type.
pub fn is_readable(table: &Table, column: &Column, settings: &ValuesSection) -> bool {
    let listed = |list: &[String]| list.iter().any(|entry| private::fits(entry, &table.full_name(), &column.name));
    column.kind() == Type::Text
        && !listed(&settings.exclude)
        && (listed(&settings.allow) || !private::by_name(&column.name))
}

struct Reading<'r> {
    engine: &'r dyn Engine,
    context: Context<'r>,
    settings: &'r ValuesSection,
    until: Instant,
    room: usize,
    held: Vec<Held>,
}

impl Reading<'_> {
    async fn table(&mut self, table: &Table) {
        let columns: Vec<&Column> =
            table.columns.iter().filter(|column| is_readable(table, column, self.settings)).collect();
        if columns.is_empty() {
            return;
        }
        let name = self.name(table);
        let rows = self.settings.rows;
        let counted = format!("SELECT COUNT(*) FROM (SELECT 1 FROM {name} LIMIT {}) AS some_rows", rows + 1);
        let Some(Cell::Integer(count)) = self.ask(&counted, 1).await.and_then(first) else { return };
        let small = count <= rows as i64;
        let stretches = if small { vec![name.clone()] } else { self.stretches(table, &name).await };
        for column in columns {
            self.column(table, column, &stretches, small.then_some(count)).await;
        }
    }

    /// Where to look in a big table: its first rows and, where a key of numbers orders them, rows from places further on. What
    /// stands in FROM and behind it, up to LIMIT.
    async fn stretches(&self, table: &Table, name: &str) -> Vec<String> {
        let first = vec![name.to_string()];
        let [key] = table.primary_key.as_slice() else { return first };
        if table.column(key).is_none_or(|c| c.kind() != Type::Integer) {
            return first;
        }
        let key = self.context.dialect.quoted(key);
        let ends = self.ask(&format!("SELECT MIN({key}), MAX({key}) FROM {name}"), 1).await;
        let Some([Cell::Integer(least), Cell::Integer(most)]) =
            ends.as_ref().and_then(|rows| rows.rows.first()).map(Vec::as_slice)
        else {
            return first;
        };
        let width = most.saturating_sub(*least) / STRETCHES as i64;
        let from = |at: usize| least.saturating_add(width.saturating_mul(at as i64));
        (0..STRETCHES).map(|at| format!("{name} WHERE {key} >= {} ORDER BY {key}", from(at))).collect()
    }

    async fn column(&mut self, table: &Table, column: &Column, stretches: &[String], count: Option<i64>) {
        let most = self.settings.most_values;
        let name = self.context.dialect.quoted(&column.name);
        let each = self.settings.rows / stretches.len().max(1);
        let mut values: Vec<String> = Vec::new();
        let mut whole = count.is_some();
        for stretch in stretches {
            let inner = format!("SELECT {name} FROM {stretch} LIMIT {}", each.max(1));
            let sql = format!("SELECT DISTINCT {name} FROM ({inner}) AS some_rows LIMIT {}", most + 2);
            let Some(rows) = self.ask(&sql, most + 2).await else { return };
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
        whole &= values.len() <= most;
        values.truncate(most);
        let allowed = self.settings.allow.iter().any(|e| private::fits(e, &table.full_name(), &column.name));
        let bytes: usize = values.iter().map(|value| cost(value)).sum();
        if values.is_empty() || bytes > self.room || (!allowed && private::by_look(&values)) {
            return;
        }
        self.room -= bytes;
        let unique = whole && count == i64::try_from(values.len()).ok();
        let (table_name, column_name) = (table.full_name(), column.name.clone());
        let mut held = Held { table: table_name, column: column_name, values, whole, caseless: false, unique };
        if held.whole {
            match self.caseless(table, &name, &held.values).await {
                Some(caseless) => held.caseless = caseless,
                None => held.whole = false,
            }
        }
        self.held.push(held);
    }

    /// Whether the column takes letters of another case for the same; nothing if the database did not say.
    async fn caseless(&self, table: &Table, column: &str, values: &[String]) -> Option<bool> {
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
        let Some((_, other)) = other else { return Some(false) };
        let text = self.context.dialect.text(&other);
        let sql = format!("SELECT 1 FROM {} WHERE {column} = {text} LIMIT 1", self.name(table));
        self.ask(&sql, 1).await.map(|rows| !rows.rows.is_empty())
    }

    fn name(&self, table: &Table) -> String {
        let parts = [table.schema.as_deref(), Some(table.name.as_str())];
        parts.into_iter().flatten().map(|part| self.context.dialect.quoted(part)).collect::<Vec<_>>().join(".")
    }

    /// The rows of a query; nothing if it is refused, fails or the time is over.
    async fn ask(&self, sql: &str, rows: usize) -> Option<Rows> {
        let left = self.until.checked_duration_since(Instant::now())?;
        let query = review(sql, &self.context).approve().ok()?;
        let limits = Limits { rows, bytes: self.settings.bytes, time: left, memory: usize::MAX };
        self.engine.execute(&query, &limits, &Cancel::new()).await.ok()
    }
}

fn first(rows: Rows) -> Option<Cell> {
    rows.rows.into_iter().next()?.into_iter().next()
}
