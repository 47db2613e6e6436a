//! Checking API keys. The check itself is slow on purpose, so that whoever gets hold of the file cannot try many; a key that was
//! found right once is known again quickly, and few are checked at a time, so that wrong ones cannot keep this machine busy.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use querymend::ProblemCode;
use querymend_net::Error;
use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::{Mutex as Waiting, Semaphore};

use super::keyfile::{self, Record};
use super::{Known, Named, Turned};

/// Slow checks at the same time, each of which takes 19 MB and some ten milliseconds.
const AT_ONCE: usize = 2;
/// Requests that wait for a check of one key. Whoever guesses at a key holds up nobody else's.
const IN_LINE: usize = 8;
/// How long they wait.
const PATIENCE: Duration = Duration::from_secs(5);
/// Keys that are known again quickly.
const REMEMBERED: usize = 10_000;
/// How often the file is looked at: a key that is revoked is refused this much later, at most.
const LOOK: Duration = Duration::from_secs(1);

/// The keys of a file.
pub(super) struct Keys {
    file: PathBuf,
    table: Mutex<Table>,
    /// Keys that were right, each by a sum that nobody outside this process can make, with the hash that it was held against.
    right: Mutex<HashMap<Vec<u8>, String>>,
    sums: hmac::Key,
    checks: Arc<Semaphore>,
}

struct Table {
    keys: HashMap<String, Arc<Kept>>,
    /// How the file was when it was read; nothing if it was not there.
    state: Option<(SystemTime, u64)>,
    looked: Instant,
}

struct Kept {
    record: Record,
    turn: Arc<Waiting<()>>,
    waiting: AtomicUsize,
}

/// A place in the line for one key.
struct Place<'k>(&'k Kept);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

fn busy() -> Turned {
    Turned::Later(ProblemCode::TooManyRequests, "too many sign in at once", 1)
}

impl Keys {
    /// Reads the file, every line of which must be in order.
    pub fn new(file: &Path) -> Result<Self, Error> {
        let state = state(file);
        let listing = keyfile::read(file)?;
        if let Some(line) = listing.broken.first() {
            let message = format!("line {line} of {} cannot be read", file.display());
            return Err(Error::new(message, "take the line out; the key that it was for must be made again"));
        }
        let unmade = |_| Error::new("this system gives no random numbers", "try again");
        let sums = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(unmade)?;
        let table = Table { keys: kept(listing.keys), state, looked: Instant::now() };
        Ok(Self {
            file: file.to_owned(),
            table: Mutex::new(table),
            right: Mutex::default(),
            sums,
            checks: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// Who uses a key, if it is right.
    pub async fn read(&self, key: &str) -> Result<Known, Turned> {
        let id = keyfile::id(key).ok_or(Turned::Away("it has not the form of a key"))?;
        let kept = self.find(id).ok_or(Turned::Away("there is no such key, or it was revoked"))?;
        let sum = hmac::sign(&self.sums, key.as_bytes()).as_ref().to_vec();
        if !self.was_right(&sum, &kept) && !self.check(key, &sum, &kept).await? {
            return Err(Turned::Away("the key is wrong"));
        }
        let role = kept.record.role.clone().map_or(Named::None, Named::Role);
        Ok(Known { id: kept.record.user(), role })
    }

    fn right(&self) -> MutexGuard<'_, HashMap<Vec<u8>, String>> {
        self.right.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn was_right(&self, sum: &[u8], kept: &Kept) -> bool {
        self.right().get(sum).is_some_and(|hash| *hash == kept.record.hash)
    }

    async fn check(&self, key: &str, sum: &[u8], kept: &Kept) -> Result<bool, Turned> {
        let before = kept.waiting.fetch_add(1, Ordering::AcqRel);
        let place = Place(kept);
        if before >= IN_LINE {
            return Err(busy());
        }
        let turn = async {
            let turn = Arc::clone(&kept.turn).lock_owned().await;
            (turn, Arc::clone(&self.checks).acquire_owned().await)
        };
        let (turn, permit) = tokio::time::timeout(PATIENCE, turn).await.map_err(|_| busy())?;
        let permit = permit.map_err(|_| busy())?;
        // Somebody before in the line may have brought the same key.
        if self.was_right(sum, kept) {
            return Ok(true);
        }
        let (key, hash) = (key.to_owned(), kept.record.hash.clone());
        let task = tokio::task::spawn_blocking(move || {
            let right = keyfile::verify(&key, &hash);
            // Also where the client has hung up meanwhile, the next check begins only now.
            drop((turn, permit));
            right
        });
        let right = task.await.unwrap_or(false);
        if right {
            let mut known = self.right();
            if known.len() >= REMEMBERED {
                known.clear();
            }
            known.insert(sum.to_vec(), kept.record.hash.clone());
        }
        drop(place);
        Ok(right)
    }

    /// What the file says of a key now.
    fn find(&self, id: &str) -> Option<Arc<Kept>> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.looked.elapsed() >= LOOK {
            table.looked = Instant::now();
            let state = state(&self.file);
            if state != table.state {
                table.state = state;
                table.keys = self.again();
            }
        }
        table.keys.get(id).cloned()
    }

    /// The file as it is now. Lines that cannot be read are left out, and all of them if there is no file: who could sign in by
    /// what is gone is kept out.
    fn again(&self) -> HashMap<String, Arc<Kept>> {
        match keyfile::read(&self.file) {
            Ok(listing) => {
                if !listing.broken.is_empty() {
                    tracing::error!(lines = ?listing.broken, "lines of the file of keys cannot be read");
                }
                tracing::info!(keys = listing.keys.len(), "the file of keys was read again");
                kept(listing.keys)
            }
            Err(error) => {
                tracing::error!(%error, "no key is believed");
                HashMap::new()
            }
        }
    }
}

fn kept(records: Vec<Record>) -> HashMap<String, Arc<Kept>> {
    let kept = |record: Record| {
        let id = record.id.clone();
        (id, Arc::new(Kept { record, turn: Arc::default(), waiting: AtomicUsize::new(0) }))
    };
    records.into_iter().map(kept).collect()
}

fn state(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
