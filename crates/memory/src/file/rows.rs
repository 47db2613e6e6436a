//! Examples as rows of the file.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, named_params, params};

use crate::example::{Example, Provenance, Standing};
use crate::skeleton::skeleton;
use crate::sought::{Change, Filter};
use crate::vectors::Coded;
use crate::words::words;

/// So many removals are remembered, for programs that have not seen them; those that missed more read everything anew.
const REMEMBERED: i64 = 10_000;

const COLUMNS: &str =
    "id, question, sql, database, dialect, metric, provenance, standing, uses, helped, hurt, added, number";

/// What the file says about itself.
pub(super) fn about<T: rusqlite::types::FromSql>(connection: &Connection, name: &str) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached("SELECT value FROM about WHERE name = ?")?.query_row([name], |row| row.get(0)).optional()
}

/// Writes down what the file says about itself.
pub(super) fn say(step: &Transaction<'_>, name: &str, value: &dyn rusqlite::ToSql) -> rusqlite::Result<()> {
    let mut statement = step.prepare_cached("INSERT OR REPLACE INTO about VALUES (?, ?)")?;
    statement.execute(params![name, value]).map(|_| ())
}

/// The number of this write.
pub(super) fn next(step: &Transaction<'_>) -> rusqlite::Result<i64> {
    step.prepare_cached("UPDATE about SET value = value + 1 WHERE name = 'sequence' RETURNING value")?
        .query_row([], |row| row.get(0))
}

/// Writes examples with their vectors; gives back how many are new.
pub(super) fn put(step: &Transaction<'_>, examples: &[Example], vectors: &[Coded]) -> rusqlite::Result<usize> {
    let changed = next(step)?;
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
        // Numbers only grow, so that a new row has one that none had before.
        if number > last {
            (last, new) = (number, new + 1);
        }
        let words: Vec<u8> = words(&one.question).into_iter().flat_map(u32::to_le_bytes).collect();
        vector.execute(params![number, coded.scale, skeleton(&one.sql).cast_signed(), words, coded.codes])?;
        rest.execute(params![number, coded.rest])?;
    }
    Ok(new)
}

/// Gives rows other vectors.
pub(super) fn revector(step: &Transaction<'_>, numbers: &[i64], vectors: &[Coded]) -> rusqlite::Result<()> {
    let mut vector = step.prepare_cached("UPDATE vector SET scale = ?, codes = ? WHERE number = ?")?;
    let mut rest = step.prepare_cached("UPDATE rest SET rest = ? WHERE number = ?")?;
    for (number, coded) in numbers.iter().zip(vectors) {
        vector.execute(params![coded.scale, coded.codes, number])?;
        rest.execute(params![coded.rest, number])?;
    }
    Ok(())
}

/// Changes what is known of an example; whether there is one.
pub(super) fn change(step: &Transaction<'_>, id: &str, change: Change) -> rusqlite::Result<bool> {
    let changed = next(step)?;
    let mut statement = step.prepare_cached(
        "UPDATE example SET standing = coalesce(:standing, standing), provenance = coalesce(:provenance, provenance),
             uses = min(uses + :uses, 4294967295), helped = min(helped + :helped, 4294967295),
             hurt = min(hurt + :hurt, 4294967295), changed = :changed
         WHERE id = :id",
    )?;
    let rows = statement.execute(named_params! {
        ":standing": change.standing.map(Standing::name),
        ":provenance": change.provenance.map(Provenance::name),
        ":uses": change.uses,
        ":helped": change.helped,
        ":hurt": change.hurt,
        ":changed": changed,
        ":id": id,
    })?;
    Ok(rows > 0)
}

/// Takes examples out; gives back how many were there.
pub(super) fn remove(step: &Transaction<'_>, ids: &[String]) -> rusqlite::Result<usize> {
    let changed = next(step)?;
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
    if kept > REMEMBERED {
        step.execute("DELETE FROM removed", [])?;
        say(step, "pruned", &changed)?;
    }
    Ok(gone)
}

/// The example with this id.
pub(super) fn get(connection: &Connection, id: &str) -> rusqlite::Result<Option<Example>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM example WHERE id = ?"))?;
    statement.query_row([id], read).optional()
}

/// The example with this number, and the second half of its vector.
pub(super) fn numbered(connection: &Connection, number: i64) -> rusqlite::Result<Option<Example>> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM example WHERE number = ?"))?;
    statement.query_row([number], read).optional()
}

/// Those that fit, newest first.
pub(super) fn list(
    connection: &Connection,
    filter: &Filter,
    skip: usize,
    most: usize,
) -> rusqlite::Result<Vec<Example>> {
    let (clause, mut values) = which(filter);
    values.extend([most, skip].map(|count| Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))));
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM example WHERE {clause} ORDER BY added DESC, number DESC LIMIT ? OFFSET ?"
    ))?;
    statement.query_map(rusqlite::params_from_iter(values), read)?.collect()
}

/// How many fit.
pub(super) fn count(connection: &Connection, filter: &Filter) -> rusqlite::Result<usize> {
    let (clause, values) = which(filter);
    let mut statement = connection.prepare_cached(&format!("SELECT count(*) FROM example WHERE {clause}"))?;
    let count: i64 = statement.query_row(rusqlite::params_from_iter(values), |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn which(filter: &Filter) -> (String, Vec<Value>) {
    let said = [
        ("database", filter.database.clone()),
        ("dialect", filter.dialect.clone()),
        ("provenance", filter.provenance.map(|provenance| provenance.name().to_string())),
        ("standing", filter.standing.map(|standing| standing.name().to_string())),
    ];
    let said: Vec<(&str, String)> = said.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let clause: Vec<String> = said.iter().map(|(name, _)| format!("{name} = ?")).collect();
    let clause = if clause.is_empty() { "1".to_string() } else { clause.join(" AND ") };
    (clause, said.into_iter().map(|(_, value)| Value::Text(value)).collect())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Example> {
    let provenance: String = row.get(6)?;
    let standing: String = row.get(7)?;
    Ok(Example {
        id: row.get(0)?,
        question: row.get(1)?,
        sql: row.get(2)?,
        database: row.get(3)?,
        dialect: row.get(4)?,
        metric: row.get(5)?,
        provenance: provenance_named(&provenance),
        standing: standing_named(&standing),
        uses: row.get(8)?,
        helped: row.get(9)?,
        hurt: row.get(10)?,
        added: row.get::<_, i64>(11)?.cast_unsigned(),
    })
}

/// A word that this version does not know is taken for what promises least.
fn provenance_named(name: &str) -> Provenance {
    Provenance::ALL.into_iter().find(|known| known.name() == name).unwrap_or(Provenance::Auto)
}

/// A word that this version does not know is taken for what is not shown.
pub(super) fn standing_named(name: &str) -> Standing {
    Standing::ALL.into_iter().find(|known| known.name() == name).unwrap_or(Standing::Stale)
}
