//! The databases that every test runs on: one file for each kind.
//!
//! A file has the fixture ([`Subject`]), how the database itself classifies a text (`attacks`), and, for servers,
//! encrypted connections (`tls`). For PostgreSQL the latter are in `postgres.rs`; what Trino does with untrusted
//! certificates is among the attacks of its engine.

mod files;
mod mysql;
mod postgres;
mod spark;
mod sqlite;
mod trino;

use std::pin::Pin;

use querymend_engine::{Engine, open};
use querymend_sql::Cell;

use crate::support::is_wanted;

/// A database with the table `things` in it, and what must be written differently for each kind.
pub struct Subject {
    /// What it is called in `QUERYMEND_TEST_ENGINES`.
    pub name: &'static str,
    /// How it is reached.
    pub address: String,
    /// Runs for ever, and gives no row while it does.
    pub endless: &'static str,
    /// Gives two columns and rows without end, or at least a hundred thousand of them.
    pub flood: &'static str,
    /// Values of the common kinds: the query that gives one, and what must come back. See [`Kinds`] for those that all have.
    pub kinds: Kinds,
    /// Query with the date `d`, 2024-03-15, and the timestamp `t`, 2023-12-31 23:10:05.
    pub moments: &'static str,
    /// Name of the table with columns `naïve col` and `Σ`, in other scripts where the database has such names.
    pub unicode_table: &'static str,
    /// Whether a single query needs most of the machine: a quick run tries fewer network faults, and two at once.
    pub is_slow: bool,
    /// First of every fourth call that a quick run transpiles; different for each database. `None` for all calls.
    pub transpile_sample: Option<usize>,
    /// How connections are counted; `None` where the server does not tell.
    pub connection_counter: Option<ConnectionCounter>,
    /// Whether keys are declared; some databases have none.
    pub has_keys: bool,
    /// Set for servers.
    pub server: Option<Server>,
    /// Holds the database; dropped last.
    #[expect(dead_code, reason = "dropping it deletes the database")]
    pub folder: Option<tempfile::TempDir>,
}

/// A query for each common kind of value, without FROM; none where the database has no such kind.
pub struct Kinds {
    /// 9223372036854775807.
    pub largest_integer: &'static str,
    /// -9223372036854775808.
    pub smallest_integer: &'static str,
    /// The decimal 12345678901234567890.50, all of its digits.
    pub decimal: Option<&'static str>,
    /// The float 0.1.
    pub float: &'static str,
    /// The text `Ελληνικά, עברית, 日本語, 🦀 and O'Clock`.
    pub text: &'static str,
    /// The date 2024-02-29.
    pub date: Option<&'static str>,
    /// The time 13:14:15.5.
    pub time: Option<&'static str>,
    /// The moment 2024-02-29 13:14:15.678, without a zone.
    pub timestamp: Option<&'static str>,
    /// The moment 2024-02-29 13:14:15 in the zone +02:00, and how the database gives it back.
    pub zoned: Option<(&'static str, &'static str)>,
    /// True.
    pub truth: Option<&'static str>,
    /// Nothing.
    pub null: &'static str,
    /// Two bytes: 0x0f, 0xa0.
    pub bytes: Option<&'static str>,
    /// The list 1, 2, NULL; comes back as `[1,2,null]`.
    pub list: Option<&'static str>,
    /// The object `{"a": [1, "x"]}`, comes back as JSON of this meaning.
    pub json: Option<&'static str>,
    /// Whatever else this database has.
    pub own: Vec<(&'static str, Cell)>,
}

/// A server as the tests need it.
pub struct Server {
    /// The same address with a wrong password; none where the server asks for none.
    pub wrong_password: Option<String>,
}

/// Future of a fixture.
pub type FixtureFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Counts the connections to a server.
pub struct ConnectionCounter {
    /// Returns an address that no other test connects to.
    pub isolated_address: fn(&str) -> FixtureFuture<'_, String>,
    /// Returns the number of connections to an isolated address, without its own.
    pub count: fn(&str) -> FixtureFuture<'_, i64>,
}

impl Subject {
    /// The database, opened anew.
    pub fn open(&self) -> Box<dyn Engine> {
        open(&self.address).unwrap()
    }
}

/// Gives a database, if it is there.
type Find = fn() -> Option<Subject>;

/// Every kind of database, one line for each.
const ALL: &[(&str, Find)] = &[
    ("sqlite", sqlite::subject),
    ("files", files::subject),
    ("postgres", postgres::subject),
    ("mysql", mysql::subject),
    ("spark", spark::subject),
    ("trino", trino::trino),
    ("presto", trino::presto),
];

/// Every database that is there. `QUERYMEND_TEST_ENGINES=sqlite,postgres` narrows it.
pub fn subjects() -> Vec<Subject> {
    ALL.iter().filter(|(name, _)| is_wanted(name)).filter_map(|(_, subject)| subject()).collect()
}

/// Those that are servers.
pub fn servers() -> Vec<(Subject, Server)> {
    let with_server = |mut subject: Subject| {
        let server = subject.server.take()?;
        Some((subject, server))
    };
    subjects().into_iter().filter_map(with_server).collect()
}
