//! Example store in a single SQLite file, with an in-memory index for searches.
//!
//! Once [`add`](ExampleStore::add) returns, the examples are durable. Several processes may use the
//! file at once: every search first checks for writes by other processes and loads their changes.

mod errors;
mod index_builder;
mod migrations;
mod rows;
mod search_index;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;

use querymend_model::Embedder;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use self::errors::{FileStoreFailure, dimensions_changed, display_path, embedder_changed, to_store_error};
use self::search_index::{IndexHit, SearchIndex};
use crate::error::Error;
use crate::example::Example;
use crate::query::{ExampleFilter, ExampleQuery, ExampleUpdate, ScoredExample};
use crate::rank;
use crate::updates::merge_updates;
use crate::vector_index::{QuantizedQuery, QuantizedVector, quantize, refined_similarity};
use crate::{BoxFuture, ExampleStore};

/// Number of questions per embedder call.
const EMBED_BATCH_SIZE: usize = 256;
/// Upper bound on the similarity error of 8-bit vectors.
///
/// A larger difference between two 8-bit similarities is certain to have the right sign.
const QUANTIZATION_ERROR: f32 = 0.01;

/// Example store in a single file.
pub struct FileStore {
    inner: Arc<FileStoreInner>,
    embedder: Arc<dyn Embedder>,
}

/// State shared by searches, writes and the index builder.
struct FileStoreInner {
    path: PathBuf,
    name: String,
    embedder: String,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    index: RwLock<SearchIndex>,
    sync_lock: Mutex<()>,
    is_building: AtomicBool,
    is_stopped: AtomicBool,
}

/// Size of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreSize {
    /// Number of examples.
    pub examples: usize,
    /// Approximate memory use, in bytes.
    pub memory_bytes: usize,
    /// Number of examples that are not assigned to an inverted list; all of them if there is no
    /// index.
    pub unindexed: usize,
    /// `true` while the index is being built.
    pub is_building: bool,
}

impl FileStore {
    /// Opens the examples in a file, which is created if it does not exist.
    ///
    /// If the file was written with a different embedder, all questions are embedded again.
    pub async fn open(path: impl AsRef<Path>, embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let path = path.as_ref().to_path_buf();
        let name = embedder.name().to_string();
        let shared = run_blocking(move || FileStoreInner::open(path, name)).await?;
        let this = Self { inner: Arc::new(shared), embedder };
        this.ensure_embedder().await?;
        // Load the search index in advance, so that the first search is fast. This uses a dedicated
        // thread because the runtime would wait for its own blocking threads at shutdown.
        let inner = Arc::clone(&this.inner);
        let begun = thread::Builder::new().name("examples".into()).spawn(move || {
            if inner.with_reader(|_| Ok(())).is_ok() {
                index_builder::maintain_index(&inner);
            }
        });
        // If the thread cannot be started, the first search loads the index.
        drop(begun);
        Ok(this)
    }

    /// Returns the size of the part that has been loaded so far.
    pub fn size(&self) -> StoreSize {
        let index = self.inner.index();
        let building = self.inner.is_building.load(Ordering::Acquire);
        let (examples, loose) = (index.vectors.len(), index.vectors.unassigned_count());
        StoreSize { examples, memory_bytes: index.memory_bytes(), unindexed: loose, is_building: building }
    }

    /// Returns the ids and similarities of the nearest examples by vector, regardless of their
    /// verification status.
    ///
    /// This is the first stage of a search, exposed for measurements.
    pub async fn nearest(&self, question: &str, limit: usize) -> Result<Vec<(String, f32)>, Error> {
        let vector = self.vector(question).await?;
        let found = self.read_blocking(move |shared, connection| {
            let query = QuantizedQuery::from(&quantize(&vector));
            // Rescore with 16-bit vectors whatever 8 bits cannot rank reliably.
            let mut hits = shared.index().nearest(&query, 3 * limit);
            if let Some(last) = limit.checked_sub(1).and_then(|last| hits.get(last)) {
                let min_similarity = last.candidate.similarity - QUANTIZATION_ERROR;
                hits.retain(|one| one.candidate.similarity >= min_similarity);
            }
            shared.rescore(connection, &vector, &mut hits)?;
            hits.sort_by(|a, b| b.candidate.similarity.total_cmp(&a.candidate.similarity));
            let mut found = Vec::new();
            for one in hits.iter().take(limit) {
                if let Some(example) = rows::get_by_number(connection, one.number)? {
                    found.push((example.id, one.candidate.similarity));
                }
            }
            Ok(found)
        });
        found.await
    }

