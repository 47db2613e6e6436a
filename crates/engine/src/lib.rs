//! Runs approved queries on databases: one trait, one file for each database.
//!
//! An [`Engine`] only takes [`Approved`] queries, and still keeps its own lock: it opens the database for reading only,
//! and stops a query that takes too long or gives back too much. Its errors are the database's own words; what they
//! mean is decided by `querymend_sql::classify`.
//!
//! ```
//! use querymend_engine::{Cancel, Limits, demo, open};
//! use querymend_sql::{Cell, Context, Policy, review};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("shop.db");
//! demo::write(&file)?;
//!
//! let engine = open(&file.to_string_lossy())?;
//! let schema = engine.schema().await?;
//! let policy = Policy::default();
//! let context = Context { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
//! let query = review("SELECT count(*) FROM products WHERE category = 'Electronics'", &context).approve()?;
//! let rows = engine.execute(&query, &Limits::default(), &Cancel::new()).await?;
//! assert_eq!(rows.rows, [[Cell::Integer(8)]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod catalogue;
mod check;
#[cfg(test)]
mod corpus;
pub mod demo;
mod error;
pub mod files;
#[cfg(test)]
mod fuzz;
pub mod hive;
mod limits;
pub mod mysql;
mod offline;
mod open;
pub mod postgres;
pub mod sqlite;
mod stop;
mod taking;
mod thread;
pub mod trino;

use std::pin::Pin;

use querymend_sql::{Approved, Dialect, Rows, Schema};

pub use check::{Check, Standing};
pub use error::Error;
pub use limits::{Cancel, Limits};
pub use offline::Offline;
pub use open::{KINDS, Kind, open};

/// The connections that an engine has to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connections {
    /// Those that wait for the next query.
    pub idle: usize,
    /// Those that are used, or are being made.
    pub busy: usize,
}

/// Identifies a database and the state of its data, for what is derived from the data and kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataVersion {
    /// The database: the absolute path of its file or folder.
    pub identity: String,
    /// Changes whenever the data may have changed.
    pub version: String,
}

/// What an engine gives back in time. A box rather than a generic, so that engines can stand behind `dyn Engine`.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A database that questions can be put to. Nothing that it does changes the database.
pub trait Engine: Send + Sync {
    /// What to call it in messages. Never holds a password.
    fn name(&self) -> &str;

    /// The SQL that it speaks.
    fn dialect(&self) -> &'static Dialect;

    /// The tables that it holds.
    fn schema(&self) -> Answer<'_, Schema>;

    /// Asks the database whether it would run the query, without running it.
    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()>;

    /// Runs the query until it is done, a limit is reached or it is cancelled. Dropping the future cancels it too.
    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows>;

    /// Whether the database is there and can be read.
    fn test_connection(&self) -> Answer<'_, ()>;

    /// Returns which data the database holds now, or nothing where it cannot say so without reading all of it.
    fn data_version(&self) -> Answer<'_, Option<DataVersion>> {
        Box::pin(async { Ok(None) })
    }

    /// Whether there are only tables and no rows: queries can be checked, and neither probed nor run.
    fn is_offline(&self) -> bool {
        false
    }

    /// The connections that there are just now, for engines that keep some for the next query.
    fn connections(&self) -> Option<Connections> {
        None
    }

    /// Looks the connection over for whoever sets it up: is the database there, do its locks hold against a write that no
    /// critic has seen, could its user write. Nothing is changed by it, also where a lock does not hold.
    fn examine(&self) -> Answer<'_, Vec<Check>> {
        Box::pin(async {
            self.test_connection().await?;
            Ok(vec![Check::good("connection", format!("{} can be read", self.name()))])
        })
    }
}
