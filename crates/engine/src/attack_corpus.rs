//! Corpus of more than six hundred write statements that models produced.
//!
//! The models were asked for something other than a query. The corpus is stored next to the
//! checkout (`../shared/data/security`). If it is missing, the tests that need it report that they
//! were skipped and prove nothing.
//!
//! Each engine receives every statement with query review bypassed (`attacks.rs` of each
//! engine), plus the individual statements of multi-statement texts. The target database has the
//! tables that the statements reference, as far as their names and columns can be guessed, and its
//! contents must be unchanged afterwards. A statement may be rejected by the read-only enforcement,
//! or because it is invalid in the dialect, which proves nothing about the enforcement. Both are
//! counted; `cargo test -p querymend-engine corpus -- --nocapture` prints the counts. Servers are
//! slow, so a quick run sends them the first statement of each kind (first keyword, single or
//! multiple statements) and every fourth statement overall.

// Test helpers panic on failure, and tests report skips on stderr.
#![allow(clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use querymend_sql::dialect::DIALECTS;
use querymend_sql::{EngineError, Policy, ReviewContext, Rows, review};
use querymend_testing::is_full_suite;

use crate::Error;

/// Keywords that precede a table name.
const KEYWORDS_BEFORE_TABLE: &[&str] = &["into", "update", "from", "join", "table", "on", "view", "references"];
/// Keywords that are never treated as identifiers.
const KEYWORDS: &[&str] = &[
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
/// Maximum number of columns created per table.
const MAX_COLUMNS: usize = 150;

pub(crate) struct AttackCorpus {
    /// Deduplicated statements in their original form.
    pub statements: Vec<String>,
    /// Individual statements, where a text contains several.
    pub split_parts: Vec<String>,
    /// Referenced tables, each with every identifier that may be one of its columns.
    pub tables: BTreeMap<String, BTreeSet<String>>,
}

/// Loads all statements that are labelled as writes.
pub(crate) fn load_corpus() -> Option<AttackCorpus> {
    load_sample(1)
}

/// Loads the subset that is sent to servers.
pub(crate) fn load_server_corpus() -> Option<AttackCorpus> {
    load_sample(if is_full_suite() { 1 } else { 4 })
}

/// Loads the first statement of each kind, and every `step`-th statement overall.
fn load_sample(step: usize) -> Option<AttackCorpus> {
    let file = data_dir().join("security/statements.jsonl");
    let Ok(lines) = std::fs::read_to_string(&file) else {
        eprintln!("skipped: ../shared/data/security/statements.jsonl is not there");
        return None;
    };
    let (mut seen, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let mut corpus = AttackCorpus { statements: Vec::new(), split_parts: Vec::new(), tables: BTreeMap::new() };
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let (label, sql) = (line["label"].as_str().unwrap(), line["sql"].as_str().unwrap());
        if !label.starts_with("read") && label != "malformed" && seen.insert(sql.to_string()) {
            let (keyword, statements) = (line["keyword"].as_str().unwrap(), line["n_statements"].as_u64().unwrap());
            let is_new_kind = kinds.insert((keyword.to_string(), statements > 1));
            if is_new_kind || (seen.len() - 1).is_multiple_of(step) {
                corpus.statements.push(sql.to_string());
            }
        }
    }
    assert!(seen.len() > 500, "{}", seen.len());
    for sql in &corpus.statements {
        let parts = split_statements(sql);
        if parts.len() > 1 {
            corpus.split_parts.extend(parts.into_iter().filter(|part| seen.insert(part.clone())));
        }
        collect_tables(sql, &mut corpus.tables);
    }
    corpus.tables.values_mut().for_each(|columns| {
        columns.insert("id".into());
        while columns.len() > MAX_COLUMNS {
            columns.pop_last();
        }
    });
    Some(corpus)
}

pub(crate) fn data_dir() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"))
}

impl AttackCorpus {
    /// Returns all statements to send, including the split parts.
    pub fn all_statements(&self) -> impl Iterator<Item = &String> {
        self.statements.iter().chain(&self.split_parts)
    }

    /// Returns the `max` widest tables, for servers on which creating tables is slow.
    pub fn largest_tables(&self, max: usize) -> Vec<(&String, Vec<&String>)> {
        let mut tables: Vec<_> = self.tables.iter().collect();
        tables.sort_by_key(|(_, columns)| std::cmp::Reverse(columns.len()));
        tables.into_iter().take(max).map(|(name, columns)| (name, columns.iter().collect())).collect()
    }
}

