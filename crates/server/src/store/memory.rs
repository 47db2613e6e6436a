//! In-memory sessions and file-based traces, for a single process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use querymend::{Event, Problem, ProblemCode, TraceStore};
use ring::digest::{SHA256, digest};
use serde_json::Value;

use super::{SessionStore, StoredSession, TraceSummary};
use crate::BoxFuture;

/// Maximum number of sessions of all users.
const MAX_SESSIONS: usize = 20_000;

/// Session with its last use on the monotonic clock, which wall clock changes do not affect.
struct SessionEntry {
    session: StoredSession,
    last_used: Instant,
}

/// Store that keeps sessions in this process and traces in files.
pub struct InMemoryStore {
    sessions: Mutex<HashMap<String, SessionEntry>>,
    /// Maximum number of sessions of one user.
    max_per_user: usize,
    ttl: Duration,
    trace_dir: Option<(PathBuf, usize)>,
}

impl InMemoryStore {
    /// Creates a store with a session limit per user and a session TTL.
    ///
    /// Traces are saved if a directory, with the maximum number of traces, is given.
    pub fn new(max_per_user: usize, ttl: Duration, trace_dir: Option<(PathBuf, usize)>) -> Self {
        Self { sessions: Mutex::default(), max_per_user, ttl, trace_dir }
    }

    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<String, SessionEntry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_expired(&self, entry: &SessionEntry) -> bool {
        entry.last_used.elapsed() > self.ttl
    }

    /// Returns the trace store of a user.
    ///
    /// Directory names are encoded, so that user ids cannot cause path traversal.
    fn user_traces(&self, user: &str) -> Option<TraceStore> {
        let (folder, keep) = self.trace_dir.as_ref()?;
        let folder = if user.is_empty() { folder.clone() } else { folder.join(user_dir_name(user)) };
        Some(TraceStore::new(folder, *keep))
    }

    /// Returns the trace stores of all users.
    fn all_traces(&self) -> Vec<(String, TraceStore)> {
        let Some((folder, keep)) = &self.trace_dir else { return Vec::new() };
        let mut all = vec![(String::new(), TraceStore::new(folder.clone(), *keep))];
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let user = entry.file_name().to_str().and_then(user_from_dir_name);
            all.extend(user.map(|user| (user, TraceStore::new(entry.path(), *keep))));
        }
        all
    }
}

/// Decodes the user id of a directory; for hashed names, a part of the hash in parentheses.
fn user_from_dir_name(folder: &str) -> Option<String> {
    let Some(digits) = folder.strip_prefix("user-") else {
        return folder.strip_prefix("users-").map(|sum| format!("({})", &sum[..sum.len().min(8)]));
    };
    let bytes: Option<Vec<u8>> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()).collect();
    String::from_utf8(bytes?).ok()
}

/// Returns a unique directory name for a user.
///
/// It contains the id in hexadecimal, or its SHA-256 hash if it would be too long for a file name.
fn user_dir_name(user: &str) -> String {
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    match user.len() {
        ..=64 => format!("user-{}", hexadecimal(user.as_bytes())),
        _ => format!("users-{}", hexadecimal(digest(&SHA256, user.as_bytes()).as_ref())),
    }
}

/// Returns summaries of the most recent traces of these users.
fn newest_traces(folders: &[(String, TraceStore)], limit: usize) -> std::io::Result<Vec<TraceSummary>> {
    let mut runs: Vec<(String, &String, &TraceStore)> = Vec::new();
    for (user, traces) in folders {
        // Ids sort by time, so no more than `limit` of each user can be among the most recent.
        runs.extend(traces.ids()?.into_iter().rev().take(limit).map(|id| (id, user, traces)));
    }
    runs.sort_by(|one, other| other.0.cmp(&one.0));
    // Traces deleted in the meantime are skipped.
    let past = runs.into_iter().take(limit).filter_map(|(id, user, traces)| {
        let events = traces.read_exact(&id).ok().flatten()?;
        TraceSummary::from_events(&id, user, &events)
    });
    Ok(past.collect())
}

fn trace_io_problem(error: &std::io::Error) -> Problem {
    Problem::new(ProblemCode::Internal, format!("cannot read or write traces: {error}"))
}

impl SessionStore for InMemoryStore {
    fn name(&self) -> &str {
        "this process"
    }

    fn session<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, Option<StoredSession>> {
        Box::pin(async move {
            let sessions = self.lock_sessions();
            let entry = sessions.get(id).filter(|entry| entry.session.user == user && !self.is_expired(entry));
            Ok(entry.map(|entry| entry.session.clone()))
        })
    }

