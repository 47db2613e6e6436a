//! Session store: sessions and traces, each owned by one user. To other users they do not exist.

mod memory;
mod postgres;
mod trace_summary;

use querymend::{Conversation, Event};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxFuture;

pub use memory::InMemoryStore;
pub use postgres::PostgresSessionStore;
pub use trace_summary::TraceSummary;

/// Session with its owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredSession {
    /// Id of the owner.
    pub user: String,
    /// Name of the session's database.
    pub database: String,
    /// Time of the last question, in seconds since the Unix epoch.
    pub at: u64,
    /// Incremented on every save, to detect concurrent changes (optimistic concurrency).
    pub version: u64,
    /// Turns of the session.
    pub conversation: Conversation,
}

/// Store of sessions and traces.
pub trait SessionStore: Send + Sync {
    /// Returns the name of the store, for messages.
    fn name(&self) -> &str;

    /// Returns a session of this user.
    fn session<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, Option<StoredSession>>;

    /// Saves a session if its stored version precedes the new one.
    ///
    /// Returns `false` on a conflict (optimistic concurrency).
    fn save_session<'a>(&'a self, session: &'a StoredSession) -> BoxFuture<'a, bool>;

    /// Returns the most recent sessions of a user.
    fn list_sessions<'a>(&'a self, user: &'a str, limit: usize) -> BoxFuture<'a, Vec<StoredSession>>;

    /// Deletes a session; `false` if it does not exist.
    fn delete_session<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, bool>;

    /// Saves a trace.
    fn save_trace<'a>(&'a self, user: &'a str, id: &'a str, events: &'a [Event]) -> BoxFuture<'a, ()>;

    /// Returns the events of a trace of this user.
    fn trace<'a>(&'a self, user: &'a str, id: &'a str) -> BoxFuture<'a, Option<Vec<Value>>>;

    /// Returns summaries of the most recent traces, of one user or of all.
    fn list_traces<'a>(&'a self, user: Option<&'a str>, limit: usize) -> BoxFuture<'a, Vec<TraceSummary>>;
}
