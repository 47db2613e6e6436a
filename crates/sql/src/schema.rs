//! Tables, columns, types and keys: plain data that a query is held against.
//!
//! A [`Schema`] comes from JSON ([`Schema::from_json`]), from `CREATE TABLE` text ([`Schema::from_ddl`]) or from an
//! engine. It is built once and shared; a review only reads it.

mod ddl;
mod infer;
mod render;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use ddl::DdlError;
pub use render::{as_ddl, as_ddl_with};

use crate::similarity::{SharedSimilarity, Similarity};
use crate::values::Values;

/// The kinds of value that matter to a review; vendors' type names are folded into these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Type {
    Integer,
    /// Decimals and floats.
    Number,
    Text,
    Date,
    Time,
    Timestamp,
    Interval,
    Boolean,
    Json,
    Binary,
    Array,
    /// Not known, or depends on the row.
    Any,
}

impl Type {
    /// What a vendor's type name means: `varchar(20)` is text, `BIGINT UNSIGNED` an integer.
    pub fn from_name(name: &str) -> Type {
        let lower = name.trim().to_ascii_lowercase();
        if lower.ends_with("[]") || lower.starts_with("array") || lower.starts_with('_') {
            return Type::Array;
        }
        let word: String = lower.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        match word.as_str() {
            "int" | "integer" | "bigint" | "smallint" | "tinyint" | "mediumint" | "int2" | "int4" | "int8"
            | "serial" | "bigserial" | "smallserial" | "long" | "short" | "byte" | "int16" | "int32" | "int64"
            | "unsigned" | "signed" | "year" | "hugeint" | "uint8" | "uint16" | "uint32" | "uint64" => Type::Integer,
            "real" | "float" | "double" | "decimal" | "numeric" | "number" | "float4" | "float8" | "money" | "dec"
            | "float32" | "float64" => Type::Number,
            "text" | "varchar" | "char" | "character" | "nvarchar" | "nchar" | "string" | "clob" | "tinytext"
            | "mediumtext" | "longtext" | "bpchar" | "name" | "citext" | "uuid" | "enum" | "set" | "utf8"
            | "largeutf8" | "varchar2" => Type::Text,
            "date" | "date32" => Type::Date,
            "time" | "timetz" => Type::Time,
            "timestamp" | "timestamptz" | "datetime" => Type::Timestamp,
            "interval" => Type::Interval,
            "bool" | "boolean" => Type::Boolean,
            "json" | "jsonb" | "map" | "struct" | "row" => Type::Json,
            "blob" | "bytea" | "binary" | "varbinary" | "longblob" | "mediumblob" | "tinyblob" | "bytes" => {
                Type::Binary
            }
            _ => Type::Any,
        }
    }

    /// Integers and other numbers.
    pub fn is_numeric(self) -> bool {
        matches!(self, Type::Integer | Type::Number)
    }

    /// Dates and timestamps.
    pub fn is_moment(self) -> bool {
        matches!(self, Type::Date | Type::Timestamp)
    }

    /// The word used in messages.
    pub fn word(self) -> &'static str {
        match self {
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Text => "text",
            Type::Date => "date",
            Type::Time => "time",
            Type::Timestamp => "timestamp",
            Type::Interval => "interval",
            Type::Boolean => "boolean",
            Type::Json => "json",
            Type::Binary => "binary",
            Type::Array => "array",
            Type::Any => "unknown",
        }
    }
}

/// A column of a table or view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// As the database spells it.
    pub name: String,
    /// The vendor's type name; may be empty.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_name: String,
    /// Whether NULL may stand in it.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub nullable: bool,
    /// What the database says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Some of the values it really holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
}

impl Column {
    /// A nullable column without comment or samples.
    pub fn new(name: impl Into<String>, type_name: impl Into<String>) -> Self {
        Self { name: name.into(), type_name: type_name.into(), nullable: true, comment: None, samples: Vec::new() }
    }

    /// What its type name means.
    pub fn kind(&self) -> Type {
        Type::from_name(&self.type_name)
    }
}

/// Columns of one table that point at columns of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignKey {
    /// Columns of this table.
    pub columns: Vec<String>,
    /// The table they point at.
    pub table: String,
    /// The columns there, in the same order.
    pub references: Vec<String>,
    /// Not declared in the database, but concluded from equal names, types and a key on the other side.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inferred: bool,
}

/// Whether rows are stored or computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TableKind {
    /// Rows are stored.
    #[default]
    Table,
    /// Rows are computed by a query.
    View,
}

/// A table or view.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// As the database spells it.
    pub name: String,
    /// The schema or database that it lives in, where the engine has such a thing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Table or view.
    #[serde(default)]
    pub kind: TableKind,
    /// In the order of `SELECT *`.
    pub columns: Vec<Column>,
    /// Columns of the primary key; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub primary_key: Vec<String>,
    /// Declared first, then inferred ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// Sets of columns that are unique together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unique: Vec<Vec<String>>,
    /// What the database says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Columns that can be named but are not part of `*`, such as the `rank` of a full-text table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

