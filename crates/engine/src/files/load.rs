//! Files into a database.

use std::borrow::Cow;
use std::path::Path;

use querymend_sql::dialect::SQLITE;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::find::{Format, Source, unused};
use super::kinds::Kind;
use super::sheet::{MOST_COLUMNS, Raw, Sheet, too_wide};
use super::{excel, json, parquet, separated};
use crate::Error;

/// So many tables there are at most, sheets included.
const MOST_TABLES: usize = 5_000;
/// After so many rows it is looked whether anybody still waits.
const LOOK: usize = 4_096;

/// Reads all files into a new database.
pub(super) fn load(sources: &[Source], database: &Path, stopped: &dyn Fn() -> bool) -> Result<(), Error> {
    let connection = Connection::open(database).map_err(|error| no_room(&error))?;
    // Nobody else sees it, and if this program ends it is gone: nothing has to be safe.
    let fast = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA max_page_count = 8388608; PRAGMA cache_size = -65536";
    connection.execute_batch(fast).map_err(|error| no_room(&error))?;
    let mut loader = Loader { connection, tables: Vec::new(), stopped };
    for source in sources {
        let path = &source.path;
        let sheets = match source.format {
            Format::Separated { tabs } => separated::open(path, tabs)?,
            Format::JsonLines => json::open_lines(path)?,
            Format::Json => json::open(path)?,
            Format::Parquet => parquet::open(path)?,
            Format::Excel => excel::open(path)?,
        };
        for mut sheet in sheets {
            loader.table(source, &mut *sheet)?;
        }
    }
    loader.connection.execute_batch("ANALYZE").map_err(|error| no_room(&error))
}

struct Loader<'a> {
    connection: Connection,
    tables: Vec<String>,
    stopped: &'a dyn Fn() -> bool,
}

impl Loader<'_> {
    fn table(&mut self, source: &Source, sheet: &mut dyn Sheet) -> Result<(), Error> {
        let stopped = self.stopped;
        let mut count = 0;
        let mut look = move || {
            count += 1;
            if count % LOOK == 0 && stopped() { Err(Error::Cancelled) } else { Ok(()) }
        };
        if sheet.columns().len() > MOST_COLUMNS {
            return Err(too_wide(&source.path));
        }
        let mut kinds: Vec<Kind> = vec![Kind::Unknown; sheet.columns().len()];
        sheet.rows(&mut |row| {
            look()?;
            if row.len() > MOST_COLUMNS {
                return Err(too_wide(&source.path));
            }
            if row.len() > kinds.len() {
                kinds.resize(row.len(), Kind::Unknown);
            }
            for (kind, cell) in kinds.iter_mut().zip(row) {
                // What is text stays text, whatever follows.
                if *kind != Kind::Text {
                    *kind = kind.and(Kind::of(cell));
                }
            }
            Ok(())
        })?;
        if kinds.len() > MOST_COLUMNS {
            return Err(too_wide(&source.path));
        }
        if self.tables.len() >= MOST_TABLES {
            let hint = format!("at most {MOST_TABLES} tables are read; leave out what is not needed");
            return Err(Error::unavailable(format!("`{}` has too many sheets", source.path.display()), hint));
        }
        if kinds.is_empty() {
            // A file without a single value has no columns that could be asked for.
            return Ok(());
        }
        let table = self.name(source, sheet.name());
        let names = names(sheet.columns(), kinds.len());
        let trouble = |error: rusqlite::Error| no_room(&error);
        let declared: Vec<String> = names
            .iter()
            .zip(&kinds)
            .map(|(name, kind)| format!("{} {}", SQLITE.quoted(name), kind.declared()))
            .collect();
        let quoted = SQLITE.quoted(&table);
        let all = self.connection.unchecked_transaction().map_err(trouble)?;
        all.execute_batch(&format!("CREATE TABLE {quoted} ({})", declared.join(", "))).map_err(trouble)?;
        let holes = vec!["?"; kinds.len()].join(", ");
        let mut insert = all.prepare(&format!("INSERT INTO {quoted} VALUES ({holes})")).map_err(trouble)?;
        sheet.rows(&mut |row| {
            look()?;
            let cells = kinds.iter().enumerate().map(|(i, kind)| Stored(row.get(i).unwrap_or(&Raw::Nothing), *kind));
            insert.execute(params_from_iter(cells)).map(drop).map_err(trouble)
        })?;
        drop(insert);
        all.commit().map_err(trouble)?;
        self.keys(&table, &names);
        Ok(())
    }

    fn name(&mut self, source: &Source, sheet: Option<&str>) -> String {
        let name = sheet.map_or_else(|| source.table.clone(), |sheet| format!("{}_{}", source.table, sheet.trim()));
        // SQLite keeps such names for itself.
        let name = if name.to_lowercase().starts_with("sqlite_") { format!("file_{name}") } else { name };
        let name = unused(&name, |name| self.tables.iter().any(|table| table.eq_ignore_ascii_case(name)));
        self.tables.push(name.clone());
        name
    }

    /// Makes keys of the columns that look like one and hold no value twice: joins are found by them, and quick.
    fn keys(&self, table: &str, names: &[String]) {
        let own = table.to_lowercase();
        let singular = own.strip_suffix('s').unwrap_or(&own);
        for (i, name) in names.iter().enumerate() {
            let lower = name.to_lowercase();
            let is_key = ["id", "key", "code", "uuid"]
                .into_iter()
                .any(|word| lower == word || lower == format!("{own}_{word}") || lower == format!("{singular}_{word}"));
            if is_key || (i == 0 && (lower.ends_with("id") || lower.ends_with("_no") || lower.ends_with("_code"))) {
                let (index, quoted) = (SQLITE.quoted(&format!("{table} {name}")), SQLITE.quoted(name));
                let made = format!("CREATE UNIQUE INDEX {index} ON {} ({quoted})", SQLITE.quoted(table));
                // One that holds a value twice is no key, and that is no trouble.
                self.connection.execute_batch(&made).ok();
            }
        }
    }
}

