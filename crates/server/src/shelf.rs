//! What outlives a request: conversations and past runs, each belonging to one user. Others are told that it is not there.

mod here;
mod postgres;

use std::pin::Pin;

use querymend::{Conversation, Event, Problem};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::service::Past;

pub use here::Here;
pub use postgres::Postgres;

/// What a shelf gives back in time.
pub type Kept<'a, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'a>>;

/// A conversation with whom it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Talk {
    /// Who said it.
    pub user: String,
    /// The database that it is about.
    pub database: String,
    /// When something was last said, in seconds since 1970.
    pub at: u64,
    /// Goes up each time it is kept, so that two who go on from the same state are told.
    pub version: u64,
    /// What was said.
    pub conversation: Conversation,
}

/// A place where conversations and past runs are kept.
pub trait Shelf: Send + Sync {
    /// What to call it in messages.
    fn name(&self) -> &str;

    /// A conversation of this user.
    fn talk<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, Option<Talk>>;

    /// Keeps a conversation, if it is still as it was when it was taken. `false` if somebody was faster.
    fn keep_talk<'a>(&'a self, talk: &'a Talk) -> Kept<'a, bool>;

    /// The newest conversations of a user.
    fn talks<'a>(&'a self, user: &'a str, most: usize) -> Kept<'a, Vec<Talk>>;

    /// Forgets a conversation; `false` if it was not there.
    fn forget_talk<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, bool>;

    /// Keeps a run.
    fn keep_run<'a>(&'a self, user: &'a str, id: &'a str, events: &'a [Event]) -> Kept<'a, ()>;

    /// The events of a run of this user.
    fn run<'a>(&'a self, user: &'a str, id: &'a str) -> Kept<'a, Option<Vec<Value>>>;

    /// The newest past runs in short, of one user or of all.
    fn past<'a>(&'a self, user: Option<&'a str>, most: usize) -> Kept<'a, Vec<Past>>;
}
