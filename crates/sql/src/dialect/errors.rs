//! What an engine says when it refuses, and which finding that is.

mod datafusion;
mod hive;
mod mysql;
mod postgres;
mod presto;
mod spark;
mod sqlite;
mod trino;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Dialect;

pub(super) use self::datafusion::ERRORS as DATAFUSION;
pub(super) use self::hive::ERRORS as HIVE;
pub(super) use self::mysql::ERRORS as MYSQL;
pub(super) use self::postgres::ERRORS as POSTGRES;
pub(super) use self::presto::ERRORS as PRESTO;
pub(super) use self::spark::ERRORS as SPARK;
pub(super) use self::sqlite::ERRORS as SQLITE;
pub(super) use self::trino::ERRORS as TRINO;

/// An engine's refusal, untouched: engines report it, [`classify`] gives it meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EngineError {
    /// SQLSTATE, error number or error name; empty if the engine gives none.
    pub code: String,
    /// The engine's own words.
    pub message: String,
    /// Its hint, if it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The byte of the query that it points at, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

/// One line of an error table.
pub struct ErrorRow {
    /// The engine's code; empty fits any, a trailing `*` fits by prefix.
    pub code: &'static str,
    /// Words of the message with `{name}` holes; empty fits any.
    pub message: &'static str,
    /// The finding that it is.
    pub finding: &'static str,
}

/// The families of failure that retry policies speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum ErrorType {
    SyntaxError,
    TableNotFound,
    ColumnNotFound,
    AmbiguousColumn,
    FunctionNotFound,
    TypeMismatch,
    Aggregation,
    DivisionByZero,
    Cardinality,
    NotReadOnly,
    PermissionDenied,
    Timeout,
    ConnectionError,
    ResourceLimit,
    Unknown,
}

impl ErrorType {
    /// The family of a finding code.
    pub fn of(code: &str) -> ErrorType {
        match code {
            "syntax-error" | "unquoted-name" | "reserved-word" | "wrong-quotes" | "limit-syntax" => {
                ErrorType::SyntaxError
            }
            "unknown-table" | "unknown-schema" => ErrorType::TableNotFound,
            "unknown-column" | "unknown-alias" | "alias-reference" => ErrorType::ColumnNotFound,
            "ambiguous-column" => ErrorType::AmbiguousColumn,
            "unknown-function" | "wrong-argument-count" | "function-of-another-dialect" => ErrorType::FunctionNotFound,
            "compared-types"
            | "argument-types"
            | "invalid-cast"
            | "date-format"
            | "set-operation-types"
            | "string-concat" => ErrorType::TypeMismatch,
            "missing-group-by" | "aggregate-in-where" => ErrorType::Aggregation,
            "division-by-zero" => ErrorType::DivisionByZero,
            "subquery-many-rows" | "subquery-many-columns" | "set-operation-arity" | "set-operation-order" => {
                ErrorType::Cardinality
            }
            "writes-data" | "many-statements" | "forbidden-function" | "locking" => ErrorType::NotReadOnly,
            "permission-denied" | "protected-table" => ErrorType::PermissionDenied,
            "timed-out" => ErrorType::Timeout,
            "connection-failed" | "locked" | "not-a-database" => ErrorType::ConnectionError,
            "too-large" | "too-deep" => ErrorType::ResourceLimit,
            _ => match crate::rules::Rule::named(code).map(|rule| rule.group) {
                Some("artefact" | "syntax") => ErrorType::SyntaxError,
                _ => ErrorType::Unknown,
            },
        }
    }
}

/// What an engine's refusal means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Classified {
    /// The rule it belongs to.
    pub finding: &'static str,
    /// Its family.
    pub error_type: ErrorType,
    /// What the message names: `("column", "price")`, `("table", "prodcts")`.
    pub names: Vec<(&'static str, String)>,
}

impl Classified {
    /// The name that filled a hole of the message.
    pub fn name(&self, hole: &str) -> Option<&str> {
        self.names.iter().find(|(h, _)| *h == hole).map(|(_, n)| n.as_str())
    }
}

