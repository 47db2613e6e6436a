//! Tables without a database: a schema that queries can be drafted for and checked against, but not run on.

use querymend_sql::{Approved, Dialect, Rows, Schema};

use crate::{Answer, Cancel, Engine, Error, Limits};

/// A schema that stands in for a database.
pub struct Offline {
    name: String,
    dialect: &'static Dialect,
    schema: Schema,
}

impl Offline {
    /// `name` is what messages call it, such as the file that describes the tables.
    pub fn new(name: impl Into<String>, schema: Schema, dialect: &'static Dialect) -> Self {
        Self { name: name.into(), dialect, schema }
    }
}

fn no_database() -> Error {
    Error::unavailable("there is no database, only a description of its tables", "name a database with --db")
}

impl Engine for Offline {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    fn schema(&self) -> Answer<'_, Schema> {
        Box::pin(async { Ok(self.schema.clone()) })
    }

    fn probe<'a>(&'a self, _: &'a Approved) -> Answer<'a, ()> {
        Box::pin(async { Err(no_database()) })
    }

    fn execute<'a>(&'a self, _: &'a Approved, _: &'a Limits, _: &'a Cancel) -> Answer<'a, Rows> {
        Box::pin(async { Err(no_database()) })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        Box::pin(async { Err(no_database()) })
    }

    fn is_offline(&self) -> bool {
        true
    }
}
