//! Connection pool, which connects on demand and discards connections in an uncertain state.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::runtime::{Handle, Id};
use tokio::sync::Semaphore;

use super::address::MySqlServer;
use super::errors::{self, MySqlError};
use super::kill::{KillOnDrop, PooledMySqlConnection};
use super::read_only::{self, MySqlFlavor};
use crate::{CancelFlag, Connections, Error, Limits};

/// Maximum number of concurrent queries; more wait for a permit. By default, a server has 151
/// connections for all clients.
const MAX_CONNECTIONS: usize = 8;
/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for resetting a connection.
const RESET_TIMEOUT: Duration = Duration::from_secs(2);
/// Interval at which the cancel flag is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(15);
/// Additional time to wait for the server, which ends a query at its time limit by itself.
const GRACE_PERIOD: Duration = Duration::from_millis(200);

/// Operation on a read-only connection.
pub(super) trait MySqlOperation: Sync {
    /// Result of the operation.
    type Output: Send;

    /// Returns the SQL that is sent, to locate errors in it.
    fn sql(&self) -> &str {
        ""
    }

    /// Runs the operation.
    fn run(
        &self,
        connection: &mut Conn,
        flavor: MySqlFlavor,
    ) -> impl Future<Output = Result<Completed<Self::Output>, MySqlError>> + Send;
}

/// Outcome of an operation, and whether the response was read completely.
pub(super) struct Completed<T> {
    pub(super) outcome: T,
    pub(super) is_fully_read: bool,
}

/// Returns an outcome whose response was read completely.
pub(super) fn completed<T>(outcome: T) -> Result<Completed<T>, MySqlError> {
    Ok(Completed { outcome, is_fully_read: true })
}

/// Reset connection, and the runtime that drives it: it cannot be polled on any other.
struct IdleConnection {
    connection: PooledMySqlConnection,
    runtime: Id,
}

/// Connection pool of a server.
pub(super) struct MySqlPool {
    pub(super) server: Arc<MySqlServer>,
    permits: Semaphore,
    idle: Mutex<Vec<IdleConnection>>,
    /// Flavor of the server, once it is known.
    flavor: Mutex<Option<MySqlFlavor>>,
}

impl MySqlPool {
    pub(super) fn new(server: MySqlServer) -> Self {
        Self {
            server: Arc::new(server),
            permits: Semaphore::new(MAX_CONNECTIONS),
            idle: Mutex::new(Vec::new()),
            flavor: Mutex::new(None),
        }
    }

