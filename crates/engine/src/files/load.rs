//! Loads files into a SQLite database.

use std::borrow::Cow;
use std::path::Path;

use querymend_sql::dialect::SQLITE;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::sources::{FileFormat, SourceFile, unique_name};
use super::table_source::{MAX_COLUMNS, RawValue, TableSource, too_many_columns};
use super::type_inference::InferredType;
use super::{csv, excel, json, parquet};
use crate::Error;

/// Maximum number of tables, sheets included.
const MAX_TABLES: usize = 5_000;
/// Number of rows between two checks for cancellation.
const CANCEL_CHECK_ROWS: usize = 4_096;

/// Loads all files into a new database.
pub(super) fn load_files(sources: &[SourceFile], database: &Path, stopped: &dyn Fn() -> bool) -> Result<(), Error> {
    let connection = Connection::open(database).map_err(|error| load_error(&error))?;
    // The database is private and is discarded with the process, so it needs no durability.
    let fast = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA max_page_count = 8388608; PRAGMA cache_size = -65536";
    connection.execute_batch(fast).map_err(|error| load_error(&error))?;
    let mut loader = Loader { connection, tables: Vec::new(), stopped };
    for source in sources {
        let path = &source.path;
        let sheets = match source.format {
            FileFormat::Csv { tabs } => csv::open(path, tabs)?,
            FileFormat::JsonLines => json::open_lines(path)?,
            FileFormat::Json => json::open(path)?,
            FileFormat::Parquet => parquet::open(path)?,
            FileFormat::Excel => excel::open(path)?,
        };
        for mut sheet in sheets {
            loader.load_table(source, &mut *sheet)?;
        }
    }
    loader.connection.execute_batch("ANALYZE").map_err(|error| load_error(&error))
}

struct Loader<'a> {
    connection: Connection,
    tables: Vec<String>,
    stopped: &'a dyn Fn() -> bool,
}

impl Loader<'_> {
    fn load_table(&mut self, source: &SourceFile, sheet: &mut dyn TableSource) -> Result<(), Error> {
        let stopped = self.stopped;
        let mut count = 0;
        let mut check_cancelled = move || {
            count += 1;
            if count % CANCEL_CHECK_ROWS == 0 && stopped() { Err(Error::Cancelled) } else { Ok(()) }
        };
        if sheet.column_names().len() > MAX_COLUMNS {
            return Err(too_many_columns(&source.path));
        }
        let mut kinds: Vec<InferredType> = vec![InferredType::Unknown; sheet.column_names().len()];
        sheet.for_each_row(&mut |row| {
            check_cancelled()?;
            if row.len() > MAX_COLUMNS {
                return Err(too_many_columns(&source.path));
            }
            if row.len() > kinds.len() {
                kinds.resize(row.len(), InferredType::Unknown);
            }
            for (kind, cell) in kinds.iter_mut().zip(row) {
                // A text column cannot become any other type.
                if *kind != InferredType::Text {
                    *kind = kind.unify(InferredType::infer(cell));
                }
            }
            Ok(())
        })?;
        if kinds.len() > MAX_COLUMNS {
            return Err(too_many_columns(&source.path));
        }
        if self.tables.len() >= MAX_TABLES {
            let hint = format!("at most {MAX_TABLES} tables are read; leave out what is not needed");
            return Err(Error::unavailable(format!("`{}` has too many sheets", source.path.display()), hint));
        }
        if kinds.is_empty() {
            // A file without values has no columns to query.
            return Ok(());
        }
        let table = self.unique_table_name(source, sheet.name());
        let names = unique_column_names(sheet.column_names(), kinds.len());
        let to_error = |error: rusqlite::Error| load_error(&error);
        let declared: Vec<String> = names
            .iter()
            .zip(&kinds)
            .map(|(name, kind)| format!("{} {}", SQLITE.quote_identifier(name), kind.sql_type()))
            .collect();
        let quoted = SQLITE.quote_identifier(&table);
        let all = self.connection.unchecked_transaction().map_err(to_error)?;
        all.execute_batch(&format!("CREATE TABLE {quoted} ({})", declared.join(", "))).map_err(to_error)?;
        let holes = vec!["?"; kinds.len()].join(", ");
        let mut insert = all.prepare(&format!("INSERT INTO {quoted} VALUES ({holes})")).map_err(to_error)?;
        sheet.for_each_row(&mut |row| {
            check_cancelled()?;
            let cells =
                kinds.iter().enumerate().map(|(i, kind)| TypedValue(row.get(i).unwrap_or(&RawValue::Null), *kind));
            insert.execute(params_from_iter(cells)).map(drop).map_err(to_error)
        })?;
        drop(insert);
        all.commit().map_err(to_error)?;
        self.create_key_indexes(&table, &names);
        Ok(())
    }

    fn unique_table_name(&mut self, source: &SourceFile, sheet: Option<&str>) -> String {
        let name = sheet.map_or_else(|| source.table.clone(), |sheet| format!("{}_{}", source.table, sheet.trim()));
        // SQLite reserves names with this prefix.
        let name = if name.to_lowercase().starts_with("sqlite_") { format!("file_{name}") } else { name };
        let name = unique_name(&name, |name| self.tables.iter().any(|table| table.eq_ignore_ascii_case(name)));
        self.tables.push(name.clone());
        name
    }

    /// Creates unique indexes on columns that look like keys and hold no duplicates.
    ///
    /// They reveal joins, and make them fast.
    fn create_key_indexes(&self, table: &str, names: &[String]) {
        let own = table.to_lowercase();
        let singular = own.strip_suffix('s').unwrap_or(&own);
        for (i, name) in names.iter().enumerate() {
            let lower = name.to_lowercase();
            let is_key = ["id", "key", "code", "uuid"]
                .into_iter()
                .any(|word| lower == word || lower == format!("{own}_{word}") || lower == format!("{singular}_{word}"));
            if is_key || (i == 0 && (lower.ends_with("id") || lower.ends_with("_no") || lower.ends_with("_code"))) {
                let (index, quoted) =
                    (SQLITE.quote_identifier(&format!("{table} {name}")), SQLITE.quote_identifier(name));
                let made = format!("CREATE UNIQUE INDEX {index} ON {} ({quoted})", SQLITE.quote_identifier(table));
                // A column with duplicates is not a key; the failure is expected.
                self.connection.execute_batch(&made).ok();
            }
        }
    }
}

