//! Statements one after another, perhaps in one transaction, within the time that they have. What is given up is ended on the
//! server too.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::refusal::{self, Sent};
use super::server::{Server, With};
use super::wire::Step;
use crate::{Cancel, Error};

/// How often the clock and the flag are looked at.
const LOOK: Duration = Duration::from_millis(15);
/// The server's own clock ends a query so much later than ours, in case that ours is no longer there.
const LATER: Duration = Duration::from_secs(1);
/// So long is waited until something has ended; after that, it is ended behind the asker's back.
const SOON: Duration = Duration::from_millis(500);
/// So long may it take then.
const ENDING: Duration = Duration::from_secs(2);

/// Some statements, and what has to be ended after them.
pub(super) struct Session<'a> {
    server: Arc<Server>,
    time: Duration,
    until: Option<Instant>,
    cancel: &'a Cancel,
    transaction: Option<HeaderValue>,
    running: Option<Url>,
}

impl<'a> Session<'a> {
    /// For statements that take no longer than `time` together.
    pub fn new(server: &Arc<Server>, time: Duration, cancel: &'a Cancel) -> Self {
        let until = Instant::now().checked_add(time);
        Self { server: Arc::clone(server), time, until, cancel, transaction: None, running: None }
    }

    /// Begins a transaction in which the server refuses to write.
    pub async fn lock(&mut self) -> Result<(), Error> {
        let sql = "START TRANSACTION READ ONLY";
        self.run(Sent { sql, lines_before: 0 }, sql, &mut |_| ControlFlow::Continue(())).await?;
        if self.transaction.is_none() {
            return Err(refusal::nonsense("it begins no transaction", &self.server.settings));
        }
        Ok(())
    }

    /// Runs a statement and hands over its steps, until all are taken or it is enough. `text` is what is sent, with the query
    /// `sent` in it.
    pub async fn run(
        &mut self,
        sent: Sent<'_>,
        text: &str,
        take: &mut (dyn FnMut(Step) -> ControlFlow<()> + Send),
    ) -> Result<(), Error> {
        match self.attempt(sent, text, take).await {
            Err(error) if self.server.gives_in(&error) => self.attempt(sent, text, take).await,
            outcome => outcome,
        }
    }

    async fn attempt(
        &mut self,
        sent: Sent<'_>,
        text: &str,
        take: &mut (dyn FnMut(Step) -> ControlFlow<()> + Send),
    ) -> Result<(), Error> {
        let server = Arc::clone(&self.server);
        let transaction = self.transaction.clone();
        let with = With { transaction: transaction.as_ref(), time: self.time.saturating_add(LATER) };
        let mut reply = self.within(server.begin(text, &with)).await?;
        loop {
            self.running = reply.next;
            if reply.started.is_some() {
                self.transaction = reply.started;
            }
            if let Some(failure) = reply.step.error.take() {
                self.running = None;
                return Err(refusal::meaning(failure, sent, self.time, &self.server.settings));
            }
            if take(reply.step).is_break() {
                self.stop().await;
                return Ok(());
            }
            let Some(next) = self.running.clone() else { return Ok(()) };
            reply = match self.within(server.follow(&next)).await {
                Ok(reply) => reply,
                Err(error) => {
                    if matches!(error, Error::TimedOut { .. } | Error::Cancelled) {
                        self.stop().await;
                    }
                    return Err(error);
                }
            };
        }
    }

    /// Ends what is left: the transaction, in which nothing was written.
    pub async fn end(mut self) {
        if tokio::time::timeout(SOON, roll_back(&self.server, self.transaction.as_ref())).await.is_ok() {
            self.transaction = None;
        }
    }

    async fn stop(&mut self) {
        if let Some(next) = &self.running
            && tokio::time::timeout(SOON, self.server.cancel(next)).await.is_ok()
        {
            self.running = None;
        }
    }

    /// Waits for something as long as there is time and nobody says stop.
    async fn within<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let mut work = pin!(work);
        loop {
            if self.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let left = self.until.map_or(LOOK, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(Error::TimedOut { after: self.time });
            }
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                () = tokio::time::sleep(left.min(LOOK)) => {}
            }
        }
    }
}

impl Drop for Session<'_> {
    /// Whoever asked has gone, and perhaps the runtime with them: what is left is ended on a thread of its own.
    fn drop(&mut self) {
        let (running, transaction) = (self.running.take(), self.transaction.take());
        if running.is_none() && transaction.is_none() {
            return;
        }
        let server = Arc::clone(&self.server);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let (Ok(runtime), Ok(server)) = (runtime, server.apart()) else { return };
            let end = async {
                if let Some(next) = running {
                    server.cancel(&next).await;
                }
                roll_back(&server, transaction.as_ref()).await;
            };
            runtime.block_on(async { drop(tokio::time::timeout(ENDING, end).await) });
        };
        // Where no thread can be had, the server's own clock ends the query.
        drop(std::thread::Builder::new().name("trino".into()).spawn(work));
    }
}

/// Ends a transaction. One that cannot be reached ends by itself after a while.
async fn roll_back(server: &Server, transaction: Option<&HeaderValue>) {
    if transaction.is_none() {
        return;
    }
    let mut next =
        server.begin("ROLLBACK", &With { transaction, time: ENDING }).await.ok().and_then(|reply| reply.next);
    while let Some(url) = next {
        next = server.follow(&url).await.ok().and_then(|reply| reply.next);
    }
}
