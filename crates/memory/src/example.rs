//! Few-shot examples: a question, its query and their metadata.

use std::time::{SystemTime, UNIX_EPOCH};

use querymend_net::to_hex;
use ring::digest::{SHA256, digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question and the query that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Example {
    /// Unique id, derived from the question and the database by [`example_id`].
    pub id: String,
    /// Question, as the user asked it.
    pub question: String,
    /// SQL query that answers the question.
    pub sql: String,
    /// Name of the database that the question refers to; empty if unknown.
    pub database: String,
    /// SQL dialect of the query.
    pub dialect: String,
    /// Name of the business metric that the question is about; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Origin of the example.
    pub provenance: Provenance,
    /// Verification status of the example.
    pub standing: VerificationStatus,
    /// Number of times that the example was included in a prompt.
    #[serde(default)]
    pub uses: u32,
    /// Number of times that it was included in a prompt and the answer drew no complaint.
    #[serde(default)]
    pub helped: u32,
    /// Number of times that it was included in a prompt and the question was abandoned, or the
    /// answer drew a complaint.
    #[serde(default)]
    pub hurt: u32,
    /// Time it was added, in seconds since the Unix epoch.
    #[serde(default)]
    pub added: u64,
}

impl Example {
    /// Creates a verified example from a file or a person, with the current time.
    pub fn new(question: &str, sql: &str, database: &str, dialect: &str) -> Self {
        Self {
            id: example_id(question, database),
            question: question.trim().to_string(),
            sql: sql.trim().to_string(),
            database: database.to_string(),
            dialect: dialect.to_string(),
            metric: None,
            provenance: Provenance::Seeded,
            standing: VerificationStatus::Verified,
            uses: 0,
            helped: 0,
            hurt: 0,
            added: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        }
    }
}

/// Origin of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// Imported from a file of examples.
    Seeded,
    /// Confirmed as correct by a person.
    Saved,
    /// Captured from an answer that drew no complaint.
    Auto,
    /// Corrected by a person after a wrong query.
    Corrected,
}

/// Verification status of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerificationStatus {
    /// Confirmed as correct, by a person or by use.
    Verified,
    /// Not reviewed yet.
    Unverified,
    /// The query does not match the schema any more. Never included in prompts.
    Stale,
    /// Marked as wrong by a person. Never included in prompts, and not captured again.
    Rejected,
}

impl VerificationStatus {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Verified, Self::Unverified, Self::Stale, Self::Rejected];

    /// Returns the name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::Stale => "stale",
            Self::Rejected => "rejected",
        }
    }

    /// Parses the name used in files and on the command line.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl Provenance {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Seeded, Self::Saved, Self::Auto, Self::Corrected];

    /// Returns the name used in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seeded => "seeded",
            Self::Saved => "saved",
            Self::Auto => "auto",
            Self::Corrected => "corrected",
        }
    }

    /// Parses the name used in files and on the command line.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Normalizes a question: lower case, single spaces, no trailing punctuation.
pub fn normalize_question(question: &str) -> String {
    let lower = question.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    words.join(" ").trim_end_matches([' ', '?', '!', '.']).to_string()
}

/// Returns the id of an example: a hash of the database and the normalized question.
pub fn example_id(question: &str, database: &str) -> String {
    let text = format!("{database}\n{}", normalize_question(question));
    to_hex(&digest(&SHA256, text.as_bytes()).as_ref()[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_question_to_same_database_has_one_id() {
        let first = example_id("How many orders are there?", "shop");
        assert_eq!(first.len(), 32);
        assert_eq!(first, example_id("  how many ORDERS  are there ", "shop"));
        assert_ne!(first, example_id("How many orders are there?", "school"));
        assert_ne!(first, example_id("How many orders were there?", "shop"));
    }
}
