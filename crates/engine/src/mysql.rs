//! MySQL and MariaDB.
//!
//! Queries are prepared and run in read-only transactions on connections whose settings are pinned (`lock.rs`). What runs too
//! long, or for nobody any more, is ended on the server by a second connection (`stop.rs`).

mod address;
#[cfg(test)]
mod attacks;
mod cells;
mod examine;
mod introspect;
mod lock;
mod pool;
mod refusal;
mod stop;

use futures_util::TryStreamExt;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params, Row};
use querymend_sql::{Approved, Cell, Dialect, Rows, Schema, dialect};

use self::address::Server;
use self::lock::Family;
use self::pool::{Done, Pool, Work, done};
use self::refusal::Fault;
use crate::taking::Taking;
use crate::{Answer, Cancel, Check, Connections, Engine, Error, Limits};

/// A database on a server of MySQL or MariaDB, or all that its user may read.
pub struct MySql {
    pool: Pool,
}

impl MySql {
    /// Reads the address, `mysql://USER@HOST:PORT/DATABASE`. The server is not asked anything yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        Ok(Self { pool: Pool::new(Server::read(address, &querymend_net::environment)?) })
    }

    async fn quietly<W: Work>(&self, work: W) -> Result<W::Outcome, Error> {
        self.pool.run(&work, &Limits::default(), &Cancel::new()).await
    }
}

impl Engine for MySql {
    fn name(&self) -> &str {
        &self.pool.server.name
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::MYSQL
    }

    fn schema(&self) -> Answer<'_, Schema> {
        Box::pin(async {
            let server = &self.pool.server;
            introspect::schema(self.quietly(introspect::Describe(server)).await?, server)
        })
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        Box::pin(async {
            Error::unless_same(query.dialect(), self.dialect())?;
            self.quietly(Prepare(query.sql())).await
        })
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        Box::pin(async {
            Error::unless_same(query.dialect(), self.dialect())?;
            self.pool.run(&Run { sql: query.sql(), limits }, limits, cancel).await
        })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        Box::pin(self.quietly(Prepare("SELECT 1")))
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }

    fn examine(&self) -> Answer<'_, Vec<Check>> {
        Box::pin(async {
            let seen = self.quietly(examine::Look(&self.pool.server)).await?;
            Ok(examine::checks(&seen, &self.pool.server))
        })
    }
}

/// Lets the server read a query without running it. It looks every name up on the way.
struct Prepare<'a>(&'a str);

impl Work for Prepare<'_> {
    type Outcome = ();

    fn sql(&self) -> &str {
        self.0
    }

    async fn run(&self, connection: &mut Conn, _: Family) -> Result<Done<()>, Fault> {
        lock::prepare(connection, self.0).await?;
        done(())
    }
}

/// Runs a query as far as the limits allow.
struct Run<'a> {
    sql: &'a str,
    limits: &'a Limits,
}

impl Work for Run<'_> {
    type Outcome = Rows;

    fn sql(&self) -> &str {
        self.sql
    }

    async fn run(&self, connection: &mut Conn, _: Family) -> Result<Done<Rows>, Fault> {
        let statement = lock::prepare(connection, self.sql).await?;
        let mut result = connection.exec_iter(&statement, Params::Empty).await?;
        let columns = result.columns().unwrap_or_default();
        let names = columns.iter().map(|column| column.name_str().into_owned()).collect();
        let mut taking = Taking::new(names, self.limits);
        if let Some(mut rows) = result.stream::<Row>().await? {
            while let Some(row) = rows.try_next().await? {
                let values = row.unwrap().into_iter().zip(&*columns);
                let room = values
                    .map(|(value, column)| taking.has_room(cells::beside(&value)).then(|| cells::cell(value, column)));
                let row: Option<Vec<Cell>> = room.collect();
                if !row.is_some_and(|row| taking.take(row)) {
                    return Ok(Done { outcome: taking.done(), is_read: false });
                }
            }
        }
        done(taking.done())
    }
}
