//! The protocol's answers, as far as they are read.

use serde::Deserialize;
use serde_json::Value;

/// One step of a statement: some rows, or an error, or only where to ask next.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Step {
    pub next_uri: Option<String>,
    pub columns: Option<Vec<Column>>,
    pub data: Option<Vec<Vec<Value>>>,
    pub error: Option<Failure>,
}

/// A column of the answer.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Column {
    pub name: String,
    /// The type as text.
    #[serde(rename = "type")]
    pub kind: String,
    /// The type, taken apart.
    pub type_signature: Value,
}

/// Why the server did not do it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Failure {
    pub message: Option<String>,
    pub error_name: String,
    pub error_type: String,
    pub error_location: Option<Location>,
}

/// A place in the text, both counted from one; columns are characters.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    pub line_number: usize,
    pub column_number: usize,
}
