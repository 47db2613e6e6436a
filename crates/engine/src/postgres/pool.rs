//! Connection pool, which reconnects after the server was unavailable.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use querymend_net::postgres::{PostgresServer, drive_connection};
use querymend_net::tls;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Statement};

use super::errors;
use crate::{Connections, Error};

/// Idle time after which a connection is checked before use.
///
/// A firewall or proxy may have dropped it silently.
const MAX_UNCHECKED_IDLE: Duration = Duration::from_secs(30);
/// Timeout for responses that should be immediate.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Session settings of each connection.
///
/// They make transactions read-only, let the server end abandoned queries by itself, and fix how
/// SQL is parsed and values are formatted, regardless of the server's defaults: query review parsed
/// the query as standard SQL, too. A query cannot change them for the next one, because every query
/// is rolled back.
const SESSION_SETTINGS: &str = "SET default_transaction_read_only = on; SET lock_timeout = 10000; \
    SET idle_in_transaction_session_timeout = 60000; SET standard_conforming_strings = on; SET escape_string_warning = off; \
    SET transform_null_equals = off; SET array_nulls = on; SET datestyle = 'ISO, MDY'; SET intervalstyle = postgres; \
    SET timezone = 'UTC'; SET bytea_output = hex; SET extra_float_digits = 1; SET client_encoding = 'UTF8'";

/// Setting that makes the server detect a disconnected client while a query runs. Not every version
/// supports it.
const CLIENT_CHECK_SETTING: &str = "SET client_connection_check_interval = 1000";

/// Rolls back the transaction and releases session-level advisory locks, which a rollback keeps.
const RELEASE_SQL: &str = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()";

/// Limits of the statement cache per connection: number of statements, and bytes of SQL of each.
const MAX_CACHED_STATEMENTS: usize = 8;
const MAX_CACHED_SQL_BYTES: usize = 8 << 10;

/// Server-side name of statements that are fetched in text format. A named statement outlives its
/// transaction.
pub(super) const STATEMENT_NAME: &str = "querymend";

pub(super) struct PgPool {
    server: PostgresServer,
    permits: Semaphore,
    /// Number of permits.
    max_connections: usize,
    idle: Mutex<Vec<PgConnection>>,
}

/// Connection to the server.
pub(super) struct PgConnection {
    pub client: Client,
    /// Statement timeout that is set for the session.
    pub statement_timeout: Duration,
    /// Runtime that drives the connection.
    runtime: Id,
    /// `true` if it has served a query before, so that the server may have closed it since.
    reused: bool,
    poisoned: AtomicBool,
    /// `true` if a named statement must be deallocated.
    has_named_statement: AtomicBool,
    /// Prepared statements, least recently added first.
    ///
    /// A probed query is usually run next, and queries are often repeated.
    statements: Mutex<VecDeque<(String, Statement)>>,
    last_used: Instant,
    /// Stops the task that drives the connection when dropped.
    _keep_alive: oneshot::Sender<()>,
}

/// Connection in use. If it is dropped before it is released, its query is cancelled on the server.
pub(super) struct PooledConnection<'p> {
    connection: Option<PgConnection>,
    pool: &'p PgPool,
    _permit: SemaphorePermit<'p>,
}

impl PgPool {
    pub fn new(server: PostgresServer, connections: usize) -> Self {
        Self {
            server,
            permits: Semaphore::new(connections),
            max_connections: connections,
            idle: Mutex::new(Vec::new()),
        }
    }

    pub fn name(&self) -> &str {
        &self.server.name
    }

    pub fn connections(&self) -> Connections {
        // Closed connections are not counted, even if they have not been removed yet.
        let idle = self.idle().iter().filter(|link| !link.client.is_closed()).count();
        Connections { idle, busy: self.max_connections.saturating_sub(self.permits.available_permits()) }
    }

    /// Returns whether the connection stays on this machine.
    pub fn is_local(&self) -> bool {
        self.server.config.get_hosts().iter().all(|host| match host {
            Host::Tcp(host) => tls::is_loopback(host),
            #[cfg(unix)]
            Host::Unix(_) => true,
        })
    }

