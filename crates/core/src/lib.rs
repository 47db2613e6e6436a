//! Question in, answer and events out: the loop that asks a model for SQL, has it reviewed, runs it, mends it, and tries again
//! within bounds.

pub mod config;
pub mod event;
pub mod guard;
pub mod records;
pub mod retry;

pub use event::{Answer, Event, Status, Stop};