impl Table {
    /// The column of that name; case is ignored where no column fits exactly.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns
            .iter()
            .find(|c| c.name == name)
            .or_else(|| self.columns.iter().find(|c| c.name.eq_ignore_ascii_case(name)))
    }

    /// Whether at most one row can hold any given values in these columns.
    pub fn is_unique(&self, columns: &[&str]) -> bool {
        let covers =
            |key: &[String]| !key.is_empty() && key.iter().all(|k| columns.iter().any(|c| c.eq_ignore_ascii_case(k)));
        covers(&self.primary_key) || self.unique.iter().any(|key| covers(key))
    }

    /// `schema.name`, or the name alone.
    pub fn full_name(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Everything a query may name. Build it with [`Schema::new`]; the tables then stay as they are.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Schema {
    tables: Vec<Table>,
    /// Functions that users defined in the database, if whoever read the schema has listed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    functions: Option<Vec<String>>,
    /// What users defined and what is called without parentheses: `t.f` and `a @@@ b`.
    #[serde(skip)]
    disguised: Vec<String>,
    #[serde(skip)]
    by_name: HashMap<String, Vec<usize>>,
    /// So many tables at the end are known, and never spoken of.
    #[serde(skip)]
    hidden: usize,
    /// Columns that are known to be there, by the full names of their tables, and never spoken of.
    #[serde(skip)]
    withheld: Vec<(String, String)>,
    /// What its columns hold, once somebody has read it.
    #[serde(skip)]
    values: OnceLock<Arc<Values>>,
    /// Compares meanings of names, once somebody has attached it.
    #[serde(skip)]
    similarity: OnceLock<SharedSimilarity>,
}

/// Why a schema could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON of the documented form.
    #[error("the schema is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The same table twice.
    #[error("table `{0}` is described twice")]
    DuplicateTable(String),
    /// The same column twice in one table.
    #[error("column `{column}` of table `{table}` is described twice")]
    DuplicateColumn {
        /// The table.
        table: String,
        /// Its column.
        column: String,
    },
    /// A key names a column that is not there.
    #[error("a key of table `{table}` names the column `{column}`, which it does not have")]
    UnknownKeyColumn {
        /// The table.
        table: String,
        /// What its key names.
        column: String,
    },
    /// The text is not `CREATE TABLE` statements.
    #[error(transparent)]
    Ddl(#[from] DdlError),
}

#[derive(Deserialize)]
struct SchemaFile {
    tables: Vec<Table>,
    functions: Option<Vec<String>>,
}

impl Schema {
    /// Checks the tables (no duplicates, keys name real columns), adds inferred foreign keys and builds the index.
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
        infer::foreign_keys(&mut schema.tables);
        Ok(schema)
    }

    /// Adds the functions that users defined in the database: all of them, so that any other is known not to exist.
    #[must_use]
    pub fn with_functions(mut self, functions: Vec<String>) -> Self {
        self.functions = Some(functions.into_iter().map(|f| f.to_lowercase()).collect());
        self
    }

    /// Adds the names of functions and operators that users defined and that are called without parentheses: where a field
    /// could stand, `t.f` is `f(t)` to PostgreSQL. What they do is not known.
    #[must_use]
    pub fn with_disguised_functions(mut self, names: Vec<String>) -> Self {
        self.disguised = names.into_iter().map(|name| name.to_lowercase()).collect();
        self
    }

    /// Reads the form that `querymend schema --format json` writes.
    pub fn from_json(text: &str) -> Result<Self, SchemaError> {
        let file: SchemaFile = serde_json::from_str(text)?;
        let schema = Self::new(file.tables)?;
        Ok(match file.functions {
            Some(functions) => schema.with_functions(functions),
            None => schema,
        })
    }

    /// Reads `CREATE TABLE` statements; other statements in the text are passed over.
    pub fn from_ddl(text: &str, dialect: &crate::Dialect) -> Result<Self, SchemaError> {
        Self::new(ddl::tables(text, dialect)?)
    }

    /// The same with some tables hidden: a query that names one is still understood, so that it can be refused for it, but
    /// nothing leads to it: [`Schema::tables`] does not list it, and no foreign key points at it.
    #[must_use]
    pub fn hiding(&self, hide: impl Fn(&Table) -> bool) -> Self {
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
        let (functions, disguised, withheld) = (self.functions.clone(), self.disguised.clone(), self.withheld.clone());
        let similarity = self.similarity.clone();
        Self { tables, functions, disguised, by_name, hidden: count, withheld, values: OnceLock::new(), similarity }
    }

    /// The same without some columns, and without the keys that they are part of: half a key would not be one. Which columns
    /// were taken away is remembered, so that `*` is known to show them.
    #[must_use]
    pub fn withholding(mut self, hide: impl Fn(&Table, &str) -> bool) -> Self {
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
        self.withheld.extend(taken);
        // What was learned may speak of them.
        self.values = OnceLock::new();
        self
    }

    /// The columns of a table that were taken away.
    pub fn withheld<'s>(&'s self, table: &Table) -> impl Iterator<Item = &'s str> {
        let full = table.full_name();
        self.withheld.iter().filter(move |(of, _)| *of == full).map(|(_, column)| column.as_str())
    }

    /// Adds what its columns hold. It is read after the tables, and once told stays as it is: rules that speak of values are
    /// silent before.
    pub fn learn(&self, values: Arc<Values>) {
        self.values.get_or_init(|| values);
    }

    /// What its columns hold, where that is known.
    pub fn values(&self) -> Option<&Arc<Values>> {
        self.values.get()
    }

    /// Attaches an implementation of [`Similarity`]. The first one stays.
    pub fn set_similarity(&self, similarity: Arc<dyn Similarity>) {
        self.similarity.get_or_init(|| SharedSimilarity(similarity));
    }

    /// Returns the attached [`Similarity`]; `None` means that only spelling can be compared.
    pub fn similarity(&self) -> Option<&dyn Similarity> {
        self.similarity.get().map(|shared| &*shared.0)
    }

    /// All tables and views that may be spoken of.
    pub fn tables(&self) -> &[Table] {
        &self.tables[..self.tables.len() - self.hidden]
    }

    /// Tables whose name is this one when case is ignored; `lower` must be lower case.
    pub fn tables_like(&self, lower: &str) -> impl Iterator<Item = &Table> {
        self.by_name.get(lower).into_iter().flatten().map(|&i| &self.tables[i])
    }

    /// The table of that name; case is ignored where no table fits exactly.
    pub fn table(&self, name: &str) -> Option<&Table> {
        let candidates = self.by_name.get(&name.to_lowercase())?;
        let exact = candidates.iter().find(|&&i| self.tables[i].name == name);
        exact.or(candidates.first()).map(|&i| &self.tables[i])
    }

    /// Whether all functions that users defined are known.
    pub fn lists_functions(&self) -> bool {
        self.functions.is_some()
    }

    /// The operators among the functions that need no parentheses.
    pub(crate) fn disguised_operators(&self) -> impl Iterator<Item = &str> {
        let is_operator = |name: &&str| !name.contains(|c: char| c.is_alphanumeric() || c == '_');
        self.disguised.iter().map(String::as_str).filter(is_operator)
    }

    /// Whether a field of that (lower-case) name may be a function that users defined.
    pub fn has_disguised_function(&self, lower: &str) -> bool {
        self.disguised.iter().any(|f| f == lower)
    }

    /// Whether users defined a function of that (lower-case) name.
    pub fn has_function(&self, lower: &str) -> bool {
        self.functions.iter().flatten().any(|f| f == lower)
    }
}

