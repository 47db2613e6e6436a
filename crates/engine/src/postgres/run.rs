//! Runs queries, each in its own read-only transaction, which is rolled back at the end.
//!
//! The SQL is prepared before it is run, so that the server ensures that it is a single statement.
//! A statement without result columns is not run at all; that includes everything that is not a
//! query, such as `COMMIT`, `SET` and `COPY`.

use std::borrow::Cow;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt};
use querymend_sql::{Cell, EngineError, Rows};
use tokio_postgres::{Column, SimpleQueryMessage, Statement};

use super::binary::{self, BinaryDecoder};
use super::errors::{self, PgError};
use super::pool::{PgConnection, PgPool, STATEMENT_NAME, to_millis};
use super::text;
use crate::row_collector::RowCollector;
use crate::{CancelFlag, Error, Limits};

/// Interval at which the cancel flag is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Additional time to wait for the server after the time limit.
///
/// The server ends a query at its statement timeout, which keeps the connection usable.
const GRACE_PERIOD: Duration = Duration::from_millis(100);
/// Timeout for cancelling the rest of a truncated result.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Operation on a connection.
pub(super) trait PgOperation: Sync {
    /// Result of the operation.
    type Output: Send;

    /// Performs the operation. It begins a transaction, which the caller ends.
    fn perform(&self, connection: &PgConnection) -> impl Future<Output = Result<Self::Output, PgError>> + Send;
}

struct PgExecution<'a> {
    name: &'a str,
    pool: &'a PgPool,
    sql: &'a str,
    limits: &'a Limits,
}

/// Prepares a query without running it.
struct PgProbe<'a>(PgExecution<'a>);

pub(super) async fn execute(pool: &PgPool, sql: &str, limits: &Limits, cancel: &CancelFlag) -> Result<Rows, Error> {
    with_connection(pool, limits, cancel, PgExecution { name: pool.name(), pool, sql, limits }).await
}

pub(super) async fn probe(pool: &PgPool, sql: &str) -> Result<(), Error> {
    let limits = &Limits::default();
    with_connection(pool, limits, &CancelFlag::new(), PgProbe(PgExecution { name: pool.name(), pool, sql, limits }))
        .await
}

impl PgOperation for PgExecution<'_> {
    type Output = Rows;

    async fn perform(&self, connection: &PgConnection) -> Result<Rows, PgError> {
        if let Some(statement) = connection.cached_statement(self.sql) {
            match self.run_statement(connection, &statement, Some(&self.begin_sql(connection))).await {
                Err(PgError::Server(error)) if is_stale_statement(&error) => {
                    // The tables have changed, so the query must be prepared again.
                    connection.evict_statement(self.sql);
                    let ended = connection.client.batch_execute("ROLLBACK").await;
                    ended.map_err(|error| errors::query_error(self.name, "", &error))?;
                }
                outcome => return outcome,
            }
        }
        let statement = self.begin_and_prepare(connection).await?;
        self.run_statement(connection, &statement, None).await
    }
}

impl PgOperation for PgProbe<'_> {
    type Output = ();

    async fn perform(&self, connection: &PgConnection) -> Result<(), PgError> {
        // A cached statement does not count: its tables may have changed.
        connection.evict_statement(self.0.sql);
        self.0.begin_and_prepare(connection).await.map(drop)
    }
}

/// Performs an operation on a connection within the time limit. If a reused connection turns out to
/// be dead, retries on a new one, which is safe because operations have no effects.
pub(super) async fn with_connection<S: PgOperation>(
    pool: &PgPool,
    limits: &Limits,
    cancel: &CancelFlag,
    operation: S,
) -> Result<S::Output, Error> {
    let begun = Instant::now();
    let mut stop = pin!(wait_for_stop(limits, cancel));
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    loop {
        let pooled = tokio::select! {
            biased;
            lent = pool.acquire(limits.time) => lent?,
            reason = &mut stop => {
                return Err(if reason == Error::Cancelled { reason } else { errors::pool_exhausted(pool.name()) });
            }
        };
        let Some(connection) = pooled.as_ref() else {
            return Err(Error::Internal("a connection was handed out twice".into()));
        };
        let outcome = tokio::select! {
            biased;
            outcome = operation.perform(connection) => Ok(outcome),
            reason = &mut stop => Err(reason),
        };
        match outcome {
            Ok(Ok(value)) => {
                pooled.release();
                return Ok(value);
            }
            Ok(Err(PgError::Server(error))) => {
                pooled.release();
                // The server reports only a cancellation; the flag and the elapsed time determine
                // the reason.
                let late = error == Error::Cancelled && !cancel.is_cancelled() && begun.elapsed() >= limits.time;
                return Err(if late { Error::TimedOut { after: limits.time } } else { error });
            }
            Ok(Err(PgError::ConnectionLost(error))) => {
                let again = connection.is_reused();
                pooled.close();
                pool.clear_idle();
                if !again {
                    return Err(error);
                }
            }
            Err(reason) => {
                pooled.cancel_and_close().await;
                return Err(reason);
            }
        }
    }
}

