//! Answers natural-language questions with SQL: prompts a model, reviews, executes and repairs its
//! query, and retries within a budget.
//!
//! ```
//! use std::sync::Arc;
//! use querymend::{Config, Querymend, AnswerStatus};
//! use querymend_model::ScriptedModel;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("shop.db");
//! querymend_engine::demo::write(&file)?;
//! let engine = querymend_engine::open(&file.to_string_lossy())?;
//! // Any model will do: querymend_model::open("ollama:qwen2.5-coder", …). This one always says the same.
//! let model = ScriptedModel::new(["SELECT id, price FROM products WHERE category = 'Electronics'"]);
//!
//! let querymend = Querymend::new(Arc::from(engine), Arc::new(model), Config::default());
//! let answer = querymend.ask("Which electronics are there, at what price?").await;
//! assert_eq!(answer.status, AnswerStatus::Answered);
//! assert_eq!(answer.sql.as_deref(), Some("SELECT product_id, price FROM products WHERE category = 'Electronics'"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cancel;
pub mod chart;
mod confidence;
pub mod config;
pub mod correction;
mod driver;
pub mod embedding_similarity;
pub mod engine_finding;
pub mod error_history;
pub mod event;
mod event_log;
pub mod intent;
pub mod line_index;
pub mod linking;
pub mod memory;
pub mod prompts;
mod querymend;
pub mod resilience;
pub mod retry;
pub mod row_summary;
pub mod run;
pub mod sample_questions;
mod schema_cache;
mod session;
pub mod sql_api;
mod step_error;
pub mod strategies;
mod trace_id;
mod trace_store;

pub use cancel::CancellationToken;
pub use confidence::ConfidenceFeatures;
pub use config::Config;
pub use event::{
    Answer, AnswerStatus, Attempt, Clarification, ClarificationChoice, Confidence, Event, Problem, ProblemCode, Stage,
    StopReason,
};
pub use event_log::log;
pub use memory::Memory;
pub use querymend::Querymend;
pub use run::{AskInput, Clarify};
pub use session::{Conversation, ConversationSession, Turn};
pub use trace_id::generate as trace_id;
pub use trace_store::TraceStore;
