//! Encodings of result rows: CSV, Arrow and Parquet, with inferred column types.

pub(crate) mod arrow;
pub mod column_types;
pub(crate) mod csv;
pub(crate) mod parquet;
