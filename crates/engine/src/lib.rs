//! Runs approved queries on databases, with one module per database system.
//!
//! An [`Engine`] accepts only [`Approved`] queries, and still enforces read-only access by itself:
//! it opens the database read-only, and limits the run time of a query and the size of its result.
//! Errors contain the database's own messages, which `querymend_sql::classify` interprets.
//!
//! ```
//! use querymend_engine::{CancelFlag, Limits, demo, open};
//! use querymend_sql::{Cell, ReviewContext, Policy, review};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("shop.db");
//! demo::write(&file)?;
//!
//! let engine = open(&file.to_string_lossy())?;
//! let schema = engine.schema().await?;
//! let policy = Policy::default();
//! let context = ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
//! let query = review("SELECT count(*) FROM products WHERE category = 'Electronics'", &context).approve()?;
//! let rows = engine.execute(&query, &Limits::default(), &CancelFlag::new()).await?;
//! assert_eq!(rows.rows, [[Cell::Integer(8)]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(test)]
mod attack_corpus;
mod blocking;
mod deadline;
pub mod demo;
mod error;
pub mod files;
#[cfg(test)]
mod fuzz;
mod health;
pub mod hive;
mod introspection_limits;
mod limits;
pub mod mysql;
mod offline;
pub mod postgres;
mod registry;
mod row_collector;
pub mod sqlite;
pub mod trino;

use std::pin::Pin;

use querymend_sql::{Approved, Dialect, Rows, Schema};

pub use error::Error;
pub use health::{CheckStatus, HealthCheck};
pub use limits::{CancelFlag, Limits};
pub use offline::OfflineEngine;
pub use registry::{EngineDriver, open};

/// All supported database systems.
pub static DRIVERS: &[EngineDriver] = &[
    EngineDriver {
        schemes: &["sqlite"],
        url_format: "sqlite:PATH",
        open: |address| Ok(Box::new(sqlite::SqliteEngine::open(registry::file_path(address)?)?)),
    },
    EngineDriver {
        schemes: &["file"],
        url_format: "file:PATH",
        open: |address| Ok(Box::new(files::FileEngine::open(registry::file_path(address)?)?)),
    },
    EngineDriver {
        schemes: &["postgres", "postgresql"],
        url_format: "postgres://USER@HOST/DATABASE",
        open: |address| Ok(Box::new(postgres::PostgresEngine::open(address)?)),
    },
    EngineDriver {
        schemes: &["mysql", "mariadb"],
        url_format: "mysql://USER@HOST/DATABASE",
        open: |address| Ok(Box::new(mysql::MySqlEngine::open(address)?)),
    },
    EngineDriver {
        schemes: &["trino", "presto"],
        url_format: "trino://USER@HOST:PORT/CATALOG/SCHEMA (or presto://)",
        open: |address| Ok(Box::new(trino::TrinoEngine::open(address)?)),
    },
    EngineDriver {
        schemes: &["spark", "hive"],
        url_format: "spark://USER@HOST:PORT/DATABASE (or hive://)",
        open: |address| Ok(Box::new(hive::HiveEngine::open(address)?)),
    },
];

/// Number of connections that an engine has to its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Connections {
    /// Connections that are waiting for a query.
    pub idle: usize,
    /// Connections that are in use or being established.
    pub busy: usize,
}

/// Identifies a database and the state of its data, for caches of derived data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataVersion {
    /// Identity of the database: the absolute path of its file or folder.
    pub identity: String,
    /// Version of the data, which changes whenever the data may have changed.
    pub version: String,
}

/// Future returned by an engine. Boxed, so that [`Engine`] is dyn-compatible.
pub type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Read-only connection to a database.
pub trait Engine: Send + Sync {
    /// Returns the display name for messages, which never contains a password.
    fn name(&self) -> &str;

    /// Returns the SQL dialect of the database.
    fn dialect(&self) -> &'static Dialect;

    /// Reads the tables of the database.
    fn schema(&self) -> EngineFuture<'_, Schema>;

    /// Checks whether the database would run the query, without running it.
    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()>;

    /// Runs the query until it completes, reaches a limit or is cancelled. Dropping the future
    /// cancels it too.
    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a CancelFlag)
    -> EngineFuture<'a, Rows>;

    /// Checks that the database exists and can be read.
    fn test_connection(&self) -> EngineFuture<'_, ()>;

    /// Returns the current version of the data.
    ///
    /// Returns `None` if it cannot be determined without reading all of the data.
    fn data_version(&self) -> EngineFuture<'_, Option<DataVersion>> {
        Box::pin(async { Ok(None) })
    }

    /// Returns whether there is only a schema and no data.
    ///
    /// Queries can then be checked, but neither probed nor run.
    fn is_offline(&self) -> bool {
        false
    }

    /// Returns the current number of connections, or `None` if the engine has no connection pool.
    fn connections(&self) -> Option<Connections> {
        None
    }

    /// Runs health checks, for setting up a connection.
    ///
    /// Checks that the database is reachable, that the read-only enforcement rejects an unreviewed
    /// write, and whether the user has write privileges. Changes nothing, even if the enforcement
    /// fails.
    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        Box::pin(async {
            self.test_connection().await?;
            Ok(vec![HealthCheck::passed("connection", format!("{} can be read", self.name()))])
        })
    }
}
