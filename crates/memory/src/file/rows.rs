//! Reads and writes examples as rows of the file.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, named_params, params};

use crate::bm25::token_hashes;
use crate::example::{Example, Provenance, VerificationStatus};
use crate::query::{ExampleFilter, ExampleUpdate};
use crate::query_template::template_hash;
use crate::vector_index::QuantizedVector;

/// Maximum number of removals logged for other processes.
///
/// A process that has missed more of them reloads the whole file.
const MAX_REMOVAL_LOG: i64 = 10_000;

const COLUMNS: &str =
    "id, question, sql, database, dialect, metric, provenance, standing, uses, helped, hurt, added, number";

/// Reads an entry of the metadata table.
pub(super) fn get_meta<T: rusqlite::types::FromSql>(
    connection: &Connection,
    name: &str,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached("SELECT value FROM about WHERE name = ?")?.query_row([name], |row| row.get(0)).optional()
}

/// Writes an entry of the metadata table.
pub(super) fn set_meta(step: &Transaction<'_>, name: &str, value: &dyn rusqlite::ToSql) -> rusqlite::Result<()> {
    let mut statement = step.prepare_cached("INSERT OR REPLACE INTO about VALUES (?, ?)")?;
    statement.execute(params![name, value]).map(|_| ())
}

/// Increments and returns the sequence number of writes.
pub(super) fn next_sequence(step: &Transaction<'_>) -> rusqlite::Result<i64> {
    step.prepare_cached("UPDATE about SET value = value + 1 WHERE name = 'sequence' RETURNING value")?
        .query_row([], |row| row.get(0))
}

/// Inserts or updates examples with their vectors; returns the number of new ones.
pub(super) fn upsert(
    step: &Transaction<'_>,
    examples: &[Example],
    vectors: &[QuantizedVector],
) -> rusqlite::Result<usize> {
    let changed = next_sequence(step)?;
    let mut last: i64 = step.query_row("SELECT coalesce(max(number), 0) FROM example", [], |row| row.get(0))?;
    let mut new = 0;
    let mut example = step.prepare_cached(
        "INSERT INTO example (id, question, sql, database, dialect, metric, provenance, standing, uses, helped, hurt, added, changed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (id) DO UPDATE SET question = ?2, sql = ?3, database = ?4, dialect = ?5, metric = coalesce(?6, metric),
             provenance = ?7, standing = ?8, changed = ?13
         RETURNING number",
    )?;
    let mut vector = step.prepare_cached(
        "INSERT OR REPLACE INTO vector (number, scale, skeleton, words, codes) VALUES (?, ?, ?, ?, ?)",
    )?;
    let mut rest = step.prepare_cached("INSERT OR REPLACE INTO rest (number, rest) VALUES (?, ?)")?;
    for (one, coded) in examples.iter().zip(vectors) {
        let number: i64 = example.query_row(
            params![
                one.id,
                one.question,
                one.sql,
                one.database,
                one.dialect,
                one.metric,
                one.provenance.name(),
                one.standing.name(),
                one.uses,
                one.helped,
                one.hurt,
                one.added.cast_signed(),
                changed,
            ],
            |row| row.get(0),
        )?;
        // Numbers only grow, so a new row has the highest one.
        if number > last {
            (last, new) = (number, new + 1);
        }
        let words: Vec<u8> = token_hashes(&one.question).into_iter().flat_map(u32::to_le_bytes).collect();
        vector.execute(params![number, coded.scale, template_hash(&one.sql).cast_signed(), words, coded.codes])?;
        rest.execute(params![number, coded.residual])?;
    }
    Ok(new)
}

/// Replaces the vectors of rows.
pub(super) fn reembed(step: &Transaction<'_>, numbers: &[i64], vectors: &[QuantizedVector]) -> rusqlite::Result<()> {
    let mut vector = step.prepare_cached("UPDATE vector SET scale = ?, codes = ? WHERE number = ?")?;
    let mut rest = step.prepare_cached("UPDATE rest SET rest = ? WHERE number = ?")?;
    for (number, quantized) in numbers.iter().zip(vectors) {
        vector.execute(params![quantized.scale, quantized.codes, number])?;
        rest.execute(params![quantized.residual, number])?;
    }
    Ok(())
}

/// Updates the status, provenance and counters of an example; returns whether it exists.
pub(super) fn update(step: &Transaction<'_>, id: &str, change: ExampleUpdate) -> rusqlite::Result<bool> {
    let changed = next_sequence(step)?;
    let mut statement = step.prepare_cached(
        "UPDATE example SET standing = coalesce(:standing, standing), provenance = coalesce(:provenance, provenance),
             uses = min(uses + :uses, 4294967295), helped = min(helped + :helped, 4294967295),
             hurt = min(hurt + :hurt, 4294967295), changed = :changed
         WHERE id = :id",
    )?;
    let rows = statement.execute(named_params! {
        ":standing": change.standing.map(VerificationStatus::name),
        ":provenance": change.provenance.map(Provenance::name),
        ":uses": change.uses,
        ":helped": change.helped,
        ":hurt": change.hurt,
        ":changed": changed,
        ":id": id,
    })?;
    Ok(rows > 0)
}