fn yes() -> bool {
    true
}
fn is_true(b: &bool) -> bool {
    *b
}
fn is_false(b: &bool) -> bool {
    !*b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_of_vendors_are_understood() {
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
    fn a_schema_with_two_tables_of_one_name_is_refused() {
        let twice = r#"{"tables":[{"name":"a","columns":[]},{"name":"a","columns":[]}]}"#;
        assert_eq!(Schema::from_json(twice).unwrap_err().to_string(), "table `a` is described twice");
        let column = r#"{"tables":[{"name":"a","columns":[{"name":"x"},{"name":"x"}]}]}"#;
        assert_eq!(Schema::from_json(column).unwrap_err().to_string(), "column `x` of table `a` is described twice");
        let key = r#"{"tables":[{"name":"a","columns":[{"name":"x"}],"primary_key":["y"]}]}"#;
        assert!(Schema::from_json(key).unwrap_err().to_string().contains("names the column `y`"));
    }

    #[test]
    fn foreign_keys_in_a_cycle_are_data_like_any_other() {
        let cycle = r#"{"tables":[
            {"name":"a","columns":[{"name":"id"},{"name":"b_id"}],"primary_key":["id"],"foreign_keys":[{"columns":["b_id"],"table":"b","references":["id"]}]},
            {"name":"b","columns":[{"name":"id"},{"name":"a_id"}],"primary_key":["id"],"foreign_keys":[{"columns":["a_id"],"table":"a","references":["id"]}]}]}"#;
        assert_eq!(Schema::from_json(cycle).unwrap().tables().len(), 2);
    }

    #[test]
    fn a_schema_survives_being_written_and_read() {
        let schema = Schema::from_ddl(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE); CREATE TABLE u (t_id INT REFERENCES t(id));",
            &crate::dialect::SQLITE,
        )
        .unwrap();
        let again = Schema::from_json(&serde_json::to_string(&schema).unwrap()).unwrap();
        assert_eq!(again.tables(), schema.tables());
    }
}
