//! A few connections that are used in turn, and made anew when the server was away.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use querymend_net::postgres::{Server, until_let_go};
use querymend_net::tls;
use tokio::runtime::{Handle, Id};
use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Statement};

use super::refusal;
use crate::{Connections, Error};

/// A connection that was not used for so long is tried before it is relied on: something between here and the server may have
/// forgotten it without a word.
const STALE: Duration = Duration::from_secs(30);
/// So long is waited for an answer that should come at once.
const PATIENCE: Duration = Duration::from_secs(2);

/// What each connection is told once. A query can change none of it for the next one, because every query is rolled back. What
/// is set decides that nothing is written, that the server stops by itself what nobody waits for, and that texts are read and
/// written in one way wherever the server stands: the critic has read the query as standard SQL, too.
const SETTINGS: &str = "SET default_transaction_read_only = on; SET lock_timeout = 10000; \
    SET idle_in_transaction_session_timeout = 60000; SET standard_conforming_strings = on; SET escape_string_warning = off; \
    SET transform_null_equals = off; SET array_nulls = on; SET datestyle = 'ISO, MDY'; SET intervalstyle = postgres; \
    SET timezone = 'UTC'; SET bytea_output = hex; SET extra_float_digits = 1; SET client_encoding = 'UTF8'";

/// Not every server has this one: it notices while a query runs that whoever asked has gone.
const NOTICE_ABSENCE: &str = "SET client_connection_check_interval = 1000";

/// Ends a query and forgets all that it did.
/// Locks that last as long as the connection are what a rollback does not undo.
const END: &str = "ROLLBACK; SELECT pg_catalog.pg_advisory_unlock_all()";

/// So many statements are kept on a connection, of at most so many bytes each.
const KEPT_STATEMENTS: usize = 8;
const LONGEST_KEPT: usize = 8 << 10;

/// What a statement is called on the server that is run with the protocol that gives texts. It outlasts the transaction.
pub(super) const NAMED: &str = "querymend";

pub(super) struct Pool {
    server: Server,
    turns: Semaphore,
    /// How many turns there are.
    most: usize,
    idle: Mutex<Vec<Link>>,
}

/// A connection.
pub(super) struct Link {
    pub client: Client,
    /// How long a statement may run unless it is told otherwise.
    pub time: Duration,
    /// Only the runtime in which it was made moves it on.
    runtime: Id,
    /// Whether it has served before, so that the server may have forgotten it.
    kept: bool,
    spoilt: AtomicBool,
    /// Whether a statement was given a name.
    named: AtomicBool,
    /// Statements that the server has read already, the last one last: what is probed is run next, and what was asked once is often
    /// asked again.
    statements: Mutex<VecDeque<(String, Statement)>>,
    used: Instant,
    /// Tells the task that moves the connection on when nobody holds this any more.
    _held: oneshot::Sender<()>,
}

/// A connection in use. Whatever runs on it is ended on the server when this is dropped before it was given back.
pub(super) struct Lent<'p> {
    link: Option<Link>,
    pool: &'p Pool,
    _turn: SemaphorePermit<'p>,
}

impl Pool {
    pub fn new(server: Server, connections: usize) -> Self {
        Self { server, turns: Semaphore::new(connections), most: connections, idle: Mutex::new(Vec::new()) }
    }

    pub fn name(&self) -> &str {
        &self.server.name
    }

    pub fn connections(&self) -> Connections {
        // One whose server has gone is no connection, though nobody has noticed yet.
        let idle = self.idle().iter().filter(|link| !link.client.is_closed()).count();
        Connections { idle, busy: self.most.saturating_sub(self.turns.available_permits()) }
    }

    /// Whether what is said to the server stays on this machine.
    pub fn is_local(&self) -> bool {
        self.server.config.get_hosts().iter().all(|host| match host {
            Host::Tcp(host) => tls::is_loopback(host),
            #[cfg(unix)]
            Host::Unix(_) => true,
        })
    }

