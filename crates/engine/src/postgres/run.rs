//! How a query runs: in a transaction of its own that may only read, for so long as it may, and rolled back in the end.
//!
//! The text is prepared before it is run, so that the server itself makes sure that it is one statement. One that gives no columns
//! is not run at all: all that is not a query is of that kind, `COMMIT`, `SET` and `COPY` too.

use std::borrow::Cow;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt};
use querymend_sql::{Cell, EngineError, Rows};
use tokio_postgres::{Column, SimpleQueryMessage, Statement};

use super::binary::{self, Reader};
use super::pool::{Link, NAMED, Pool, milliseconds};
use super::refusal::{self, Failure};
use super::text;
use crate::taking::Taking;
use crate::{Cancel, Error, Limits};

/// How often the flag is looked at that cancels a query.
const LOOK: Duration = Duration::from_millis(10);
/// So much longer than a query may run is waited for the server, which ends it by itself and leaves the connection as it was.
const GRACE: Duration = Duration::from_millis(100);
/// So long is waited for the end of a query that has given enough.
const ENDING: Duration = Duration::from_secs(1);

/// Something that is done on a connection.
pub(super) trait Step: Sync {
    /// What comes of it.
    type Outcome: Send;

    /// Does it. It begins a transaction, which whoever asked for it ends.
    fn take(&self, link: &Link) -> impl Future<Output = Result<Self::Outcome, Failure>> + Send;
}

/// Runs a query.
struct Execution<'a> {
    name: &'a str,
    pool: &'a Pool,
    sql: &'a str,
    limits: &'a Limits,
}

/// Has the server read a query.
struct Reading<'a>(Execution<'a>);

pub(super) async fn execute(pool: &Pool, sql: &str, limits: &Limits, cancel: &Cancel) -> Result<Rows, Error> {
    on_a_connection(pool, limits, cancel, Execution { name: pool.name(), pool, sql, limits }).await
}

pub(super) async fn probe(pool: &Pool, sql: &str) -> Result<(), Error> {
    let limits = &Limits::default();
    on_a_connection(pool, limits, &Cancel::new(), Reading(Execution { name: pool.name(), pool, sql, limits })).await
}

impl Step for Execution<'_> {
    type Outcome = Rows;

    async fn take(&self, link: &Link) -> Result<Rows, Failure> {
        if let Some(statement) = link.remembered(self.sql) {
            match self.run(link, &statement, Some(&self.opening(link))).await {
                Err(Failure::Said(error)) if is_outdated(&error) => {
                    // The tables are not what they were: the server reads the query anew.
                    link.forget(self.sql);
                    let ended = link.client.batch_execute("ROLLBACK").await;
                    ended.map_err(|error| refusal::of_query(self.name, "", &error))?;
                }
                outcome => return outcome,
            }
        }
        let statement = self.begin(link).await?;
        self.run(link, &statement, None).await
    }
}

impl Step for Reading<'_> {
    type Outcome = ();

    async fn take(&self, link: &Link) -> Result<(), Failure> {
        // Also if it is remembered: its tables may have changed.
        link.forget(self.0.sql);
        self.0.begin(link).await.map(drop)
    }
}

