//! Trino and Presto: servers that put queries to many databases at once. Both are spoken to over HTTP, in the same way under
//! two names.
//!
//! A statement is sent, and its answer is fetched step by step; a statement that nobody asks for any more ends by itself. There
//! are no connections to keep: what stands between two statements is in their headers. Nothing is written (`lock.rs`).

#[cfg(test)]
mod attacks;
mod cells;
mod examine;
#[cfg(test)]
mod fuzz;
mod introspect;
mod lock;
mod refusal;
mod server;
mod session;
mod settings;
mod wire;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use querymend_net::environment;
use querymend_sql::{Approved, Cell, Dialect, Rows, Schema};

use self::cells::{Kind, cell};
use self::refusal::Sent;
use self::server::Server;
use self::session::Session;
use self::settings::{Family, PRESTO, Settings, TRINO};
use self::wire::Step;
use crate::taking::Taking;
use crate::{Answer, Cancel, Check, Engine, Error, Limits, catalogue};

/// Put before a query that is only looked at. It has a line of its own, so that columns stay what they are.
const VALIDATE: &str = "EXPLAIN (TYPE VALIDATE)\n";
/// A catalog with many tables may take its time to list them.
const INTROSPECTION: Duration = Duration::from_secs(120);

/// A catalog of a Trino or Presto server.
pub struct Trino {
    server: Arc<Server>,
}

impl Trino {
    /// Reads an address, `trino://USER:PASSWORD@HOST:PORT/CATALOG/SCHEMA` or the same with `presto`. The schema may be left out;
    /// then all of the catalog's are known, and tables are named with theirs. No server is asked yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        let presto = address.trim_start().get(..7).is_some_and(|start| start.eq_ignore_ascii_case("presto:"));
        let family: &'static Family = if presto { &PRESTO } else { &TRINO };
        let settings = Settings::read(address, family, &environment)?;
        Ok(Self { server: Arc::new(Server::new(settings)?) })
    }

    fn may(&self, query: &Approved) -> Result<(), Error> {
        Error::unless_same(query.dialect(), self.dialect())?;
        lock::only_queries(query.sql())
    }

    /// Runs a query under the lock.
    async fn locked(&self, sql: &str, limits: &Limits, cancel: &Cancel) -> Result<Rows, Error> {
        let mut session = Session::new(&self.server, limits.time, cancel);
        session.lock().await?;
        let outcome = read(&mut session, sql, limits).await;
        session.end().await;
        outcome
    }

    /// Runs a statement of ours, all of whose rows are needed.
    async fn ask(&self, sql: &str, time: Duration) -> Result<Vec<Vec<Cell>>, Error> {
        let limits = Limits { rows: catalogue::MOST, bytes: 1 << 30, time, ..Limits::default() };
        let cancel = Cancel::new();
        let rows = read(&mut Session::new(&self.server, time, &cancel), sql, &limits).await?;
        if rows.truncated { Err(catalogue::too_much(self.name())) } else { Ok(rows.rows) }
    }

    async fn introspect(&self) -> Result<Schema, Error> {
        let settings = &self.server.settings;
        let rows = match self.ask(&introspect::query(settings, true), INTROSPECTION).await {
            Err(Error::Rejected(_)) => self.ask(&introspect::query(settings, false), INTROSPECTION).await,
            other => other,
        };
        introspect::schema(rows.map_err(|error| self.of_the_address(error))?, settings)
    }

    /// Whether what the address names is there.
    async fn look(&self) -> Result<(), Error> {
        let settings = &self.server.settings;
        let catalog = introspect::quoted(&settings.catalog);
        let schema = settings.schema.as_deref().unwrap_or("information_schema");
        let literal = introspect::literal(&schema.to_lowercase());
        let sql =
            format!("SELECT schema_name FROM {catalog}.information_schema.schemata WHERE schema_name = {literal}");
        let found = self.ask(&sql, Limits::default().time).await.map_err(|error| self.of_the_address(error))?;
        if found.is_empty() {
            let what =
                format!("there is no schema `{schema}` in the catalog `{}` of {}", settings.catalog, settings.name);
            return Err(Error::unavailable(what, "check the last part of the address, or leave it out"));
        }
        Ok(())
    }

    /// A refusal of what was asked about the address alone.
    fn of_the_address(&self, error: Error) -> Error {
        let Error::Rejected(cause) = error else { return error };
        Error::Unavailable {
            what: format!("{} cannot be read: {}", self.server.settings.name, cause.message),
            hint: "check the catalog and the schema in the address (SHOW CATALOGS lists them), and that the user may read them"
                .into(),
            transient: false,
            cause: Some(Box::new(cause)),
        }
    }
}

impl Engine for Trino {
    fn name(&self) -> &str {
        &self.server.settings.name
    }

    fn dialect(&self) -> &'static Dialect {
        self.server.settings.family.dialect
    }

    fn schema(&self) -> Answer<'_, Schema> {
        Box::pin(self.introspect())
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        Box::pin(async move {
            self.may(query)?;
            let sent = Sent { sql: query.sql(), lines_before: 1 };
            let cancel = Cancel::new();
            let mut session = Session::new(&self.server, Limits::default().time, &cancel);
            session.run(sent, &format!("{VALIDATE}{}", query.sql()), &mut |_| ControlFlow::Continue(())).await
        })
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        Box::pin(async move {
            self.may(query)?;
            self.locked(query.sql(), limits, cancel).await
        })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        Box::pin(self.look())
    }

    fn examine(&self) -> Answer<'_, Vec<Check>> {
        Box::pin(async {
            self.look().await?;
            examine::examine(&self.server).await
        })
    }
}

/// The rows of a statement, as far as the limits go.
async fn read(session: &mut Session<'_>, sql: &str, limits: &Limits) -> Result<Rows, Error> {
    let mut taking: Option<Taking> = None;
    let mut kinds: Vec<Kind> = Vec::new();
    let mut take = |step: Step| {
        if let Some(columns) = step.columns
            && taking.is_none()
        {
            kinds = columns.iter().map(Kind::of).collect();
            taking = Some(Taking::new(columns.into_iter().map(|column| column.name).collect(), limits));
        }
        for row in step.data.into_iter().flatten() {
            let plain = std::iter::repeat(&Kind::Plain);
            let cells = row.into_iter().zip(kinds.iter().chain(plain)).map(|(v, kind)| cell(v, kind)).collect();
            if !taking.get_or_insert_with(|| Taking::new(Vec::new(), limits)).weigh_and_take(cells) {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    };
    session.run(Sent { sql, lines_before: 0 }, sql, &mut take).await?;
    Ok(taking.map(Taking::done).unwrap_or_default())
}
