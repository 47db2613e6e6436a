//! Tool arguments. Agents read these descriptions with every request, so each costs tokens.

use querymend::correction::CorrectionRequest;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::service::{AskRequest, SqlRequest};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskToolArgs {
    pub question: String,
    pub database: Option<String>,
    /// Facts that the question relies on
    pub evidence: Option<String>,
    /// "new" starts a session; the returned id continues it
    pub session_id: Option<String>,
    /// SQL of the user's choice
    pub choice: Option<String>,
}

impl AskToolArgs {
    /// Converts the arguments to a service request.
    pub fn into_request(self, session_id: Option<String>) -> AskRequest {
        AskRequest {
            question: self.question,
            database: self.database,
            evidence: self.evidence,
            session_id,
            choice: self.choice,
            ..AskRequest::default()
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckToolArgs {
    pub sql: String,
    pub database: Option<String>,
    /// Question that the query answers
    pub question: Option<String>,
}

impl From<CheckToolArgs> for SqlRequest {
    fn from(check: CheckToolArgs) -> Self {
        Self { sql: check.sql, database: check.database, question: check.question, max_rows: None }
    }
}

/// Arguments of `fix_sql`.
///
/// Other fields of the correction contract are accepted but not listed in the schema.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepairToolArgs {
    #[serde(alias = "original_query")]
    pub sql: String,
    pub database: Option<String>,
    /// Database error
    pub error_message: Option<String>,
    /// Question that the query answers
    pub question: Option<String>,
    /// CREATE TABLE text to use instead of the database
    pub schema_context: Option<Value>,
    /// Number of earlier repairs
    #[serde(default)]
    pub retry_count: u32,
    #[schemars(skip)]
    pub last_error: Option<String>,
    #[schemars(skip)]
    pub evidence: Option<String>,
    #[schemars(skip)]
    pub session_id: Option<String>,
    #[schemars(skip)]
    pub user_id: Option<String>,
}

impl From<RepairToolArgs> for CorrectionRequest {
    fn from(repair: RepairToolArgs) -> Self {
        Self {
            error_message: repair.error_message,
            last_error: repair.last_error,
            schema_context: repair.schema_context,
            retry_count: repair.retry_count,
            question: repair.question,
            evidence: repair.evidence,
            session_id: repair.session_id,
            user_id: repair.user_id,
            ..CorrectionRequest::new(repair.sql)
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunToolArgs {
    pub sql: String,
    pub database: Option<String>,
    pub max_rows: Option<usize>,
}

impl From<RunToolArgs> for SqlRequest {
    fn from(run: RunToolArgs) -> Self {
        Self { sql: run.sql, database: run.database, question: None, max_rows: run.max_rows }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SchemaToolArgs {
    pub database: Option<String>,
    #[serde(default)]
    pub tables: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindValuesToolArgs {
    pub word: String,
    pub database: Option<String>,
    /// table.column to search
    pub column: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainEmptyToolArgs {
    pub sql: String,
    pub database: Option<String>,
}

impl From<ExplainEmptyToolArgs> for SqlRequest {
    fn from(explain: ExplainEmptyToolArgs) -> Self {
        Self { sql: explain.sql, database: explain.database, ..Self::default() }
    }
}

/// Returns the JSON schema of a type without redundant parts.
///
/// Optional fields are listed neither as nullable nor with a default.
pub fn input_schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    for name in ["$schema", "title", "description"] {
        schema.as_object_mut().map(|schema| schema.remove(name));
    }
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        let Some(field) = field.as_object_mut() else {
            // A field of any type has the schema `true`, which some clients cannot parse.
            *field = Value::Object(Map::new());
            continue;
        };
        for name in ["default", "format", "minimum"] {
            field.remove(name);
        }
        let kind = field.get_mut("type");
        if let Some(kind) = kind {
            let only = kind.as_array().and_then(|kinds| kinds.iter().find(|kind| *kind != "null")).cloned();
            *kind = only.unwrap_or_else(|| kind.clone());
        }
    }
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}
