//! What only a database can say.

pub mod connection_failed;
pub mod engine_error;
pub mod locked;
pub mod not_a_database;
pub mod permission_denied;
pub mod timed_out;
pub mod too_large;
pub mod unknown_schema;