    /// Re-embeds all questions if the file was written with a different embedder or vector length.
    async fn ensure_embedder(&self) -> Result<(), Error> {
        loop {
            let (theirs, dimensions, questions) = self.stored_questions().await?;
            let ours = self.embedder.dimensions();
            let same = theirs.as_deref() == Some(self.inner.embedder.as_str())
                && (dimensions.is_none() || ours.is_none() || dimensions == ours);
            if same {
                return Ok(());
            }
            let texts: Vec<&str> = questions.iter().map(|(_, question)| question.as_str()).collect();
            let vectors = self.quantized_vectors(&texts).await?;
            let dimensions = vectors.first().map(|(dimensions, _)| *dimensions).or(ours);
            let shared = Arc::clone(&self.inner);
            let done = run_blocking(move || {
                let coded: Vec<QuantizedVector> = vectors.into_iter().map(|(_, coded)| coded).collect();
                shared.in_transaction(|step| {
                    // Examples added by another process in the meantime must be embedded too.
                    let numbers: Vec<i64> = questions.iter().map(|(number, _)| *number).collect();
                    let embedded: HashSet<i64> = numbers.iter().copied().collect();
                    let mut statement = step.prepare("SELECT number FROM example")?;
                    for number in statement.query_map([], |row| row.get(0))? {
                        if !embedded.contains(&number?) {
                            return Ok(false);
                        }
                    }
                    rows::reembed(step, &numbers, &coded)?;
                    step.execute("DELETE FROM list", [])?;
                    let changed = rows::next_sequence(step)?;
                    // Forces a full reload in every process that has loaded the old vectors.
                    rows::set_meta(step, "pruned", &changed)?;
                    rows::set_meta(step, "embedder", &shared.embedder)?;
                    rows::set_meta(step, "dimensions", &dimensions.map(|dimensions| dimensions as i64))?;
                    Ok(true)
                })
            });
            if done.await? {
                return Ok(());
            }
        }
    }

    /// Returns the embedder and vector length recorded in the file, and all questions if they
    /// differ from ours.
    #[allow(clippy::type_complexity)]
    async fn stored_questions(&self) -> Result<(Option<String>, Option<usize>, Vec<(i64, String)>), Error> {
        let shared = Arc::clone(&self.inner);
        let ours = self.embedder.dimensions();
        run_blocking(move || {
            let writer = shared.writer();
            let refused = |error: rusqlite::Error| to_store_error(&shared.name, &error);
            let theirs: Option<String> = rows::get_meta(&writer, "embedder").map_err(refused)?;
            let dimensions: Option<i64> =
                rows::get_meta::<Option<i64>>(&writer, "dimensions").map_err(refused)?.flatten();
            let dimensions = dimensions.and_then(|dimensions| usize::try_from(dimensions).ok());
            let same = theirs.as_deref() == Some(shared.embedder.as_str());
            if same && (dimensions.is_none() || ours.is_none() || ours == dimensions) {
                return Ok((theirs, dimensions, Vec::new()));
            }
            let mut statement = writer.prepare("SELECT number, question FROM example").map_err(refused)?;
            let questions = statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
                .and_then(Iterator::collect)
                .map_err(refused)?;
            drop(statement);
            Ok((theirs, dimensions, questions))
        })
        .await
    }

    async fn vector(&self, question: &str) -> Result<Vec<f32>, Error> {
        let mut vectors = self.embedder.embed(&[question]).await.map_err(Error::Embedding)?;
        Ok(vectors.pop().unwrap_or_default())
    }

    /// Embeds and quantizes texts; returns each vector with its original length.
    async fn quantized_vectors(&self, texts: &[&str]) -> Result<Vec<(usize, QuantizedVector)>, Error> {
        let mut all = Vec::with_capacity(texts.len());
        for part in texts.chunks(EMBED_BATCH_SIZE) {
            let vectors = self.embedder.embed(part).await.map_err(Error::Embedding)?;
            all.extend(vectors.iter().map(|vector| (vector.len(), quantize(vector))));
            // The built-in embedder never yields, so let other tasks run between batches.
            tokio::task::yield_now().await;
        }
        match all.iter().find(|(length, _)| *length == 0 || *length != all[0].0) {
            None if all.len() == texts.len() => Ok(all),
            _ => Err(Error::Unusable {
                message: format!("the embedder `{}` returned vectors of different lengths", self.inner.embedder),
                hint: "use another embedder".into(),
            }),
        }
    }

