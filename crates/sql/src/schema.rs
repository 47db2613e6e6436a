//! Tables, columns, types and keys: plain data that a query is checked against.
//!
//! A [`Schema`] is loaded from JSON ([`Schema::from_json`]), from `CREATE TABLE` text
//! ([`Schema::from_ddl`]) or from an engine. It is built once and shared; a review only reads it.

mod ddl;
mod infer_keys;
pub(crate) mod join_graph;
mod render;
mod table;
mod types;
pub mod value_index;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

pub use ddl::DdlError;
pub use render::{render_ddl, render_ddl_with_comments};
pub use table::{Column, ForeignKey, Table, TableKind};
pub use types::Type;

use crate::schema::value_index::ValueIndex;
use crate::text::semantic_similarity::{SharedSimilarity, Similarity};

/// Everything that a query may reference. Built with [`Schema::new`], after which the tables are
/// immutable.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Schema {
    tables: Vec<Table>,
    /// User-defined functions of the database; `None` if they were not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<Vec<String>>,
    /// User-defined functions and operators that are called without parentheses: `t.f` and `a @@@
    /// b`.
    #[serde(skip)]
    attribute_style_functions: Vec<String>,
    #[serde(skip)]
    by_name: HashMap<String, Vec<usize>>,
    /// Number of hidden tables at the end of `tables`: resolved, but never suggested.
    #[serde(skip)]
    hidden_tables: usize,
    /// Hidden columns as pairs of full table name and column name: known to exist, but never
    /// suggested.
    #[serde(skip)]
    withheld_columns: Vec<(String, String)>,
    /// Index of column values, once it is set.
    #[serde(skip)]
    value_index: OnceLock<Arc<ValueIndex>>,
    /// Semantic similarity of names, once it is set.
    #[serde(skip)]
    similarity: OnceLock<SharedSimilarity>,
}

/// Error while reading a schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON in the documented format.
    #[error("the schema is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A table is defined twice.
    #[error("table `{0}` is described twice")]
    DuplicateTable(String),
    /// A column is defined twice in one table.
    #[error("column `{column}` of table `{table}` is described twice")]
    DuplicateColumn {
        /// Table name.
        table: String,
        /// Column name.
        column: String,
    },
    /// A key refers to a column that does not exist.
    #[error("a key of table `{table}` names the column `{column}`, which it does not have")]
    UnknownKeyColumn {
        /// Table name.
        table: String,
        /// Column name in the key.
        column: String,
    },
    /// The text does not consist of `CREATE TABLE` statements.
    #[error(transparent)]
    Ddl(#[from] DdlError),
}

#[derive(Deserialize)]
struct SchemaFile {
    tables: Vec<Table>,
    functions: Option<Vec<String>>,
}

impl Schema {
    /// Validates the tables (no duplicates, keys refer to existing columns), adds inferred foreign
    /// keys and builds the name index.
    pub fn new(tables: Vec<Table>) -> Result<Self, SchemaError> {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::with_capacity(tables.len());
        for (i, table) in tables.iter().enumerate() {
            let same = by_name.entry(table.name.to_lowercase()).or_default();
            if same.iter().any(|&j| tables[j].name == table.name && tables[j].schema == table.schema) {
                return Err(SchemaError::DuplicateTable(table.full_name()));
            }
            same.push(i);
            for (k, column) in table.columns.iter().enumerate() {
                if table.columns[..k].iter().any(|c| c.name == column.name) {
                    return Err(SchemaError::DuplicateColumn {
                        table: table.name.clone(),
                        column: column.name.clone(),
                    });
                }
            }
            let keys = table.primary_key.iter().chain(table.unique.iter().flatten());
            for key in keys.chain(table.foreign_keys.iter().flat_map(|k| &k.columns)) {
                if table.column(key).is_none() {
                    return Err(SchemaError::UnknownKeyColumn { table: table.name.clone(), column: key.clone() });
                }
            }
        }
        let mut schema = Self { tables, by_name, ..Self::default() };
        infer_keys::infer_foreign_keys(&mut schema.tables);
        Ok(schema)
    }

    /// Sets the complete list of user-defined functions, so that any other function is known not to
    /// exist.
    #[must_use]
    pub fn with_functions(mut self, functions: Vec<String>) -> Self {
        self.functions = Some(functions.into_iter().map(|f| f.to_lowercase()).collect());
        self
    }

    /// Sets the user-defined functions and operators that are called without parentheses.
    ///
    /// PostgreSQL evaluates `t.f` as `f(t)` in place of a field. The effect of these functions is
    /// unknown.
    #[must_use]
    pub fn with_attribute_style_functions(mut self, names: Vec<String>) -> Self {
        self.attribute_style_functions = names.into_iter().map(|name| name.to_lowercase()).collect();
        self
    }

