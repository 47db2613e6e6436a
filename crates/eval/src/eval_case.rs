//! Question of a dataset, with its gold queries and the expected outcome.

use serde::{Deserialize, Serialize};

use crate::outcome::CaseOutcome;

/// Question of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalCase {
    /// Unique id within the dataset.
    pub id: String,
    /// Question text.
    pub question: String,
    /// Knowledge needed beyond the schema; `None` if there is none.
    pub evidence: Option<String>,
    /// Path or URL of the database, ready to be opened.
    pub database: String,
    /// Gold queries, each of which is a right answer. If empty, the evaluation only measures
    /// whether the question is answered.
    pub gold: Vec<String>,
    /// Groups that the question belongs to.
    pub tags: Vec<String>,
    /// Expected outcome; `None` if the dataset does not specify one.
    pub expect: Option<Expectation>,
}

/// Expected outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expectation {
    /// Expected outcome: first attempt, corrected or failed.
    pub outcome: CaseOutcome,
    /// Expected error type of the first failure; `None` accepts any.
    pub error_type: Option<String>,
}
