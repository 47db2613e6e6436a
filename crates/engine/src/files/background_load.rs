//! Loads files in the background, because it may take longer than a caller can wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{MutexGuard, oneshot};

use super::load;
use super::sources::SourceFile;
use super::temp_store::TempStore;
use crate::blocking::spawn_blocking;
use crate::deadline::{CancelOnDrop, Deadline};
use crate::sqlite::SqliteEngine;
use crate::{CancelFlag, Error};

/// Interval at which the deadline and the cancel flag are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Timeout for callers that set no limit. The largest files that are accepted take less.
const LOAD_TIMEOUT: Duration = Duration::from_secs(3_600);

/// Loading state of the files.
#[derive(Default)]
pub(super) struct LoadState {
    pub loaded: Option<Arc<LoadedFiles>>,
    pub loading: Option<BackgroundLoad>,
}

/// Loaded files and the sources that they were loaded from.
pub(super) struct LoadedFiles {
    pub sources: Vec<SourceFile>,
    pub engine: SqliteEngine,
    /// Directory of the database; must be dropped last.
    pub _store: TempStore,
}

/// Load in progress, which is cancelled when dropped.
pub(super) struct BackgroundLoad {
    pub sources: Vec<SourceFile>,
    pub outcome: oneshot::Receiver<Result<LoadedFiles, Error>>,
    _cancel: CancelOnDrop,
}

impl BackgroundLoad {
    /// Starts loading on a thread outside the runtime, so that shutdown does not wait for it.
    pub fn start(sources: Vec<SourceFile>) -> Self {
        let stop = Deadline::new(Duration::MAX, CancelFlag::new());
        let (done, outcome) = oneshot::channel();
        let (watched, read) = (stop.clone(), sources.clone());
        let work = move || {
            // The receiver may already be dropped.
            drop(done.send(load_into_temp_store(read, &|| watched.stop_reason().is_some())));
        };
        // If no thread can be started, the sender is dropped and the receiver gets an error.
        drop(spawn_blocking(Box::new(work)));
        Self { sources, outcome, _cancel: CancelOnDrop(stop) }
    }
}

fn load_into_temp_store(sources: Vec<SourceFile>, stopped: &dyn Fn() -> bool) -> Result<LoadedFiles, Error> {
    let store = TempStore::new()?;
    load::load_files(&sources, &store.database_path(), stopped)?;
    let engine = SqliteEngine::open(&store.database_path())?;
    Ok(LoadedFiles { sources, engine, _store: store })
}

/// Waits for a load, and cancels it when dropped unless `keep_loading` is set.
pub(super) struct LoadWaiter<'a> {
    pub state: MutexGuard<'a, LoadState>,
    pub keep_loading: bool,
}

impl Drop for LoadWaiter<'_> {
    fn drop(&mut self) {
        if !self.keep_loading {
            self.state.loading = None;
        }
    }
}

/// Returns the deadline for callers that set no limit.
pub(super) fn load_deadline() -> Deadline {
    Deadline::new(LOAD_TIMEOUT, CancelFlag::new())
}

/// Waits for a future until the deadline.
pub(super) async fn wait_within<T>(deadline: &Deadline, work: impl Future<Output = T>) -> Result<T, Error> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = tokio::time::sleep(deadline.remaining(POLL_INTERVAL)) => {}
        }
        if let Some(reason) = deadline.stop_reason() {
            return Err(reason);
        }
    }
}
