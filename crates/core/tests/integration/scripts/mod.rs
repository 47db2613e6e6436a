//! Whole questions as scripts: what the model says goes in, what happens and what is answered comes out. The database is a real
//! SQLite file.

mod bad_databases;
mod bad_models;
mod bad_questions;
mod budgets;
mod clarify;
mod conversation;
mod correcting;
mod ends;
mod feedback;
mod injection;
mod many;
mod memory;
mod mending;
mod policies;
mod prompts;
mod support;
mod values;
