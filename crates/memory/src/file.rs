//! Examples in one file: SQLite keeps them, a copy of what searching needs is held in memory.
//!
//! What [`add`](ExampleStore::add) has acknowledged is on the disk. Several programs may use the file at once: before each
//! search it is looked whether another one has written, and what is new is read.

mod form;
mod index;
mod mirror;
mod refusal;
mod rows;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;

use querymend_model::Embedder;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use self::mirror::{Mirror, Near};
use self::refusal::{Trouble, meaning, other_embedder, other_length, shown};
use crate::changes::merged;
use crate::error::Error;
use crate::example::Example;
use crate::rank;
use crate::sought::{Change, Filter, Found, Sought};
use crate::vectors::{Coded, Query, code, similarity};
use crate::{Answer, ExampleStore};

/// So many questions are given to the embedder at once.
const EMBEDDED: usize = 256;
/// Eight bits are never so far off: what they say is less alike by more than this is so.
const TOLD_APART: f32 = 0.01;

/// Examples in one file.
pub struct FileStore {
    shared: Arc<Shared>,
    embedder: Arc<dyn Embedder>,
}

/// What searches, additions and the building of the index share.
struct Shared {
    path: PathBuf,
    name: String,
    embedder: String,
    writer: Mutex<Connection>,
    readers: Mutex<Vec<Connection>>,
    mirror: RwLock<Mirror>,
    following: Mutex<()>,
    building: AtomicBool,
    stop: AtomicBool,
}

/// How large a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Examples.
    pub examples: usize,
    /// Memory, in bytes, about.
    pub memory: usize,
    /// How many are in no list of the index; all of them where there is none.
    pub loose: usize,
    /// Whether the index is being built.
    pub building: bool,
}

impl FileStore {
    /// Opens the examples in a file, which is made if there is none. If they were kept with another embedder, their questions
    /// are embedded anew.
    pub async fn open(path: impl AsRef<Path>, embedder: Arc<dyn Embedder>) -> Result<Self, Error> {
        let path = path.as_ref().to_path_buf();
        let name = embedder.name().to_string();
        let shared = blocking(move || Shared::open(path, name)).await?;
        let this = Self { shared: Arc::new(shared), embedder };
        this.agree().await?;
        // What a search needs is read already, so that the first one need not wait as long. A thread of its own, because the
        // runtime would wait for one of its own threads before the program may end.
        let inner = Arc::clone(&this.shared);
        let begun = thread::Builder::new().name("examples".into()).spawn(move || {
            if inner.with_reader(|_| Ok(())).is_ok() {
                index::tend(&inner);
            }
        });
        // Where there can be no thread, the first search reads it.
        drop(begun);
        Ok(this)
    }

    /// How large it is, as far as it has been read.
    pub fn size(&self) -> Size {
        let mirror = self.shared.mirror();
        let building = self.shared.building.load(Ordering::Acquire);
        let (examples, loose) = (mirror.vectors.len(), mirror.vectors.loose());
        Size { examples, memory: mirror.bytes(), loose, building }
    }

    /// The ids of the nearest examples by their vectors alone, whatever their standing, with how alike they are. Searches
    /// begin with this; it is here to be measured.
    pub async fn nearest(&self, question: &str, most: usize) -> Result<Vec<(String, f32)>, Error> {
        let vector = self.vector(question).await?;
        let found = self.reading(move |shared, connection| {
            let query = Query::from(&code(&vector));
            // What eight bits tell apart badly, sixteen put in order.
            let mut near = shared.mirror().nearest(&query, 3 * most);
            if let Some(last) = most.checked_sub(1).and_then(|last| near.get(last)) {
                let least = last.candidate.similarity - TOLD_APART;
                near.retain(|one| one.candidate.similarity >= least);
            }
            shared.refine(connection, &vector, &mut near)?;
            near.sort_by(|a, b| b.candidate.similarity.total_cmp(&a.candidate.similarity));
            let mut found = Vec::new();
            for one in near.iter().take(most) {
                if let Some(example) = rows::numbered(connection, one.number)? {
                    found.push((example.id, one.candidate.similarity));
                }
            }
            Ok(found)
        });
        found.await
    }