/// Waits for the time limit or cancellation.
async fn wait_for_stop(limits: &Limits, cancel: &CancelFlag) -> Error {
    let begun = Instant::now();
    loop {
        let left = limits.time.saturating_add(GRACE_PERIOD).saturating_sub(begun.elapsed());
        tokio::time::sleep(POLL_INTERVAL.min(left)).await;
        if cancel.is_cancelled() {
            return Error::Cancelled;
        }
        if left.is_zero() {
            return Error::TimedOut { after: limits.time };
        }
    }
}

impl PgExecution<'_> {
    /// Begins the transaction and prepares the query, in one round trip.
    async fn begin_and_prepare(&self, connection: &PgConnection) -> Result<Statement, PgError> {
        let Self { name, sql, .. } = *self;
        // The protocol terminates strings with NUL.
        if let Some(position) = sql.find('\0') {
            return Err(rejection("22021", "the query contains a NUL character", Some(position)).into());
        }
        let opening = self.begin_sql(connection);
        let (begun, statement) =
            tokio::join!(connection.client.batch_execute(&opening), connection.client.prepare(sql));
        begun.map_err(|error| errors::query_error(name, "", &error))?;
        let statement = statement.map_err(|error| errors::query_error(name, sql, &error))?;
        if !statement.params().is_empty() {
            return Err(rejection("42P02", "there is no parameter $1", None).into());
        }
        if statement.columns().is_empty() {
            return Err(rejection("25006", "only queries are run, and this statement gives no columns", None).into());
        }
        connection.cache_statement(sql, &statement);
        Ok(statement)
    }

    /// Returns the statement that begins the transaction.
    fn begin_sql(&self, connection: &PgConnection) -> Cow<'static, str> {
        if self.limits.time == connection.statement_timeout {
            return "BEGIN READ ONLY".into();
        }
        format!("BEGIN READ ONLY; SET LOCAL statement_timeout = {}", to_millis(self.limits.time)).into()
    }

    /// Runs a prepared statement, preceded by `opening` if there is one.
    async fn run_statement(
        &self,
        connection: &PgConnection,
        statement: &Statement,
        opening: Option<&str>,
    ) -> Result<Rows, PgError> {
        let columns = statement.columns().iter().map(|column| column.name().to_string()).collect();
        let readers: Option<Vec<BinaryDecoder>> =
            statement.columns().iter().map(|c| binary::binary_decoder(c.type_())).collect();
        let open = async {
            match opening {
                Some(opening) => connection.client.batch_execute(opening).await,
                None => Ok(()),
            }
        };
        let collector = RowCollector::new(columns, self.limits);
        match readers {
            Some(readers) => self.fetch_binary(connection, statement, &readers, collector, open).await,
            None => self.fetch_text(connection, statement.columns(), collector, open).await,
        }
    }

    async fn fetch_binary(
        &self,
        connection: &PgConnection,
        statement: &Statement,
        decoders: &[BinaryDecoder],
        mut collector: RowCollector,
        open: impl Future<Output = Result<(), tokio_postgres::Error>>,
    ) -> Result<Rows, PgError> {
        let to_error = |error| errors::query_error(self.name, self.sql, &error);
        let nothing: [&(dyn tokio_postgres::types::ToSql + Sync); 0] = [];
        let (opened, stream) = tokio::join!(open, connection.client.query_raw(statement, nothing));
        opened.map_err(to_error)?;
        let mut stream = pin!(stream.map_err(to_error)?);
        while let Some(row) = stream.next().await {
            let row = row.map_err(to_error)?;
            let mut cells = Vec::with_capacity(decoders.len());
            for (i, reader) in decoders.iter().enumerate() {
                let value: Option<binary::RawBytes<'_>> = row.try_get(i).map_err(to_error)?;
                let bytes = value.map(|raw| raw.0);
                if !collector.reserve(bytes.map_or(0, |bytes| bytes.len() * reader.growth)) {
                    break;
                }
                let read = bytes.map_or(Some(Cell::Null), reader.decode);
                let cell = read.ok_or_else(|| decode_error(&statement.columns()[i]))?;
                // A `numeric` of a few bytes may have a hundred thousand digits.
                if let Cell::Decimal(digits) = &cell
                    && !collector.reserve(digits.len())
                {
                    break;
                }
                cells.push(cell);
            }
            if !collector.push_reserved(cells) {
                cancel_remaining(self.pool, connection, stream).await;
                break;
            }
        }
        Ok(collector.into_rows())
    }

    /// Fetches rows in text format, for types without a binary decoder.
    ///
    /// The query is prepared under a name and executed with the simple query protocol.
    async fn fetch_text(
        &self,
        connection: &PgConnection,
        columns: &[Column],
        mut collector: RowCollector,
        open: impl Future<Output = Result<(), tokio_postgres::Error>>,
    ) -> Result<Rows, PgError> {
        // Error positions refer to the `PREPARE` statement and not to the query.
        let to_error = |error| errors::query_error(self.name, "", &error);
        let prepare = format!("PREPARE {STATEMENT_NAME} AS {}", self.sql);
        let run = format!("EXECUTE {STATEMENT_NAME}");
        connection.mark_named_statement();
        let (opened, prepared, stream) = tokio::join!(
            open,
            connection.client.execute_typed(&prepare, &[]),
            connection.client.simple_query_raw(&run)
        );
        opened.map_err(to_error)?;
        prepared.map_err(to_error)?;
        let mut stream = pin!(stream.map_err(to_error)?);
        while let Some(message) = stream.next().await {
            let row = match message {
                Ok(SimpleQueryMessage::Row(row)) => row,
                Ok(_) => continue,
                Err(error) => return Err(to_error(error)),
            };
            let mut cells = Vec::with_capacity(columns.len());
            for (i, column) in columns.iter().enumerate() {
                let value = row.try_get(i).map_err(to_error)?;
                if !collector.reserve(value.map_or(0, str::len)) {
                    break;
                }
                cells.push(value.map_or(Cell::Null, |value| text::to_cell(value, column.type_())));
            }
            if !collector.push_reserved(cells) {
                cancel_remaining(self.pool, connection, stream).await;
                break;
            }
        }
        Ok(collector.into_rows())
    }
}

