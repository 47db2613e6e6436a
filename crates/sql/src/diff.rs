//! Compares queries token by token: equality and differences.

use std::fmt::Write;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::dialect::Dialect;

/// Normalized tokens of a query, without whitespace and comments.
///
/// Keywords and unquoted identifiers are in upper case; literals and quoted identifiers are
/// unchanged. Text that cannot be tokenized is compared word by word.
///
/// Tokenizing is the costly part and is done once for a query that is compared with several others.
#[derive(Debug, Clone, Default)]
pub struct NormalizedTokens {
    /// Normalized tokens, each followed by a NUL, which no token begins or ends with.
    keys: String,
    /// Tokens in their original spelling.
    texts: String,
    bounds: Vec<TokenBounds>,
}

#[derive(Debug, Clone, Copy)]
struct TokenBounds {
    /// End of the token in `keys`, before the NUL.
    key_end: usize,
    text_end: usize,
    has_space_before: bool,
}

impl NormalizedTokens {
    /// Tokenizes and normalizes a query.
    pub fn tokenize(sql: &str, dialect: &Dialect) -> Self {
        match Tokenizer::new(dialect.grammar, sql).tokenize_with_location() {
            Ok(tokens) => Self::from_tokens(&tokens, sql.len()),
            Err(_) => {
                let mut out = Self::default();
                sql.split_whitespace().for_each(|word| out.push(word, true, false));
                out
            }
        }
    }

    /// Normalizes the tokens of a text of `bytes` bytes; whitespace tokens may be missing.
    pub(crate) fn from_tokens(tokens: &[TokenWithSpan], bytes: usize) -> Self {
        let mut out = Self {
            keys: String::with_capacity(bytes * 3 / 2),
            texts: String::with_capacity(bytes),
            bounds: Vec::with_capacity(tokens.len()),
        };
        let mut text = String::new();
        let mut end = Location::new(1, 1);
        for TokenWithSpan { token, span } in tokens {
            let spaced = span.start != end;
            match token {
                Token::Whitespace(_) | Token::EOF => continue,
                Token::Word(word) if word.quote_style.is_none() => out.push(&word.value, spaced, true),
                other => {
                    text.clear();
                    // Writing to a `String` never fails.
                    let _ = write!(text, "{other}");
                    out.push(&text, spaced, false);
                }
            }
            end = span.end;
        }
        out
    }

    fn push(&mut self, text: &str, spaced: bool, any_case: bool) {
        let start = self.keys.len();
        if any_case && !text.is_ascii() {
            self.keys.push_str(&text.to_uppercase());
        } else {
            self.keys.push_str(text);
        }
        if any_case {
            self.keys[start..].make_ascii_uppercase();
        }
        self.texts.push_str(text);
        self.bounds.push(TokenBounds {
            key_end: self.keys.len(),
            text_end: self.texts.len(),
            has_space_before: spaced,
        });
        self.keys.push('\0');
    }

    /// Returns a key that is equal for queries that [`is_same_query`] considers the same.
    pub fn identity(&self) -> &str {
        self.keys.trim_end_matches(";\0")
    }

    fn len(&self) -> usize {
        self.bounds.len()
    }

    fn key(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.bounds[i - 1].key_end + 1 };
        &self.keys[start..self.bounds[i].key_end]
    }

    /// Returns a range of tokens in their original spelling.
    fn snippet(&self, stretch: Range<usize>) -> String {
        let mut out = String::new();
        for i in stretch.clone() {
            if i > stretch.start && self.bounds[i].has_space_before {
                out.push(' ');
            }
            let start = if i == 0 { 0 } else { self.bounds[i - 1].text_end };
            out.push_str(&self.texts[start..self.bounds[i].text_end]);
        }
        out
    }

    /// Returns the differences to another query, by longest common subsequence of tokens.
    ///
    /// The hunks are in the original spelling.
    pub fn changes(&self, after: &NormalizedTokens) -> Vec<DiffHunk> {
        let before = self;
        // Most queries share a prefix and a suffix, so the table is only built for the middle.
        let shorter = before.len().min(after.len());
        let head = (0..shorter).take_while(|&i| before.key(i) == after.key(i)).count();
        let from_end = |i: &usize| before.key(before.len() - 1 - i) == after.key(after.len() - 1 - i);
        let tail = (0..shorter - head).take_while(from_end).count();
        let (m, n) = (before.len() - tail - head, after.len() - tail - head);
        let replaced = |i: Range<usize>, j: Range<usize>| DiffHunk {
            before: before.snippet(head + i.start..head + i.end),
            after: after.snippet(head + j.start..head + j.end),
        };
        if m == 0 && n == 0 {
            return Vec::new();
        }
        if m == 0 || n == 0 || m + n > MAX_DIFF_TOKENS {
            return vec![replaced(0..m, 0..n)];
        }
        let same = |i: usize, j: usize| before.key(head + i) == after.key(head + j);
        let mut longest = vec![vec![0u32; n + 1]; m + 1];
        for i in (0..m).rev() {
            for j in (0..n).rev() {
                longest[i][j] =
                    if same(i, j) { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
            }
        }
        let mut changes = Vec::new();
        let (mut i, mut j) = (0, 0);
        while i < m || j < n {
            let (from_i, from_j) = (i, j);
            while i < m && j < n && !same(i, j) || (i < m) != (j < n) {
                if j == n || (i < m && longest[i + 1][j] >= longest[i][j + 1]) {
                    i += 1;
                } else {
                    j += 1;
                }
            }
            if i > from_i || j > from_j {
                changes.push(replaced(from_i..i, from_j..j));
            }
            if i < m && j < n {
                i += 1;
                j += 1;
            }
        }
        changes
    }
}

