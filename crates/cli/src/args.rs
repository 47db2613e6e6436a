//! Argument groups shared by several commands.

pub(crate) mod answer;
pub(crate) mod database;
pub(crate) mod dialect;
pub(crate) mod env;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod schema_source;
pub(crate) mod sql_input;
