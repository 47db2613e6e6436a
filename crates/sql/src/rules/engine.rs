//! Errors that only the database reports.

pub mod connection_failed;
pub mod engine_error;
pub mod locked;
pub mod not_a_database;
pub mod permission_denied;
pub mod result_too_large;
pub mod timed_out;
pub mod unknown_schema;
