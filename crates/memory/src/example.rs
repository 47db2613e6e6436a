//! One question with its query, and what is known of the pair.

use std::time::{SystemTime, UNIX_EPOCH};

use ring::digest::{SHA256, digest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A question and the query that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Example {
    /// [`id`] of the question and the database.
    pub id: String,
    /// The question, as it was asked.
    pub question: String,
    /// The query.
    pub sql: String,
    /// Which database it was asked of; empty where that is not known.
    pub database: String,
    /// The SQL that the query is written in.
    pub dialect: String,
    /// The figure that the question is about, where people have a name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Where it came from.
    pub provenance: Provenance,
    /// Whether it may be trusted.
    pub standing: Standing,
    /// How often a model was shown it.
    #[serde(default)]
    pub uses: u32,
    /// How often an answer followed that nobody complained about.
    #[serde(default)]
    pub helped: u32,
    /// How often the question was given up, or somebody complained about the answer.
    #[serde(default)]
    pub hurt: u32,
    /// When it was added, in seconds since 1970.
    #[serde(default)]
    pub added: u64,
}

impl Example {
    /// A pair that comes from a file or a person, added now.
    pub fn new(question: &str, sql: &str, database: &str, dialect: &str) -> Self {
        Self {
            id: id(question, database),
            question: question.trim().to_string(),
            sql: sql.trim().to_string(),
            database: database.to_string(),
            dialect: dialect.to_string(),
            metric: None,
            provenance: Provenance::Seeded,
            standing: Standing::Verified,
            uses: 0,
            helped: 0,
            hurt: 0,
            added: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        }
    }
}

/// Where an example came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// From a file of examples.
    Seeded,
    /// A person said that it is right.
    Saved,
    /// An answer that nobody complained about.
    Auto,
    /// A person wrote the right query after a wrong one.
    Corrected,
}

/// Whether an example may be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A person, or use, said that it is right.
    Verified,
    /// Nobody has looked at it yet.
    Unverified,
    /// Its query no longer fits the tables. Not shown to models.
    Stale,
    /// A person said that it is wrong. Not shown to models, and not captured again.
    Rejected,
}

impl Standing {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Verified, Self::Unverified, Self::Stale, Self::Rejected];

    /// As it is written in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::Stale => "stale",
            Self::Rejected => "rejected",
        }
    }

    /// The one that is written like this.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl Provenance {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Seeded, Self::Saved, Self::Auto, Self::Corrected];

    /// As it is written in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Seeded => "seeded",
            Self::Saved => "saved",
            Self::Auto => "auto",
            Self::Corrected => "corrected",
        }
    }

    /// The one that is written like this.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// A question without what does not change its meaning: case, spaces, and the marks at its end.
pub fn normalised(question: &str) -> String {
    let lower = question.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    words.join(" ").trim_end_matches([' ', '?', '!', '.']).to_string()
}

/// By which an example is known: the same for the same question to the same database.
pub fn id(question: &str, database: &str) -> String {
    let text = format!("{database}\n{}", normalised(question));
    digest(&SHA256, text.as_bytes()).as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f06_the_same_question_to_the_same_database_is_one_example() {
        let first = id("How many orders are there?", "shop");
        assert_eq!(first.len(), 32);
        assert_eq!(first, id("  how many ORDERS  are there ", "shop"));
        assert_ne!(first, id("How many orders are there?", "school"));
        assert_ne!(first, id("How many orders were there?", "shop"));
    }
}
