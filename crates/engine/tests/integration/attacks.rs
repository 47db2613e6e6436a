//! Is what the critic approves one read to the database too? Thousands of texts are put to the critic; each that it approves is then
//! classified by the database itself, without any lock of ours, and run through the public door. Afterwards the canary must be
//! as it was: its rows, the catalogue, the settings, the files.
//!
//! `mod attacks` of each database in `engines` says how it is asked what a text is. `QUERYMEND_ATTACKS=20000` tries so many texts of each source
//! (`corpora.rs`) instead of a hundred, or four hundred in a full run; what was seen is told with `--nocapture`. Servers are
//! addressed as in `conformance`. A server is held (`querymend_testing::lock_server`) while it is compared with what it was before.

pub mod corpora;
mod datafusion;
mod mutate;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use querymend_engine::{CancelFlag, Engine, Error, Limits};
use querymend_sql::{Approved, Dialect, EngineError, Policy, ReviewContext, Schema, review};
use querymend_testing::{hang_timeout, scaled};

/// Stands in a file that no query may read. No text that is sent holds it.
pub const SECRET: &str = "canaries sing at dawn";

/// What a database makes of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// One statement that only reads.
    OneRead,
    /// Nothing was run: it does not parse, or names what is not there.
    Refused,
    /// Anything else.
    Otherwise(String),
}

/// The query, if the critic approves the text.
pub fn approved(sql: &str, dialect: &'static Dialect, schema: Option<&Schema>) -> Option<Approved> {
    let policy = Policy::default();
    review(sql, &ReviewContext { schema, dialect, policy: &policy, question: None }).approve().ok()
}

/// What became of all texts on one database.
pub struct Tally {
    engine: &'static str,
    is_read_only_error: fn(&str, &EngineError) -> bool,
    tried: usize,
    approved: usize,
    reads: usize,
    refused: usize,
    otherwise: Vec<String>,
    door: BTreeMap<&'static str, usize>,
}

impl Tally {
    /// Nothing so far. `is_read_only_error` is whether the engine refused a query because it does not only read.
    pub fn new(engine: &'static str, is_read_only_error: fn(&str, &EngineError) -> bool) -> Self {
        let door = BTreeMap::new();
        Self { engine, is_read_only_error, tried: 0, approved: 0, reads: 0, refused: 0, otherwise: Vec::new(), door }
    }

    /// A text was put to the critic.
    pub fn tried(&mut self) {
        self.tried += 1;
    }

    /// What the database said of a text that the critic approved.
    pub fn note(&mut self, sql: &str, seen: Seen) {
        self.approved += 1;
        match seen {
            Seen::OneRead => self.reads += 1,
            Seen::Refused => self.refused += 1,
            Seen::Otherwise(what) => self.otherwise.push(format!("{what}: {sql:?}")),
        }
    }

    /// Runs an approved query as everybody does. The engine's lock has nothing to say of it, and no row tells the secret.
    pub async fn through_the_door(&mut self, engine: &dyn Engine, query: &Approved) {
        let limits = Limits { time: scaled(Duration::from_secs(2)), rows: 200, ..Limits::default() };
        let begun = Instant::now();
        let outcome = loop {
            let outcome = engine.execute(query, &limits, &CancelFlag::new()).await;
            // The servers are real, and have much to do: a connection may take longer than the limit.
            let is_busy = matches!(outcome, Err(Error::Unavailable { transient: true, .. }));
            if !is_busy || begun.elapsed() > hang_timeout() {
                break outcome;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        let outcome = match outcome {
            Ok(rows) => {
                if format!("{:?}", rows.rows).contains(SECRET) {
                    self.otherwise.push(format!("shows a file: {:?}", query.sql()));
                }
                "run"
            }
            Err(Error::Rejected(error)) if (self.is_read_only_error)(query.sql(), &error) => {
                self.otherwise.push(format!("refused by the lock, {}: {:?}", error.message, query.sql()));
                "refused by the lock"
            }
            Err(Error::Rejected(_)) => "refused",
            Err(Error::TimedOut { .. }) => "stopped",
            Err(other) => panic!("{}: {:?}: {other:?}", self.engine, query.sql()),
        };
        *self.door.entry(outcome).or_default() += 1;
    }

    /// Tells what was seen. Nothing may have been classified otherwise, and there must have been something to classify.
    pub fn end(self) {
        let Self { engine, tried, approved, reads, refused, otherwise, door, .. } = self;
        eprintln!(
            "{engine}: {tried} texts tried, {approved} approved; of these {reads} one read to the database, {refused} refused by it, \
             {} otherwise; through the door: {door:?}",
            otherwise.len()
        );
        assert!(
            otherwise.is_empty(),
            "{engine}: approved, but to the database it is something else\n{}",
            otherwise.join("\n")
        );
        assert!(
            approved * 20 > tried && reads * 4 > approved,
            "{engine}: too little was approved or run to prove anything"
        );
        let answered: usize = ["run", "refused"].iter().filter_map(|outcome| door.get(outcome)).sum();
        let sent: usize = door.values().sum();
        // DataFusion has no engine that a query could go through.
        assert!(
            sent == 0 || answered * 2 > sent,
            "{engine}: too many queries were stopped to prove anything: {door:?}"
        );
    }
}

/// A folder that everybody on this machine may write to, with a file in it that nobody may show.
pub fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    std::fs::write(folder.path().join("secret"), SECRET).unwrap();
    folder
}

/// The names of the files of a folder, and what they hold.
pub fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap_or_default())
        })
        .collect();
    files.sort();
    files
}
