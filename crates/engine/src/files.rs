//! Engine for files: CSV, TSV, JSON lines, Parquet and Excel, or a folder of them, with one table
//! per file.
//!
//! Files are loaded on first use into a private temporary SQLite database, which is deleted with
//! the engine. Queries then run as in [`crate::sqlite`], with the same read-only enforcement. The
//! files themselves are only ever read. If one of them changes, all are loaded again.

mod background_load;
#[cfg(test)]
mod corpus;
mod csv;
mod excel;
#[cfg(test)]
mod fuzz;
mod json;
mod load;
mod parquet;
mod sources;
mod table_source;
mod temp_store;
mod type_inference;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use querymend_sql::{Approved, Dialect, Rows, Schema, dialect};
use tokio::sync::Mutex;

use self::background_load::{BackgroundLoad, LoadState, LoadWaiter, LoadedFiles, load_deadline, wait_within};
use crate::deadline::Deadline;
use crate::{CancelFlag, DataVersion, Engine, EngineFuture, Error, HealthCheck, Limits};

/// Files that are queried as one database.
pub struct FileEngine {
    name: String,
    path: PathBuf,
    state: Mutex<LoadState>,
}

impl FileEngine {
    /// Returns whether a path is a folder or a file in a supported format.
    pub fn can_read(path: &Path) -> bool {
        path.is_dir() || sources::FileFormat::from_path(path).is_some()
    }

    /// Finds the files. They are loaded by the first call that needs them.
    pub fn open(path: &Path) -> Result<Self, Error> {
        sources::find_sources(path)?;
        Ok(Self { name: format!("file:{}", path.display()), path: path.to_path_buf(), state: Mutex::default() })
    }

    /// Returns the database with the current contents of the files.
    ///
    /// Loading counts towards the caller's deadline. If it times out, it continues in the
    /// background and the next caller waits for the rest.
    async fn ensure_loaded(&self, deadline: &Deadline) -> Result<Arc<LoadedFiles>, Error> {
        let mut state = wait_within(deadline, self.state.lock()).await?;
        let sources = sources::find_sources(&self.path)?;
        if let Some(loaded) = state.loaded.as_ref().filter(|loaded| loaded.sources == sources) {
            return Ok(Arc::clone(loaded));
        }
        // The loaded database is stale, and may be large.
        state.loaded = None;
        if state.loading.as_ref().is_none_or(|loading| loading.sources != sources) {
            state.loading = None;
            state.loading = Some(BackgroundLoad::start(sources));
        }
        let mut waiting = LoadWaiter { state, keep_loading: false };
        let Some(loading) = &mut waiting.state.loading else {
            return Err(Error::Internal("reading files did not start".into()));
        };
        let read = match wait_within(deadline, &mut loading.outcome).await {
            Ok(read) => read.map_err(|_| Error::Internal("reading files ended early".into()))?,
            Err(reason) => {
                waiting.keep_loading = matches!(reason, Error::TimedOut { .. });
                return Err(reason);
            }
        };
        Ok(Arc::clone(waiting.state.loaded.insert(Arc::new(read?))))
    }
}

impl Engine for FileEngine {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::SQLITE
    }

    fn schema(&self) -> EngineFuture<'_, Schema> {
        Box::pin(async { self.ensure_loaded(&load_deadline()).await?.engine.schema().await })
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> EngineFuture<'a, ()> {
        Box::pin(async move { self.ensure_loaded(&load_deadline()).await?.engine.probe(query).await })
    }

    fn execute<'a>(
        &'a self,
        query: &'a Approved,
        limits: &'a Limits,
        cancel: &'a CancelFlag,
    ) -> EngineFuture<'a, Rows> {
        Box::pin(async move {
            let stop = Deadline::new(limits.time, cancel.clone());
            let loaded = self.ensure_loaded(&stop).await?;
            let rest = Limits { time: stop.remaining(limits.time), ..limits.clone() };
            let outcome = loaded.engine.execute(query, &rest, cancel).await;
            // Report the time that was allowed, not the time that remained after loading.
            outcome.map_err(|error| match error {
                Error::TimedOut { .. } => Error::TimedOut { after: limits.time },
                other => other,
            })
        })
    }

    fn test_connection(&self) -> EngineFuture<'_, ()> {
        Box::pin(async { self.ensure_loaded(&load_deadline()).await?.engine.test_connection().await })
    }

    fn data_version(&self) -> EngineFuture<'_, Option<DataVersion>> {
        Box::pin(async {
            let sources = sources::find_sources(&self.path)?;
            let Ok(path) = self.path.canonicalize() else { return Ok(None) };
            Ok(Some(DataVersion { identity: format!("file:{}", path.display()), version: format!("{sources:?}") }))
        })
    }

    fn check_health(&self) -> EngineFuture<'_, Vec<HealthCheck>> {
        Box::pin(async {
            let loaded = self.ensure_loaded(&load_deadline()).await?;
            let tables = loaded.engine.schema().await?.tables().len();
            let bytes: u64 = loaded.sources.iter().map(|source| source.bytes).sum();
            let seen = format!("{} files, {bytes} bytes, {tables} tables", loaded.sources.len());
            let mut checks = vec![HealthCheck::passed("files", seen)];
            checks.extend(loaded.engine.check_health().await?.into_iter().filter(|check| check.name != "connection"));
            Ok(checks)
        })
    }
}
