//! Idempotency keys.
//!
//! A question sent again with the same `Idempotency-Key` is not run again: the first response is
//! replayed. The request body is not compared: a different question with the same key gets the
//! first response, too.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, Response as HttpResponse, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use querymend::{Problem, ProblemCode};

use crate::auth::user::User;
use crate::sync::{Mutex, MutexGuard};

/// Time that a response is kept for replay.
const ENTRY_TTL: Duration = Duration::from_secs(600);
/// Maximum number of entries of all users.
const MAX_ENTRIES: usize = 1_000;
/// Maximum number of entries of one user.
const MAX_ENTRIES_PER_USER: usize = 50;
/// Maximum size of a response body that is kept for replay.
const MAX_BODY_BYTES: usize = 1 << 20;

/// User id, role of the user, and idempotency key.
type EntryKey = (String, Option<String>, String);

/// Responses of completed requests, for replay.
#[derive(Default)]
pub struct IdempotencyStore(Arc<Mutex<IdempotencyState>>);

#[derive(Default)]
struct IdempotencyState {
    /// Configuration version of the last [`IdempotencyStore::clear`].
    config_version: u64,
    entries: HashMap<EntryKey, IdempotencyEntry>,
}

enum IdempotencyEntry {
    /// A request holds the reservation. It never expires, and is released when the [`Reservation`]
    /// is dropped.
    Running,
    Done {
        at: Instant,
        status: StatusCode,
        headers: HeaderMap,
        body: Bytes,
    },
}

impl IdempotencyEntry {
    fn is_expired(&self) -> bool {
        matches!(self, Self::Done { at, .. } if at.elapsed() >= ENTRY_TTL)
    }
}

/// Result of looking up an idempotency key.
pub enum IdempotencyLookup {
    /// Response of the completed request.
    Replay(Response),
    /// No response yet. If the request has a key, it is reserved for this request.
    New(Option<Reservation>),
}

/// Exclusive right to complete the request of a key, released on drop.
pub struct Reservation {
    state: Arc<Mutex<IdempotencyState>>,
    /// `None` after completion.
    key: Option<EntryKey>,
    config_version: u64,
}

fn lock_state(state: &Mutex<IdempotencyState>) -> MutexGuard<'_, IdempotencyState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IdempotencyStore {
    /// Removes all responses produced before a configuration version.
    ///
    /// Requests in flight under an older version are not stored on completion.
    pub fn clear(&self, config_version: u64) {
        let mut state = lock_state(&self.0);
        state.config_version = state.config_version.max(config_version);
        state.entries.retain(|_, entry| matches!(entry, IdempotencyEntry::Running));
    }

    /// Looks up the key of a request and reserves it if it is new.
    ///
    /// `config_version` is the version under which the request began.
    pub fn reserve(&self, headers: &HeaderMap, user: &User, config_version: u64) -> Result<IdempotencyLookup, Problem> {
        let Some(key) = headers.get("idempotency-key") else { return Ok(IdempotencyLookup::New(None)) };
        let key = key.to_str().ok().filter(|key| (1..=255).contains(&key.len()));
        let key = key.ok_or_else(|| {
            Problem::new(ProblemCode::BadRequest, "Idempotency-Key must have 1 to 255 ASCII characters")
        })?;
        // The role is part of the key: under a former role, the user may have been allowed more.
        let entry_key = (user.id().to_owned(), user.role_name.clone(), key.to_owned());
        let mut locked = lock_state(&self.0);
        let entries = &mut locked.entries;
        match entries.get(&entry_key).filter(|entry| !entry.is_expired()) {
            Some(IdempotencyEntry::Running) => {
                Err(Problem::new(ProblemCode::Conflict, "a request with this Idempotency-Key is still running"))
            }
            Some(IdempotencyEntry::Done { status, headers, body, .. }) => {
                let mut response = HttpResponse::new(Body::from(body.clone()));
                *response.status_mut() = *status;
                *response.headers_mut() = headers.clone();
                Ok(IdempotencyLookup::Replay(response))
            }
            None => {
                if entries.len() >= MAX_ENTRIES {
                    entries.retain(|_, entry| !entry.is_expired());
                    evict_oldest(entries, MAX_ENTRIES, |_| true);
                }
                evict_oldest(entries, MAX_ENTRIES_PER_USER, |name| name.0 == user.id());
                entries.insert(entry_key.clone(), IdempotencyEntry::Running);
                Ok(IdempotencyLookup::New(Some(Reservation {
                    state: Arc::clone(&self.0),
                    key: Some(entry_key),
                    config_version,
                })))
            }
        }
    }
}

/// Evicts the oldest completed entry among those that match `of`, if there are `limit` or more.
fn evict_oldest(entries: &mut HashMap<EntryKey, IdempotencyEntry>, limit: usize, of: impl Fn(&EntryKey) -> bool) {
    let those = || entries.iter().filter(|(name, _)| of(name));
    if those().count() >= limit {
        let done = those().filter_map(|(name, entry)| match entry {
            IdempotencyEntry::Done { at, .. } => Some((at, name)),
            IdempotencyEntry::Running => None,
        });
        let oldest = done.min_by_key(|(at, _)| *at).map(|(_, name)| name.clone());
        oldest.and_then(|name| entries.remove(&name));
    }
}

impl Reservation {
    /// Stores the response for replay and returns it.
    ///
    /// Transient failures, large responses, and responses under an outdated configuration are not
    /// stored: the client may retry.
    pub async fn complete(mut self, response: Response) -> Response {
        let (head, body) = response.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let lasting = !head.status.is_server_error() && head.status != StatusCode::TOO_MANY_REQUESTS;
        if lasting && body.len() <= MAX_BODY_BYTES {
            let (status, headers) = (head.status, head.headers.clone());
            let mut state = lock_state(&self.state);
            if self.config_version >= state.config_version
                && let Some(name) = self.key.take()
            {
                state
                    .entries
                    .insert(name, IdempotencyEntry::Done { at: Instant::now(), status, headers, body: body.clone() });
            }
        }
        Response::from_parts(head, Body::from(body))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(name) = self.key.take() {
            lock_state(&self.state).entries.remove(&name);
        }
    }
}