    /// Makes file and embedder agree: the same name, and vectors as long.
    async fn agree(&self) -> Result<(), Error> {
        loop {
            let (theirs, dimensions, questions) = self.shared_questions().await?;
            let ours = self.embedder.dimensions();
            let same = theirs.as_deref() == Some(self.shared.embedder.as_str())
                && (dimensions.is_none() || ours.is_none() || dimensions == ours);
            if same {
                return Ok(());
            }
            let texts: Vec<&str> = questions.iter().map(|(_, question)| question.as_str()).collect();
            let vectors = self.coded(&texts).await?;
            let dimensions = vectors.first().map(|(dimensions, _)| *dimensions).or(ours);
            let shared = Arc::clone(&self.shared);
            let done = blocking(move || {
                let coded: Vec<Coded> = vectors.into_iter().map(|(_, coded)| coded).collect();
                shared.writing(|step| {
                    // Examples that another program added meanwhile have to be embedded too.
                    let numbers: Vec<i64> = questions.iter().map(|(number, _)| *number).collect();
                    let embedded: HashSet<i64> = numbers.iter().copied().collect();
                    let mut statement = step.prepare("SELECT number FROM example")?;
                    for number in statement.query_map([], |row| row.get(0))? {
                        if !embedded.contains(&number?) {
                            return Ok(false);
                        }
                    }
                    rows::revector(step, &numbers, &coded)?;
                    step.execute("DELETE FROM list", [])?;
                    let changed = rows::next(step)?;
                    // Whoever has read the old vectors reads everything anew.
                    rows::say(step, "pruned", &changed)?;
                    rows::say(step, "embedder", &shared.embedder)?;
                    rows::say(step, "dimensions", &dimensions.map(|dimensions| dimensions as i64))?;
                    Ok(true)
                })
            });
            if done.await? {
                return Ok(());
            }
        }
    }

    /// With which embedder the file was made, how long its vectors are, and, if that is not ours, its questions.
    #[allow(clippy::type_complexity)]
    async fn shared_questions(&self) -> Result<(Option<String>, Option<usize>, Vec<(i64, String)>), Error> {
        let shared = Arc::clone(&self.shared);
        let ours = self.embedder.dimensions();
        blocking(move || {
            let writer = shared.writer();
            let refused = |error: rusqlite::Error| meaning(&shared.name, &error);
            let theirs: Option<String> = rows::about(&writer, "embedder").map_err(refused)?;
            let dimensions: Option<i64> = rows::about::<Option<i64>>(&writer, "dimensions").map_err(refused)?.flatten();
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

    /// Vectors as they are kept, each with its length.
    async fn coded(&self, texts: &[&str]) -> Result<Vec<(usize, Coded)>, Error> {
        let mut all = Vec::with_capacity(texts.len());
        for part in texts.chunks(EMBEDDED) {
            let vectors = self.embedder.embed(part).await.map_err(Error::Embedding)?;
            all.extend(vectors.iter().map(|vector| (vector.len(), code(vector))));
            // The embedder that is compiled in never waits; others want their turn on this thread.
            tokio::task::yield_now().await;
        }
        match all.iter().find(|(length, _)| *length == 0 || *length != all[0].0) {
            None if all.len() == texts.len() => Ok(all),
            _ => Err(Error::Unusable {
                message: format!("the embedder `{}` made vectors of different lengths", self.shared.embedder),
                hint: "use another embedder".into(),
            }),
        }
    }

    /// Reads on a thread that may wait, after catching up with the file.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Shared, &Connection) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let read = shared.with_reader(|connection| read(&shared, connection));
            index::tend(&shared);
            read
        })
        .await
    }

    /// Writes on a thread that may wait: all of it, or nothing.
    async fn writing<T: Send + 'static>(
        &self,
        write: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Error> {
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            shared.writing(|step| {
                shared.check_embedder(step)?;
                write(step)
            })
        })
        .await
    }
}

impl Drop for FileStore {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
    }
}

