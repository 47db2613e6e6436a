//! What can be asked, as all faces read it.

use querymend::Clarify;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::user::User;

/// A request, as far as it is the same for all that can be asked.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    /// Who asks.
    pub user: &'a User,
    /// By which the request is found in logs.
    pub request_id: &'a str,
    /// The trace that it belongs to, as its sender calls it (W3C `traceparent`).
    pub traceparent: Option<&'a str>,
}

/// A question.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// In plain words.
    pub question: String,
    /// The database; it may be left out where there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// What is known besides the question.
    #[serde(default)]
    pub evidence: Option<String>,
    /// The conversation that it belongs to.
    #[serde(default)]
    pub session_id: Option<String>,
    /// A model is asked, even if the same question was answered before.
    #[serde(default)]
    pub fresh: bool,
    /// The model puts the rows into words, which costs one more call. Without it `text` is one sentence that needs no model.
    #[serde(default)]
    pub summary: bool,
    /// What happens where the question has several readings that lead to different rows; as configured, if left out.
    #[serde(default)]
    pub clarify: Option<Clarify>,
    /// The query of the option that a person chose, from `clarification.options[].sql` of an answer to the same question. It is
    /// reviewed like every other query, and run instead of a draft of the model.
    #[serde(default)]
    pub choice: Option<String>,
    /// Somebody waits who can be asked: unless the configuration says otherwise, they are.
    #[serde(skip)]
    pub is_interactive: bool,
    /// Where a last analysis runs, once no query could be found.
    #[serde(default)]
    pub analysis: Analysing,
}

/// Where the analysis of plain rows runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Analysing {
    /// On the server, as one more query.
    #[default]
    Here,
    /// Where the question came from: the answer has a program and the queries whose rows it needs.
    Browser,
}

/// A query.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueryText {
    /// The SQL.
    pub sql: String,
    /// The database; it may be left out where there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// The question that it answers: what it asks for is held against the query.
    #[serde(default)]
    pub question: Option<String>,
    /// The most rows.
    #[serde(default)]
    pub max_rows: Option<usize>,
}

/// An example that somebody adds.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewExample {
    /// The question.
    pub question: String,
    /// The query that answers it.
    pub sql: String,
    /// The database; it may be left out where there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// For all users, and not only for the one who adds it. Needs a role that administers.
    #[serde(default)]
    pub shared: bool,
}

/// A database that may be asked.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// The SQL that it speaks.
    pub dialect: &'static str,
}
