//! Statements that do more than read, and reads that are denied.

pub mod comments;
pub mod forbidden_function;
pub mod locking;
pub mod many_statements;
pub mod protected_column;
pub mod protected_table;
pub mod too_deep;
pub mod writes_data;
