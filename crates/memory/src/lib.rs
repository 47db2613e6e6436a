//! Stores of few-shot examples: questions with the queries that answer them, searched by
//! similarity.
//!
//! An [`ExampleStore`] holds [`Example`]s. The default store is a single file without dependencies;
//! the others are servers that several programs share. All stores pass the same test suite.

mod bm25;
mod chroma;
mod error;
mod example;
mod file;
pub mod import;
mod int_map;
mod postgres;
mod query;
mod query_template;
pub mod rank;
mod registry;
mod store_embedder;
mod updates;
pub mod vector_index;

use std::pin::Pin;

pub use chroma::ChromaStore;
pub use error::Error;
pub use example::{Example, Provenance, VerificationStatus, example_id, normalize_question};
pub use file::{FileStore, StoreSize};
pub use postgres::{Idempotent, PostgresStore, SqlParams, StorePool};
pub use query::{ExampleFilter, ExampleQuery, ExampleUpdate, ScoredExample};
pub use query_template::template_hash;
pub use registry::open;

/// Future returned by a store, boxed so that [`ExampleStore`] is dyn-compatible.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Store of examples, which embeds questions with the embedder that it was opened with.
pub trait ExampleStore: Send + Sync {
    /// Returns the name of the store for messages. It never contains a password.
    fn name(&self) -> &str;

    /// Adds examples durably; returns the number of new ones.
    ///
    /// An existing example (same [`Example::id`]) gets the new query, provenance and status, and
    /// keeps its counters.
    fn add<'a>(&'a self, examples: &'a [Example]) -> BoxFuture<'a, usize>;

    /// Returns the examples that are most similar to a question and eligible for a prompt, best
    /// first.
    fn search<'a>(&'a self, query: &'a ExampleQuery<'a>) -> BoxFuture<'a, Vec<ScoredExample>>;

    /// Returns the example with this id.
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Option<Example>>;

    /// Returns the examples that match a filter, newest first.
    fn list<'a>(&'a self, filter: &'a ExampleFilter, skip: usize, limit: usize) -> BoxFuture<'a, Vec<Example>>;

    /// Returns the number of examples that match a filter.
    fn count<'a>(&'a self, filter: &'a ExampleFilter) -> BoxFuture<'a, usize>;

    /// Updates examples atomically; returns the number of ids that exist.
    fn update<'a>(&'a self, changes: &'a [(&'a str, ExampleUpdate)]) -> BoxFuture<'a, usize>;

    /// Deletes examples; returns the number that existed.
    fn remove<'a>(&'a self, ids: &'a [&'a str]) -> BoxFuture<'a, usize>;
}