    /// Reads on a blocking thread, after synchronizing the index with the file.
    async fn read_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce(&FileStoreInner, &Connection) -> Result<T, FileStoreFailure> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(&self.inner);
        run_blocking(move || {
            let read = shared.with_reader(|connection| read(&shared, connection));
            index_builder::maintain_index(&shared);
            read
        })
        .await
    }

    /// Writes in one transaction on a blocking thread.
    async fn write_blocking<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, FileStoreFailure> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(&self.inner);
        run_blocking(move || {
            shared.in_transaction(|step| {
                shared.check_embedder(step)?;
                write(step)
            })
        })
        .await
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.inner.is_stopped.store(true, Ordering::Release);
    }
}

impl FileStoreInner {
    fn open(path: PathBuf, embedder: String) -> Result<Self, Error> {
        let writer = migrations::open(&path)?;
        Ok(Self {
            name: display_path(&path),
            path,
            embedder,
            writer: Mutex::new(writer),
            readers: Mutex::new(Vec::new()),
            index: RwLock::new(SearchIndex::new(0)),
            sync_lock: Mutex::new(()),
            is_building: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        })
    }

    // Poisoning is ignored: every holder changes the value in a single step, so a panic cannot
    // leave it inconsistent.
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn index(&self) -> RwLockReadGuard<'_, SearchIndex> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, SearchIndex> {
        self.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_embedder(&self, connection: &Connection) -> Result<(), FileStoreFailure> {
        let theirs: Option<String> = rows::get_meta(connection, "embedder")?;
        match theirs {
            Some(theirs) if theirs != self.embedder => {
                Err(FileStoreFailure::Reported(embedder_changed(&self.name, &theirs, &self.embedder)))
            }
            _ => Ok(()),
        }
    }

    fn in_transaction<T>(
        &self,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, FileStoreFailure>,
    ) -> Result<T, Error> {
        let mut writer = self.writer();
        let to_error = |failure: FileStoreFailure| failure.into_error(&self.name);
        let transaction =
            writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| to_error(error.into()))?;
        let written = write(&transaction).map_err(to_error)?;
        transaction.commit().map_err(|error| to_error(error.into()))?;
        Ok(written)
    }

    /// Runs `read` on a connection with a snapshot of the file that the index is synchronized with.
    fn with_reader<T>(&self, read: impl FnOnce(&Connection) -> Result<T, FileStoreFailure>) -> Result<T, Error> {
        let to_error = |failure: FileStoreFailure| failure.into_error(&self.name);
        let idle = self.readers().pop();
        let reader = match idle {
            Some(reader) => reader,
            None => migrations::open_reader(&self.path).map_err(|error| to_error(error.into()))?,
        };
        let answer = self.read_synced(&reader, read).map_err(to_error);
        self.readers().push(reader);
        answer
    }

    fn read_synced<T>(
        &self,
        connection: &Connection,
        read: impl FnOnce(&Connection) -> Result<T, FileStoreFailure>,
    ) -> Result<T, FileStoreFailure> {
        // Inside a transaction each read costs a tenth of what it costs on its own.
        let step = connection.unchecked_transaction()?;
        let now: i64 = rows::get_meta(&step, "sequence")?.unwrap_or(0);
        if self.index().last_sequence < now {
            let _one_at_a_time = self.sync_lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.check_embedder(&step)?;
            if self.index().last_sequence < now {
                let mut mirror = self.index_mut();
                mirror.sync(&step).inspect_err(|_| *mirror = SearchIndex::new(0))?;
            }
        }
        let answer = read(&step);
        step.finish()?;
        answer
    }

    /// Replaces 8-bit similarities by 16-bit ones.
    fn rescore(&self, connection: &Connection, vector: &[f32], hits: &mut [IndexHit]) -> Result<(), FileStoreFailure> {
        let mut statement = connection.prepare_cached("SELECT rest FROM rest WHERE number = ?")?;
        let index = self.index();
        for one in hits {
            // The row may have been reused for another example since the search.
            let Some((scale, codes)) = index.quantized(one.row, one.number) else { continue };
            let exact = statement.query_row([one.number], |row| {
                Ok(refined_similarity(vector, scale, codes, row.get_ref(0)?.as_blob()?))
            });
            if let Some(exact) = exact.optional()? {
                one.candidate.similarity = exact;
            }
        }
        Ok(())
    }

    fn search(
        &self,
        connection: &Connection,
        query: &ExampleQuery<'_>,
        vector: &[f32],
    ) -> Result<Vec<ScoredExample>, FileStoreFailure> {
        if vector.is_empty() || query.limit == 0 {
            return Ok(Vec::new());
        }
        let coded = quantize(vector);
        let index = self.index();
        if index.vectors.is_empty() {
            return Ok(Vec::new());
        }
        if index.vectors.dimensions() != vector.len() {
            let (kept, made) = (index.vectors.dimensions() as i64, vector.len() as i64);
            return Err(FileStoreFailure::Reported(dimensions_changed(&self.name, kept, made)));
        }
        let pool = index.candidates(query, &QuantizedQuery::from(&coded));
        drop(index);
        // Only the candidates that may be selected are rescored.
        let candidates: Vec<rank::ExampleCandidate> = pool.iter().map(|hits| hits.candidate).collect();
        let first = rank::select_diverse(&candidates, 2 * query.limit);
        let mut near: Vec<IndexHit> = first.iter().map(|(at, _)| pool[*at]).collect();
        self.rescore(connection, vector, &mut near)?;
        let candidates: Vec<rank::ExampleCandidate> = near.iter().map(|near| near.candidate).collect();
        let mut found = Vec::with_capacity(query.limit);
        for (at, score) in rank::select_diverse(&candidates, query.limit) {
            // Examples that were removed concurrently are skipped.
            if let Some(example) = rows::get_by_number(connection, near[at].number)? {
                found.push(ScoredExample { example, similarity: near[at].candidate.similarity, score });
            }
        }
        Ok(found)
    }
}

