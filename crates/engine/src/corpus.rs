//! Statements that models wrote when they were asked for something else than a question, more than six hundred of them. They lie
//! beside the checkout (`../shared/data/security`); without them the tests that need them say so and prove nothing.
//!
//! Each engine is sent all of them past the critic (`attacks/corpus.rs` of each), also the single statements of those that are
//! several, to a database that has the tables which they name, as far as their names and columns can be guessed. What is there must
//! be the same afterwards. A statement may be refused by the lock, or because it is wrong in this dialect, which proves nothing
//! about the lock: both are counted, and `cargo test -p querymend-engine corpus -- --nocapture` tells how many there were. Servers take
//! their time for each: a quick run sends them one of each kind (first keyword, number of statements) and every fourth one.

// Helpers of tests fail loudly, and tests say what they skip.
#![allow(clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use querymend_sql::dialect::DIALECTS;
use querymend_sql::{Context, EngineError, Policy, Rows, review};
use querymend_testing::is_full;

use crate::Error;

/// Words after which a table is named.
const BEFORE_TABLES: &[&str] = &["into", "update", "from", "join", "table", "on", "view", "references"];
/// Words that are no names, wherever they stand.
const NO_NAMES: &[&str] = &[
    "add",
    "after",
    "all",
    "alter",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "before",
    "begin",
    "between",
    "by",
    "cascade",
    "case",
    "cast",
    "check",
    "column",
    "commit",
    "conflict",
    "constraint",
    "create",
    "cross",
    "current_date",
    "current_timestamp",
    "declare",
    "default",
    "delete",
    "desc",
    "distinct",
    "do",
    "drop",
    "each",
    "else",
    "end",
    "except",
    "exists",
    "false",
    "for",
    "foreign",
    "from",
    "full",
    "function",
    "group",
    "having",
    "if",
    "in",
    "index",
    "inner",
    "insert",
    "intersect",
    "interval",
    "into",
    "is",
    "join",
    "key",
    "language",
    "lateral",
    "left",
    "like",
    "limit",
    "not",
    "nothing",
    "null",
    "of",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "over",
    "partition",
    "primary",
    "recursive",
    "references",
    "rename",
    "replace",
    "restrict",
    "return",
    "returning",
    "returns",
    "right",
    "row",
    "select",
    "set",
    "table",
    "temp",
    "temporary",
    "then",
    "to",
    "trigger",
    "true",
    "truncate",
    "union",
    "unique",
    "update",
    "using",
    "values",
    "view",
    "when",
    "where",
    "window",
    "with",
    "without",
];
/// The most columns that a table gets.
const MOST_COLUMNS: usize = 150;

pub(crate) struct Corpus {
    /// The statements as they were written, each once.
    pub whole: Vec<String>,
    /// The single statements of those that are several.
    pub parts: Vec<String>,
    /// The tables that are named, with all words that may be columns of theirs.
    pub tables: BTreeMap<String, BTreeSet<String>>,
}

/// All that are labelled as writes.
pub(crate) fn corpus() -> Option<Corpus> {
    every(1)
}

/// Those that servers are sent.
pub(crate) fn for_servers() -> Option<Corpus> {
    every(if is_full() { 1 } else { 4 })
}

/// Reads the first statement of each kind, and of all statements every `step`-th.
fn every(step: usize) -> Option<Corpus> {
    let file = data().join("security/statements.jsonl");
    let Ok(lines) = std::fs::read_to_string(&file) else {
        eprintln!("skipped: ../shared/data/security/statements.jsonl is not there");
        return None;
    };
    let (mut seen, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let mut corpus = Corpus { whole: Vec::new(), parts: Vec::new(), tables: BTreeMap::new() };
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let (label, sql) = (line["label"].as_str().unwrap(), line["sql"].as_str().unwrap());
        if !label.starts_with("read") && label != "malformed" && seen.insert(sql.to_string()) {
            let (keyword, statements) = (line["keyword"].as_str().unwrap(), line["n_statements"].as_u64().unwrap());
            let is_new_kind = kinds.insert((keyword.to_string(), statements > 1));
            if is_new_kind || (seen.len() - 1).is_multiple_of(step) {
                corpus.whole.push(sql.to_string());
            }
        }
    }
    assert!(seen.len() > 500, "{}", seen.len());
    for sql in &corpus.whole {
        let parts = parts(sql);
        if parts.len() > 1 {
            corpus.parts.extend(parts.into_iter().filter(|part| seen.insert(part.clone())));
        }
        name_tables(sql, &mut corpus.tables);
    }
    corpus.tables.values_mut().for_each(|columns| {
        columns.insert("id".into());
        while columns.len() > MOST_COLUMNS {
            columns.pop_last();
        }
    });
    Some(corpus)
}

pub(crate) fn data() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"))
}

impl Corpus {
    /// All that is sent.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.whole.iter().chain(&self.parts)
    }

    /// The tables that most statements name, with fewer columns: for servers on which it takes long to make them.
    pub fn some_tables(&self, most: usize) -> Vec<(&String, Vec<&String>)> {
        let mut tables: Vec<_> = self.tables.iter().collect();
        tables.sort_by_key(|(_, columns)| std::cmp::Reverse(columns.len()));
        tables.into_iter().take(most).map(|(name, columns)| (name, columns.iter().collect())).collect()
    }
}

