//! Queries compared token by token: whether two are the same, and what changed between them.

use std::fmt::Write;
use std::ops::Range;

use schemars::JsonSchema;
use serde::Serialize;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::dialect::Dialect;

/// The tokens of a query as far as they mean something: white space and comments are gone, keywords and unquoted names
/// are upper case, literals and quoted names are as written. Text that cannot be split into tokens is
/// compared word by word.
///
/// A query is compared with several others; what is costly, splitting it up, is done once.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    /// What is compared: each token followed by a NUL, which no token begins or ends with.
    keys: String,
    /// The same as written.
    texts: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Where it ends in the keys, before the NUL, and in the texts.
    key_end: usize,
    text_end: usize,
    spaced: bool,
}

impl Tokens {
    /// Splits a query up.
    pub fn of(sql: &str, dialect: &Dialect) -> Self {
        match Tokenizer::new(dialect.grammar, sql).tokenize_with_location() {
            Ok(tokens) => Self::of_parsed(&tokens, sql.len()),
            Err(_) => {
                let mut out = Self::default();
                sql.split_whitespace().for_each(|word| out.push(word, true, false));
                out
            }
        }
    }

    /// Takes what was split up already, of a text of so many bytes. White space may have been left out.
    pub(crate) fn of_parsed(tokens: &[TokenWithSpan], bytes: usize) -> Self {
        let mut out = Self {
            keys: String::with_capacity(bytes * 3 / 2),
            texts: String::with_capacity(bytes),
            pieces: Vec::with_capacity(tokens.len()),
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
                    // Writing to a text never fails.
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
        self.pieces.push(Piece { key_end: self.keys.len(), text_end: self.texts.len(), spaced });
        self.keys.push('\0');
    }

    /// The same for two queries that are the same but for white space, comments and the case of keywords and unquoted
    /// names.
    pub fn identity(&self) -> &str {
        self.keys.trim_end_matches(";\0")
    }

    fn len(&self) -> usize {
        self.pieces.len()
    }

    fn key(&self, i: usize) -> &str {
        let start = if i == 0 { 0 } else { self.pieces[i - 1].key_end + 1 };
        &self.keys[start..self.pieces[i].key_end]
    }

    /// A stretch as it was written.
    fn joined(&self, stretch: Range<usize>) -> String {
        let mut out = String::new();
        for i in stretch.clone() {
            if i > stretch.start && self.pieces[i].spaced {
                out.push(' ');
            }
            let start = if i == 0 { 0 } else { self.pieces[i - 1].text_end };
            out.push_str(&self.texts[start..self.pieces[i].text_end]);
        }
        out
    }

    /// What changed from this query to another, by the longest common run of tokens, with the snippets as they were written.
    pub fn changes(&self, after: &Tokens) -> Vec<Change> {
        let before = self;
        // Equal beginnings and ends are the rule, so the table is only built for the middle.
        let shorter = before.len().min(after.len());
        let head = (0..shorter).take_while(|&i| before.key(i) == after.key(i)).count();
        let from_end = |i: &usize| before.key(before.len() - 1 - i) == after.key(after.len() - 1 - i);
        let tail = (0..shorter - head).take_while(from_end).count();
        let (m, n) = (before.len() - tail - head, after.len() - tail - head);
        let replaced = |i: Range<usize>, j: Range<usize>| Change {
            before: before.joined(head + i.start..head + i.end),
            after: after.joined(head + j.start..head + j.end),
        };
        if m == 0 && n == 0 {
            return Vec::new();
        }
        if m == 0 || n == 0 || m + n > MOST_TOKENS {
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

/// The tokens of a query, one by one, as [`Tokens::identity`] compares them.
pub fn normalise(sql: &str, dialect: &Dialect) -> Vec<String> {
    let tokens = Tokens::of(sql, dialect);
    let mut out: Vec<String> = (0..tokens.len()).map(|i| tokens.key(i).to_string()).collect();
    while out.last().is_some_and(|t| t == ";") {
        out.pop();
    }
    out
}

/// The tokens of a query exactly as written, without white space, comments and the semicolons around it.
pub(crate) fn exact(sql: &str, dialect: &Dialect) -> Option<Vec<Token>> {
    let mut tokens = Tokenizer::new(dialect.grammar, sql).tokenize().ok()?;
    tokens.retain(|t| !matches!(t, Token::Whitespace(_) | Token::EOF));
    while tokens.last() == Some(&Token::SemiColon) {
        tokens.pop();
    }
    let before = tokens.iter().take_while(|token| **token == Token::SemiColon).count();
    tokens.drain(..before);
    Some(tokens)
}

/// Whether two queries are the same but for white space, comments and the case of keywords and unquoted names.
pub fn same(a: &str, b: &str, dialect: &Dialect) -> bool {
    a == b || Tokens::of(a, dialect).identity() == Tokens::of(b, dialect).identity()
}

/// One replaced stretch: what stood there and what stands there now. One side may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Change {
    /// What stood there.
    pub before: String,
    /// What stands there now.
    pub after: String,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.before.as_str(), self.after.as_str()) {
            ("", after) => write!(f, "+ '{after}'"),
            (before, "") => write!(f, "- '{before}'"),
            (before, after) => write!(f, "'{before}' → '{after}'"),
        }
    }
}

/// Beyond so many tokens on both sides the whole query counts as changed: the table would grow too large.
const MOST_TOKENS: usize = 4_000;

/// What changed from one query to another; see [`Tokens::changes`].
pub fn diff(before: &str, after: &str, dialect: &Dialect) -> Vec<Change> {
    Tokens::of(before, dialect).changes(&Tokens::of(after, dialect))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SQLITE;

    #[test]
    fn q05_white_space_comments_and_case_do_not_make_a_query_another() {
        let a = "SELECT Name  FROM t -- all\nWHERE x = 'A';";
        assert!(same(a, "select name from T where X = 'A'", &SQLITE));
        assert!(!same(a, "select name from T where X = 'a'", &SQLITE), "literals keep their case");
        assert!(!same("SELECT \"Name\" FROM t", "SELECT \"name\" FROM t", &SQLITE), "quoted names keep their case");
    }

    #[test]
    fn q11_a_diff_shows_the_snippets_that_changed() {
        let check = |a: &str, b: &str, changes: &[&str]| {
            let found: Vec<String> = diff(a, b, &SQLITE).iter().map(Change::to_string).collect();
            assert_eq!(found, changes, "{a} / {b}");
        };
        check("SELECT id, price FROM products", "SELECT product_id, price FROM products", &["'id' → 'product_id'"]);
        check("SELECT a FROM t", "select A from t", &[]);
        check("SELECT a FROM t", "SELECT a FROM t WHERE a > 1", &["+ 'WHERE a > 1'"]);
        check("SELECT x.a, b FROM t x", "SELECT y.a, c FROM t y", &["'x' → 'y'", "'b' → 'c'", "'x' → 'y'"]);
        check("SELECT a, b FROM t", "SELECT b FROM t", &["- 'a,'"]);
    }
}