/// Finds the first row of the dialect's table that fits: the engine's code first, its words second.
pub fn classify(dialect: &Dialect, error: &EngineError) -> Classified {
    for row in dialect.errors {
        if !code_fits(row.code, &error.code) {
            continue;
        }
        if let Some(mut names) = message_fits(row.message, &error.message) {
            names.iter_mut().filter(|(hole, _)| BARE.contains(hole)).for_each(|(_, name)| *name = bare(name));
            return Classified { finding: row.finding, error_type: ErrorType::of(row.finding), names };
        }
    }
    Classified { finding: "engine-error", error_type: ErrorType::Unknown, names: Vec::new() }
}

/// What names of these kinds are called by themselves.
const BARE: [&str; 3] = ["table", "column", "function"];

/// A name without what stands around it: some engines say where they looked (`memory.default.prodcts`), some write names as they
/// would be quoted.
fn bare(name: &str) -> String {
    let quotes = ['`', '"'];
    let inner = |name: &str| -> Option<String> {
        let quote = name.chars().next().filter(|c| quotes.contains(c))?;
        let inner = name.strip_prefix(quote)?.strip_suffix(quote)?;
        (!inner.contains(quote)).then(|| inner.to_string())
    };
    inner(name).unwrap_or_else(|| {
        let last = name.rsplit('.').next().unwrap_or(name);
        let last = last.trim_matches(quotes);
        if last.is_empty() { name.to_string() } else { last.to_string() }
    })
}

fn code_fits(pattern: &str, code: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => code.starts_with(prefix),
        None => pattern.is_empty() || pattern == code,
    }
}

/// Matches a pattern with `{holes}` anywhere in the message, ignoring case; each hole takes as little as it can.
fn message_fits(pattern: &'static str, message: &str) -> Option<Vec<(&'static str, String)>> {
    // ASCII case folding keeps byte positions, so that names come out as the engine wrote them.
    let folded = message.to_ascii_lowercase();
    let mut starts = vec![0];
    let pieces = pieces(pattern);
    if let Some(Piece::Text(first)) = pieces.first() {
        let first = first.to_ascii_lowercase();
        starts = folded.match_indices(&first).map(|(i, _)| i).collect();
    }
    starts.into_iter().find_map(|start| fit(&pieces, message, &folded, start))
}

enum Piece {
    Text(&'static str),
    Hole(&'static str),
}

fn pieces(pattern: &'static str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut rest = pattern;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else { break };
        if open > 0 {
            out.push(Piece::Text(&rest[..open]));
        }
        out.push(Piece::Hole(&rest[open + 1..open + close]));
        rest = &rest[open + close + 1..];
    }
    if !rest.is_empty() {
        out.push(Piece::Text(rest));
    }
    out
}

fn fit(pieces: &[Piece], message: &str, folded: &str, mut at: usize) -> Option<Vec<(&'static str, String)>> {
    let mut names = Vec::new();
    let mut open: Option<(&'static str, usize)> = None;
    for piece in pieces {
        match piece {
            Piece::Hole(name) => open = Some((name, at)),
            Piece::Text(text) => {
                let text = text.to_ascii_lowercase();
                match open.take() {
                    None => {
                        if !folded[at..].starts_with(&text) {
                            return None;
                        }
                        at += text.len();
                    }
                    Some((name, from)) => {
                        // A hole is never empty: the text after it is looked for one character further on.
                        let step = folded[from..].chars().next()?.len_utf8();
                        let found = from + step + folded[from + step..].find(&text)?;
                        names.push((name, message[from..found].to_string()));
                        at = found + text.len();
                    }
                }
            }
        }
    }
    if let Some((name, from)) = open {
        let end = message[from..].find('\n').map_or(message.len(), |n| from + n);
        if end == from {
            return None;
        }
        names.push((name, message[from..end].to_string()));
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pattern: &'static str, message: &str) -> Option<Vec<(&'static str, String)>> {
        message_fits(pattern, message)
    }

    #[test]
    fn holes_take_what_stands_in_them() {
        let found =
            names("column {qualifier}.{column} does not exist", "ERROR: column t1.Name does not exist").unwrap();
        assert_eq!(found, [("qualifier", "t1".to_string()), ("column", "Name".to_string())]);
        assert!(names("column \"{column}\" does not exist", "column t.x does not exist").is_none());
        assert_eq!(
            names("no such table: {table}", "no such table: Ünïx\nmore").unwrap(),
            [("table", "Ünïx".to_string())]
        );
        assert_eq!(names("", "anything").unwrap(), []);
    }
}