/// Deletes examples; returns the number that existed.
pub(super) fn remove(step: &Transaction<'_>, ids: &[String]) -> rusqlite::Result<usize> {
    let changed = next_sequence(step)?;
    let mut gone = 0;
    let mut example = step.prepare_cached("DELETE FROM example WHERE id = ? RETURNING number")?;
    for id in ids {
        let number: Option<i64> = example.query_row([id], |row| row.get(0)).optional()?;
        if let Some(number) = number {
            step.prepare_cached("DELETE FROM vector WHERE number = ?")?.execute([number])?;
            step.prepare_cached("DELETE FROM rest WHERE number = ?")?.execute([number])?;
            step.prepare_cached("INSERT INTO removed VALUES (?, ?)")?.execute([changed, number])?;
            gone += 1;
        }
    }
    let kept: i64 = step.query_row("SELECT count(*) FROM removed", [], |row| row.get(0))?;
    if kept > MAX_REMOVAL_LOG {
        step.execute("DELETE FROM removed", [])?;
        set_meta(step, "pruned", &changed)?;
    }
    Ok(gone)
}

/// Returns the example with this id.
pub(super) fn get(connection: &Connection, id: &str) -> rusqlite::Result<Option<Example>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM example WHERE id = ?"))?;
    statement.query_row([id], read_example).optional()
}

/// Returns the example with this row number.
pub(super) fn get_by_number(connection: &Connection, number: i64) -> rusqlite::Result<Option<Example>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM example WHERE number = ?"))?;
    statement.query_row([number], read_example).optional()
}

/// Returns the examples that match a filter, newest first.
pub(super) fn list(
    connection: &Connection,
    filter: &ExampleFilter,
    skip: usize,
    limit: usize,
) -> rusqlite::Result<Vec<Example>> {
    let (clause, mut values) = where_clause(filter);
    values.extend([limit, skip].map(|count| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM example WHERE {clause} ORDER BY added DESC, number DESC LIMIT ? OFFSET ?"
    ))?;
    statement.query_map(rusqlite::params_from_iter(values), read_example)?.collect()
}

/// Returns the number of examples that match a filter.
pub(super) fn count(connection: &Connection, filter: &ExampleFilter) -> rusqlite::Result<usize> {
    let (clause, values) = where_clause(filter);
    let mut statement = connection.prepare_cached(&format!("SELECT count(*) FROM example WHERE {clause}"))?;
    let count: i64 = statement.query_row(rusqlite::params_from_iter(values), |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn where_clause(filter: &ExampleFilter) -> (String, Vec<Value>) {
    let conditions = [
        ("database", filter.database.clone()),
        ("dialect", filter.dialect.clone()),
        ("provenance", filter.provenance.map(|provenance| provenance.name().to_string())),
        ("standing", filter.standing.map(|standing| standing.name().to_string())),
    ];
    let conditions: Vec<(&str, String)> =
        conditions.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let clause: Vec<String> = conditions.iter().map(|(name, _)| format!("{name} = ?")).collect();
    let clause = if clause.is_empty() { "1".to_string() } else { clause.join(" AND ") };
    (clause, conditions.into_iter().map(|(_, value)| Value::Text(value)).collect())
}

fn read_example(row: &Row<'_>) -> rusqlite::Result<Example> {
    let provenance: String = row.get(6)?;
    let standing: String = row.get(7)?;
    Ok(Example {
        id: row.get(0)?,
        question: row.get(1)?,
        sql: row.get(2)?,
        database: row.get(3)?,
        dialect: row.get(4)?,
        metric: row.get(5)?,
        provenance: parse_provenance(&provenance),
        standing: parse_status(&standing),
        uses: row.get(8)?,
        helped: row.get(9)?,
        hurt: row.get(10)?,
        added: row.get::<_, i64>(11)?.cast_unsigned(),
    })
}

/// Parses a provenance; an unknown one is mapped to the least trusted.
fn parse_provenance(name: &str) -> Provenance {
    Provenance::ALL.into_iter().find(|known| known.name() == name).unwrap_or(Provenance::Auto)
}

/// Parses a verification status; an unknown one is mapped to one that is never included in prompts.
pub(super) fn parse_status(name: &str) -> VerificationStatus {
    VerificationStatus::ALL.into_iter().find(|known| known.name() == name).unwrap_or(VerificationStatus::Stale)
}
