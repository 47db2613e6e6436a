//! Responses of the protocol, limited to the fields that are used.

use serde::Deserialize;
use serde_json::Value;

/// Page of a result: rows, an error, or only the URL of the next page.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TrinoPage {
    pub next_uri: Option<String>,
    pub columns: Option<Vec<TrinoColumn>>,
    pub data: Option<Vec<Vec<Value>>>,
    pub error: Option<TrinoQueryError>,
}

/// Column of a result.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TrinoColumn {
    pub name: String,
    /// Type as text.
    #[serde(rename = "type")]
    pub kind: String,
    /// Structured type.
    pub type_signature: Value,
}

/// Error of a statement.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TrinoQueryError {
    pub message: Option<String>,
    pub error_name: String,
    pub error_type: String,
    pub error_location: Option<TrinoErrorLocation>,
}

/// Location in the SQL, as one-based line and character.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TrinoErrorLocation {
    pub line_number: usize,
    pub column_number: usize,
}