/// Returns a unique, non-empty name for each column.
fn unique_column_names(given: Vec<String>, count: usize) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(count);
    for i in 0..count {
        let given = given.get(i).map(|name| name.trim().replace('\0', "")).unwrap_or_default();
        let name = if given.is_empty() { format!("column_{}", i + 1) } else { given };
        let name = unique_name(&name, |name| names.iter().any(|other| other.eq_ignore_ascii_case(name)));
        names.push(name);
    }
    names
}

/// Value to be stored in a column of an inferred type.
struct TypedValue<'a>(&'a RawValue<'a>, InferredType);

impl ToSql for TypedValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let TypedValue(raw, kind) = self;
        let text = |text: &'_ str| ToSqlOutput::Owned(Value::Text(text.to_string()));
        Ok(match (raw, kind) {
            (RawValue::Null, _) => ToSqlOutput::Owned(Value::Null),
            (RawValue::Untyped(loose), kind) => convert_untyped(loose, *kind),
            // A column of mixed types stores every value as text.
            (RawValue::Integer(number), InferredType::Text) => ToSqlOutput::Owned(Value::Text(number.to_string())),
            (RawValue::Number(number), InferredType::Text) => ToSqlOutput::Owned(Value::Text(number.to_string())),
            (RawValue::Boolean(truth), InferredType::Text) => ToSqlOutput::Owned(Value::Text(truth.to_string())),
            (RawValue::Text(value), _) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            (RawValue::Integer(number), InferredType::Number) => ToSqlOutput::Owned(Value::Real(*number as f64)),
            (RawValue::Integer(number), _) => ToSqlOutput::Owned(Value::Integer(*number)),
            (RawValue::Number(number), _) => ToSqlOutput::Owned(Value::Real(*number)),
            (RawValue::Boolean(truth), _) => ToSqlOutput::Owned(Value::Integer(i64::from(*truth))),
            (RawValue::Date(value) | RawValue::Timestamp(value), _) => text(value),
            (RawValue::Bytes(bytes), _) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

/// Converts text to the type of its column, which all values of the column can represent.
fn convert_untyped<'a>(loose: &'a str, kind: InferredType) -> ToSqlOutput<'a> {
    let trimmed = loose.trim();
    let value = match kind {
        InferredType::Integer => trimmed.parse().map(Value::Integer).ok(),
        InferredType::Number => trimmed.parse().map(Value::Real).ok(),
        InferredType::Boolean => Some(Value::Integer(i64::from(trimmed.eq_ignore_ascii_case("true")))),
        InferredType::Date | InferredType::Timestamp => {
            return ToSqlOutput::Borrowed(ValueRef::Text(trimmed.as_bytes()));
        }
        InferredType::Unknown | InferredType::Text | InferredType::Bytes => None,
    };
    value.map_or(ToSqlOutput::Borrowed(ValueRef::Text(loose.as_bytes())), ToSqlOutput::Owned)
}

fn load_error(error: &rusqlite::Error) -> Error {
    let hint = "files are loaded into a database in the temporary folder; check TMPDIR and its free space";
    Error::unavailable(format!("the files cannot be loaded: {error}"), Cow::Borrowed(hint))
}
