//! Whole questions as scripts: what the model says goes in, what happens and what is answered comes out. The database is a real
//! SQLite file.

mod bad_databases;
mod bad_models;
mod bad_questions;
mod budgets;
mod clarify;
mod concurrency;
mod conversation;
mod correction;
mod feedback;
mod injection;
mod memory;
mod policies;
mod prompts;
mod repair;
mod stop_reasons;
mod support;
mod values;
