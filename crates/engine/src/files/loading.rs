//! Reading files in, which may take longer than whoever asked can wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{MutexGuard, oneshot};

use super::find::Source;
use super::load;
use super::scratch::Scratch;
use crate::sqlite::Sqlite;
use crate::stop::{Stop, StopOnDrop};
use crate::thread::hand_over;
use crate::{Cancel, Error};

/// How often the clock and the flag are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// So long is waited where nobody has said how long. The largest files that are read at all take less.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What is known of the files.
#[derive(Default)]
pub(super) struct State {
    pub loaded: Option<Arc<Loaded>>,
    pub loading: Option<Loading>,
}

/// What was read, and what the files looked like then.
pub(super) struct Loaded {
    pub sources: Vec<Source>,
    pub engine: Sqlite,
    /// Holds the database; dropped last.
    pub _scratch: Scratch,
}

/// Files that are being read. It ends when this is dropped.
pub(super) struct Loading {
    pub sources: Vec<Source>,
    pub outcome: oneshot::Receiver<Result<Loaded, Error>>,
    _stop: StopOnDrop,
}

impl Loading {
    /// Begins, on a thread that no runtime waits for.
    pub fn begin(sources: Vec<Source>) -> Self {
        let stop = Stop::new(Duration::MAX, Cancel::new());
        let (done, outcome) = oneshot::channel();
        let (watched, read) = (stop.clone(), sources.clone());
        let work = move || {
            // Nobody may be there any more to take it.
            drop(done.send(load(read, &|| watched.reason().is_some())));
        };
        // Where there is no thread, nothing is ever sent, and that is said.
        drop(hand_over(Box::new(work)));
        Self { sources, outcome, _stop: StopOnDrop(stop) }
    }
}

fn load(sources: Vec<Source>, stopped: &dyn Fn() -> bool) -> Result<Loaded, Error> {
    let scratch = Scratch::new()?;
    load::load(&sources, &scratch.database(), stopped)?;
    let engine = Sqlite::open(&scratch.database())?;
    Ok(Loaded { sources, engine, _scratch: scratch })
}

/// Somebody waits for the files. Unless it goes on for the next who asks, reading ends when they are gone.
pub(super) struct Waiting<'a> {
    pub state: MutexGuard<'a, State>,
    pub goes_on: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.goes_on {
            self.state.loading = None;
        }
    }
}

/// For those who set no limit.
pub(super) fn patient() -> Stop {
    Stop::new(PATIENCE, Cancel::new())
}

/// Waits for something, but no longer than it may take.
pub(super) async fn until<T>(stop: &Stop, work: impl Future<Output = T>) -> Result<T, Error> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = tokio::time::sleep(stop.left(LOOK)) => {}
        }
        if let Some(reason) = stop.reason() {
            return Err(reason);
        }
    }
}
