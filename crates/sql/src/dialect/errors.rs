//! Classification of engine errors into findings, driven by one error table per dialect.

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

/// Unmodified error of a database engine; [`classify`] maps it to a finding.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EngineError {
    /// SQLSTATE, error number or error name; empty if the engine provides none.
    pub code: String,
    /// Message of the engine, unchanged.
    pub message: String,
    /// Hint of the engine; absent if it gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Byte offset in the query that the error points at; absent if the engine reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

/// Row of an error table.
pub struct ErrorRow {
    /// Error code to match: empty matches any code, a trailing `*` matches by prefix.
    pub code: &'static str,
    /// Part of the message to match, with `{name}` placeholders; empty matches any message.
    pub message: &'static str,
    /// Code of the resulting finding.
    pub finding: &'static str,
}

/// Result of classifying an [`EngineError`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassifiedError {
    /// Code of the rule that the error belongs to.
    pub finding: &'static str,
    /// Placeholders of the message with their values: `("column", "price")`, `("table",
    /// "prodcts")`.
    pub names: Vec<(&'static str, String)>,
}

impl ClassifiedError {
    /// Returns the value of a placeholder in the message pattern.
    pub fn name(&self, placeholder: &str) -> Option<&str> {
        self.names.iter().find(|(p, _)| *p == placeholder).map(|(_, n)| n.as_str())
    }
}

/// Classifies an error by the first row of the dialect's error table whose code and message match.
///
/// An error that no row matches is an `engine-error`.
pub fn classify(dialect: &Dialect, error: &EngineError) -> ClassifiedError {
    for row in dialect.errors {
        if !is_code_match(row.code, &error.code) {
            continue;
        }
        if let Some(mut names) = match_message(row.message, &error.message) {
            names
                .iter_mut()
                .filter(|(placeholder, _)| UNQUALIFIED_PLACEHOLDERS.contains(placeholder))
                .for_each(|(_, name)| *name = unqualified_name(name));
            return ClassifiedError { finding: row.finding, names };
        }
    }
    ClassifiedError { finding: "engine-error", names: Vec::new() }
}

/// Placeholders whose values are reduced to the unqualified name.
const UNQUALIFIED_PLACEHOLDERS: [&str; 3] = ["table", "column", "function"];

/// Removes qualifiers and quotes around a name.
///
/// Some engines report the searched path (`memory.default.prodcts`), others quote names.
fn unqualified_name(name: &str) -> String {
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

fn is_code_match(pattern: &str, code: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => code.starts_with(prefix),
        None => pattern.is_empty() || pattern == code,
    }
}

/// Matches a pattern with `{placeholders}` anywhere in the message, ignoring ASCII case.
///
/// Each placeholder matches as little text as possible.
fn match_message(pattern: &'static str, message: &str) -> Option<Vec<(&'static str, String)>> {
    // ASCII case folding preserves byte offsets, so names keep the spelling of the engine.
    let folded = message.to_ascii_lowercase();
    let mut starts = vec![0];
    let pieces = parse_pattern(pattern);
    if let Some(PatternPart::Literal(first)) = pieces.first() {
        let first = first.to_ascii_lowercase();
        starts = folded.match_indices(&first).map(|(i, _)| i).collect();
    }
    starts.into_iter().find_map(|start| match_parts(&pieces, message, &folded, start))
}

enum PatternPart {
    Literal(&'static str),
    Placeholder(&'static str),
}

fn parse_pattern(pattern: &'static str) -> Vec<PatternPart> {
    let mut out = Vec::new();
    let mut rest = pattern;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else { break };
        if open > 0 {
            out.push(PatternPart::Literal(&rest[..open]));
        }
        out.push(PatternPart::Placeholder(&rest[open + 1..open + close]));
        rest = &rest[open + close + 1..];
    }
    if !rest.is_empty() {
        out.push(PatternPart::Literal(rest));
    }
    out
}

fn match_parts(
    pieces: &[PatternPart],
    message: &str,
    folded: &str,
    mut at: usize,
) -> Option<Vec<(&'static str, String)>> {
    let mut names = Vec::new();
    let mut open: Option<(&'static str, usize)> = None;
    for piece in pieces {
        match piece {
            PatternPart::Placeholder(name) => open = Some((name, at)),
            PatternPart::Literal(text) => {
                let text = text.to_ascii_lowercase();
                match open.take() {
                    None => {
                        if !folded[at..].starts_with(&text) {
                            return None;
                        }
                        at += text.len();
                    }
                    Some((name, from)) => {
                        // A placeholder is never empty: search for the text after it one character
                        // further on.
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
        match_message(pattern, message)
    }

    #[test]
    fn extracts_names_from_error_message_placeholders() {
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