    /// Parses the format that `querymend schema --format json` writes.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        let file: SchemaFile = serde_json::from_str(text)?;
        let schema = Self::new(file.tables)?;
        Ok(match file.functions {
            Some(functions) => schema.with_functions(functions),
            None => schema,
        })
    }

    /// Parses `CREATE TABLE` statements; other statements in the text are skipped.
    pub fn from_ddl(text: &str, dialect: &crate::Dialect) -> Result<Self, SchemaError> {
        Self::new(ddl::parse_tables(text, dialect)?)
    }

    /// Returns the schema with some tables hidden.
    ///
    /// A query that names a hidden table still resolves, so that it can be rejected for it, but
    /// nothing suggests the table: [`Schema::tables`] does not list it, and no foreign key refers
    /// to it.
    #[must_use]
    pub fn without_tables(&self, hide: impl Fn(&Table) -> bool) -> Self {
        let (hidden, mut tables): (Vec<Table>, Vec<Table>) = self.tables().iter().cloned().partition(|t| hide(t));
        let is_shown = |name: &str| tables.iter().any(|t| t.name.eq_ignore_ascii_case(name));
        let keys: Vec<Vec<ForeignKey>> = tables
            .iter()
            .map(|t| t.foreign_keys.iter().filter(|key| is_shown(&key.table)).cloned().collect())
            .collect();
        tables.iter_mut().zip(keys).for_each(|(table, keys)| table.foreign_keys = keys);
        let before = self.tables[self.tables().len()..].iter().cloned();
        let hidden: Vec<Table> = hidden.into_iter().chain(before).collect();
        let count = hidden.len();
        tables.extend(hidden);
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::with_capacity(tables.len());
        for (i, table) in tables.iter().enumerate() {
            by_name.entry(table.name.to_lowercase()).or_default().push(i);
        }
        let (functions, disguised, withheld) =
            (self.functions.clone(), self.attribute_style_functions.clone(), self.withheld_columns.clone());
        let similarity = self.similarity.clone();
        Self {
            tables,
            functions,
            attribute_style_functions: disguised,
            by_name,
            hidden_tables: count,
            withheld_columns: withheld,
            value_index: OnceLock::new(),
            similarity,
        }
    }

    /// Returns the schema without some columns and without the keys that contain them, since a
    /// partial key is not a key.
    ///
    /// The removed columns are recorded because `*` still returns them.
    #[must_use]
    pub fn without_columns(mut self, hide: impl Fn(&Table, &str) -> bool) -> Self {
        let mut taken: Vec<(String, String)> = Vec::new();
        for table in &self.tables {
            let names = table.columns.iter().map(|c| &c.name).chain(&table.hidden);
            let of_table = names.filter(|name| hide(table, name)).map(|name| (table.full_name(), name.clone()));
            taken.extend(of_table);
        }
        let is_taken = |table: &str, column: &str| {
            taken.iter().any(|(t, c)| {
                let bare = t.rsplit('.').next().unwrap_or(t);
                (t.eq_ignore_ascii_case(table) || bare.eq_ignore_ascii_case(table)) && c.eq_ignore_ascii_case(column)
            })
        };
        for table in &mut self.tables {
            let full = table.full_name();
            let own = |column: &str| taken.iter().any(|(t, c)| *t == full && c.eq_ignore_ascii_case(column));
            table.columns.retain(|c| !own(&c.name));
            table.hidden.retain(|name| !own(name));
            if table.primary_key.iter().any(|c| own(c)) {
                table.primary_key.clear();
            }
            table.unique.retain(|key| !key.iter().any(|c| own(c)));
            table.foreign_keys.retain(|key| {
                !key.columns.iter().any(|c| own(c)) && !key.references.iter().any(|c| is_taken(&key.table, c))
            });
        }
        self.withheld_columns.extend(taken);
        // The index may contain values of removed columns.
        self.value_index = OnceLock::new();
        self
    }

    /// Returns the columns that were removed from a table.
    pub fn withheld_columns<'s>(&'s self, table: &Table) -> impl Iterator<Item = &'s str> {
        let full = table.full_name();
        self.withheld_columns.iter().filter(move |(of, _)| *of == full).map(|(_, column)| column.as_str())
    }

    /// Sets the index of column values; only the first call has an effect.
    ///
    /// The values are read after the tables. Rules that depend on values report nothing before.
    pub fn set_value_index(&self, values: Arc<ValueIndex>) {
        self.value_index.get_or_init(|| values);
    }

    /// Returns the index of column values, if it is set.
    pub fn value_index(&self) -> Option<&Arc<ValueIndex>> {
        self.value_index.get()
    }

    /// Attaches an implementation of [`Similarity`]; only the first call has an effect.
    pub fn set_similarity(&self, similarity: Arc<dyn Similarity>) {
        self.similarity.get_or_init(|| SharedSimilarity(similarity));
    }

    /// Returns the attached [`Similarity`]; `None` means that only spelling can be compared.
    pub fn similarity(&self) -> Option<&dyn Similarity> {
        self.similarity.get().map(|shared| &*shared.0)
    }

    /// Returns all tables and views that are not hidden.
    pub fn tables(&self) -> &[Table] {
        &self.tables[..self.tables.len() - self.hidden_tables]
    }

    /// Returns the tables with a name, ignoring case; `lower` must be lower case.
    pub fn tables_ignoring_case(&self, lower: &str) -> impl Iterator<Item = &Table> {
        self.by_name.get(lower).into_iter().flatten().map(|&i| &self.tables[i])
    }

    /// Returns the table with a name; case is ignored if no table matches exactly.
    pub fn table(&self, name: &str) -> Option<&Table> {
        let candidates = self.by_name.get(&name.to_lowercase())?;
        let exact = candidates.iter().find(|&&i| self.tables[i].name == name);
        exact.or(candidates.first()).map(|&i| &self.tables[i])
    }

    /// Returns whether the list of user-defined functions is known.
    pub fn has_function_list(&self) -> bool {
        self.functions.is_some()
    }

    /// Returns the user-defined operators.
    pub(crate) fn attribute_style_operators(&self) -> impl Iterator<Item = &str> {
        let is_operator = |name: &&str| !name.contains(|c: char| c.is_alphanumeric() || c == '_');
        self.attribute_style_functions.iter().map(String::as_str).filter(is_operator)
    }

    /// Returns whether a field with a (lower-case) name may be a user-defined function.
    pub fn has_attribute_style_function(&self, lower: &str) -> bool {
        self.attribute_style_functions.iter().any(|f| f == lower)
    }

    /// Returns whether a user-defined function with a (lower-case) name exists.
    pub fn has_function(&self, lower: &str) -> bool {
        self.functions.iter().flatten().any(|f| f == lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_vendor_type_names() {
        for (name, kind) in [
            ("varchar(20)", Type::Text),
            ("BIGINT UNSIGNED", Type::Integer),
            ("timestamp with time zone", Type::Timestamp),
            ("double precision", Type::Number),
            ("integer[]", Type::Array),
            ("", Type::Any),
        ] {
            assert_eq!(Type::from_name(name), kind, "{name}");
        }
    }

    #[test]
    fn rejects_duplicate_tables_columns_and_unknown_key_columns() {
        let twice = r#"{"tables":[{"name":"a","columns":[]},{"name":"a","columns":[]}]}"#;
        assert_eq!(Schema::from_json(twice).unwrap_err().to_string(), "table `a` is described twice");
        let column = r#"{"tables":[{"name":"a","columns":[{"name":"x"},{"name":"x"}]}]}"#;
        assert_eq!(Schema::from_json(column).unwrap_err().to_string(), "column `x` of table `a` is described twice");
        let key = r#"{"tables":[{"name":"a","columns":[{"name":"x"}],"primary_key":["y"]}]}"#;
        assert!(Schema::from_json(key).unwrap_err().to_string().contains("names the column `y`"));
    }

    #[test]
    fn accepts_cyclic_foreign_keys() {
        let cycle = r#"{"tables":[
            {"name":"a","columns":[{"name":"id"},{"name":"b_id"}],"primary_key":["id"],"foreign_keys":[{"columns":["b_id"],"table":"b","references":["id"]}]},
            {"name":"b","columns":[{"name":"id"},{"name":"a_id"}],"primary_key":["id"],"foreign_keys":[{"columns":["a_id"],"table":"a","references":["id"]}]}]}"#;
        assert_eq!(Schema::from_json(cycle).unwrap().tables().len(), 2);
    }

    #[test]
    fn round_trips_schema_through_json() {
        let schema = Schema::from_ddl(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE); CREATE TABLE u (t_id INT REFERENCES t(id));",
            &crate::dialect::SQLITE,
        )
        .unwrap();
        let again = Schema::from_json(&serde_json::to_string(&schema).unwrap()).unwrap();
        assert_eq!(again.tables(), schema.tables());
    }
}