    /// Returns an idle or a new connection. `time` is the statement timeout of a new one.
    pub async fn acquire(&self, time: Duration) -> Result<PooledConnection<'_>, Error> {
        let permit = self.permits.acquire().await.map_err(|_| Error::Internal("the connections were closed".into()))?;
        let runtime = Handle::current().id();
        loop {
            let Some(connection) = self.idle().pop() else { break };
            let usable = connection.runtime == runtime
                && !connection.client.is_closed()
                && (connection.last_used.elapsed() < MAX_UNCHECKED_IDLE
                    || matches!(timeout(RESPONSE_TIMEOUT, connection.client.check_connection()).await, Ok(Ok(()))));
            if usable {
                return Ok(PooledConnection { connection: Some(connection), pool: self, _permit: permit });
            }
        }
        let link = self.connect(time).await?;
        Ok(PooledConnection { connection: Some(link), pool: self, _permit: permit })
    }

    /// Drops idle connections after the server was unavailable.
    pub fn clear_idle(&self) {
        self.idle().clear();
    }

    // A panic cannot leave the vector half-changed, so a poisoned lock is safe to use.
    fn idle(&self) -> MutexGuard<'_, Vec<PgConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self, time: Duration) -> Result<PgConnection, Error> {
        let to_error = |error: tokio_postgres::Error| errors::connection_error(self.name(), &error);
        let (client, connection) = self.server.config.connect(self.server.tls.clone()).await.map_err(to_error)?;
        let (held, let_go) = oneshot::channel();
        tokio::spawn(drive_connection(connection, let_go));
        let settings = format!("{SESSION_SETTINGS}; SET statement_timeout = {}", to_millis(time));
        let (set, _) = tokio::join!(client.batch_execute(&settings), client.batch_execute(CLIENT_CHECK_SETTING));
        set.map_err(to_error)?;
        Ok(PgConnection {
            client,
            statement_timeout: time,
            runtime: Handle::current().id(),
            reused: false,
            poisoned: AtomicBool::new(false),
            has_named_statement: AtomicBool::new(false),
            statements: Mutex::new(VecDeque::new()),
            last_used: Instant::now(),
            _keep_alive: held,
        })
    }
}

impl PgConnection {
    /// Excludes the connection from reuse.
    pub fn poison(&self) {
        self.poisoned.store(true, Ordering::Relaxed);
    }

    /// Returns the cached prepared statement of a query.
    pub fn cached_statement(&self, sql: &str) -> Option<Statement> {
        self.statements().iter().find(|(known, _)| known == sql).map(|(_, statement)| statement.clone())
    }

    pub fn cache_statement(&self, sql: &str, statement: &Statement) {
        if sql.len() > MAX_CACHED_SQL_BYTES {
            return;
        }
        let mut statements = self.statements();
        if statements.len() == MAX_CACHED_STATEMENTS {
            statements.pop_front();
        }
        statements.push_back((sql.to_string(), statement.clone()));
    }

    pub fn evict_statement(&self, sql: &str) {
        self.statements().retain(|(known, _)| known != sql);
    }

    fn statements(&self) -> MutexGuard<'_, VecDeque<(String, Statement)>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks that a named statement has to be deallocated.
    pub fn mark_named_statement(&self) {
        self.has_named_statement.store(true, Ordering::Relaxed);
    }

    pub fn is_reused(&self) -> bool {
        self.reused
    }
}

impl PooledConnection<'_> {
    /// Ends the transaction and returns the connection to the pool. Does not wait for the server,
    /// which processes commands in order.
    pub fn release(mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let sent = connection.client.batch_execute(RELEASE_SQL).now_or_never();
        if std::mem::take(connection.has_named_statement.get_mut()) {
            // Must follow the rollback: a failed transaction does not deallocate.
            drop(connection.client.batch_execute(&format!("DEALLOCATE {STATEMENT_NAME}")).now_or_never());
        }
        if connection.poisoned.load(Ordering::Relaxed) || connection.client.is_closed() || matches!(sent, Some(Err(_)))
        {
            return;
        }
        connection.reused = true;
        connection.last_used = Instant::now();
        self.pool.idle().push(connection);
    }

    /// Closes a dead connection.
    pub fn close(mut self) {
        self.connection = None;
    }

    /// Cancels the query on the server and closes the connection. It is not reused, because the
    /// cancel request may arrive late and hit the next query.
    pub async fn cancel_and_close(mut self) {
        if let Some(link) = self.connection.take() {
            self.pool.cancel(&link).await;
        }
    }
}

impl PgPool {
    /// Sends a cancel request for a connection. The server does not confirm it.
    pub async fn cancel(&self, connection: &PgConnection) {
        let asked =
            timeout(RESPONSE_TIMEOUT, connection.client.cancel_token().cancel_query(self.server.tls.clone())).await;
        drop(asked);
    }
}

impl Deref for PooledConnection<'_> {
    type Target = Option<PgConnection>;

    fn deref(&self) -> &Option<PgConnection> {
        &self.connection
    }
}

impl Drop for PooledConnection<'_> {
    fn drop(&mut self) {
        let Some(link) = self.connection.take() else { return };
        let (token, tls) = (link.client.cancel_token(), self.pool.server.tls.clone());
        // Without a runtime, the connection is closed, which the server detects.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { timeout(RESPONSE_TIMEOUT, token.cancel_query(tls)).await });
        }
    }
}

/// Converts to milliseconds, and at least 1, because 0 disables a timeout.
pub(super) fn to_millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX).max(1)
}