/// Cancels the rest of a truncated result. The connection is reused only if the server confirms the
/// cancellation: otherwise the request may still hit the next query.
async fn cancel_remaining<T>(
    pool: &PgPool,
    connection: &PgConnection,
    mut stream: Pin<&mut impl Stream<Item = Result<T, tokio_postgres::Error>>>,
) {
    let ending = async {
        pool.cancel(connection).await;
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.code() == Some(&tokio_postgres::error::SqlState::QUERY_CANCELED),
                None => return false,
            }
        }
    };
    if tokio::time::timeout(CANCEL_TIMEOUT, ending).await != Ok(true) {
        connection.poison();
    }
}

/// Returns whether a query failed because its tables changed since it was prepared.
fn is_stale_statement(error: &Error) -> bool {
    matches!(error, Error::Rejected(engine_error) if engine_error.code.starts_with("42") || engine_error.code == "0A000" || engine_error.code == "26000")
}

fn decode_error(column: &Column) -> Error {
    Error::Internal(format!("a value of the column `{}` is not a valid {}", column.name(), column.type_()))
}

/// Creates a rejection by this engine, in the form of a PostgreSQL error.
fn rejection(code: &str, message: &str, position: Option<usize>) -> Error {
    Error::Rejected(EngineError { code: code.into(), message: message.into(), hint: None, position })
}