/// What became of the statements.
#[derive(Default)]
pub(crate) struct Tally {
    lock: usize,
    several: usize,
    otherwise: BTreeMap<String, usize>,
    stopped: usize,
    /// What was run.
    pub ran: Vec<String>,
}

/// Why an engine has refused a statement.
pub(crate) enum Why {
    /// The lock: it does not read.
    Lock,
    /// It is more than one.
    Several,
    /// It is wrong, or names something that is not there.
    Wrong,
}

impl Tally {
    pub fn note(&mut self, sql: &str, outcome: &Result<Rows, Error>, why: fn(&EngineError) -> Why) {
        match outcome {
            Ok(_) => self.ran.push(sql.to_string()),
            Err(Error::Rejected(error)) => match why(error) {
                Why::Lock => self.lock += 1,
                Why::Several => self.several += 1,
                Why::Wrong => *self.otherwise.entry(error.code.clone()).or_default() += 1,
            },
            Err(Error::TimedOut { .. } | Error::Cancelled) => self.stopped += 1,
            Err(other) => panic!("{sql}: {other:?}"),
        }
    }

    /// Tells how many there were of each, for `docs/engines.md`.
    pub fn tell(&self, engine: &str) {
        let otherwise: usize = self.otherwise.values().sum();
        eprintln!(
            "{engine}: {} refused by the lock, {} because they are several, {otherwise} otherwise, {} stopped, {} run",
            self.lock,
            self.several,
            self.stopped,
            self.ran.len()
        );
        eprintln!("  otherwise: {:?}", self.otherwise);
        for sql in &self.ran {
            eprintln!("  run: {:?}", sql.chars().take(150).collect::<String>());
        }
    }
}

/// A word, a quoted name or text, a comment, or one character.
fn tokens(sql: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let until = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
        let length = match first {
            '\'' | '"' | '`' => until(&first.to_string(), 1),
            '-' if rest.starts_with("--") => until("\n", 2),
            '/' if rest.starts_with("/*") => until("*/", 2),
            '$' => match rest[1..].find('$') {
                Some(end) if rest[1..=end].chars().all(|c| c.is_alphanumeric() || c == '_') => {
                    until(&rest[..end + 2], end + 2)
                }
                _ => 1,
            },
            c if c.is_alphanumeric() || c == '_' => {
                rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len())
            }
            c => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token);
        rest = behind;
    }
    tokens
}

/// The statements between the semicolons.
fn parts(sql: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for token in tokens(sql) {
        match parts.last_mut() {
            Some(part) if token != ";" => part.push_str(token),
            _ => parts.push(String::new()),
        }
    }
    parts.into_iter().map(|part| part.trim().to_string()).filter(|part| !part.is_empty()).collect()
}

fn name_tables(sql: &str, tables: &mut BTreeMap<String, BTreeSet<String>>) {
    let mut words: Vec<String> = Vec::new();
    for token in tokens(sql) {
        // The body of a function names tables, too.
        let inner = if token.starts_with('$') { tokens(token.trim_matches('$')) } else { vec![token] };
        let names =
            inner.into_iter().filter(|token| token.starts_with(|c: char| c.is_alphabetic() || "_\"`".contains(c)));
        words.extend(names.map(|name| name.trim_matches(['"', '`']).to_lowercase()));
    }
    let is_name = |word: &&String| !NO_NAMES.contains(&word.as_str()) && word.len() > 1 && word.len() < 60;
    let mut named = BTreeSet::new();
    for (i, word) in words.iter().enumerate() {
        if BEFORE_TABLES.contains(&word.as_str()) {
            let next = words[i + 1..].iter().find(|word| !["if", "not", "exists", "only"].contains(&word.as_str()));
            named.extend(next.filter(|word| is_name(word)).cloned());
        }
    }
    for name in &named {
        let columns = words.iter().filter(is_name).filter(|word| *word != name).cloned();
        tables.entry(name.clone()).or_default().extend(columns);
    }
}

#[test]
fn c01_the_critic_approves_no_statement_of_the_corpus_in_any_dialect() {
    let Some(corpus) = corpus() else { return };
    let policy = Policy::default();
    for dialect in DIALECTS {
        for sql in &corpus.whole {
            let approved = review(sql, &Context { schema: None, dialect, policy: &policy, question: None }).approve();
            assert!(approved.is_err(), "{}: {sql}", dialect.name);
        }
    }
}

#[test]
fn statements_are_taken_apart_where_they_end() {
    let several = "-- a; b\nDO $x$ BEGIN; END $x$; SELECT ';' /* ; */, \";\";; DROP TABLE \"Big Ones\"";
    assert_eq!(parts(several).len(), 3);
    let mut tables = BTreeMap::new();
    name_tables("INSERT INTO birds (song) SELECT tune FROM \"Big Ones\" ON CONFLICT DO NOTHING", &mut tables);
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["big ones", "birds"]);
    assert!(tables["birds"].contains("song") && tables["birds"].contains("tune"));
}
