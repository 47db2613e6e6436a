//! Reads the tables, columns and keys of a PostgreSQL database that the user may read.
//!
//! Four catalog queries are pipelined, regardless of the number of tables. User-defined functions
//! are not listed: a listed function counts as safe, and some functions of extensions
//! (`dblink_exec`) write. Only the names of functions that can be called without parentheses are
//! read, so that they are not mistaken for columns.

use std::collections::HashMap;

use querymend_sql::Schema;
use querymend_sql::schema::{Column, ForeignKey, Table, TableKind};
use tokio_postgres::Row;

use super::errors::{self, PgError};
use super::pool::{PgConnection, PgPool};
use super::run::{PgOperation, with_connection};
use crate::{CancelFlag, Error, Limits, introspection_limits};

/// Lists tables, views and other relations in order of creation. Partitions are read through their
/// parent table.
const TABLES: &str = "SELECT c.oid, n.nspname::text, c.relname::text, c.relkind IN ('v', 'm'), \
    pg_catalog.pg_table_is_visible(c.oid), pg_catalog.obj_description(c.oid, 'pg_class'), \
    pg_catalog.has_table_privilege(c.oid, 'SELECT') \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition \
    AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' \
    AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') \
    AND (pg_catalog.has_table_privilege(c.oid, 'SELECT') OR pg_catalog.has_any_column_privilege(c.oid, 'SELECT')) \
    ORDER BY c.oid";

/// Lists columns, with the labels of enum types.
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

/// Lists keys: declared ones, and unique indexes on plain columns and all rows.
///
/// The latter include the indexes of declared keys.
const KEYS: &str = "SELECT k.conrelid, k.contype::text, k.conkey, k.confrelid, k.confkey, k.oid \
    FROM pg_catalog.pg_constraint k WHERE k.contype IN ('p', 'u', 'f') AND k.conrelid <> 0 \
    AND (k.contype <> 'f' OR k.conparentid = 0) \
    UNION ALL SELECT i.indrelid, 'u', i.indkey::int2[], 0, NULL, i.indexrelid FROM pg_catalog.pg_index i \
    JOIN pg_catalog.pg_class c ON c.oid = i.indrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE i.indisunique AND NOT i.indisprimary AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL \
    AND i.indnkeyatts = i.indnatts AND n.nspname !~ '^pg_' AND NOT c.relispartition \
    ORDER BY 1, 6";

/// Lists functions of one argument, which `t.f` calls, and user-defined operators.
///
/// An operator counts if its function is written in a language that users write in. Operators with
/// the name of a built-in one are excluded: if `=` were rejected, no query could be asked.
const ATTRIBUTE_STYLE_FUNCTIONS: &str = "SELECT DISTINCT p.proname::text FROM pg_catalog.pg_proc p \
    JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace \
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema') AND p.pronargs > 0 AND p.pronargs - p.pronargdefaults <= 1 \
    UNION SELECT o.oprname::text FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode \
    JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
    WHERE l.lanname NOT IN ('internal', 'c') AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_operator b \
    WHERE b.oprname = o.oprname AND b.oprnamespace = 'pg_catalog'::pg_catalog.regnamespace)";

/// Table, with its column names by attribute number.
struct IntrospectedTable {
    table: Table,
    by_number: HashMap<i16, String>,
    reads_all_columns: bool,
}

/// Key, as catalog OIDs and attribute numbers.
struct ConstraintKey {
    table_oid: u32,
    kind: String,
    columns: Vec<i16>,
    referenced_oid: u32,
    references: Vec<i16>,
}

/// Reads the catalog.
struct PgCatalogQuery<'a> {
    name: &'a str,
}