impl Shared {
    fn open(path: PathBuf, embedder: String) -> Result<Self, Error> {
        let writer = form::open(&path)?;
        Ok(Self {
            name: shown(&path),
            path,
            embedder,
            writer: Mutex::new(writer),
            readers: Mutex::new(Vec::new()),
            mirror: RwLock::new(Mirror::new(0)),
            following: Mutex::new(()),
            building: AtomicBool::new(false),
            stop: AtomicBool::new(false),
        })
    }

    // A thread that panicked while it held one of these left it as it was before or after: each holder changes it at once.
    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mirror(&self) -> RwLockReadGuard<'_, Mirror> {
        self.mirror.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn mirror_mut(&self) -> RwLockWriteGuard<'_, Mirror> {
        self.mirror.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_embedder(&self, connection: &Connection) -> Result<(), Trouble> {
        let theirs: Option<String> = rows::about(connection, "embedder")?;
        match theirs {
            Some(theirs) if theirs != self.embedder => {
                Err(Trouble::Told(other_embedder(&self.name, &theirs, &self.embedder)))
            }
            _ => Ok(()),
        }
    }

    fn writing<T>(&self, write: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble>) -> Result<T, Error> {
        let mut writer = self.writer();
        let told = |trouble: Trouble| trouble.told(&self.name);
        let step =
            writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| told(error.into()))?;
        let written = write(&step).map_err(told)?;
        step.commit().map_err(|error| told(error.into()))?;
        Ok(written)
    }

    /// Lends a connection that sees one state of the file, which the memory has caught up with.
    fn with_reader<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Trouble>) -> Result<T, Error> {
        let told = |trouble: Trouble| trouble.told(&self.name);
        let idle = self.readers().pop();
        let reader = match idle {
            Some(reader) => reader,
            None => form::reader(&self.path).map_err(|error| told(error.into()))?,
        };
        let answer = self.read(&reader, read).map_err(told);
        self.readers().push(reader);
        answer
    }

    fn read<T>(
        &self,
        connection: &Connection,
        read: impl FnOnce(&Connection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        // In one transaction every look at the file costs a tenth of what it costs by itself.
        let step = connection.unchecked_transaction()?;
        let now: i64 = rows::about(&step, "sequence")?.unwrap_or(0);
        if self.mirror().applied < now {
            let _one_at_a_time = self.following.lock().unwrap_or_else(PoisonError::into_inner);
            self.check_embedder(&step)?;
            if self.mirror().applied < now {
                let mut mirror = self.mirror_mut();
                mirror.follow(&step).inspect_err(|_| *mirror = Mirror::new(0))?;
            }
        }
        let answer = read(&step);
        step.finish()?;
        answer
    }

    /// Puts the similarity from all sixteen bits in the place of the one from eight.
    fn refine(&self, connection: &Connection, vector: &[f32], near: &mut [Near]) -> Result<(), Trouble> {
        let mut statement = connection.prepare_cached("SELECT rest FROM rest WHERE number = ?")?;
        let mirror = self.mirror();
        for one in near {
            // Its row may be another example's since it was found.
            let Some((scale, codes)) = mirror.coded(one.row, one.number) else { continue };
            let exact = statement
                .query_row([one.number], |row| Ok(similarity(vector, scale, codes, row.get_ref(0)?.as_blob()?)));
            if let Some(exact) = exact.optional()? {
                one.candidate.similarity = exact;
            }
        }
        Ok(())
    }

    fn search(&self, connection: &Connection, sought: &Sought<'_>, vector: &[f32]) -> Result<Vec<Found>, Trouble> {
        if vector.is_empty() || sought.most == 0 {
            return Ok(Vec::new());
        }
        let coded = code(vector);
        let mirror = self.mirror();
        if mirror.vectors.is_empty() {
            return Ok(Vec::new());
        }
        if mirror.vectors.dimensions() != vector.len() {
            let (kept, made) = (mirror.vectors.dimensions() as i64, vector.len() as i64);
            return Err(Trouble::Told(other_length(&self.name, kept, made)));
        }
        let pool = mirror.pool(sought, &Query::from(&coded));
        drop(mirror);
        // Only those that may be shown are put into their exact order.
        let candidates: Vec<rank::Candidate> = pool.iter().map(|near| near.candidate).collect();
        let first = rank::order(&candidates, 2 * sought.most);
        let mut near: Vec<Near> = first.iter().map(|(at, _)| pool[*at]).collect();
        self.refine(connection, vector, &mut near)?;
        let candidates: Vec<rank::Candidate> = near.iter().map(|near| near.candidate).collect();
        let mut found = Vec::with_capacity(sought.most);
        for (at, score) in rank::order(&candidates, sought.most) {
            // One that was removed just now is left out.
            if let Some(example) = rows::numbered(connection, near[at].number)? {
                found.push(Found { example, similarity: near[at].candidate.similarity, score });
            }
        }
        Ok(found)
    }
}

