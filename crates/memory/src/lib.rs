//! Questions with the queries that answered them: remembered, found again by likeness, forgotten.
//!
//! An [`ExampleStore`] keeps [`Example`]s. The one that needs nothing is a single file; others are servers that several
//! programs share. All of them are held to the same suite of tests.

mod changes;
mod chroma;
mod embedding;
mod error;
mod example;
mod file;
mod numbers;
mod open;
mod postgres;
pub mod rank;
pub mod seed;
mod skeleton;
mod sought;
pub mod vectors;
mod words;

use std::pin::Pin;

pub use chroma::ChromaStore;
pub use error::Error;
pub use example::{Example, Provenance, Standing, id, normalised};
pub use file::{FileStore, Size};
pub use open::open;
pub use postgres::{Pool, PostgresStore, Twice, Values};
pub use skeleton::skeleton;
pub use sought::{Change, Filter, Found, Sought};

/// What a store gives back in time. A box rather than a generic, so that stores can stand behind `dyn ExampleStore`.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A place where examples are kept. It makes the vectors of the questions itself, with the embedder that it was opened with.
pub trait ExampleStore: Send + Sync {
    /// What to call it in messages. Never holds a password.
    fn name(&self) -> &str;

    /// Keeps examples, for good once this returns. One that is there already (the same [`Example::id`]) gets the new query,
    /// provenance and standing, and its counts stay. Gives back how many were not there before.
    fn add<'a>(&'a self, examples: &'a [Example]) -> Answer<'a, usize>;

    /// Those that are most like a question and may be shown to a model, best first.
    fn search<'a>(&'a self, sought: &'a Sought<'a>) -> Answer<'a, Vec<Found>>;

    /// The one with this id.
    fn get<'a>(&'a self, id: &'a str) -> Answer<'a, Option<Example>>;

    /// Those that fit, newest first.
    fn list<'a>(&'a self, filter: &'a Filter, skip: usize, most: usize) -> Answer<'a, Vec<Example>>;

    /// How many fit.
    fn count<'a>(&'a self, filter: &'a Filter) -> Answer<'a, usize>;

    /// Changes what is known of examples, all of it or nothing; gives back how many there were with these ids.
    fn change<'a>(&'a self, changes: &'a [(&'a str, Change)]) -> Answer<'a, usize>;

    /// Forgets examples; gives back how many were there.
    fn remove<'a>(&'a self, ids: &'a [&'a str]) -> Answer<'a, usize>;
}