    pub(super) fn connections(&self) -> Connections {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).len();
        Connections { idle, busy: MAX_CONNECTIONS.saturating_sub(self.permits.available_permits()) }
    }

    /// Runs an operation in a read-only transaction within the limits. If an idle connection turns
    /// out to be dead, retries on a new one, which is safe because operations only read.
    pub(super) async fn run<W: MySqlOperation>(
        &self,
        operation: &W,
        limits: &Limits,
        cancel: &CancelFlag,
    ) -> Result<W::Output, Error> {
        let begun = Instant::now();
        let permit = tokio::select! {
            biased;
            () = wait_for_cancel(cancel) => return Err(Error::Cancelled),
            place = self.permits.acquire() => place,
            () = tokio::time::sleep(limits.time) => return Err(errors::pool_exhausted(&self.server)),
        };
        let _place = permit.map_err(|closed| Error::Internal(closed.to_string()))?;
        loop {
            let kept = self.take_idle();
            let is_new = kept.is_none();
            match self.attempt(kept, operation, limits, begun, cancel).await {
                Err(MySqlPoolError::Driver(fault)) if fault.is_connection_loss() && !is_new => self.clear_idle(),
                Err(MySqlPoolError::Driver(fault)) => {
                    return Err(errors::to_error(fault, &self.server, operation.sql(), limits.time));
                }
                Err(MySqlPoolError::Engine(error)) => return Err(error),
                Ok(outcome) => return Ok(outcome),
            }
        }
    }

    async fn attempt<W: MySqlOperation>(
        &self,
        idle: Option<PooledMySqlConnection>,
        operation: &W,
        limits: &Limits,
        begun: Instant,
        cancel: &CancelFlag,
    ) -> Result<W::Output, MySqlPoolError> {
        let timed_out = || MySqlPoolError::Engine(Error::TimedOut { after: limits.time });
        let left = || limits.time.saturating_sub(begun.elapsed());
        let mut pooled = match idle {
            Some(held) => held,
            None => tokio::select! {
                biased;
                () = wait_for_cancel(cancel) => return Err(MySqlPoolError::Engine(Error::Cancelled)),
                held = self.connect() => held.map_err(MySqlPoolError::Engine)?,
                () = tokio::time::sleep(left()) => return Err(timed_out()),
            },
        };
        let stop = KillOnDrop::new(&self.server, pooled.connection.id());
        let (flavor, time) = (self.flavor(), left());
        let session = async {
            read_only::begin_read_only(&mut pooled.connection, flavor, time).await?;
            operation.run(&mut pooled.connection, flavor).await
        };
        let ended = tokio::select! {
            biased;
            done = session => Ok(done),
            () = wait_for_cancel(cancel) => Err(MySqlPoolError::Engine(Error::Cancelled)),
            () = tokio::time::sleep(time.saturating_add(GRACE_PERIOD)) => Err(timed_out()),
        };
        let done = match ended {
            Ok(done) => done,
            Err(why) => {
                drop(pooled);
                stop.kill().await;
                return Err(why);
            }
        };
        let is_clean = match &done {
            Ok(done) => done.is_fully_read,
            Err(fault) => !fault.is_connection_loss(),
        };
        // Unread rows are not drained; dropping the guard kills the query in the background.
        if is_clean {
            stop.disarm();
            self.release(pooled).await;
        }
        done.map(|done| done.outcome).map_err(MySqlPoolError::Driver)
    }

    /// Opens a new connection.
    async fn connect(&self) -> Result<PooledMySqlConnection, Error> {
        let connect = async {
            let mut connection = Conn::new(self.server.opts.clone()).await?;
            if self.known_flavor().is_none() {
                let version: Option<String> = connection.query_first("SELECT VERSION()").await?;
                *self.flavor.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(MySqlFlavor::from_version(&version.unwrap_or_default()));
            }
            Ok(PooledMySqlConnection { connection, is_clean: false })
        };
        match tokio::time::timeout(CONNECT_TIMEOUT, connect).await {
            Ok(connection) => connection.map_err(|error| errors::connection_error(error, &self.server)),
            Err(_) => Err(errors::connect_timed_out(&self.server)),
        }
    }

    fn known_flavor(&self) -> Option<MySqlFlavor> {
        *self.flavor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the flavor of the server, which is known after the first connection.
    fn flavor(&self) -> MySqlFlavor {
        self.known_flavor().unwrap_or(MySqlFlavor::MySql)
    }

    /// Takes an idle connection of this runtime. Connections of other runtimes are closed, because
    /// nothing would wake this task for them.
    fn take_idle(&self) -> Option<PooledMySqlConnection> {
        let here = Handle::try_current().ok()?.id();
        let mut kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain_mut(|kept| {
            kept.connection.is_clean = kept.runtime == here;
            kept.connection.is_clean
        });
        let mut held = kept.pop()?.connection;
        held.is_clean = false;
        Some(held)
    }

    fn clear_idle(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Resets a connection and returns it to the pool. The reset ends its transaction and undoes
    /// all settings, locks and temporary tables of its query. A connection that cannot be reset is
    /// dropped.
    async fn release(&self, mut pooled: PooledMySqlConnection) {
        let reset = tokio::time::timeout(RESET_TIMEOUT, pooled.connection.reset()).await;
        if let (Ok(Ok(true)), Ok(here)) = (reset, Handle::try_current()) {
            pooled.is_clean = true;
            let mut kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(IdleConnection { connection: pooled, runtime: here.id() });
        }
    }
}

/// Error of an attempt to run an operation.
enum MySqlPoolError {
    Driver(MySqlError),
    Engine(Error),
}

async fn wait_for_cancel(cancel: &CancelFlag) {
    while !cancel.is_cancelled() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
