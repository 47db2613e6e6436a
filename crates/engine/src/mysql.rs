//! MySQL and MariaDB.
//!
//! Queries are prepared and run in read-only transactions on connections with pinned settings
//! (`read_only.rs`). Queries that time out or are abandoned are killed through a second connection
//! (`kill.rs`).

mod address;
#[cfg(test)]
mod attacks;
mod cells;
mod errors;
mod health;
mod introspect;
mod kill;
mod pool;
mod read_only;

use futures_util::TryStreamExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row};
use querymend_sql::{Approved, Cell, Dialect, Rows, Schema, dialect};

use self::address::MySqlServer;
use self::errors::MySqlError;
use self::pool::{Completed, MySqlOperation, MySqlPool, completed};
use self::read_only::MySqlFlavor;
use crate::row_collector::RowCollector;
use crate::{CancelFlag, Connections, Engine, EngineFuture, Error, HealthCheck, Limits};

/// Engine for a database on a MySQL or MariaDB server, or for all databases that its user may read.
pub struct MySqlEngine {
    pool: MySqlPool,
}

impl MySqlEngine {
    /// Parses an address, `mysql://USER@HOST:PORT/DATABASE`. Does not connect.
    pub fn open(address: &str) -> Result<Self, Error> {
        Ok(Self { pool: MySqlPool::new(MySqlServer::parse(address, &querymend_net::read_env)?) })
    }

    async fn run_with_defaults<W: MySqlOperation>(&self, operation: W) -> Result<W::Output, Error> {
        self.pool.run(&operation, &Limits::default(), &CancelFlag::new()).await
    }
}

impl Engine for MySqlEngine {
    fn name(&self) -> &str {
        &self.pool.server.name
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::MYSQL
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        Box::pin(async {
            let server = &self.pool.server;
            introspect::build_schema(self.run_with_defaults(introspect::MySqlCatalogQuery(server)).await?, server)
        })
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        Box::pin(async {
            Error::check_dialect(query.dialect(), self.dialect())?;
            self.run_with_defaults(PrepareQuery(query.sql())).await
        })
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        Box::pin(async {
            Error::check_dialect(query.dialect(), self.dialect())?;
            self.pool.run(&ExecuteQuery { sql: query.sql(), limits }, limits, cancel).await
        })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        Box::pin(self.run_with_defaults(PrepareQuery("SELECT 1")))
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }

    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        Box::pin(async {
            let seen = self.run_with_defaults(health::MySqlHealthProbe(&self.pool.server)).await?;
            Ok(health::health_checks(&seen, &self.pool.server))
        })
    }
}

/// Prepares a query without running it. The server resolves every name while preparing.
struct PrepareQuery<'a>(&'a str);

impl MySqlOperation for PrepareQuery<'_> {
    type Output = ();

    fn sql(&self) -> &str {
        self.0
    }

    async fn run(&self, connection: &mut Conn, _: MySqlFlavor) -> Result<Completed<()>, MySqlError> {
        read_only::prepare_query(connection, self.0).await?;
        completed(())
    }
}

/// Runs a query within the limits.
struct ExecuteQuery<'a> {
    sql: &'a str,
    limits: &'a Limits,
}

impl MySqlOperation for ExecuteQuery<'_> {
    type Output = Rows;

    fn sql(&self) -> &str {
        self.sql
    }

    async fn run(&self, connection: &mut Conn, _: MySqlFlavor) -> Result<Completed<Rows>, MySqlError> {
        let statement = read_only::prepare_query(connection, self.sql).await?;
        let mut result = connection.exec_iter(&statement, Params::Empty).await?;
        let columns = result.columns().unwrap_or_default();
        let names = columns.iter().map(|column| column.name_str().into_owned()).collect();
        let mut collector = RowCollector::new(names, self.limits);
        if let Some(mut rows) = result.stream::<Row>().await? {
            while let Some(row) = rows.try_next().await? {
                let values = row.unwrap().into_iter().zip(&*columns);
                let room = values.map(|(value, column)| {
                    collector.reserve(cells::heap_bytes(&value)).then(|| cells::to_cell(value, column))
                });
                let row: Option<Vec<Cell>> = room.collect();
                if !row.is_some_and(|row| collector.push_reserved(row)) {
                    return Ok(Completed { outcome: collector.into_rows(), is_fully_read: false });
                }
            }
        }
        completed(collector.into_rows())
    }
}
