//! Verification of API keys.
//!
//! Hashing is slow on purpose, so that a stolen key file does not allow brute force. Verified keys
//! are cached, and few hashes run at a time, so that wrong keys cannot exhaust the CPU.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use querymend::ProblemCode;
use querymend_net::Error;
use ring::hmac;
use ring::rand::SystemRandom;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use super::key_file::{self, ApiKeyRecord};
use super::{AuthError, Identity, RoleClaim};

/// Maximum number of concurrent hashes. Each takes 19 MB and some ten milliseconds.
const MAX_CONCURRENT_HASHES: usize = 2;
/// Maximum number of requests that wait for the hash of one key. Guesses at one key do not delay
/// the users of other keys.
const MAX_QUEUED_PER_KEY: usize = 8;
/// Maximum time that a request waits in the queue of its key.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of verified keys in the cache.
const MAX_VERIFIED_KEYS: usize = 10_000;
/// Interval between checks of the file for changes. A revoked key is rejected within this time.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// API keys of one key file.
pub(super) struct ApiKeys {
    file: PathBuf,
    entries: Mutex<KeyTable>,
    /// Cache of verified keys, with the hash that each was verified against.
    ///
    /// Keys are stored as HMACs under a secret of this process.
    verified: Mutex<HashMap<Vec<u8>, String>>,
    cache_hmac: hmac::Key,
    hash_permits: Arc<Semaphore>,
}

struct KeyTable {
    keys: HashMap<String, Arc<KeyEntry>>,
    /// Modification time and size of the file when it was read; `None` if it did not exist.
    fingerprint: Option<(SystemTime, u64)>,
    checked_at: Instant,
}

struct KeyEntry {
    record: ApiKeyRecord,
    lock: Arc<AsyncMutex<()>>,
    queued: AtomicUsize,
}

/// Slot in the queue of one key, released on drop.
struct QueueSlot<'k>(&'k KeyEntry);

impl Drop for QueueSlot<'_> {
    fn drop(&mut self) {
        self.0.queued.fetch_sub(1, Ordering::AcqRel);
    }
}

fn queue_full() -> AuthError {
    AuthError::Unavailable(ProblemCode::TooManyRequests, "too many concurrent authentications", 1)
}

impl ApiKeys {
    /// Reads the key file; any invalid line is an error.
    pub fn new(file: &Path) -> Result<Self, Error> {
        let fingerprint = file_fingerprint(file);
        let listing = key_file::read(file)?;
        if let Some(line) = listing.invalid_lines.first() {
            let message = format!("cannot parse line {line} of {}", file.display());
            return Err(Error::new(message, "remove the line and create its key again"));
        }
        let no_random = |_| Error::new("the random number generator of the system is unavailable", "try again");
        let cache_hmac = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(no_random)?;
        let table = KeyTable { keys: index_by_id(listing.keys), fingerprint, checked_at: Instant::now() };
        Ok(Self {
            file: file.to_owned(),
            entries: Mutex::new(table),
            verified: Mutex::default(),
            cache_hmac,
            hash_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_HASHES)),
        })
    }

    /// Verifies a key and returns the identity of its user.
    pub async fn identify(&self, key: &str) -> Result<Identity, AuthError> {
        let id = key_file::key_id(key).ok_or(AuthError::Rejected("malformed API key"))?;
        let entry = self.find(id).ok_or(AuthError::Rejected("unknown or revoked API key"))?;
        let digest = hmac::sign(&self.cache_hmac, key.as_bytes()).as_ref().to_vec();
        if !self.is_verified(&digest, &entry) && !self.verify_hash(key, &digest, &entry).await? {
            return Err(AuthError::Rejected("wrong API key"));
        }
        let role = entry.record.role.clone().map_or(RoleClaim::None, RoleClaim::Role);
        Ok(Identity { id: entry.record.user_id(), role })
    }

    fn lock_verified(&self) -> MutexGuard<'_, HashMap<Vec<u8>, String>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_verified(&self, digest: &[u8], entry: &KeyEntry) -> bool {
        self.lock_verified().get(digest).is_some_and(|hash| *hash == entry.record.hash)
    }

    async fn verify_hash(&self, key: &str, digest: &[u8], entry: &KeyEntry) -> Result<bool, AuthError> {
        let queued = entry.queued.fetch_add(1, Ordering::AcqRel);
        let slot = QueueSlot(entry);
        if queued >= MAX_QUEUED_PER_KEY {
            return Err(queue_full());
        }
        let turn = async {
            let turn = Arc::clone(&entry.lock).lock_owned().await;
            (turn, Arc::clone(&self.hash_permits).acquire_owned().await)
        };
        let (turn, permit) = tokio::time::timeout(QUEUE_TIMEOUT, turn).await.map_err(|_| queue_full())?;
        let permit = permit.map_err(|_| queue_full())?;
        // A request ahead in the queue may have verified the same key.
        if self.is_verified(digest, entry) {
            return Ok(true);
        }
        let (key, hash) = (key.to_owned(), entry.record.hash.clone());
        let task = tokio::task::spawn_blocking(move || {
            let is_valid = key_file::verify(&key, &hash);
            // Held until the hash is done, even if the client disconnects, to bound concurrent
            // hashes.
            drop((turn, permit));
            is_valid
        });
        let is_valid = task.await.unwrap_or(false);
        if is_valid {
            let mut known = self.lock_verified();
            if known.len() >= MAX_VERIFIED_KEYS {
                known.clear();
            }
            known.insert(digest.to_vec(), entry.record.hash.clone());
        }
        drop(slot);
        Ok(is_valid)
    }

    /// Returns the entry of a key id, after reloading the file if it has changed.
    fn find(&self, id: &str) -> Option<Arc<KeyEntry>> {
        let mut table = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if table.checked_at.elapsed() >= RELOAD_INTERVAL {
            table.checked_at = Instant::now();
            let fingerprint = file_fingerprint(&self.file);
            if fingerprint != table.fingerprint {
                table.fingerprint = fingerprint;
                table.keys = self.reload();
            }
        }
        table.keys.get(id).cloned()
    }

    /// Reads the file again, skipping invalid lines.
    ///
    /// Without a readable file there are no keys: access that cannot be confirmed is denied.
    fn reload(&self) -> HashMap<String, Arc<KeyEntry>> {
        match key_file::read(&self.file) {
            Ok(listing) => {
                if !listing.invalid_lines.is_empty() {
                    tracing::error!(lines = ?listing.invalid_lines, "key file has invalid lines");
                }
                tracing::info!(keys = listing.keys.len(), "key file reloaded");
                index_by_id(listing.keys)
            }
            Err(error) => {
                tracing::error!(%error, "key file cannot be read, all API keys are rejected");
                HashMap::new()
            }
        }
    }
}

fn index_by_id(records: Vec<ApiKeyRecord>) -> HashMap<String, Arc<KeyEntry>> {
    let entry = |record: ApiKeyRecord| {
        let id = record.id.clone();
        (id, Arc::new(KeyEntry { record, lock: Arc::default(), queued: AtomicUsize::new(0) }))
    };
    records.into_iter().map(entry).collect()
}

fn file_fingerprint(file: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
