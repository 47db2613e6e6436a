//! Runs statements, optionally in one transaction, within a common time limit. Abandoned statements
//! are cancelled on the server.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::client::{StatementOptions, TrinoClient};
use super::errors::{self, SentQuery};
use super::protocol::TrinoPage;
use crate::{CancelFlag, Error};

/// Interval at which the deadline and the cancel flag are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(15);
/// Margin by which the server's time limit exceeds ours, in case this process is gone.
const SERVER_TIMEOUT_MARGIN: Duration = Duration::from_secs(1);
/// Time to wait for a cancellation, before it continues in the background.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(500);
/// Timeout for background cleanup.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Sequence of statements, and the state to clean up after them.
pub(super) struct TrinoSession<'a> {
    client: Arc<TrinoClient>,
    time_limit: Duration,
    expires_at: Option<Instant>,
    cancel: &'a CancelFlag,
    transaction: Option<HeaderValue>,
    next_url: Option<Url>,
}

impl<'a> TrinoSession<'a> {
    /// Creates a session whose statements take no longer than `time` in total.
    pub fn new(server: &Arc<TrinoClient>, time: Duration, cancel: &'a CancelFlag) -> Self {
        let until = Instant::now().checked_add(time);
        Self {
            client: Arc::clone(server),
            time_limit: time,
            expires_at: until,
            cancel,
            transaction: None,
            next_url: None,
        }
    }

    /// Begins a read-only transaction.
    pub async fn begin_read_only(&mut self) -> Result<(), Error> {
        let sql = "START TRANSACTION READ ONLY";
        self.run(SentQuery { sql, lines_before: 0 }, sql, &mut |_| ControlFlow::Continue(())).await?;
        if self.transaction.is_none() {
            return Err(errors::protocol_error("it did not start a transaction", &self.client.settings));
        }
        Ok(())
    }

    /// Runs a statement and passes its pages to `on_page` until all are read or it breaks. `text`
    /// is the SQL to send, which contains the query `sent`.
    pub async fn run(
        &mut self,
        sent: SentQuery<'_>,
        text: &str,
        on_page: &mut (dyn FnMut(TrinoPage) -> ControlFlow<()> + Send),
    ) -> Result<(), Error> {
        match self.attempt(sent, text, on_page).await {
            Err(error) if self.client.drops_run_time_limit(&error) => self.attempt(sent, text, on_page).await,
            outcome => outcome,
        }
    }

    async fn attempt(
        &mut self,
        sent: SentQuery<'_>,
        text: &str,
        on_page: &mut (dyn FnMut(TrinoPage) -> ControlFlow<()> + Send),
    ) -> Result<(), Error> {
        let server = Arc::clone(&self.client);
        let transaction = self.transaction.clone();
        let options = StatementOptions {
            transaction: transaction.as_ref(),
            time: self.time_limit.saturating_add(SERVER_TIMEOUT_MARGIN),
        };
        let mut reply = self.with_time_limit(server.submit(text, &options)).await?;
        loop {
            self.next_url = reply.next;
            if reply.started_transaction.is_some() {
                self.transaction = reply.started_transaction;
            }
            if let Some(failure) = reply.page.error.take() {
                self.next_url = None;
                return Err(errors::to_error(failure, sent, self.time_limit, &self.client.settings));
            }
            if on_page(reply.page).is_break() {
                self.cancel_running().await;
                return Ok(());
            }
            let Some(next) = self.next_url.clone() else { return Ok(()) };
            reply = match self.with_time_limit(server.fetch_next(&next)).await {
                Ok(reply) => reply,
                Err(error) => {
                    if matches!(error, Error::TimedOut { .. } | Error::Cancelled) {
                        self.cancel_running().await;
                    }
                    return Err(error);
                }
            };
        }
    }

    /// Rolls back the transaction.
    pub async fn finish(mut self) {
        if tokio::time::timeout(CANCEL_TIMEOUT, roll_back(&self.client, self.transaction.as_ref())).await.is_ok() {
            self.transaction = None;
        }
    }

    async fn cancel_running(&mut self) {
        if let Some(next) = &self.next_url
            && tokio::time::timeout(CANCEL_TIMEOUT, self.client.cancel(next)).await.is_ok()
        {
            self.next_url = None;
        }
    }

    /// Waits for a future until the time limit or cancellation.
    async fn with_time_limit<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let mut work = pin!(work);
        loop {
            if self.cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let left = self.expires_at.map_or(POLL_INTERVAL, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(Error::TimedOut { after: self.time_limit });
            }
            tokio::select! {
                biased;
                outcome = &mut work => return outcome,
                () = tokio::time::sleep(left.min(POLL_INTERVAL)) => {}
            }
        }
    }
}

impl Drop for TrinoSession<'_> {
    /// Cleans up on a separate thread, because the caller's runtime may be shutting down.
    fn drop(&mut self) {
        let (running, transaction) = (self.next_url.take(), self.transaction.take());
        if running.is_none() && transaction.is_none() {
            return;
        }
        let server = Arc::clone(&self.client);
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let (Ok(runtime), Ok(server)) = (runtime, server.with_own_connections()) else { return };
            let end = async {
                if let Some(next) = running {
                    server.cancel(&next).await;
                }
                roll_back(&server, transaction.as_ref()).await;
            };
            runtime.block_on(async { drop(tokio::time::timeout(CLEANUP_TIMEOUT, end).await) });
        };
        // If no thread can be started, the server's own time limit ends the query.
        drop(std::thread::Builder::new().name("trino".into()).spawn(work));
    }
}

/// Rolls back a transaction. If the server cannot be reached, it times out there.
async fn roll_back(server: &TrinoClient, transaction: Option<&HeaderValue>) {
    if transaction.is_none() {
        return;
    }
    let mut next = server
        .submit("ROLLBACK", &StatementOptions { transaction, time: CLEANUP_TIMEOUT })
        .await
        .ok()
        .and_then(|reply| reply.next);
    while let Some(url) = next {
        next = server.fetch_next(&url).await.ok().and_then(|reply| reply.next);
    }
}
