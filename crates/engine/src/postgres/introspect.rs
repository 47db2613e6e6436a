//! The tables, columns and keys of a PostgreSQL database, as far as the user may read them.
//!
//! Four questions are put to the catalogue at once, whatever the number of tables. Functions that users defined are not listed: a
//! function that is listed counts as harmless, and some of those that extensions bring (`dblink_exec`) write. The names of those
//! that can be called without parentheses are, so that they are not taken for columns.

use std::collections::HashMap;

use querymend_sql::Schema;
use querymend_sql::schema::{Column, ForeignKey, Table, TableKind};
use tokio_postgres::Row;

use super::pool::{Link, Pool};
use super::refusal::{self, Failure};
use super::run::{Step, on_a_connection};
use crate::{Cancel, Error, Limits, catalogue};

/// Tables, views and whatever else rows can be read from, in the order in which they were created. A partition is read through
/// the table that it is a part of.
const TABLES: &str = "SELECT c.oid, n.nspname::text, c.relname::text, c.relkind IN ('v', 'm'), \
    pg_catalog.pg_table_is_visible(c.oid), pg_catalog.obj_description(c.oid, 'pg_class'), \
    pg_catalog.has_table_privilege(c.oid, 'SELECT') \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition \
    AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
    AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT')) \
    ORDER BY c.oid";

/// Their columns; those of kinds that are lists of words with the words.
const COLUMNS: &str = "SELECT a.attrelid, a.attnum, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod), \
    a.attnotnull, d.description, e.labels, pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') \
    FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid \
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    LEFT JOIN pg_catalog.pg_description d \
    ON d.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objoid = a.attrelid AND d.objsubid = a.attnum \
    LEFT JOIN (SELECT enumtypid, pg_catalog.array_agg(enumlabel::text ORDER BY enumsortorder) AS labels \
    FROM pg_catalog.pg_enum GROUP BY enumtypid) e ON e.enumtypid = a.atttypid \
    WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition \
    AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' ORDER BY a.attrelid, a.attnum";

/// Their keys: those that are declared, and unique indexes of whole columns and all rows, among them those of declared keys.
const KEYS: &str = "SELECT k.conrelid, k.contype::text, k.conkey, k.confrelid, k.confkey, k.oid \
    FROM pg_catalog.pg_constraint k WHERE k.contype IN ('p', 'u', 'f') AND k.conrelid <> 0 \
    AND (k.contype <> 'f' OR k.conparentid = 0) \
    UNION ALL SELECT i.indrelid, 'u', i.indkey::int2[], 0, NULL, i.indexrelid FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_class c ON c.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE i.indisunique AND NOT i.indisprimary AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL \
    AND i.indnkeyatts = i.indnatts AND n.nspname !~ '^pg_' AND NOT c.relispartition \
    ORDER BY 1, 6";

/// Functions of one argument, which `t.f` calls, and operators whose functions are written in a language that users write
/// in. Those that are called like one of PostgreSQL's own are left out: nobody could ask anything where `=` is refused.
const DISGUISED: &str = "SELECT DISTINCT p.proname::text FROM pg_catalog.pg_proc p \
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND p.pronargs > 0 AND p.pronargs - p.pronargdefaults <= 1 \
    UNION SELECT o.oprname::text FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode \
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
    WHERE l.lanname NOT IN ('internal', 'c') AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_operator b \
    WHERE b.oprname = o.oprname AND b.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace)";

/// A table, and where each number of a column leads.
struct Found {
    table: Table,
    by_number: HashMap<i16, String>,
    all_columns: bool,
}

/// A key, in the catalogue's numbers.
struct Key {
    of: u32,
    kind: String,
    columns: Vec<i16>,
    to: u32,
    references: Vec<i16>,
}

/// Reads the catalogue.
struct Catalogue<'a> {
    name: &'a str,
}

impl Step for Catalogue<'_> {
    type Outcome = [Vec<Row>; 4];

    async fn take(&self, link: &Link) -> Result<[Vec<Row>; 4], Failure> {
        let [tables, columns, keys, disguised] =
            [TABLES, COLUMNS, KEYS, DISGUISED].map(|sql| sql.to_string() + &catalogue::limit());
        let (begun, tables, columns, keys, disguised) = tokio::join!(
            // So that the four answers are about one moment.
            link.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            link.client.query_typed(&tables, &[]),
            link.client.query_typed(&columns, &[]),
            link.client.query_typed(&keys, &[]),
            link.client.query_typed(&disguised, &[]),
        );
        let meaning = |error| refusal::of_query(self.name, "", &error);
        begun.map_err(meaning)?;
        Ok([tables.map_err(meaning)?, columns.map_err(meaning)?, keys.map_err(meaning)?, disguised.map_err(meaning)?])
    }
}