    fn save_session<'a>(&'a self, session: &'a StoredSession) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let mut sessions = self.lock_sessions();
            let id = &session.conversation.id;
            // Optimistic concurrency: the stored version must precede the new one.
            match sessions.get(id).map(|entry| &entry.session) {
                Some(known) if known.user != session.user || known.version + 1 != session.version => return Ok(false),
                None if session.version != 1 => return Ok(false),
                _ => {}
            }
            sessions.insert(id.clone(), SessionEntry { session: session.clone(), last_used: Instant::now() });
            let mut own: Vec<(Instant, String)> = sessions
                .iter()
                .filter(|(_, h)| h.session.user == session.user)
                .map(|(id, h)| (h.last_used, id.clone()))
                .collect();
            if own.len() > self.max_per_user {
                own.sort();
                for (_, old) in own.iter().filter(|(_, old)| old != id).take(own.len() - self.max_per_user) {
                    sessions.remove(old);
                }
            }
            if sessions.len() > MAX_SESSIONS {
                sessions.retain(|_, entry| !self.is_expired(entry));
                let oldest = sessions.iter().filter(|(known, _)| *known != id).min_by_key(|(_, entry)| entry.last_used);
                let oldest = oldest.map(|(id, _)| id.clone()).filter(|_| sessions.len() > MAX_SESSIONS);
                oldest.and_then(|id| sessions.remove(&id));
            }
            Ok(true)
        })
    }

    fn list_sessions<'a>(&'a self, user: &'a str, limit: usize) -> BoxFuture<'a, Vec<StoredSession>> {
        Box::pin(async move {
            let sessions = self.lock_sessions();
            let mut own: Vec<&SessionEntry> =
                sessions.values().filter(|entry| entry.session.user == user && !self.is_expired(entry)).collect();
            own.sort_by_key(|entry| std::cmp::Reverse(entry.last_used));
            Ok(own.into_iter().take(limit).map(|entry| entry.session.clone()).collect())
        })
    }

    fn delete_session<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let mut sessions = self.lock_sessions();
            let own = sessions.get(id).is_some_and(|entry| entry.session.user == user);
            Ok(own && sessions.remove(id).is_some())
        })
    }

    fn save_trace<'a>(&'a self, user: &'a str, id: &'a str, events: &'a [Event]) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(traces) = self.user_traces(user).filter(TraceStore::is_enabled) else { return Ok(()) };
            traces.save_without_sync(id, events).map_err(|error| trace_io_problem(&error))
        })
    }

    fn trace<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, Option<Vec<Value>>> {
        Box::pin(async move {
            // Id prefixes are accepted on the command line only; over the network they would help
            // to guess ids.
            let Some(traces) = self.user_traces(user).filter(|_| id.len() == 36) else { return Ok(None) };
            traces.read(id).map_err(|error| trace_io_problem(&error))
        })
    }

    fn list_traces<'a>(&'a self, user: Option<&'a str>, limit: usize) -> BoxFuture<'a, Vec<TraceSummary>> {
        let folders = match user {
            Some(user) => self.user_traces(user).map(|traces| (user.to_owned(), traces)).into_iter().collect(),
            None => self.all_traces(),
        };
        Box::pin(async move {
            // Reading many files would block the async runtime.
            let read = tokio::task::spawn_blocking(move || newest_traces(&folders, limit)).await;
            read.map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))?
                .map_err(|error| trace_io_problem(&error))
        })
    }
}

#[cfg(test)]
mod tests {
    use querymend::Conversation;

    use super::*;

    #[tokio::test]
    async fn wall_clock_changes_expire_no_session() {
        let store = InMemoryStore::new(2, Duration::from_secs(3600), None);
        // Saved with a wall clock that is hours slow, and hours fast.
        let now = crate::clock::now();
        for at in [now - 100 * 3600, now + 100 * 3600] {
            let conversation = Conversation::default();
            let id = conversation.id.clone();
            let session = StoredSession { user: "ann".into(), database: "shop".into(), at, version: 1, conversation };
            assert!(store.save_session(&session).await.unwrap());
            assert!(store.session("ann", &id).await.unwrap().is_some());
        }
        assert_eq!(SessionStore::list_sessions(&store, "ann", 9).await.unwrap().len(), 2);
        // The session saved last is listed first and evicted last.
        let late = StoredSession {
            user: "ann".into(),
            database: "shop".into(),
            at: 1,
            version: 1,
            conversation: Conversation::default(),
        };
        assert!(store.save_session(&late).await.unwrap());
        let kept: Vec<u64> =
            SessionStore::list_sessions(&store, "ann", 9).await.unwrap().iter().map(|session| session.at).collect();
        assert_eq!(kept, [1, now + 100 * 3600]);
        let short = InMemoryStore::new(2, Duration::ZERO, None);
        short.save_session(&late).await.unwrap();
        assert!(short.session("ann", &late.conversation.id).await.unwrap().is_none());
    }

    #[test]
    fn each_user_has_a_distinct_directory() {
        let long = "x".repeat(127);
        let names = ["ann", "bob", &format!("{long}a"), &format!("{long}b"), "../ann", "user-616e6e", "key:ann"];
        let folders: std::collections::HashSet<String> = names.iter().map(|name| user_dir_name(name)).collect();
        assert_eq!(folders.len(), names.len());
        assert!(folders.iter().all(|name| name.len() < 200 && !name.contains(['/', '.'])));
        assert_eq!(user_from_dir_name(&user_dir_name("../ann")).as_deref(), Some("../ann"));
        assert_eq!(user_from_dir_name(&user_dir_name(&long)).map(|name| name.len()), Some(10));
        assert_eq!(
            (user_from_dir_name("user-zz"), user_from_dir_name("user-6"), user_from_dir_name("other")),
            (None, None, None)
        );
    }
}
