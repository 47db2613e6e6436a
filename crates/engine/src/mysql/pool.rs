//! Connections: made when they are needed, kept for the next query, and given up when there is the least doubt about them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::runtime::{Handle, Id};
use tokio::sync::Semaphore;

use super::address::Server;
use super::lock::{self, Family};
use super::refusal::{self, Fault};
use super::stop::{Held, Stop};
use crate::{Cancel, Connections, Error, Limits};

/// So many queries run at once; more wait for each other. Servers share out their connections, 151 of them unless told otherwise.
const MOST: usize = 8;
/// So long may a connection take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// So long may it take to clean a connection up for the next query.
const CLEAN: Duration = Duration::from_secs(2);
/// How often the flag is looked at.
const LOOK: Duration = Duration::from_millis(15);
/// The server ends a query by itself when its time is over, and is given so long to say so.
const GRACE: Duration = Duration::from_millis(200);

/// Something to be done on a connection that cannot write.
pub(super) trait Work: Sync {
    /// What comes of it.
    type Outcome: Send;

    /// The text that is sent, for errors that point into it.
    fn sql(&self) -> &str {
        ""
    }

    /// Does it.
    fn run(
        &self,
        connection: &mut Conn,
        family: Family,
    ) -> impl Future<Output = Result<Done<Self::Outcome>, Fault>> + Send;
}

/// What came of it, and whether all that the server had to say was read.
pub(super) struct Done<T> {
    pub(super) outcome: T,
    pub(super) is_read: bool,
}

/// All is read.
pub(super) fn done<T>(outcome: T) -> Result<Done<T>, Fault> {
    Ok(Done { outcome, is_read: true })
}

/// A connection that was reset, and the runtime that it belongs to: it can be waited for nowhere else.
struct Kept {
    held: Held,
    runtime: Id,
}

/// The connections to one server.
pub(super) struct Pool {
    pub(super) server: Arc<Server>,
    places: Semaphore,
    kept: Mutex<Vec<Kept>>,
    /// Which family the server is of, once it was asked.
    family: Mutex<Option<Family>>,
}

impl Pool {
    pub(super) fn new(server: Server) -> Self {
        Self {
            server: Arc::new(server),
            places: Semaphore::new(MOST),
            kept: Mutex::new(Vec::new()),
            family: Mutex::new(None),
        }
    }

    pub(super) fn connections(&self) -> Connections {
        let idle = self.kept.lock().unwrap_or_else(PoisonError::into_inner).len();
        Connections { idle, busy: MOST.saturating_sub(self.places.available_permits()) }
    }

    /// Does the work in a read-only transaction, within the limits. Should a kept connection turn out to be dead, it is done again
    /// on a new one: it only reads.
    pub(super) async fn run<W: Work>(&self, work: &W, limits: &Limits, cancel: &Cancel) -> Result<W::Outcome, Error> {
        let begun = Instant::now();
        let place = tokio::select! {
            biased;
            () = cancelled(cancel) => return Err(Error::Cancelled),
            place = self.places.acquire() => place,
            () = tokio::time::sleep(limits.time) => return Err(refusal::busy(&self.server)),
        };
        let _place = place.map_err(|closed| Error::Internal(closed.to_string()))?;
        loop {
            let kept = self.take();
            let is_new = kept.is_none();
            match self.attempt(kept, work, limits, begun, cancel).await {
                Err(Failed::Fault(fault)) if fault.is_loss() && !is_new => self.forget(),
                Err(Failed::Fault(fault)) => {
                    return Err(refusal::meaning(fault, &self.server, work.sql(), limits.time));
                }
                Err(Failed::Error(error)) => return Err(error),
                Ok(outcome) => return Ok(outcome),
            }
        }
    }

    async fn attempt<W: Work>(
        &self,
        kept: Option<Held>,
        work: &W,
        limits: &Limits,
        begun: Instant,
        cancel: &Cancel,
    ) -> Result<W::Outcome, Failed> {
        let over = || Failed::Error(Error::TimedOut { after: limits.time });
        let left = || limits.time.saturating_sub(begun.elapsed());
        let mut held = match kept {
            Some(held) => held,
            None => tokio::select! {
                biased;
                () = cancelled(cancel) => return Err(Failed::Error(Error::Cancelled)),
                held = self.connect() => held.map_err(Failed::Error)?,
                () = tokio::time::sleep(left()) => return Err(over()),
            },
        };
        let stop = Stop::new(&self.server, held.connection.id());
        let (family, time) = (self.family(), left());
        let session = async {
            lock::begin(&mut held.connection, family, time).await?;
            work.run(&mut held.connection, family).await
        };
        let ended = tokio::select! {
            biased;
            done = session => Ok(done),
            () = cancelled(cancel) => Err(Failed::Error(Error::Cancelled)),
            () = tokio::time::sleep(time.saturating_add(GRACE)) => Err(over()),
        };
        let done = match ended {
            Ok(done) => done,
            Err(why) => {
                drop(held);
                stop.now().await;
                return Err(why);
            }
        };
        let is_clean = match &done {
            Ok(done) => done.is_read,
            Err(fault) => !fault.is_loss(),
        };
        // What is left over is neither read nor waited for: the server is told on the side.
        if is_clean {
            stop.take_back();
            self.give_back(held).await;
        }
        done.map(|done| done.outcome).map_err(Failed::Fault)
    }

    /// A new connection.
    async fn connect(&self) -> Result<Held, Error> {
        let connect = async {
            let mut connection = Conn::new(self.server.opts.clone()).await?;
            if self.known_family().is_none() {
                let version: Option<String> = connection.query_first("SELECT VERSION()").await?;
                *self.family.lock().unwrap_or_else(PoisonError::into_inner) =
                    Some(Family::of(&version.unwrap_or_default()));
            }
            Ok(Held { connection, is_clean: false })
        };
        match tokio::time::timeout(CONNECT, connect).await {
            Ok(connection) => connection.map_err(|error| refusal::no_connection(error, &self.server)),
            Err(_) => Err(refusal::too_slow(&self.server)),
        }
    }

    fn known_family(&self) -> Option<Family> {
        *self.family.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which family the server is of. It is known once there was a connection.
    fn family(&self) -> Family {
        self.known_family().unwrap_or(Family::MySql)
    }

    /// A connection of this runtime that was kept. Those of others are closed without a word: nobody would wake us when they have
    /// something to say.
    fn take(&self) -> Option<Held> {
        let here = Handle::try_current().ok()?.id();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain_mut(|kept| {
            kept.held.is_clean = kept.runtime == here;
            kept.held.is_clean
        });
        let mut held = kept.pop()?.held;
        held.is_clean = false;
        Some(held)
    }

    /// Drops all that were kept.
    fn forget(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Resets a connection, which ends its transaction and takes back all that its query has set, locked or made, and keeps it.
    /// One that cannot be reset is given up.
    async fn give_back(&self, mut held: Held) {
        let reset = tokio::time::timeout(CLEAN, held.connection.reset()).await;
        if let (Ok(Ok(true)), Ok(here)) = (reset, Handle::try_current()) {
            held.is_clean = true;
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(Kept { held, runtime: here.id() });
        }
    }
}

/// Why an attempt came to nothing.
enum Failed {
    Fault(Fault),
    Error(Error),
}

/// Waits until somebody cancels.
async fn cancelled(cancel: &Cancel) {
    while !cancel.is_cancelled() {
        tokio::time::sleep(LOOK).await;
    }
}
