//! Trino and Presto: distributed query engines with the same HTTP protocol under two names.
//!
//! A statement is submitted and its result is fetched page by page; the server ends a statement
//! that is not polled. There are no connections to pool: the state between two statements is in
//! their headers. `read_only.rs` prevents writes.

#[cfg(test)]
mod attacks;
mod cells;
mod client;
mod errors;
#[cfg(test)]
mod fuzz;
mod health;
mod introspect;
mod protocol;
mod read_only;
mod session;
mod settings;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use querymend_net::read_env;
use querymend_sql::{Approved, Cell, Dialect, Rows, Schema};

use self::cells::{TrinoType, to_cell};
use self::client::TrinoClient;
use self::errors::SentQuery;
use self::protocol::TrinoPage;
use self::session::TrinoSession;
use self::settings::{PRESTO, TRINO, TrinoFlavor, TrinoSettings};
use crate::row_collector::RowCollector;
use crate::{CancelFlag, Engine, EngineFuture, Error, HealthCheck, Limits, introspection_limits};

/// Prefix for validating a query without running it. It is on its own line, so that error columns
/// stay the same.
const VALIDATE_PREFIX: &str = "EXPLAIN (TYPE VALIDATE)\n";
/// Time limit for listing tables, which may be slow for a large catalog.
const INTROSPECTION_TIMEOUT: Duration = Duration::from_secs(120);

/// Engine for a catalog of a Trino or Presto server.
pub struct TrinoEngine {
    client: Arc<TrinoClient>,
}

impl TrinoEngine {
    /// Parses an address, `trino://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA` or `presto://…`.
    ///
    /// The schema is optional; without it, all schemas of the catalog are visible and tables are
    /// qualified by theirs. Does not connect.
    pub fn open(address: &str) -> Result<Self, Error> {
        let presto = address.trim_start().get(..7).is_some_and(|start| start.eq_ignore_ascii_case("presto:"));
        let flavor: &'static TrinoFlavor = if presto { &PRESTO } else { &TRINO };
        let settings = TrinoSettings::parse(address, flavor, &read_env)?;
        Ok(Self { client: Arc::new(TrinoClient::new(settings)?) })
    }

    fn check_query(&self, query: &Approved) -> Result<(), Error> {
        Error::check_dialect(query.dialect(), self.dialect())?;
        read_only::check_is_query(query.sql())
    }

    /// Runs a query in a read-only transaction.
    async fn execute_read_only(&self, sql: &str, limits: &Limits, cancel: &CancelFlag) -> Result<Rows, Error> {
        let mut session = TrinoSession::new(&self.client, limits.time, cancel);
        session.begin_read_only().await?;
        let outcome = collect_rows(&mut session, sql, limits).await;
        session.finish().await;
        outcome
    }

    /// Runs a statement of this engine and returns all its rows.
    async fn query_all(&self, sql: &str, time: Duration) -> Result<Vec<Vec<Cell>>, Error> {
        let limits = Limits { rows: introspection_limits::MAX_CATALOG_ROWS, bytes: 1 << 30, time, ..Limits::default() };
        let cancel = CancelFlag::new();
        let rows = collect_rows(&mut TrinoSession::new(&self.client, time, &cancel), sql, &limits).await?;
        if rows.truncated { Err(introspection_limits::catalog_too_large(self.name())) } else { Ok(rows.rows) }
    }

    async fn introspect(&self) -> Result<Schema, Error> {
        let settings = &self.client.settings;
        let rows = match self.query_all(&introspect::columns_query(settings, true), INTROSPECTION_TIMEOUT).await {
            Err(Error::Rejected(_)) => {
                self.query_all(&introspect::columns_query(settings, false), INTROSPECTION_TIMEOUT).await
            }
            other => other,
        };
        introspect::build_schema(rows.map_err(|error| self.address_error(error))?, settings)
    }

    /// Checks that the catalog and the schema in the address exist.
    async fn check_address(&self) -> Result<(), Error> {
        let settings = &self.client.settings;
        let catalog = introspect::quote_identifier(&settings.catalog);
        let schema = settings.schema.as_deref().unwrap_or("information_schema");
        let literal = introspect::quote_literal(&schema.to_lowercase());
        let sql =
            format!("SELECT schema_name FROM {catalog}.information_schema.schemata WHERE schema_name = {literal}");
        let found = self.query_all(&sql, Limits::default().time).await.map_err(|error| self.address_error(error))?;
        if found.is_empty() {
            let what =
                format!("there is no schema `{schema}` in the catalog `{}` of {}", settings.catalog, settings.name);
            return Err(Error::unavailable(what, "check the last part of the address, or leave it out"));
        }
        Ok(())
    }

    /// Converts a rejection that is caused by the address.
    fn address_error(&self, error: Error) -> Error {
        let Error::Rejected(cause) = error else { return error };
        Error::Unavailable {
            what: format!("{} cannot be read: {}", self.client.settings.name, cause.message),
            hint: "check the catalog and the schema in the address (SHOW CATALOGS lists them), and that the user may read them"
                .into(),
            transient: false,
            cause: Some(Box::new(cause)),
        }
    }
}

impl Engine for TrinoEngine {
    fn name(&self) -> &str {
        &self.client.settings.name
    }

    fn dialect(&self) -> &'static Dialect {
        self.client.settings.flavor.dialect
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        Box::pin(self.introspect())
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        Box::pin(async move {
            self.check_query(query)?;
            let sent = SentQuery { sql: query.sql(), lines_before: 1 };
            let cancel = CancelFlag::new();
            let mut session = TrinoSession::new(&self.client, Limits::default().time, &cancel);
            session.run(sent, &format!("{VALIDATE_PREFIX}{}", query.sql()), &mut |_| ControlFlow::Continue(())).await
        })
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        Box::pin(async move {
            self.check_query(query)?;
            self.execute_read_only(query.sql(), limits, cancel).await
        })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        Box::pin(self.check_address())
    }

    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        Box::pin(async {
            self.check_address().await?;
            health::check_health(&self.client).await
        })
    }
}

/// Runs a statement and returns its rows within the limits.
async fn collect_rows(session: &mut TrinoSession<'_>, sql: &str, limits: &Limits) -> Result<Rows, Error> {
    let mut collector: Option<RowCollector> = None;
    let mut kinds: Vec<TrinoType> = Vec::new();
    let mut take = |step: TrinoPage| {
        if let Some(columns) = step.columns
            && collector.is_none()
        {
            kinds = columns.iter().map(TrinoType::from_column).collect();
            collector = Some(RowCollector::new(columns.into_iter().map(|column| column.name).collect(), limits));
        }
        for row in step.data.into_iter().flatten() {
            let plain = std::iter::repeat(&TrinoType::Verbatim);
            let cells = row.into_iter().zip(kinds.iter().chain(plain)).map(|(v, kind)| to_cell(v, kind)).collect();
            if !collector.get_or_insert_with(|| RowCollector::new(Vec::new(), limits)).push(cells) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    session.run(SentQuery { sql, lines_before: 0 }, sql, &mut take).await?;
    Ok(collector.map(RowCollector::into_rows).unwrap_or_default())
}
