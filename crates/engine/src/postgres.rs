//! PostgreSQL: a server, reached with its own protocol.
//!
//! Every query runs in a transaction of its own that may only read and is always rolled back (`run.rs`). A few connections are
//! kept for the next query (`pool.rs`). Values come in PostgreSQL's binary form where this engine reads it (`binary.rs`), and
//! else as the server itself writes them (`text.rs`).

#[cfg(test)]
mod attacks;
mod binary;
mod examine;
mod introspect;
mod pool;
mod refusal;
mod run;
mod text;

use querymend_net::address::Form;
use querymend_net::postgres::Server;
use querymend_net::{Address, Variables, environment};
use querymend_sql::{Approved, Dialect, Rows, Schema, dialect};

use self::pool::Pool;
use crate::{Answer, Cancel, Check, Connections, Engine, Error, Limits};

/// The variable in which passwords are looked for first.
const PASSWORD: &str = "QUERYMEND_DB_PASSWORD";
/// So many connections there are at most, unless the address says otherwise.
const CONNECTIONS: usize = 4;
/// The most that an address may ask for: a server has a hundred for everybody.
const MOST_CONNECTIONS: usize = 32;

const FORM: Form<'_> = Form {
    what: "the database",
    parameters: &["sslmode", "sslrootcert", "host", "pool"],
    example: "postgres://USER@HOST:PORT/DATABASE",
    secret: "set QUERYMEND_DB_PASSWORD or PGPASSWORD",
};

/// A database on a PostgreSQL server.
pub struct Postgres {
    pool: Pool,
}

impl Postgres {
    /// Reads the address, `postgres://USER@HOST:PORT/DATABASE`. The server is not asked before the first call that needs it.
    pub fn open(address: &str) -> Result<Self, Error> {
        Self::with_variables(address, &environment)
    }

    fn with_variables(address: &str, variables: Variables<'_>) -> Result<Self, Error> {
        let address = Address::parse(address, &FORM)?;
        let connections = match address.parameter("pool").map(str::parse) {
            None => CONNECTIONS,
            Some(Ok(many)) if (1..=MOST_CONNECTIONS).contains(&many) => many,
            Some(_) => {
                let hint = format!("give it a number from 1 to {MOST_CONNECTIONS}, or leave it out");
                return Err(Error::unavailable(
                    "`pool` in the address of the database is not a number of connections",
                    hint,
                ));
            }
        };
        let server = Server::read(&address, &FORM, PASSWORD, variables)?;
        Ok(Self { pool: Pool::new(server, connections) })
    }
}

impl Engine for Postgres {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::POSTGRES
    }

    fn schema(&self) -> Answer<'_, Schema> {
        Box::pin(introspect::schema(&self.pool))
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        Box::pin(async move {
            Error::unless_same(query.dialect(), self.dialect())?;
            run::probe(&self.pool, query.sql()).await
        })
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        Box::pin(async move {
            Error::unless_same(query.dialect(), self.dialect())?;
            run::execute(&self.pool, query.sql(), limits, cancel).await
        })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        Box::pin(async {
            run::execute(&self.pool, "SELECT 1", &Limits::default(), &Cancel::new()).await?;
            Ok(())
        })
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }

    fn examine(&self) -> Answer<'_, Vec<Check>> {
        Box::pin(examine::examine(&self.pool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f03_names_hold_no_password_and_addresses_are_checked_without_asking_a_server() {
        let engine = Postgres::with_variables("postgresql://me:hunter2@db.example/shop?pool=8", &|_| None).unwrap();
        assert_eq!(engine.name(), "postgres://me@db.example:5432/shop");
        for (address, said) in [
            ("postgres://me:hunter2@db.example", "names no database"),
            ("postgres://db.example/shop", "names no user"),
            ("postgres://me@db.example/shop?pool=0", "not a number of connections"),
            ("postgres://me@db.example/shop?pool=many", "not a number of connections"),
            ("postgres://me@db.example/shop?password=hunter2", "holds `password`"),
        ] {
            let error = Postgres::with_variables(address, &|_| None).err().unwrap();
            assert!(error.to_string().contains(said), "{address}: {error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
