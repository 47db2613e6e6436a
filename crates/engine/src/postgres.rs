//! PostgreSQL, over its native protocol.
//!
//! Every query runs in its own read-only transaction, which is always rolled back (`run.rs`), on a
//! pooled connection (`pool.rs`). Values are decoded from PostgreSQL's binary format where this
//! engine supports the type (`binary.rs`), and otherwise from its text format (`text.rs`).

#[cfg(test)]
mod attacks;
mod binary;
mod errors;
mod health;
mod introspect;
mod pool;
mod run;
mod text;

use querymend_net::address::UrlSpec;
use querymend_net::postgres::PostgresServer;
use querymend_net::{Address, EnvLookup, read_env};
use querymend_sql::{Approved, Dialect, Rows, Schema, dialect};

use self::pool::PgPool;
use crate::{CancelFlag, Connections, Engine, EngineFuture, Error, HealthCheck, Limits};

/// Environment variable that is checked first for the password.
const PASSWORD_VARIABLE: &str = "QUERYMEND_DB_PASSWORD";
/// Default maximum number of connections.
const DEFAULT_CONNECTIONS: usize = 4;
/// Maximum value of `pool` in an address: a server has a hundred connections for all clients.
const MAX_CONNECTIONS: usize = 32;

const URL_SPEC: UrlSpec<'_> = UrlSpec {
    subject: "the database",
    parameters: &["sslmode", "sslrootcert", "host", "pool"],
    example: "postgres://USER@HOST:PORT/DATABASE",
    secret_hint: "set QUERYMEND_DB_PASSWORD or PGPASSWORD",
};

/// Engine for a database on a PostgreSQL server.
pub struct PostgresEngine {
    pool: PgPool,
}

impl PostgresEngine {
    /// Parses an address, `postgres://USER@HOST:PORT/DATABASE`. Does not connect before the first
    /// call that needs it.
    pub fn open(address: &str) -> Result<Self, Error> {
        Self::with_variables(address, &read_env)
    }

    fn with_variables(address: &str, variables: EnvLookup<'_>) -> Result<Self, Error> {
        let address = Address::parse(address, &URL_SPEC)?;
        let connections = match address.parameter("pool").map(str::parse) {
            None => DEFAULT_CONNECTIONS,
            Some(Ok(many)) if (1..=MAX_CONNECTIONS).contains(&many) => many,
            Some(_) => {
                let hint = format!("give it a number from 1 to {MAX_CONNECTIONS}, or leave it out");
                return Err(Error::unavailable(
                    "`pool` in the address of the database is not a number of connections",
                    hint,
                ));
            }
        };
        let server = PostgresServer::from_address(&address, &URL_SPEC, PASSWORD_VARIABLE, variables)?;
        Ok(Self { pool: PgPool::new(server, connections) })
    }
}

impl Engine for PostgresEngine {
    fn name(&self) -> &str {
        self.pool.name()
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::POSTGRES
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        Box::pin(introspect::read_schema(&self.pool))
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            Error::check_dialect(query.dialect(), self.dialect())?;
            run::probe(&self.pool, query.sql()).await
        })
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        Box::pin(async move {
            Error::check_dialect(query.dialect(), self.dialect())?;
            run::execute(&self.pool, query.sql(), limits, cancel).await
        })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        Box::pin(async {
            run::execute(&self.pool, "SELECT 1", &Limits::default(), &CancelFlag::new()).await?;
            Ok(())
        })
    }

    fn connections(&self) -> Option<Connections> {
        Some(self.pool.connections())
    }

    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        Box::pin(health::check_health(&self.pool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validates_addresses_offline_and_hides_passwords() {
        let engine =
            PostgresEngine::with_variables("postgresql://me:hunter2@db.example/shop?pool=8", &|_| None).unwrap();
        assert_eq!(engine.name(), "postgres://me@db.example:5432/shop");
        for (address, expected) in [
            ("postgres://me:hunter2@db.example", "has no database"),
            ("postgres://db.example/shop", "has no user"),
            ("postgres://me@db.example/shop?pool=0", "not a number of connections"),
            ("postgres://me@db.example/shop?pool=many", "not a number of connections"),
            ("postgres://me@db.example/shop?password=hunter2", "contains `password`"),
        ] {
            let error = PostgresEngine::with_variables(address, &|_| None).err().unwrap();
            assert!(error.to_string().contains(expected), "{address}: {error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
