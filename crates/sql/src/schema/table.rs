//! Tables, their columns and foreign keys.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::types::Type;

/// Column of a table or view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Column {
    /// Name as spelled in the database.
    pub name: String,
    /// Type name of the vendor; may be empty.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_name: String,
    /// `true` if the column may contain NULL.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub nullable: bool,
    /// Comment on the column in the database; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Sample of the values in the column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<String>,
}

impl Column {
    /// Creates a nullable column without comment or samples.
    pub fn new(name: impl Into<String>, type_name: impl Into<String>) -> Self {
        Self { name: name.into(), type_name: type_name.into(), nullable: true, comment: None, samples: Vec::new() }
    }

    /// Returns the type that the type name maps to.
    pub fn kind(&self) -> Type {
        Type::from_name(&self.type_name)
    }
}

/// Foreign key from columns of one table to columns of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForeignKey {
    /// Columns of this table.
    pub columns: Vec<String>,
    /// Referenced table.
    pub table: String,
    /// Referenced columns, in the same order.
    pub references: Vec<String>,
    /// `true` if the key is not declared in the database, but inferred from equal names, types and
    /// a key of the referenced table.
    #[serde(default, skip_serializing_if = "is_false")]
    pub inferred: bool,
}

/// Kind of a relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TableKind {
    /// Relation with stored rows.
    #[default]
    Table,
    /// Relation computed by a query.
    View,
}

/// Table or view.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Table {
    /// Name as spelled in the database.
    pub name: String,
    /// Schema or database of the table; absent if the engine has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Kind of the relation: table or view.
    #[serde(default)]
    pub kind: TableKind,
    /// Columns in the order of `SELECT *`.
    pub columns: Vec<Column>,
    /// Columns of the primary key; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub primary_key: Vec<String>,
    /// Foreign keys: declared ones first, then inferred ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_keys: Vec<ForeignKey>,
    /// Sets of columns that are unique together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unique: Vec<Vec<String>>,
    /// Comment on the table in the database; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Columns that can be referenced but are not part of `*`, such as the `rank` of a full-text
    /// table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

impl Table {
    /// Returns the column with a name; case is ignored if no column matches exactly.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns
            .iter()
            .find(|c| c.name == name)
            .or_else(|| self.columns.iter().find(|c| c.name.eq_ignore_ascii_case(name)))
    }

    /// Returns whether the columns include a unique key, so that at most one row has given values
    /// in them.
    pub fn is_unique(&self, columns: &[&str]) -> bool {
        let covers =
            |key: &[String]| !key.is_empty() && key.iter().all(|k| columns.iter().any(|c| c.eq_ignore_ascii_case(k)));
        covers(&self.primary_key) || self.unique.iter().any(|key| covers(key))
    }

    /// Returns `schema.name`, or only the name if there is no schema.
    pub fn full_name(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{schema}.{}", self.name),
            None => self.name.clone(),
        }
    }
}

pub(crate) fn yes() -> bool {
    true
}

pub(crate) fn is_true(b: &bool) -> bool {
    *b
}

pub(crate) fn is_false(b: &bool) -> bool {
    !*b
}
