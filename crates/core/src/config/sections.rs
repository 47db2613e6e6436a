//! Sections of the configuration file.

use std::path::PathBuf;
use std::time::Duration;

use querymend_engine::Limits;
use serde::{Deserialize, Serialize};

use super::duration;
use crate::config::validate;
use crate::resilience::Budget;

/// Default maximum time of one model request.
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Self-correction of failed queries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelfCorrection {
    /// `false` to run the first draft unchanged and to report its failure as the answer.
    pub enabled: bool,
    /// Maximum number of drafts per question, including the first: 1 to 10.
    #[serde(deserialize_with = "validate::attempts")]
    pub max_attempts: u32,
    /// `true` if the reviewer blocks queries that it predicts to fail. Unsafe queries are always
    /// blocked.
    pub preflight_validation: bool,
    /// `true` to fetch plain rows and analyze them in this process after the last attempt.
    pub fallback: bool,
    /// `true` to ask the user if a question has several interpretations with different rows. If
    /// absent, `chat` and `ask` on a terminal, the web page, and MCP clients with elicitation ask;
    /// nothing else does.
    pub ask_user: Option<bool>,
}

impl Default for SelfCorrection {
    fn default() -> Self {
        let max_attempts = Budget::default().max_attempts;
        Self { enabled: true, max_attempts, preflight_validation: true, fallback: true, ask_user: None }
    }
}

/// Budget of one question. The number of drafts is set in `self_correction`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetSection {
    /// Maximum number of tokens, input and output combined. No limit if absent.
    #[serde(deserialize_with = "validate::tokens")]
    pub tokens: Option<u64>,
    /// Maximum cost, in US dollars. No limit if absent.
    #[serde(deserialize_with = "validate::cost_usd")]
    pub cost_usd: Option<f64>,
    /// Maximum time.
    #[serde(with = "duration")]
    pub time: Duration,
    /// Maximum time of one model request, within the remainder of `time`.
    #[serde(with = "duration")]
    pub request: Duration,
}

impl Default for BudgetSection {
    fn default() -> Self {
        Self { tokens: None, cost_usd: None, time: Budget::default().max_time, request: DEFAULT_REQUEST_TIMEOUT }
    }
}

/// Limits of one query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Maximum number of rows returned.
    #[serde(deserialize_with = "validate::rows")]
    pub rows: usize,
    /// Maximum size of the returned rows, in bytes.
    #[serde(deserialize_with = "validate::bytes")]
    pub bytes: usize,
    /// Maximum execution time.
    #[serde(with = "duration")]
    pub time: Duration,
    /// Maximum memory that the database may use for execution, in bytes.
    #[serde(deserialize_with = "validate::memory")]
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

/// Memory of past answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySection {
    /// `false` to neither retrieve nor store examples.
    pub enabled: bool,
    /// Location of the store: a file path or a server URL.
    #[serde(deserialize_with = "validate::store")]
    pub store: Option<String>,
    /// Maximum number of few-shot examples in a prompt: 0 to 20.
    #[serde(deserialize_with = "validate::examples")]
    pub examples: usize,
    /// `true` to also use examples of other databases.
    pub cross_database: bool,
    /// `true` to store answers that received no negative feedback.
    pub capture: bool,
    /// Embedder that compares questions, such as `static` or `openai:text-embedding-3-small`.
    pub embedder: String,
}

impl Default for MemorySection {
    fn default() -> Self {
        Self {
            enabled: true,
            store: None,
            examples: 5,
            cross_database: false,
            capture: true,
            embedder: "static".to_owned(),
        }
    }
}

/// Retention of run traces. A trace contains questions, queries and model output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TraceSection {
    /// Number of runs to keep; 0 keeps none.
    pub max_traces: u32,
    /// Directory of the traces.
    pub folder: Option<PathBuf>,
}

impl Default for TraceSection {
    fn default() -> Self {
        Self { max_traces: 100, folder: None }
    }
}
