//! The sections of the file.

use std::path::PathBuf;
use std::time::Duration;

use querymend_engine::Limits;
use serde::{Deserialize, Serialize};

use super::{duration, range};
use crate::guard::Budget;

/// Longest time that one reply of a model may take, unless the configuration says otherwise.
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Whether and how queries are mended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelfCorrection {
    /// Off, the first draft is run as it is, and its failure is the answer.
    pub enabled: bool,
    /// The most drafts of one question, the first included: 1 to 10.
    #[serde(deserialize_with = "range::attempts")]
    pub max_attempts: u32,
    /// The critic holds a query back that is known to fail. What is not harmless is held back in any case.
    pub preflight_validation: bool,
    /// When the attempts are spent, plain rows are fetched and looked at here.
    pub fallback: bool,
    /// Whether a person is asked where a question has several readings that lead to different rows. Absent: `chat` on a
    /// terminal, `ask` on a terminal, the page and MCP clients with elicitation ask, nothing else does.
    pub ask_user: Option<bool>,
}

impl Default for SelfCorrection {
    fn default() -> Self {
        let max_attempts = Budget::default().max_attempts;
        Self { enabled: true, max_attempts, preflight_validation: true, fallback: true, ask_user: None }
    }
}

/// What one question may take; how many drafts is said under `self_correction`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSection {
    /// The most tokens, read and written together.
    #[serde(deserialize_with = "range::tokens")]
    pub tokens: Option<u64>,
    /// The most money, in US dollars.
    #[serde(deserialize_with = "range::cost_usd")]
    pub cost_usd: Option<f64>,
    /// The longest time.
    #[serde(with = "duration")]
    pub time: Duration,
    /// The longest time that one reply of the model may take, within what is left of `time`.
    #[serde(with = "duration")]
    pub request: Duration,
}

impl Default for BudgetSection {
    fn default() -> Self {
        Self { tokens: None, cost_usd: None, time: Budget::default().max_time, request: DEFAULT_REQUEST_TIMEOUT }
    }
}

/// What one query may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// The most rows that are given back.
    #[serde(deserialize_with = "range::rows")]
    pub rows: usize,
    /// The most memory that they may take, in bytes.
    #[serde(deserialize_with = "range::bytes")]
    pub bytes: usize,
    /// The longest that the query may run.
    #[serde(with = "duration")]
    pub time: Duration,
    /// The most memory that the database may use on the way, in bytes.
    #[serde(deserialize_with = "range::memory")]
    pub memory: usize,
}

impl Default for LimitsSection {
    fn default() -> Self {
        Limits::default().into()
    }
}

impl From<Limits> for LimitsSection {
    fn from(limits: Limits) -> Self {
        Self { rows: limits.rows, bytes: limits.bytes, time: limits.time, memory: limits.memory }
    }
}

/// What is remembered of answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySection {
    /// Off, nothing is recalled and nothing kept.
    pub enabled: bool,
    /// Where it is kept: a file, or the address of a server.
    #[serde(deserialize_with = "range::store")]
    pub store: Option<String>,
    /// How many examples a model is shown: 0 to 20.
    #[serde(deserialize_with = "range::examples")]
    pub examples: usize,
    /// Examples of other databases are shown too.
    pub others: bool,
    /// Answers that nobody complained about are kept.
    pub capture: bool,
    /// What makes questions comparable, such as `static` or `openai:text-embedding-3-small`.
    pub embedder: String,
}

impl Default for MemorySection {
    fn default() -> Self {
        Self { enabled: true, store: None, examples: 5, others: false, capture: true, embedder: "static".to_owned() }
    }
}

/// What is kept of past runs. A trace holds questions, queries and models' texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trace {
    /// How many runs are kept; 0 keeps none.
    pub keep: u32,
    /// Where they are kept.
    pub folder: Option<PathBuf>,
}

impl Default for Trace {
    fn default() -> Self {
        Self { keep: 100, folder: None }
    }
}