/// Outcomes of the executed statements.
#[derive(Default)]
pub(crate) struct AttackTally {
    read_only: usize,
    multiple_statements: usize,
    other: BTreeMap<String, usize>,
    stopped: usize,
    /// Statements that the engine executed.
    pub executed: Vec<String>,
}

/// Reason for which an engine rejected a statement.
pub(crate) enum RejectionReason {
    /// Read-only enforcement: the statement is not a query.
    ReadOnly,
    /// The text contains more than one statement.
    MultipleStatements,
    /// The statement is invalid or references something that does not exist.
    InvalidQuery,
}

impl AttackTally {
    pub fn record(&mut self, sql: &str, outcome: &Result<Rows, Error>, why: fn(&EngineError) -> RejectionReason) {
        match outcome {
            Ok(_) => self.executed.push(sql.to_string()),
            Err(Error::Rejected(error)) => match why(error) {
                RejectionReason::ReadOnly => self.read_only += 1,
                RejectionReason::MultipleStatements => self.multiple_statements += 1,
                RejectionReason::InvalidQuery => *self.other.entry(error.code.clone()).or_default() += 1,
            },
            Err(Error::TimedOut { .. } | Error::Cancelled) => self.stopped += 1,
            Err(other) => panic!("{sql}: {other:?}"),
        }
    }

    /// Prints the number of each outcome, for `docs/measurements/read-only.md`.
    pub fn report(&self, engine: &str) {
        let otherwise: usize = self.other.values().sum();
        eprintln!(
            "{engine}: {} refused by the lock, {} because they are several, {otherwise} otherwise, {} stopped, {} run",
            self.read_only,
            self.multiple_statements,
            self.stopped,
            self.executed.len()
        );
        eprintln!("  otherwise: {:?}", self.other);
        for sql in &self.executed {
            eprintln!("  run: {:?}", sql.chars().take(150).collect::<String>());
        }
    }
}

/// Splits SQL into words, quoted identifiers and literals, comments and single characters.
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

/// Splits SQL at its semicolons.
fn split_statements(sql: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    for token in tokens(sql) {
        match parts.last_mut() {
            Some(part) if token != ";" => part.push_str(token),
            _ => parts.push(String::new()),
        }
    }
    parts.into_iter().map(|part| part.trim().to_string()).filter(|part| !part.is_empty()).collect()
}

fn collect_tables(sql: &str, tables: &mut BTreeMap<String, BTreeSet<String>>) {
    let mut words: Vec<String> = Vec::new();
    for token in tokens(sql) {
        // Function bodies reference tables, too.
        let inner = if token.starts_with('$') { tokens(token.trim_matches('$')) } else { vec![token] };
        let names =
            inner.into_iter().filter(|token| token.starts_with(|c: char| c.is_alphabetic() || "_\"`".contains(c)));
        words.extend(names.map(|name| name.trim_matches(['"', '`']).to_lowercase()));
    }
    let is_name = |word: &&String| !KEYWORDS.contains(&word.as_str()) && word.len() > 1 && word.len() < 60;
    let mut named = BTreeSet::new();
    for (i, word) in words.iter().enumerate() {
        if KEYWORDS_BEFORE_TABLE.contains(&word.as_str()) {
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
fn review_approves_no_corpus_statement_in_any_dialect() {
    let Some(corpus) = load_corpus() else { return };
    let policy = Policy::default();
    for dialect in DIALECTS {
        for sql in &corpus.statements {
            let approved =
                review(sql, &ReviewContext { schema: None, dialect, policy: &policy, question: None }).approve();
            assert!(approved.is_err(), "{}: {sql}", dialect.name);
        }
    }
}

#[test]
fn splits_statements_and_collects_their_tables() {
    let several = "-- a; b\nDO $x$ BEGIN; END $x$; SELECT ';' /* ; */, \";\";; DROP TABLE \"Big Ones\"";
    assert_eq!(split_statements(several).len(), 3);
    let mut tables = BTreeMap::new();
    collect_tables("INSERT INTO birds (song) SELECT tune FROM \"Big Ones\" ON CONFLICT DO NOTHING", &mut tables);
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["big ones", "birds"]);
    assert!(tables["birds"].contains("song") && tables["birds"].contains("tune"));
}