/// Does something on a connection, for as long as it may take. If a connection that was kept turns out to be dead, it is done
/// again on a new one: nothing that is done here leaves a trace.
pub(super) async fn on_a_connection<S: Step>(
    pool: &Pool,
    limits: &Limits,
    cancel: &Cancel,
    step: S,
) -> Result<S::Outcome, Error> {
    let begun = Instant::now();
    let mut stopped = pin!(stopped(limits, cancel));
    if cancel.is_cancelled() {
        return Err(Error::Cancelled);
    }
    loop {
        let lent = tokio::select! {
            biased;
            lent = pool.lend(limits.time) => lent?,
            reason = &mut stopped => {
                return Err(if reason == Error::Cancelled { reason } else { refusal::busy(pool.name()) });
            }
        };
        let Some(link) = lent.as_ref() else { return Err(Error::Internal("a connection was lent twice".into())) };
        let outcome = tokio::select! {
            biased;
            outcome = step.take(link) => Ok(outcome),
            reason = &mut stopped => Err(reason),
        };
        match outcome {
            Ok(Ok(value)) => {
                lent.give_back();
                return Ok(value);
            }
            Ok(Err(Failure::Said(error))) => {
                lent.give_back();
                // The server only knows that it was told to stop; the flag and the clock know why.
                let late = error == Error::Cancelled && !cancel.is_cancelled() && begun.elapsed() >= limits.time;
                return Err(if late { Error::TimedOut { after: limits.time } } else { error });
            }
            Ok(Err(Failure::Gone(error))) => {
                let again = link.is_kept();
                lent.close();
                pool.forget();
                if !again {
                    return Err(error);
                }
            }
            Err(reason) => {
                lent.stop().await;
                return Err(reason);
            }
        }
    }
}

/// Waits until the time is over or somebody cancels.
async fn stopped(limits: &Limits, cancel: &Cancel) -> Error {
    let begun = Instant::now();
    loop {
        let left = limits.time.saturating_add(GRACE).saturating_sub(begun.elapsed());
        tokio::time::sleep(LOOK.min(left)).await;
        if cancel.is_cancelled() {
            return Error::Cancelled;
        }
        if left.is_zero() {
            return Error::TimedOut { after: limits.time };
        }
    }
}

