//! Session on a server, with settings that fix how queries are parsed.

mod prepare;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::address::{AuthMechanism, HiveSettings};
use super::cells::FetchedRows;
use super::hive_error::HiveError;
use super::thrift_client::{INFO_DBMS_NAME, OperationState, ThriftClient};
use super::thrift_value::ThriftValue;
use super::transport::HiveTransport;
use crate::Limits;
use crate::deadline::Deadline;

/// Interval between two polls of a running statement; it doubles up to the maximum.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(5);
const MAX_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum time between two checks for cancellation.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Batch sizes: rows of the first batch, maximum rows and maximum bytes of the following ones.
const FIRST_BATCH_ROWS: usize = 200;
const MAX_BATCH_ROWS: usize = 10_000;
const MAX_BATCH_BYTES: usize = 8 << 20;

/// Server product. Both use the same protocol but different SQL dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    Spark,
    Hive,
}

pub(super) struct HiveSession {
    settings: Arc<HiveSettings>,
    client: ThriftClient,
    handle: ThriftValue,
    pub(super) product: Product,
    /// `true` if a call was interrupted: the next response on this connection may belong to it.
    is_broken: bool,
}

impl HiveSession {
    /// Connects to the server and opens a session.
    pub(super) fn open(settings: &Arc<HiveSettings>, deadline: &Deadline) -> Result<Self, HiveError> {
        let mut server = connect(settings, deadline)?;
        let mut begin = |wishes: &[(&str, &str)]| server.open_session(&settings.user, &settings.password.0, wishes);
        let handle = match begin(prepare::OPEN_SESSION_CONFIG) {
            // Some servers reject session configuration; they then react to a cancel request more
            // slowly.
            Err(HiveError::ServerError(_)) => begin(&[])?,
            outcome => outcome?,
        };
        server.transport().use_idle_timeout();
        let name = server.get_info(&handle, INFO_DBMS_NAME)?.to_lowercase();
        let product = match name {
            name if name.contains("spark") => Product::Spark,
            name if name.contains("hive") => Product::Hive,
            // A proxy or an unknown product; trust the scheme of the address.
            _ if settings.dialect.name == "hive" => Product::Hive,
            _ => Product::Spark,
        };
        let mut session = Self { settings: Arc::clone(settings), client: server, handle, product, is_broken: false };
        prepare::prepare_session(&mut session, &settings.database, deadline)?;
        Ok(session)
    }

    /// Returns whether the session can serve another query.
    pub(super) fn is_clean(&self) -> bool {
        !self.is_broken
    }

    /// Drops the session without closing it on the server.
    pub(super) fn abandon(mut self) {
        self.is_broken = true;
    }

    /// Calls the server. The session is unusable afterwards if a response may still be outstanding.
    pub(super) fn call<T>(
        &mut self,
        deadline: &Deadline,
        request: impl FnOnce(&mut ThriftClient, &ThriftValue) -> Result<T, HiveError>,
    ) -> Result<T, HiveError> {
        self.client.transport().set_deadline(deadline);
        let answer = request(&mut self.client, &self.handle);
        if matches!(
            answer,
            Err(HiveError::Interrupted | HiveError::ConnectionLost { .. } | HiveError::InvalidResponse(_))
        ) {
            self.is_broken = true;
        }
        answer
    }

    /// Runs one arbitrary statement; only `read_only.rs` decides which ones are allowed.
    ///
    /// The returned operation holds its rows on the server and must be released.
    pub(super) fn execute(&mut self, sql: &str, deadline: &Deadline) -> Result<ThriftValue, HiveError> {
        // Slightly more than the remaining time, so that our own timeout fires first and the
        // server's only if we are gone.
        let seconds = i64::try_from(deadline.remaining(Duration::from_secs(86_400)).as_secs()).unwrap_or(0) + 2;
        let operation = self.call(deadline, |server, session| server.execute_statement(session, sql, seconds))?;
        self.wait_or_release(operation, deadline)
    }

    /// Runs one statement and discards its result.
    pub(super) fn command(&mut self, sql: &str, deadline: &Deadline) -> Result<(), HiveError> {
        let operation = self.execute(sql, deadline)?;
        self.release_operation(&operation, false);
        Ok(())
    }

