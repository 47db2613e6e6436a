//! Request types shared by all protocols.

use querymend::Clarify;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskRequest {
    /// Question in natural language.
    pub question: String,
    /// Name of the database. Optional if there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// Additional facts that the question relies on.
    #[serde(default)]
    pub evidence: Option<String>,
    /// Id of the session that the question belongs to. If absent, the question has no context.
    #[serde(default)]
    pub session_id: Option<String>,
    /// `true` to bypass memory and call the model, even if the same question was answered before.
    #[serde(default)]
    pub fresh: bool,
    /// `true` to have the model summarize the rows in `text`, at the cost of one more call.
    /// Otherwise `text` is one sentence produced without a model.
    #[serde(default)]
    pub summary: bool,
    /// Handling of a question with several interpretations that lead to different rows. If absent,
    /// the configuration applies.
    #[serde(default)]
    pub clarify: Option<Clarify>,
    /// Query of the option that a person chose.
    ///
    /// Taken from `clarification.options[].sql` of an answer to the same question. It is reviewed
    /// like every other query, and executed instead of a draft of the model.
    #[serde(default)]
    pub choice: Option<String>,
    /// `true` if a person is available for clarifying questions.
    ///
    /// They are then asked, unless the configuration disables it.
    #[serde(skip)]
    pub is_interactive: bool,
    /// Target of the fallback analysis, used if no query could be found.
    #[serde(default)]
    pub analysis: AnalysisTarget,
}

/// Execution target of the fallback analysis of plain rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AnalysisTarget {
    /// On the server, as one more query.
    #[default]
    Here,
    /// In the client: the answer contains a program and the queries whose rows it needs.
    Browser,
}

/// A query.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlRequest {
    /// SQL text.
    pub sql: String,
    /// Name of the database. Optional if there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// Question that the query should answer, for comparison during the review.
    #[serde(default)]
    pub question: Option<String>,
    /// Maximum number of rows, at least 1 and at most the configured limit, which is the default.
    #[serde(default)]
    pub max_rows: Option<usize>,
}

/// Example to add.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateExampleRequest {
    /// Question in natural language.
    pub question: String,
    /// Query that answers the question.
    pub sql: String,
    /// Name of the database. Optional if there is only one.
    #[serde(default)]
    pub database: Option<String>,
    /// `true` to share the example with all users. Requires an admin role.
    #[serde(default)]
    pub shared: bool,
}

/// A database that can be queried.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DatabaseInfo {
    /// Name of the database.
    pub name: String,
    /// SQL dialect of the database.
    pub dialect: &'static str,
}
