//! A few connections that are used in turn, made anew when a server was away.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit, oneshot};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use querymend_net::environment;
use querymend_net::postgres::until_let_go;

use super::refusal::{meaning, too_slow, went_away};
use super::settings::Settings;
use crate::error::Error;

/// So many connections there are at most.
const CONNECTIONS: usize = 4;
/// So long may a statement take; the server is told as well.
const STATEMENT: Duration = Duration::from_secs(30);
/// So long is waited for the server beyond that.
const PATIENCE: Duration = Duration::from_secs(35);
/// A connection that was not used for so long is tried before it is relied on.
const STALE: Duration = Duration::from_secs(2);
/// So long is waited for an answer that should come at once.
const PROMPT: Duration = Duration::from_secs(2);

/// Values of a statement.
pub type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A few connections to one server. What goes wrong is told as a store tells it.
pub struct Pool {
    config: Config,
    tls: MakeRustlsConnect,
    name: String,
    turns: Semaphore,
    idle: Mutex<Vec<Link>>,
}

/// A connection, with the statements that were prepared on it.
pub(super) struct Link {
    pub client: Client,
    prepared: HashMap<String, Statement>,
    used: Instant,
    /// Tells the task that moves the connection on when nobody holds this any more.
    _held: oneshot::Sender<()>,
}

/// Whether a statement may be sent again where nobody knows whether the first one was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twice {
    /// It reads, or writes what is then there already.
    Same,
    /// It would count twice.
    Not,
}

impl Pool {
    /// For whoever keeps other things beside the examples: `postgres://USER@HOST:PORT/DATABASE`, as for a store. Nothing is sent yet.
    pub fn open(address: &str) -> Result<Self, Error> {
        let settings = Settings::read(address, &environment)?;
        Ok(Self::new(settings.config, settings.tls, settings.name))
    }

    pub(super) fn new(config: Config, tls: MakeRustlsConnect, name: String) -> Self {
        Self { config, tls, name, turns: Semaphore::new(CONNECTIONS), idle: Mutex::new(Vec::new()) }
    }

    /// What to call it in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Carries out one statement.
    pub async fn ask(&self, sql: &str, values: Values<'_>, twice: Twice) -> Result<Vec<Row>, Error> {
        self.ask_each(sql, &[values], twice).await
    }

    /// Carries out one statement with several lots of values: all of it or nothing.
    pub async fn ask_each(&self, sql: &str, lots: &[Values<'_>], twice: Twice) -> Result<Vec<Row>, Error> {
        let mut tried = false;
        loop {
            let (mut link, _turn) = self.lend().await?;
            match timeout(PATIENCE * u32::try_from(lots.len()).unwrap_or(u32::MAX), link.each(sql, lots)).await {
                Ok(Ok(rows)) => {
                    self.take_back(link);
                    return Ok(rows);
                }
                // The link is not taken back: a server that was started again has forgotten it.
                Ok(Err(error)) if went_away(&error) && twice == Twice::Same && !tried => tried = true,
                // Two that waited for each other: the server let one of them go, which did nothing.
                Ok(Err(error)) if error.code().is_some_and(|code| code.code() == "40P01") && !tried => tried = true,
                Ok(Err(error)) => {
                    if !link.client.is_closed() && !went_away(&error) && lots.len() == 1 {
                        self.take_back(link);
                    }
                    return Err(meaning(&self.name, &error));
                }
                Err(_) => return Err(too_slow(&self.name)),
            }
        }
    }

    /// A connection, one that is there or a new one. It is closed when it is dropped without being taken back.
    pub(super) async fn lend(&self) -> Result<(Link, SemaphorePermit<'_>), Error> {
        let turn = match timeout(PATIENCE, self.turns.acquire()).await {
            Ok(Ok(turn)) => turn,
            _ => return Err(too_slow(&self.name)),
        };
        loop {
            let Some(link) = self.idle().pop() else { break };
            let alive = !link.client.is_closed()
                && (link.used.elapsed() < STALE
                    || matches!(timeout(PROMPT, link.client.simple_query("")).await, Ok(Ok(_))));
            if alive {
                return Ok((link, turn));
            }
        }
        Ok((self.connect().await?, turn))
    }

    /// Waits for a few statements on a connection, but not for a server that has fallen silent.
    pub(super) async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        match timeout(2 * PATIENCE, work).await {
            Ok(done) => done.map_err(|error| meaning(&self.name, &error)),
            Err(_) => Err(too_slow(&self.name)),
        }
    }

    pub(super) fn take_back(&self, mut link: Link) {
        link.used = Instant::now();
        self.idle().push(link);
    }

    // Whoever panicked while holding it has pushed or popped, or has not.
    fn idle(&self) -> MutexGuard<'_, Vec<Link>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> Result<Link, Error> {
        let connecting = async {
            let (client, connection) = self.config.connect(self.tls.clone()).await?;
            let (held, let_go) = oneshot::channel();
            tokio::spawn(until_let_go(connection, let_go));
            let seconds = STATEMENT.as_millis();
            client
                .batch_execute(&format!(
                    "SET statement_timeout = {seconds};
                     SET lock_timeout = {seconds};
                     SET plan_cache_mode = force_custom_plan;
                     SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
                ))
                .await?;
            // An old pgvector knows only one of these, and may say so.
            client.batch_execute("SET hnsw.ef_search = 100").await.ok();
            client.batch_execute("SET hnsw.iterative_scan = strict_order").await.ok();
            Ok((client, held))
        };
        match timeout(PATIENCE, connecting).await {
            Ok(Ok((client, held))) => Ok(Link { client, prepared: HashMap::new(), used: Instant::now(), _held: held }),
            Ok(Err(error)) => Err(meaning(&self.name, &error)),
            Err(_) => Err(too_slow(&self.name)),
        }
    }
}

impl Link {
    async fn each(&mut self, sql: &str, lots: &[Values<'_>]) -> Result<Vec<Row>, tokio_postgres::Error> {
        let statement = match self.prepared.get(sql) {
            Some(statement) => statement.clone(),
            None => {
                let statement = self.client.prepare(sql).await?;
                self.prepared.insert(sql.to_string(), statement.clone());
                statement
            }
        };
        if let [values] = lots {
            return self.client.query(&statement, values).await;
        }
        let step = self.client.transaction().await?;
        let mut rows = Vec::new();
        for values in lots {
            rows.extend(step.query(&statement, values).await?);
        }
        step.commit().await?;
        Ok(rows)
    }
}
