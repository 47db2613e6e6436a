//! What tools take. Agents read all of it before every question, so that every word here costs them.

use querymend::correct::Correct;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::service::{QueryText, Question};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    pub question: String,
    pub database: Option<String>,
    /// Facts that the question relies on
    pub evidence: Option<String>,
    /// "new" begins a conversation; the id that comes back continues it
    pub session_id: Option<String>,
    /// SQL of the choice that the user made
    pub choice: Option<String>,
}

impl Ask {
    /// As the service wants it.
    pub fn question(self, session_id: Option<String>) -> Question {
        Question {
            question: self.question,
            database: self.database,
            evidence: self.evidence,
            session_id,
            choice: self.choice,
            ..Question::default()
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    pub sql: String,
    pub database: Option<String>,
    /// What the query is to answer
    pub question: Option<String>,
}

impl From<Check> for QueryText {
    fn from(check: Check) -> Self {
        Self { sql: check.sql, database: check.database, question: check.question, max_rows: None }
    }
}

/// The contract of a correction. Names that it has besides are taken too, and not told.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repair {
    #[serde(alias = "original_query")]
    pub sql: String,
    pub database: Option<String>,
    /// What the database said
    pub error_message: Option<String>,
    /// What the query is to answer
    pub question: Option<String>,
    /// CREATE TABLE text to use instead of the database
    pub schema_context: Option<Value>,
    /// How often it was mended before
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

impl From<Repair> for Correct {
    fn from(repair: Repair) -> Self {
        Self {
            error_message: repair.error_message,
            last_error: repair.last_error,
            schema_context: repair.schema_context,
            retry_count: repair.retry_count,
            question: repair.question,
            evidence: repair.evidence,
            session_id: repair.session_id,
            user_id: repair.user_id,
            ..Correct::new(repair.sql)
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub sql: String,
    pub database: Option<String>,
    pub max_rows: Option<usize>,
}

impl From<Run> for QueryText {
    fn from(run: Run) -> Self {
        Self { sql: run.sql, database: run.database, question: None, max_rows: run.max_rows }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Show {
    pub database: Option<String>,
    #[serde(default)]
    pub tables: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ground {
    pub word: String,
    pub database: Option<String>,
    /// table.column, to look there only
    pub column: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Explain {
    pub sql: String,
    pub database: Option<String>,
}

impl From<Explain> for QueryText {
    fn from(explain: Explain) -> Self {
        Self { sql: explain.sql, database: explain.database, ..Self::default() }
    }
}

/// The schema of a type, without what says nothing to an agent: what is not required need not be told to be nullable as well,
/// and to have no default.
pub fn schema<T: JsonSchema>() -> Map<String, Value> {
    let mut schema = SchemaGenerator::default().into_root_schema_for::<T>().to_value();
    for name in ["$schema", "title", "description"] {
        schema.as_object_mut().map(|schema| schema.remove(name));
    }
    let fields = schema.get_mut("properties").and_then(Value::as_object_mut);
    for field in fields.into_iter().flat_map(|fields| fields.values_mut()) {
        let Some(field) = field.as_object_mut() else {
            // Anything at all is `true`, which some clients cannot read.
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
