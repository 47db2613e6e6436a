//! The databases that every test runs on: one file for each kind.

mod files;
mod mysql;
mod postgres;
mod spark;
mod sqlite;
mod trino;

use std::process::Command;

use querymend_engine::{Engine, open};
use querymend_sql::Cell;

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
    /// Whether keys are declared; some databases have none.
    pub has_keys: bool,
    /// A server that can be killed and started again, and that asks for a password.
    pub server: Option<Server>,
    /// Holds the database; dropped last.
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
    /// Its name for `scripts/engines.sh`.
    pub script: &'static str,
    /// The same address with a wrong password; none where the server asks for none.
    pub wrong_password: Option<String>,
}

impl Server {
    /// Ends the server as a crash would.
    pub fn kill(&self) {
        self.script("kill");
    }

    /// Starts it again with what it kept.
    pub fn start(&self) {
        self.script("start");
    }

    fn script(&self, verb: &str) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/engines.sh");
        let ended = Command::new("bash").args([script, verb, self.script]).status().unwrap();
        assert!(ended.success(), "{verb} {}", self.script);
    }
}

impl Subject {
    /// What the table is called whose columns are named in other scripts. Hive's metastore takes such names for columns only.
    pub fn sizes(&self) -> &'static str {
        if self.name == "spark" { "groessen" } else { "größen 表" }
    }

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

/// Those that nobody has to have: others that are like them are always tried.
const SPARE: &[&str] = &["presto"];

/// Every database that is there. `QUERYMEND_TEST_ENGINES=sqlite,postgres` narrows it; otherwise one that is missing is said to
/// be, and on CI that is a failure.
pub fn subjects() -> Vec<Subject> {
    let wanted = std::env::var("QUERYMEND_TEST_ENGINES").unwrap_or_default();
    let wanted: Vec<&str> = wanted.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    let mut there = Vec::new();
    for (name, subject) in ALL {
        if !wanted.is_empty() && !wanted.contains(name) {
            continue;
        }
        match subject() {
            Some(subject) => there.push(subject),
            None if std::env::var_os("CI").is_some() && !SPARE.contains(name) => {
                panic!("{name} is not there; scripts/engines.sh up {name}")
            }
            None => eprintln!("skipped on {name}: it is not there; scripts/engines.sh up {name}"),
        }
    }
    there
}

/// Those that are servers.
pub fn servers() -> Vec<(Subject, Server)> {
    let with_server = |mut subject: Subject| {
        let server = subject.server.take()?;
        Some((subject, server))
    };
    subjects().into_iter().filter_map(with_server).collect()
}