/// Names that can be told apart, one for each column.
fn names(given: Vec<String>, count: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(count);
    for i in 0..count {
        let given = given.get(i).map(|name| name.trim().replace('\0', "")).unwrap_or_default();
        let name = if given.is_empty() { format!("column_{}", i + 1) } else { given };
        let name = unused(&name, |name| names.iter().any(|other| other.eq_ignore_ascii_case(name)));
        names.push(name);
    }
    names
}

/// A value on its way into a column of a kind.
struct Stored<'a>(&'a Raw<'a>, Kind);

impl ToSql for Stored<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let Stored(raw, kind) = self;
        let text = |text: &'_ str| ToSqlOutput::Owned(Value::Text(text.to_string()));
        Ok(match (raw, kind) {
            (Raw::Nothing, _) => ToSqlOutput::Owned(Value::Null),
            (Raw::Loose(loose), kind) => loose_as(loose, *kind),
            // Of several kinds in one column each is written as text.
            (Raw::Integer(number), Kind::Text) => ToSqlOutput::Owned(Value::Text(number.to_string())),
            (Raw::Number(number), Kind::Text) => ToSqlOutput::Owned(Value::Text(number.to_string())),
            (Raw::Boolean(truth), Kind::Text) => ToSqlOutput::Owned(Value::Text(truth.to_string())),
            (Raw::Text(value), _) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            (Raw::Integer(number), Kind::Number) => ToSqlOutput::Owned(Value::Real(*number as f64)),
            (Raw::Integer(number), _) => ToSqlOutput::Owned(Value::Integer(*number)),
            (Raw::Number(number), _) => ToSqlOutput::Owned(Value::Real(*number)),
            (Raw::Boolean(truth), _) => ToSqlOutput::Owned(Value::Integer(i64::from(*truth))),
            (Raw::Date(value) | Raw::Timestamp(value), _) => text(value),
            (Raw::Bytes(bytes), _) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

/// What a text becomes in a column of a kind. It is of that kind, or the column would be of another.
fn loose_as<'a>(loose: &'a str, kind: Kind) -> ToSqlOutput<'a> {
    let trimmed = loose.trim();
    let value = match kind {
        Kind::Integer => trimmed.parse().map(Value::Integer).ok(),
        Kind::Number => trimmed.parse().map(Value::Real).ok(),
        Kind::Boolean => Some(Value::Integer(i64::from(trimmed.eq_ignore_ascii_case("true")))),
        Kind::Date | Kind::Timestamp => return ToSqlOutput::Borrowed(ValueRef::Text(trimmed.as_bytes())),
        Kind::Unknown | Kind::Text | Kind::Bytes => None,
    };
    value.map_or(ToSqlOutput::Borrowed(ValueRef::Text(loose.as_bytes())), ToSqlOutput::Owned)
}

fn no_room(error: &rusqlite::Error) -> Error {
    let hint = "they are read into a database in the folder for temporary files; check TMPDIR and the room there";
    Error::unavailable(format!("files cannot be read in: {error}"), Cow::Borrowed(hint))
}
