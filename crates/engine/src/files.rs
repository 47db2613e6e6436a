//! Files as a database: CSV, TSV, JSON lines, Parquet and Excel, one table each, or a folder of them.
//!
//! On first need they are read into a SQLite database of this program's own, which is thrown away with the engine; from then
//! on everything is as in [`crate::sqlite`], with all of its locks. The files themselves are only ever read. When one of them
//! changes, all are read again.

#[cfg(test)]
mod corpus;
mod excel;
mod find;
mod json;
mod kinds;
mod load;
mod parquet;
mod scratch;
mod separated;
mod sheet;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use querymend_sql::{Approved, Dialect, Rows, Schema, dialect};
use tokio::sync::Mutex;

use self::find::Source;
use self::scratch::Scratch;
use crate::sqlite::Sqlite;
use crate::{Answer, Cancel, Check, Engine, Error, Limits};

/// Files that are asked as one database.
pub struct Files {
    name: String,
    path: PathBuf,
    loaded: Mutex<Option<Arc<Loaded>>>,
}

/// What was read, and what the files looked like then.
struct Loaded {
    sources: Vec<Source>,
    engine: Sqlite,
    /// Holds the database; dropped last.
    _scratch: Scratch,
}

impl Files {
    /// Whether a path is a folder, or a file of a kind that is read here.
    pub fn can_read(path: &Path) -> bool {
        if path.is_dir() { find::sources(path).is_ok() } else { find::Format::of(path).is_some() }
    }

    /// Finds the files. They are not read before the first call that needs them.
    pub fn open(path: &Path) -> Result<Self, Error> {
        find::sources(path)?;
        Ok(Self { name: format!("file:{}", path.display()), path: path.to_path_buf(), loaded: Mutex::new(None) })
    }

    /// The database with the files as they are now.
    async fn ready(&self, cancel: &Cancel) -> Result<Arc<Loaded>, Error> {
        let mut loaded = self.loaded.lock().await;
        let sources = find::sources(&self.path)?;
        if let Some(loaded) = loaded.as_ref().filter(|loaded| loaded.sources == sources) {
            return Ok(Arc::clone(loaded));
        }
        // What is there is of no use any more, and may be large.
        *loaded = None;
        let stop = StopOnDrop(Cancel::new());
        let (inner, outer) = (stop.0.clone(), cancel.clone());
        let stopped = move || inner.is_cancelled() || outer.is_cancelled();
        let work = tokio::task::spawn_blocking(move || -> Result<Loaded, Error> {
            let scratch = Scratch::new()?;
            load::load(&sources, &scratch.database(), &stopped)?;
            let engine = Sqlite::open(&scratch.database())?;
            Ok(Loaded { sources, engine, _scratch: scratch })
        });
        let read = work.await.map_err(|error| Error::Internal(format!("reading files ended early: {error}")))??;
        Ok(Arc::clone(loaded.insert(Arc::new(read))))
    }
}

/// Reading that nobody waits for any more ends.
struct StopOnDrop(Cancel);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
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
        Box::pin(async { self.ready(&Cancel::new()).await?.engine.schema().await })
    }

    fn probe<'a>(&'a self, query: &'a Approved) -> Answer<'a, ()> {
        Box::pin(async move { self.ready(&Cancel::new()).await?.engine.probe(query).await })
    }

    fn execute<'a>(&'a self, query: &'a Approved, limits: &'a Limits, cancel: &'a Cancel) -> Answer<'a, Rows> {
        Box::pin(async move { self.ready(cancel).await?.engine.execute(query, limits, cancel).await })
    }

    fn test_connection(&self) -> Answer<'_, ()> {
        Box::pin(async { self.ready(&Cancel::new()).await?.engine.test_connection().await })
    }

    fn examine(&self) -> Answer<'_, Vec<Check>> {
        Box::pin(async {
            let loaded = self.ready(&Cancel::new()).await?;
            let tables = loaded.engine.schema().await?.tables().len();
            let bytes: u64 = loaded.sources.iter().map(|source| source.bytes).sum();
            let seen = format!("{} files, {bytes} bytes, {tables} tables", loaded.sources.len());
            let mut checks = vec![Check::good("files", seen)];
            checks.extend(loaded.engine.examine().await?.into_iter().filter(|check| check.what != "connection"));
            Ok(checks)
        })
    }
}