    /// A connection, one that is there or a new one; a statement may run for `time` on a new one.
    pub async fn lend(&self, time: Duration) -> Result<Lent<'_>, Error> {
        let turn = self.turns.acquire().await.map_err(|_| Error::Internal("the connections were closed".into()))?;
        let runtime = Handle::current().id();
        loop {
            let Some(link) = self.idle().pop() else { break };
            let usable = link.runtime == runtime
                && !link.client.is_closed()
                && (link.used.elapsed() < STALE
                    || matches!(timeout(PATIENCE, link.client.check_connection()).await, Ok(Ok(()))));
            if usable {
                return Ok(Lent { link: Some(link), pool: self, _turn: turn });
            }
        }
        let link = self.connect(time).await?;
        Ok(Lent { link: Some(link), pool: self, _turn: turn })
    }

    /// Forgets the connections that nobody uses: the server was away.
    pub fn forget(&self) {
        self.idle().clear();
    }

    // Whoever panicked while holding it has pushed or popped, or has not.
    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self, time: Duration) -> Result<Link, Error> {
        let meaning = |error: tokio_postgres::Error| refusal::of_connecting(self.name(), &error);
        let (client, connection) = self.server.config.connect(self.server.tls.clone()).await.map_err(meaning)?;
        let (held, let_go) = oneshot::channel();
        tokio::spawn(until_let_go(connection, let_go));
        let settings = format!("{SETTINGS}; SET statement_timeout = {}", milliseconds(time));
        let (set, _) = tokio::join!(client.batch_execute(&settings), client.batch_execute(NOTICE_ABSENCE));
        set.map_err(meaning)?;
        Ok(Link {
            client,
            time,
            runtime: Handle::current().id(),
            kept: false,
            spoilt: AtomicBool::new(false),
            named: AtomicBool::new(false),
            statements: Mutex::new(VecDeque::new()),
            used: Instant::now(),
            _held: held,
        })
    }
}

impl Link {
    /// Not to be used again.
    pub fn spoil(&self) {
        self.spoilt.store(true, Ordering::Relaxed);
    }

    /// What the server made of a query when it read it before.
    pub fn remembered(&self, sql: &str) -> Option<Statement> {
        self.statements().iter().find(|(known, _)| known == sql).map(|(_, statement)| statement.clone())
    }

    pub fn remember(&self, sql: &str, statement: &Statement) {
        if sql.len() > LONGEST_KEPT {
            return;
        }
        let mut statements = self.statements();
        if statements.len() == KEPT_STATEMENTS {
            statements.pop_front();
        }
        statements.push_back((sql.to_string(), statement.clone()));
    }

    pub fn forget(&self, sql: &str) {
        self.statements().retain(|(known, _)| known != sql);
    }

    fn statements(&self) -> MutexGuard<'_, VecDeque<(String, Statement)>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement is given a name, which has to be taken from it again.
    pub fn will_name(&self) {
        self.named.store(true, Ordering::Relaxed);
    }

    /// Whether it has served before.
    pub fn is_kept(&self) -> bool {
        self.kept
    }
}

impl Lent<'_> {
    /// Ends the transaction and keeps the connection for the next query. Nobody has to wait for that: the server does one thing
    /// after the other.
    pub fn give_back(mut self) {
        let Some(mut link) = self.link.take() else { return };
        let sent = link.client.batch_execute(END).now_or_never();
        if std::mem::take(link.named.get_mut()) {
            // Only after the end: a transaction that failed forgets nothing.
            drop(link.client.batch_execute(&format!("DEALLOCATE {NAMED}")).now_or_never());
        }
        if link.spoilt.load(Ordering::Relaxed) || link.client.is_closed() || matches!(sent, Some(Err(_))) {
            return;
        }
        link.kept = true;
        link.used = Instant::now();
        self.pool.idle().push(link);
    }

    /// Closes a connection that is dead anyhow.
    pub fn close(mut self) {
        self.link = None;
    }

    /// Ends on the server whatever runs on the connection, which is closed then: nobody knows when the server will get to it, and
    /// it must not end the next query.
    pub async fn stop(mut self) {
        if let Some(link) = self.link.take() {
            self.pool.cancel(&link).await;
        }
    }
}

impl Pool {
    /// Asks the server to end what runs on a connection; nobody says whether it does.
    pub async fn cancel(&self, link: &Link) {
        let asked = timeout(PATIENCE, link.client.cancel_token().cancel_query(self.server.tls.clone())).await;
        drop(asked);
    }
}

impl Deref for Lent<'_> {
    type Target = Option<Link>;

    fn deref(&self) -> &Option<Link> {
        &self.link
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(link) = self.link.take() else { return };
        let (token, tls) = (link.client.cancel_token(), self.pool.server.tls.clone());
        // Without a runtime, the connection is gone, which the server notices.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move { timeout(PATIENCE, token.cancel_query(tls)).await });
        }
    }
}

/// A time as the server counts it: never none, which would be without end.
pub(super) fn milliseconds(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX).max(1)
}