impl Execution<'_> {
    /// Begins the transaction, and has the server read the query; all of it is said in one breath.
    async fn begin(&self, link: &Link) -> Result<Statement, Failure> {
        let Self { name, sql, .. } = *self;
        // The protocol ends texts with it.
        if let Some(position) = sql.find('\0') {
            return Err(refused("22021", "the query holds a NUL character", Some(position)).into());
        }
        let opening = self.opening(link);
        let (begun, statement) = tokio::join!(link.client.batch_execute(&opening), link.client.prepare(sql));
        begun.map_err(|error| refusal::of_query(name, "", &error))?;
        let statement = statement.map_err(|error| refusal::of_query(name, sql, &error))?;
        if !statement.params().is_empty() {
            return Err(refused("42P02", "there is no parameter $1", None).into());
        }
        if statement.columns().is_empty() {
            return Err(refused("25006", "only queries are run, and this statement gives no columns", None).into());
        }
        link.remember(sql, &statement);
        Ok(statement)
    }

    /// How the transaction begins.
    fn opening(&self, link: &Link) -> Cow<'static, str> {
        if self.limits.time == link.time {
            return "BEGIN READ ONLY".into();
        }
        format!("BEGIN READ ONLY; SET LOCAL statement_timeout = {}", milliseconds(self.limits.time)).into()
    }

    /// Runs what was prepared, after the opening if there is one to be said first.
    async fn run(&self, link: &Link, statement: &Statement, opening: Option<&str>) -> Result<Rows, Failure> {
        let columns = statement.columns().iter().map(|column| column.name().to_string()).collect();
        let readers: Option<Vec<Reader>> = statement.columns().iter().map(|c| binary::reader(c.type_())).collect();
        let open = async {
            match opening {
                Some(opening) => link.client.batch_execute(opening).await,
                None => Ok(()),
            }
        };
        let taking = Taking::new(columns, self.limits);
        match readers {
            Some(readers) => self.in_binary(link, statement, &readers, taking, open).await,
            None => self.in_text(link, statement.columns(), taking, open).await,
        }
    }

    async fn in_binary(
        &self,
        link: &Link,
        statement: &Statement,
        readers: &[Reader],
        mut taking: Taking,
        open: impl Future<Output = Result<(), tokio_postgres::Error>>,
    ) -> Result<Rows, Failure> {
        let meaning = |error| refusal::of_query(self.name, self.sql, &error);
        let nothing: [&(dyn tokio_postgres::types::ToSql + Sync); 0] = [];
        let (opened, stream) = tokio::join!(open, link.client.query_raw(statement, nothing));
        opened.map_err(meaning)?;
        let mut stream = pin!(stream.map_err(meaning)?);
        while let Some(row) = stream.next().await {
            let row = row.map_err(meaning)?;
            let mut cells = Vec::with_capacity(readers.len());
            for (i, reader) in readers.iter().enumerate() {
                let value: Option<binary::Raw<'_>> = row.try_get(i).map_err(meaning)?;
                let bytes = value.map(|raw| raw.0);
                if !taking.has_room(bytes.map_or(0, |bytes| bytes.len() * reader.growth)) {
                    break;
                }
                let read = bytes.map_or(Some(Cell::Null), reader.read);
                let cell = read.ok_or_else(|| unreadable(&statement.columns()[i]))?;
                // A few bytes may be a number of a hundred thousand digits.
                if let Cell::Decimal(digits) = &cell
                    && !taking.has_room(digits.len())
                {
                    break;
                }
                cells.push(cell);
            }
            if !taking.take(cells) {
                end(self.pool, link, stream).await;
                break;
            }
        }
        Ok(taking.done())
    }

    /// For kinds of values of which only the server knows how they are written: the query is prepared under a name and run with the
    /// protocol that gives texts.
    async fn in_text(
        &self,
        link: &Link,
        columns: &[Column],
        mut taking: Taking,
        open: impl Future<Output = Result<(), tokio_postgres::Error>>,
    ) -> Result<Rows, Failure> {
        // What it points at is not the query as it was written.
        let meaning = |error| refusal::of_query(self.name, "", &error);
        let prepare = format!("PREPARE {NAMED} AS {}", self.sql);
        let run = format!("EXECUTE {NAMED}");
        link.will_name();
        let (opened, prepared, stream) =
            tokio::join!(open, link.client.execute_typed(&prepare, &[]), link.client.simple_query_raw(&run));
        opened.map_err(meaning)?;
        prepared.map_err(meaning)?;
        let mut stream = pin!(stream.map_err(meaning)?);
        while let Some(message) = stream.next().await {
            let row = match message {
                Ok(SimpleQueryMessage::Row(row)) => row,
                Ok(_) => continue,
                Err(error) => return Err(meaning(error)),
            };
            let mut cells = Vec::with_capacity(columns.len());
            for (i, column) in columns.iter().enumerate() {
                let value = row.try_get(i).map_err(meaning)?;
                if !taking.has_room(value.map_or(0, str::len)) {
                    break;
                }
                cells.push(value.map_or(Cell::Null, |value| text::cell(value, column.type_())));
            }
            if !taking.take(cells) {
                end(self.pool, link, stream).await;
                break;
            }
        }
        Ok(taking.done())
    }
}

/// Ends a query that has given enough. The connection can be used again only if the server says that it has heard: otherwise, it may
/// yet end the query that comes next.
async fn end<T>(pool: &Pool, link: &Link, mut stream: Pin<&mut impl Stream<Item = Result<T, tokio_postgres::Error>>>) {
    let ending = async {
        pool.cancel(link).await;
        loop {
            match stream.next().await {
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.code() == Some(&tokio_postgres::error::SqlState::QUERY_CANCELED),
                None => return false,
            }
        }
    };
    if tokio::time::timeout(ENDING, ending).await != Ok(true) {
        link.spoil();
    }
}

/// Whether a query failed because something has changed since the server read it.
fn is_outdated(error: &Error) -> bool {
    matches!(error, Error::Rejected(said) if said.code.starts_with("42") || said.code == "0A000" || said.code == "26000")
}

fn unreadable(column: &Column) -> Error {
    Error::Internal(format!("a value of the column `{}` is not of the form of {}", column.name(), column.type_()))
}

/// A refusal that this engine speaks in PostgreSQL's place.
fn refused(code: &str, message: &str, position: Option<usize>) -> Error {
    Error::Rejected(EngineError { code: code.into(), message: message.into(), hint: None, position })
}