pub(super) async fn schema(pool: &Pool) -> Result<Schema, Error> {
    let catalogue = Catalogue { name: pool.name() };
    let [tables, columns, keys, disguised] =
        on_a_connection(pool, &Limits::default(), &Cancel::new(), catalogue).await?;
    catalogue::fits(tables.len().max(columns.len()).max(keys.len()).max(disguised.len()), pool.name())?;
    let found = gather(&tables, &columns, &keys).map_err(|error| not_understood(pool, &error))?;
    let names: Result<Vec<String>, _> = disguised.iter().map(|row| row.try_get(0)).collect();
    let names = names.map_err(|error| not_understood(pool, &error))?;
    Ok(Schema::new(found).map_err(|error| not_understood(pool, &error))?.with_disguised_functions(names))
}

fn gather(tables: &[Row], columns: &[Row], keys: &[Row]) -> Result<Vec<Table>, tokio_postgres::Error> {
    let mut places = HashMap::with_capacity(tables.len());
    let mut found = Vec::with_capacity(tables.len());
    for row in tables {
        let (schema, is_visible): (String, bool) = (row.try_get(1)?, row.try_get(4)?);
        let table = Table {
            name: row.try_get(2)?,
            // What the search path finds needs no schema, and what it does not find cannot be named without.
            schema: (!is_visible).then_some(schema),
            kind: if row.try_get(3)? { TableKind::View } else { TableKind::Table },
            comment: row.try_get(5)?,
            ..Table::default()
        };
        places.insert(row.try_get::<_, u32>(0)?, found.len());
        found.push(Found { table, by_number: HashMap::new(), all_columns: row.try_get(6)? });
    }
    for row in columns {
        let Some(&place) = places.get(&row.try_get::<_, u32>(0)?) else { continue };
        let Found { table, by_number, all_columns } = &mut found[place];
        if !*all_columns && !row.try_get::<_, bool>(7)? {
            continue;
        }
        let mut column = Column::new(row.try_get::<_, String>(2)?, row.try_get::<_, String>(3)?);
        column.nullable = !row.try_get::<_, bool>(4)?;
        column.comment = row.try_get(5)?;
        column.samples = row.try_get::<_, Option<Vec<String>>>(6)?.unwrap_or_default();
        by_number.insert(row.try_get(1)?, column.name.clone());
        table.columns.push(column);
    }
    for row in keys {
        let key = Key {
            of: row.try_get(0)?,
            kind: row.try_get(1)?,
            columns: row.try_get::<_, Option<_>>(2)?.unwrap_or_default(),
            to: row.try_get(3)?,
            references: row.try_get::<_, Option<_>>(4)?.unwrap_or_default(),
        };
        add(&key, &places, &mut found);
    }
    Ok(found.into_iter().map(|found| found.table).filter(|table| !table.columns.is_empty()).collect())
}

/// Adds a key to its table. One that names a column which may not be read, or leads to a table which may not, is left out.
fn add(key: &Key, places: &HashMap<u32, usize>, found: &mut [Found]) -> Option<()> {
    let names = |found: &Found, numbers: &[i16]| -> Option<Vec<String>> {
        numbers.iter().map(|number| found.by_number.get(number).cloned()).collect()
    };
    let place = *places.get(&key.of)?;
    let columns = names(&found[place], &key.columns)?;
    match key.kind.as_str() {
        "p" => found[place].table.primary_key = columns,
        "u" => {
            let unique = &mut found[place].table.unique;
            if !unique.contains(&columns) {
                unique.push(columns);
            }
        }
        _ => {
            let parent = &found[*places.get(&key.to)?];
            let (table, references) = (parent.table.name.clone(), names(parent, &key.references)?);
            let key = ForeignKey { columns, table, references, inferred: false };
            found[place].table.foreign_keys.push(key);
        }
    }
    Some(())
}

fn not_understood(pool: &Pool, why: &dyn std::fmt::Display) -> Error {
    let what = format!("the tables of {} cannot be understood: {why}", pool.name());
    Error::unavailable(what, "this is not how PostgreSQL describes tables: is it another kind of server?")
}