/// Runs what waits for the disk on a thread that may.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::Unavailable {
            message: format!("the examples could not be used: {error}"),
            hint: "try again; please report it if it stays so".into(),
        })
    })
}

impl ExampleStore for FileStore {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn add<'a>(&'a self, examples: &'a [Example]) -> Answer<'a, usize> {
        Box::pin(async move {
            if examples.is_empty() {
                return Ok(0);
            }
            let texts: Vec<&str> = examples.iter().map(|example| example.question.as_str()).collect();
            let vectors = self.coded(&texts).await?;
            let dimensions = vectors.first().map_or(0, |(dimensions, _)| *dimensions) as i64;
            let coded: Vec<Coded> = vectors.into_iter().map(|(_, coded)| coded).collect();
            let examples = examples.to_vec();
            let name = self.shared.name.clone();
            self.writing(move |step| {
                match rows::about::<Option<i64>>(step, "dimensions")?.flatten() {
                    None => rows::say(step, "dimensions", &dimensions)?,
                    Some(kept) if kept == dimensions => {}
                    Some(kept) => {
                        return Err(Trouble::Told(other_length(&name, kept, dimensions)));
                    }
                }
                Ok(rows::put(step, &examples, &coded)?)
            })
            .await
        })
    }

    fn search<'a>(&'a self, sought: &'a Sought<'a>) -> Answer<'a, Vec<Found>> {
        Box::pin(async move {
            let vector = self.vector(sought.question).await?;
            // The thread that searches may outlive this future, so it gets its own copies.
            let (question, database) = (sought.question.to_string(), sought.database.to_string());
            let dialect = sought.dialect.map(str::to_string);
            let (only_database, only_verified, most) = (sought.only_database, sought.only_verified, sought.most);
            self.reading(move |shared, connection| {
                let sought = Sought {
                    question: &question,
                    database: &database,
                    dialect: dialect.as_deref(),
                    only_database,
                    only_verified,
                    most,
                };
                shared.search(connection, &sought, &vector)
            })
            .await
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Example>> {
        let id = id.to_string();
        Box::pin(self.reading(move |_, connection| Ok(rows::get(connection, &id)?)))
    }

    fn list<'a>(&'a self, filter: &'a Filter, skip: usize, most: usize) -> Answer<'a, Vec<Example>> {
        let filter = filter.clone();
        Box::pin(self.reading(move |_, connection| Ok(rows::list(connection, &filter, skip, most)?)))
    }

    fn count<'a>(&'a self, filter: &'a Filter) -> Answer<'a, usize> {
        let filter = filter.clone();
        Box::pin(self.reading(move |_, connection| Ok(rows::count(connection, &filter)?)))
    }

    fn change<'a>(&'a self, changes: &'a [(&'a str, Change)]) -> Answer<'a, usize> {
        let changes: Vec<(String, Change)> =
            merged(changes).into_iter().map(|(id, change)| (id.to_string(), change)).collect();
        Box::pin(self.writing(move |step| {
            let mut there = 0;
            for (id, change) in &changes {
                there += usize::from(rows::change(step, id, *change)?);
            }
            Ok(there)
        }))
    }

    fn remove<'a>(&'a self, ids: &'a [&'a str]) -> Answer<'a, usize> {
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_string()).collect();
        Box::pin(self.writing(move |step| Ok(rows::remove(step, &ids)?)))
    }
}

#[cfg(test)]
mod tests;