impl PgOperation for PgCatalogQuery<'_> {
    type Output = [Vec<Row>; 4];

    async fn perform(&self, connection: &PgConnection) -> Result<[Vec<Row>; 4], PgError> {
        let [tables, columns, keys, disguised] = [TABLES, COLUMNS, KEYS, ATTRIBUTE_STYLE_FUNCTIONS]
            .map(|sql| sql.to_string() + &introspection_limits::limit_clause());
        let (begun, tables, columns, keys, disguised) = tokio::join!(
            // Repeatable read, so that the four queries see the same snapshot.
            connection.client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            connection.client.query_typed(&tables, &[]),
            connection.client.query_typed(&columns, &[]),
            connection.client.query_typed(&keys, &[]),
            connection.client.query_typed(&disguised, &[]),
        );
        let to_error = |error| errors::query_error(self.name, "", &error);
        begun.map_err(to_error)?;
        Ok([
            tables.map_err(to_error)?,
            columns.map_err(to_error)?,
            keys.map_err(to_error)?,
            disguised.map_err(to_error)?,
        ])
    }
}

pub(super) async fn read_schema(pool: &PgPool) -> Result<Schema, Error> {
    let catalogue = PgCatalogQuery { name: pool.name() };
    let [tables, columns, keys, disguised] =
        with_connection(pool, &Limits::default(), &CancelFlag::new(), catalogue).await?;
    introspection_limits::check_catalog_size(
        tables.len().max(columns.len()).max(keys.len()).max(disguised.len()),
        pool.name(),
    )?;
    let found = build_tables(&tables, &columns, &keys).map_err(|error| invalid_catalog(pool, &error))?;
    let names: Result<Vec<String>, _> = disguised.iter().map(|row| row.try_get(0)).collect();
    let names = names.map_err(|error| invalid_catalog(pool, &error))?;
    Ok(Schema::new(found).map_err(|error| invalid_catalog(pool, &error))?.with_attribute_style_functions(names))
}

fn build_tables(tables: &[Row], columns: &[Row], keys: &[Row]) -> Result<Vec<Table>, tokio_postgres::Error> {
    let mut table_index = HashMap::with_capacity(tables.len());
    let mut found = Vec::with_capacity(tables.len());
    for row in tables {
        let (schema, is_visible): (String, bool) = (row.try_get(1)?, row.try_get(4)?);
        let table = Table {
            name: row.try_get(2)?,
            // Tables on the search path need no schema; others cannot be referenced without one.
            schema: (!is_visible).then_some(schema),
            kind: if row.try_get(3)? { TableKind::View } else { TableKind::Table },
            comment: row.try_get(5)?,
            ..Table::default()
        };
        table_index.insert(row.try_get::<_, u32>(0)?, found.len());
        found.push(IntrospectedTable { table, by_number: HashMap::new(), reads_all_columns: row.try_get(6)? });
    }
    for row in columns {
        let Some(&place) = table_index.get(&row.try_get::<_, u32>(0)?) else { continue };
        let IntrospectedTable { table, by_number, reads_all_columns: all_columns } = &mut found[place];
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
        let key = ConstraintKey {
            table_oid: row.try_get(0)?,
            kind: row.try_get(1)?,
            columns: row.try_get::<_, Option<_>>(2)?.unwrap_or_default(),
            referenced_oid: row.try_get(3)?,
            references: row.try_get::<_, Option<_>>(4)?.unwrap_or_default(),
        };
        add_key(&key, &table_index, &mut found);
    }
    Ok(found.into_iter().map(|found| found.table).filter(|table| !table.columns.is_empty()).collect())
}

/// Adds a key to its table. Skips keys with a column or a referenced table that may not be read.
fn add_key(key: &ConstraintKey, table_index: &HashMap<u32, usize>, found: &mut [IntrospectedTable]) -> Option<()> {
    let names = |found: &IntrospectedTable, numbers: &[i16]| -> Option<Vec<String>> {
        numbers.iter().map(|number| found.by_number.get(number).cloned()).collect()
    };
    let place = *table_index.get(&key.table_oid)?;
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
            let parent = &found[*table_index.get(&key.referenced_oid)?];
            let (table, references) = (parent.table.name.clone(), names(parent, &key.references)?);
            let key = ForeignKey { columns, table, references, inferred: false };
            found[place].table.foreign_keys.push(key);
        }
    }
    Some(())
}

fn invalid_catalog(pool: &PgPool, why: &dyn std::fmt::Display) -> Error {
    let what = format!("the schema of {} cannot be read: {why}", pool.name());
    Error::unavailable(what, "pg_catalog has unexpected content: is it another kind of server?")
}
