//! Question in, answer and events out: the loop that asks a model for SQL, has it reviewed, runs it, mends it, and tries again
//! within bounds.
//!
//! ```
//! use std::sync::Arc;
//! use querymend::{Config, Querymend, Status};
//! use querymend_model::Script;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("shop.db");
//! querymend_engine::demo::write(&file)?;
//! let engine = querymend_engine::open(&file.to_string_lossy())?;
//! // Any model will do: querymend_model::open("ollama:qwen2.5-coder", …). This one always says the same.
//! let model = Script::new(["SELECT id, price FROM products WHERE category = 'Electronics'"]);
//!
//! let querymend = Querymend::new(Arc::from(engine), Arc::new(model), Config::default());
//! let answer = querymend.ask("Which electronics are there, at what price?").await;
//! assert_eq!(answer.status, Status::Answered);
//! assert_eq!(answer.sql.as_deref(), Some("SELECT product_id, price FROM products WHERE category = 'Electronics'"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod chart;
mod confidence;
pub mod config;
pub mod context;
pub mod correct;
pub mod direct;
mod drive;
pub mod event;
pub mod guard;
mod id;
pub mod intent;
mod known;
pub mod lines;
pub mod memory;
pub mod prompts;
mod querymend;
pub mod records;
pub mod refusal;
pub mod retry;
pub mod run;
mod session;
pub mod similarity;
pub mod strategies;
pub mod suggest;
pub mod summary;
mod telemetry;
mod traces;
mod trouble;

pub use confidence::ConfidenceFeatures;
pub use config::Config;
pub use event::{Answer, Attempt, Choice, Clarification, Confidence, Event, Problem, ProblemCode, Stage, Status, Stop};
pub use id::fresh as trace_id;
pub use memory::Memory;
pub use querymend::{Cancel, Querymend};
pub use run::{Ask, Clarify};
pub use session::{Conversation, Session, Turn};
pub use telemetry::log;
pub use traces::Traces;
