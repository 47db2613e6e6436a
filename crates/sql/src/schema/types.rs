//! Column types that a review distinguishes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Types that matter to a review; type names of vendors are mapped to these.
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
    /// Unknown, or dependent on the row.
    Any,
}

impl Type {
    /// Maps the type name of a vendor: `varchar(20)` is text, `BIGINT UNSIGNED` an integer.
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

    /// Returns whether the type is an integer or another number.
    pub fn is_numeric(self) -> bool {
        matches!(self, Type::Integer | Type::Number)
    }

    /// Returns whether the type is a date or timestamp.
    pub fn is_date_or_timestamp(self) -> bool {
        matches!(self, Type::Date | Type::Timestamp)
    }

    /// Returns the name used in messages.
    pub fn as_str(self) -> &'static str {
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