/// Returns the tokens of a query as [`NormalizedTokens::identity`] compares them.
pub fn normalized_tokens(sql: &str, dialect: &Dialect) -> Vec<String> {
    let tokens = NormalizedTokens::tokenize(sql, dialect);
    let mut out: Vec<String> = (0..tokens.len()).map(|i| tokens.key(i).to_string()).collect();
    while out.last().is_some_and(|t| t == ";") {
        out.pop();
    }
    out
}

/// Returns the unchanged tokens of a query.
///
/// Whitespace, comments and leading or trailing semicolons are left out.
pub(crate) fn exact_tokens(sql: &str, dialect: &Dialect) -> Option<Vec<Token>> {
    let mut tokens = Tokenizer::new(dialect.grammar, sql).tokenize().ok()?;
    tokens.retain(|t| !matches!(t, Token::Whitespace(_) | Token::EOF));
    while tokens.last() == Some(&Token::SemiColon) {
        tokens.pop();
    }
    let before = tokens.iter().take_while(|token| **token == Token::SemiColon).count();
    tokens.drain(..before);
    Some(tokens)
}

/// Returns whether two queries are the same.
///
/// Ignores whitespace, comments and the case of keywords and unquoted identifiers.
pub fn is_same_query(a: &str, b: &str, dialect: &Dialect) -> bool {
    a == b || NormalizedTokens::tokenize(a, dialect).identity() == NormalizedTokens::tokenize(b, dialect).identity()
}

/// Replaced range of tokens; one side may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
// The schema name is part of the API contract.
#[schemars(rename = "Change")]
pub struct DiffHunk {
    /// SQL before the change; empty for an insertion.
    pub before: String,
    /// SQL after the change; empty for a deletion.
    pub after: String,
}

impl std::fmt::Display for DiffHunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.before.as_str(), self.after.as_str()) {
            ("", after) => write!(f, "+ '{after}'"),
            (before, "") => write!(f, "- '{before}'"),
            (before, after) => write!(f, "'{before}' → '{after}'"),
        }
    }
}

/// Maximum number of tokens in both queries that are diffed.
///
/// For more, the whole query counts as changed, since the table would grow too large.
const MAX_DIFF_TOKENS: usize = 4_000;

/// Returns the differences between two queries; see [`NormalizedTokens::changes`].
pub fn diff(before: &str, after: &str, dialect: &Dialect) -> Vec<DiffHunk> {
    NormalizedTokens::tokenize(before, dialect).changes(&NormalizedTokens::tokenize(after, dialect))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SQLITE;

    #[test]
    fn ignores_whitespace_comments_and_case_when_comparing_queries() {
        let a = "SELECT Name  FROM t -- all\nWHERE x = 'A';";
        assert!(is_same_query(a, "select name from T where X = 'A'", &SQLITE));
        assert!(!is_same_query(a, "select name from T where X = 'a'", &SQLITE), "literals keep their case");
        assert!(
            !is_same_query("SELECT \"Name\" FROM t", "SELECT \"name\" FROM t", &SQLITE),
            "quoted names keep their case"
        );
    }

    #[test]
    fn diffs_queries_by_changed_snippets() {
        let check = |a: &str, b: &str, changes: &[&str]| {
            let found: Vec<String> = diff(a, b, &SQLITE).iter().map(DiffHunk::to_string).collect();
            assert_eq!(found, changes, "{a} / {b}");
        };
        check("SELECT id, price FROM products", "SELECT product_id, price FROM products", &["'id' → 'product_id'"]);
        check("SELECT a FROM t", "select A from t", &[]);
        check("SELECT a FROM t", "SELECT a FROM t WHERE a > 1", &["+ 'WHERE a > 1'"]);
        check("SELECT x.a, b FROM t x", "SELECT y.a, c FROM t y", &["'x' → 'y'", "'b' → 'c'", "'x' → 'y'"]);
        check("SELECT a, b FROM t", "SELECT b FROM t", &["- 'a,'"]);
    }
}
