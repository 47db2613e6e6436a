//! Audit log: the user and text of every question, and every query that was executed.

pub(crate) mod entries;
pub mod log;
pub(crate) mod query_log;