/// Runs blocking work on the runtime's blocking thread pool.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::Unavailable {
            message: format!("the examples could not be used: {error}"),
            hint: "try again; please report it if it persists".into(),
        })
    })
}

impl ExampleStore for FileStore {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn add<'a>(&'a self, examples: &'a [Example]) -> BoxFuture<'a, usize> {
        Box::pin(async move {
            if examples.is_empty() {
                return Ok(0);
            }
            let texts: Vec<&str> = examples.iter().map(|example| example.question.as_str()).collect();
            let vectors = self.quantized_vectors(&texts).await?;
            let dimensions = vectors.first().map_or(0, |(dimensions, _)| *dimensions) as i64;
            let coded: Vec<QuantizedVector> = vectors.into_iter().map(|(_, coded)| coded).collect();
            let examples = examples.to_vec();
            let name = self.inner.name.clone();
            self.write_blocking(move |step| {
                match rows::get_meta::<Option<i64>>(step, "dimensions")?.flatten() {
                    None => rows::set_meta(step, "dimensions", &dimensions)?,
                    Some(kept) if kept == dimensions => {}
                    Some(kept) => {
                        return Err(FileStoreFailure::Reported(dimensions_changed(&name, kept, dimensions)));
                    }
                }
                Ok(rows::upsert(step, &examples, &coded)?)
            })
            .await
        })
    }

    fn search<'a>(&'a self, query: &'a ExampleQuery<'a>) -> BoxFuture<'a, Vec<ScoredExample>> {
        Box::pin(async move {
            let vector = self.vector(query.question).await?;
            // The blocking thread may outlive this future, so it needs owned copies.
            let (question, database) = (query.question.to_string(), query.database.to_string());
            let dialect = query.dialect.map(str::to_string);
            let (only_database, only_verified, limit) = (query.only_database, query.only_verified, query.limit);
            self.read_blocking(move |shared, connection| {
                let query = ExampleQuery {
                    question: &question,
                    database: &database,
                    dialect: dialect.as_deref(),
                    only_database,
                    only_verified,
                    limit,
                };
                shared.search(connection, &query, &vector)
            })
            .await
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<Example>> {
        let id = id.to_string();
        Box::pin(self.read_blocking(move |_, connection| Ok(rows::get(connection, &id)?)))
    }

    fn list<'a>(&'a self, filter: &'a ExampleFilter, skip: usize, limit: usize) -> BoxFuture<'a, Vec<Example>> {
        let filter = filter.clone();
        Box::pin(self.read_blocking(move |_, connection| Ok(rows::list(connection, &filter, skip, limit)?)))
    }

    fn count<'a>(&'a self, filter: &'a ExampleFilter) -> BoxFuture<'a, usize> {
        let filter = filter.clone();
        Box::pin(self.read_blocking(move |_, connection| Ok(rows::count(connection, &filter)?)))
    }

    fn update<'a>(&'a self, changes: &'a [(&'a str, ExampleUpdate)]) -> BoxFuture<'a, usize> {
        let changes: Vec<(String, ExampleUpdate)> =
            merge_updates(changes).into_iter().map(|(id, change)| (id.to_string(), change)).collect();
        Box::pin(self.write_blocking(move |step| {
            let mut there = 0;
            for (id, change) in &changes {
                there += usize::from(rows::update(step, id, *change)?);
            }
            Ok(there)
        }))
    }

    fn remove<'a>(&'a self, ids: &'a [&'a str]) -> BoxFuture<'a, usize> {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_string()).collect();
        Box::pin(self.write_blocking(move |step| Ok(rows::remove(step, &ids)?)))
    }
}

#[cfg(test)]
mod tests;
