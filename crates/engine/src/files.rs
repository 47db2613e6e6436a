//! Files as a database: CSV, TSV, JSON lines, Parquet and Excel, one table each, or a folder of them.
//!
//! On first need they are read into a SQLite database of this program's own, which is thrown away with the engine; from then
//! on everything is as in [`crate::sqlite`], with all of its locks. The files themselves are only ever read. When one of them
//! changes, all are read again.

#[cfg(test)]
mod corpus;
mod excel;
mod find;
#[cfg(test)]
mod fuzz;
mod json;
mod kinds;
mod load;
mod loading;
mod parquet;
mod scratch;
mod separated;
mod sheet;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use querymend_sql::{Approved, Dialect, Rows, Schema, dialect};
use tokio::sync::Mutex;

use self::loading::{Loaded, Loading, State, Waiting, patient, until};
use crate::stop::Stop;
use crate::{Answer, Cancel, Check, DataVersion, Engine, Error, Limits};

/// Files that are asked as one database.
pub struct Files {
    name: String,
    path: PathBuf,
    state: Mutex<State>,
}

impl Files {
    /// Whether a path is a folder, or a file of a kind that is read here.
    pub fn can_read(path: &Path) -> bool {
        path.is_dir() || find::Format::of(path).is_some()
    }

    /// Finds the files. They are not read before the first call that needs them.
    pub fn open(path: &Path) -> Result<Self, Error> {
        find::sources(path)?;
        Ok(Self { name: format!("file:{}", path.display()), path: path.to_path_buf(), state: Mutex::default() })
    }

    /// The database with the files as they are now. Reading them counts as a part of what is asked: it ends with the time that is
    /// left for it, or when somebody cancels. What was read by then is not lost: whoever asks next waits for the rest of it.
    async fn ready(&self, stop: &Stop) -> Result<Arc<Loaded>, Error> {
        let mut state = until(stop, self.state.lock()).await?;
        let sources = find::sources(&self.path)?;
        if let Some(loaded) = state.loaded.as_ref().filter(|loaded| loaded.sources == sources) {
            return Ok(Arc::clone(loaded));
        }
        // What is there is of no use any more, and may be large.
        state.loaded = None;
        if state.loading.as_ref().is_none_or(|loading| loading.sources != sources) {
            state.loading = None;
            state.loading = Some(Loading::begin(sources));
        }
        let mut waiting = Waiting { state, goes_on: false };
        let Some(loading) = &mut waiting.state.loading else {
            return Err(Error::Internal("reading files was not begun".into()));
        };
        let read = match until(stop, &mut loading.outcome).await {
            Ok(read) => read.map_err(|_| Error::Internal("reading files ended early".into()))?,
            Err(reason) => {
                waiting.goes_on = matches!(reason, Error::TimedOut { .. });
                return Err(reason);
            }
        };
        Ok(Arc::clone(waiting.state.loaded.insert(Arc::new(read?))))
    }
}

impl Engine for Files {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> &'static Dialect {
        &dialect::SQLITE
    }

    fn schema(&self) -> Answer<'_, Schema> {
        Box::pin(async { self.ready(&patient()).await?.engine.schema().await })
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        Box::pin(async move { self.ready(&patient()).await?.engine.probe(query).await })
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        Box::pin(async move {
            let stop = Stop::new(limits.time, cancel.clone());
            let loaded = self.ready(&stop).await?;
            let rest = Limits { time: stop.left(limits.time), ..limits.clone() };
            let outcome = loaded.engine.execute(query, &rest, cancel).await;
            // The time that was allowed, and not what was left of it.
            outcome.map_err(|error| match error {
                Error::TimedOut { .. } => Error::TimedOut { after: limits.time },
                other => other,
            })
        })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        Box::pin(async { self.ready(&patient()).await?.engine.test_connection().await })
    }

    fn data_version(&self) -> Answer<'_, Option<DataVersion>> {
        Box::pin(async {
            let sources = find::sources(&self.path)?;
            let Ok(path) = self.path.canonicalize() else { return Ok(None) };
            Ok(Some(DataVersion { identity: format!("file:{}", path.display()), version: format!("{sources:?}") }))
        })
    }

    fn examine(&self) -> Answer<'_, Vec<Check>> {
        Box::pin(async {
            let loaded = self.ready(&patient()).await?;
            let tables = loaded.engine.schema().await?.tables().len();
            let bytes: u64 = loaded.sources.iter().map(|source| source.bytes).sum();
            let seen = format!("{} files, {bytes} bytes, {tables} tables", loaded.sources.len());
            let mut checks = vec![Check::good("files", seen)];
            checks.extend(loaded.engine.examine().await?.into_iter().filter(|check| check.what != "connection"));
            Ok(checks)
        })
    }
}
