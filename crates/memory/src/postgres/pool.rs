//! Small connection pool that reconnects after a server restart.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use querymend_net::postgres::drive_connection;
use querymend_net::read_env;

use super::errors::{is_connection_lost, timeout_error, to_store_error};
use super::settings::StoreSettings;
use crate::error::Error;

/// Maximum number of connections.
const MAX_CONNECTIONS: usize = 4;
/// Statement timeout, also set on the server.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Client-side timeout for a response, longer than [`STATEMENT_TIMEOUT`].
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(35);
/// Idle time after which a connection is checked before it is used again.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Timeout for the check of an idle connection.
const PING_TIMEOUT: Duration = Duration::from_secs(2);

/// Parameters of a statement.
pub type SqlParams<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Connection pool for one server, with errors reported as store errors.
pub struct StorePool {
    config: Config,
    tls: MakeRustlsConnect,
    name: String,
    permits: Semaphore,
    idle: Mutex<Vec<StoreConnection>>,
}

/// Connection with its prepared statements.
pub(super) struct StoreConnection {
    pub client: Client,
    prepared: HashMap<String, Statement>,
    last_used: Instant,
    /// Stops the task that drives the connection when dropped.
    _close_on_drop: oneshot::Sender<()>,
}

/// Safety of repeating a statement if it is unknown whether the first attempt was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idempotent {
    /// Reads, or writes values that do not depend on the current ones.
    Yes,
    /// Changes values relative to the current ones, such as counters.
    No,
}

impl StorePool {
    /// Opens a pool for data other than examples, at an address such as
    /// `postgres://USER@HOST:PORT/DATABASE`.
    ///
    /// No connection is made yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        let settings = StoreSettings::parse(address, &read_env)?;
        Ok(Self::new(settings.config, settings.tls, settings.name))
    }

    pub(super) fn new(config: Config, tls: MakeRustlsConnect, name: String) -> Self {
        Self { config, tls, name, permits: Semaphore::new(MAX_CONNECTIONS), idle: Mutex::new(Vec::new()) }
    }

    /// Returns the name of the server for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Executes one statement.
    pub async fn query(&self, sql: &str, values: SqlParams<'_>, idempotent: Idempotent) -> Result<Vec<Row>, Error> {
        self.query_batches(sql, &[values], idempotent).await
    }

    /// Executes one statement with several sets of parameters, in one transaction.
    pub async fn query_batches(
        &self,
        sql: &str,
        batches: &[SqlParams<'_>],
        idempotent: Idempotent,
    ) -> Result<Vec<Row>, Error> {
        let mut has_retried = false;
        loop {
            let (mut link, _turn) = self.acquire().await?;
            match timeout(
                RESPONSE_TIMEOUT * u32::try_from(batches.len()).unwrap_or(u32::MAX),
                link.query_batches(sql, batches),
            )
            .await
            {
                Ok(Ok(rows)) => {
                    self.release(link);
                    return Ok(rows);
                }
                // The connection is not reused: a restarted server does not know it.
                Ok(Err(error)) if is_connection_lost(&error) && idempotent == Idempotent::Yes && !has_retried => {
                    has_retried = true
                }
                // Deadlock: the server rolled this transaction back, so that it is safe to retry.
                Ok(Err(error)) if error.code().is_some_and(|code| code.code() == "40P01") && !has_retried => {
                    has_retried = true
                }
                Ok(Err(error)) => {
                    if !link.client.is_closed() && !is_connection_lost(&error) && batches.len() == 1 {
                        self.release(link);
                    }
                    return Err(to_store_error(&self.name, &error));
                }
                Err(_) => return Err(timeout_error(&self.name)),
            }
        }
    }

    /// Returns an idle or new connection, which is closed when dropped unless it is released to the
    /// pool.
    pub(super) async fn acquire(&self) -> Result<(StoreConnection, SemaphorePermit<'_>), Error> {
        let permit = match timeout(RESPONSE_TIMEOUT, self.permits.acquire()).await {
            Ok(Ok(turn)) => turn,
            _ => return Err(timeout_error(&self.name)),
        };
        loop {
            let Some(link) = self.idle().pop() else { break };
            let alive = !link.client.is_closed()
                && (link.last_used.elapsed() < IDLE_CHECK_INTERVAL
                    || matches!(timeout(PING_TIMEOUT, link.client.simple_query("")).await, Ok(Ok(_))));
            if alive {
                return Ok((link, permit));
            }
        }
        Ok((self.connect().await?, permit))
    }

    /// Runs a few statements on a connection, with a deadline.
    pub(super) async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        match timeout(2 * RESPONSE_TIMEOUT, work).await {
            Ok(done) => done.map_err(|error| to_store_error(&self.name, &error)),
            Err(_) => Err(timeout_error(&self.name)),
        }
    }

    pub(super) fn release(&self, mut link: StoreConnection) {
        link.last_used = Instant::now();
        self.idle().push(link);
    }

    // Poisoning is ignored: a panic cannot leave the list half-modified.
    fn idle(&self) -> MutexGuard<'_, Vec<StoreConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<StoreConnection, Error> {
        let connecting = async {
            let (client, connection) = self.config.connect(self.tls.clone()).await?;
            let (held, let_go) = oneshot::channel();
            tokio::spawn(drive_connection(connection, let_go));
            let seconds = STATEMENT_TIMEOUT.as_millis();
            client
                .batch_execute(&format!(
                    "SET statement_timeout = {seconds};
                     SET lock_timeout = {seconds};
                     SET plan_cache_mode = force_custom_plan;
                     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
                ))
                .await?;
            // Old versions of pgvector know only one of these settings and reject the other.
            client.batch_execute("SET hnsw.ef_search = 100").await.ok();
            client.batch_execute("SET hnsw.iterative_scan = strict_order").await.ok();
            Ok((client, held))
        };
        match timeout(RESPONSE_TIMEOUT, connecting).await {
            Ok(Ok((client, held))) => Ok(StoreConnection {
                client,
                prepared: HashMap::new(),
                last_used: Instant::now(),
                _close_on_drop: held,
            }),
            Ok(Err(error)) => Err(to_store_error(&self.name, &error)),
            Err(_) => Err(timeout_error(&self.name)),
        }
    }
}

impl StoreConnection {
    async fn query_batches(&mut self, sql: &str, batches: &[SqlParams<'_>]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = match self.prepared.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql).await?;
                self.prepared.insert(sql.to_string(), statement.clone());
                statement
            }
        };
        if let [values] = batches {
            return self.client.query(&statement, values).await;
        }
        let step = self.client.transaction().await?;
        let mut rows = Vec::new();
        for values in batches {
            rows.extend(step.query(&statement, values).await?);
        }
        step.commit().await?;
        Ok(rows)
    }
}