    /// Waits until an operation has its rows; releases it if it fails.
    pub(super) fn wait_or_release(
        &mut self,
        operation: ThriftValue,
        deadline: &Deadline,
    ) -> Result<ThriftValue, HiveError> {
        match self.poll_until_finished(&operation, deadline) {
            Ok(()) => Ok(operation),
            Err(fault) => {
                self.release_operation(&operation, fault == HiveError::Interrupted);
                Err(fault)
            }
        }
    }

    fn poll_until_finished(&mut self, operation: &ThriftValue, deadline: &Deadline) -> Result<(), HiveError> {
        let mut pause = MIN_POLL_INTERVAL;
        let mut silent = 0;
        loop {
            if deadline.stop_reason().is_some() {
                return Err(HiveError::Interrupted);
            }
            let asked = Instant::now();
            match self.call(deadline, |server, _| server.operation_state(operation))? {
                OperationState::Finished => return Ok(()),
                OperationState::Failed(status) if status.message.contains("Query timed out after") => {
                    return Err(HiveError::TimedOut);
                }
                // Spark reports a failure shortly before its message is available.
                OperationState::Failed(status) if status.message.is_empty() && silent < 20 => {
                    silent += 1;
                    pause = MIN_POLL_INTERVAL;
                }
                OperationState::Failed(status) => return Err(HiveError::ServerError(status)),
                OperationState::TimedOut => return Err(HiveError::TimedOut),
                OperationState::Cancelled => {
                    return Err(HiveError::InvalidResponse("the server has stopped the query".into()));
                }
                OperationState::Running => {}
            }
            // Some servers already block before they report that the query is still running.
            let until = asked + pause;
            while Instant::now() < until && deadline.stop_reason().is_none() {
                thread::sleep(CANCEL_CHECK_INTERVAL.min(until.saturating_duration_since(Instant::now())));
            }
            pause = (pause * 2).min(MAX_POLL_INTERVAL);
        }
    }

    /// Fetches the rows of an operation within the limits. The average size of the rows so far
    /// determines the next batch size.
    pub(super) fn fetch_rows(
        &mut self,
        operation: &ThriftValue,
        limits: &Limits,
        deadline: &Deadline,
    ) -> Result<FetchedRows, HiveError> {
        let columns = self.call(deadline, |server, _| server.result_columns(operation))?;
        let mut fetched = FetchedRows::new(columns, limits);
        let mut batch_rows = FIRST_BATCH_ROWS;
        loop {
            if deadline.stop_reason().is_some() {
                return Err(HiveError::Interrupted);
            }
            let columns = self.call(deadline, |server, _| server.fetch_results(operation, batch_rows))?;
            let came = fetched.append_batch(columns)?;
            if came == 0 || fetched.collector.is_truncated() {
                return Ok(fetched);
            }
            let missing = limits.rows.saturating_sub(fetched.collector.row_count()).saturating_add(1);
            batch_rows =
                (MAX_BATCH_BYTES / fetched.collector.average_row_bytes().max(1)).clamp(1, MAX_BATCH_ROWS).min(missing);
        }
    }

    /// Releases an operation and its rows on the server, and cancels it if it is still running.
    pub(super) fn release_operation(&mut self, operation: &ThriftValue, running: bool) {
        let stop = Deadline::short();
        if !self.is_broken {
            let stopped =
                if running { self.call(&stop, |server, _| server.cancel_operation(operation)) } else { Ok(()) };
            let closed = stopped.and_then(|()| self.call(&stop, |server, _| server.close_operation(operation)));
            if closed.is_err() {
                self.is_broken = true;
            }
        }
        if self.is_broken && running {
            // This connection is blocked by a pending call, so the cancel request needs another
            // one.
            let cancelled = connect(&self.settings, &stop).and_then(|mut server| server.cancel_operation(operation));
            drop(cancelled);
        }
    }
}

impl Drop for HiveSession {
    fn drop(&mut self) {
        if !self.is_broken {
            // Best effort: a server closes the sessions of clients that disconnect.
            self.client.transport().set_deadline(&Deadline::short());
            drop(self.client.close_session(&self.handle));
        }
    }
}

/// Connects to the server and authenticates.
fn connect(settings: &HiveSettings, deadline: &Deadline) -> Result<ThriftClient, HiveError> {
    let mut transport = HiveTransport::open(&settings.host, settings.port, settings.tls.as_ref(), deadline)?;
    if settings.auth == AuthMechanism::Plain {
        transport.authenticate_plain(&settings.user, &settings.password.0)?.map_err(HiveError::AuthenticationFailed)?;
    }
    Ok(ThriftClient::new(transport))
}
