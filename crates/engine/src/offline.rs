//! Engine without a database: queries can be drafted and checked against a schema, but not run.

use querymend_sql::{Approved, Dialect, Rows, Schema};

use crate::{CancelFlag, Engine, EngineFuture, Error, Limits};

/// Schema without a database.
pub struct OfflineEngine {
    name: String,
    dialect: &'static Dialect,
    schema: Schema,
}

impl OfflineEngine {
    /// Creates an engine. `name` identifies it in messages, such as the file that describes the
    /// tables.
    pub fn new(name: impl Into<String>, schema: Schema, dialect: &'static Dialect) -> Self {
        Self { name: name.into(), dialect, schema }
    }
}

fn no_database() -> Error {
    Error::unavailable("there is no database, only a description of its tables", "name a database with --db")
}

impl Engine for OfflineEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        Box::pin(async { Ok(self.schema.clone()) })
    }

    fn probe<'a>(&'a self, _: &'a Approved) -> EngineFuture<'a, ()> {
        Box::pin(async { Err(no_database()) })
    }

    fn execute<'a>(&'a self, _: &'a Approved, _: &'a Limits, _: &'a CancelFlag) -> EngineFuture<'a, Rows> {
        Box::pin(async { Err(no_database()) })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        Box::pin(async { Err(no_database()) })
    }

    fn is_offline(&self) -> bool {
        true
    }
}
