//! Queries compared token by token: whether two are the same, and what changed between them.

use serde::Serialize;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};

use crate::dialect::Dialect;

/// The tokens of a query as far as they mean something: white space and comments are gone, keywords and unquoted names
/// are upper case, literals and quoted names are as written. Text that cannot be split into tokens is
/// compared word by word.
pub fn normalise(sql: &str, dialect: &Dialect) -> Vec<String> {
    let Ok(tokens) = Tokenizer::new(dialect.grammar, sql).tokenize() else {
        return sql.split_whitespace().map(str::to_string).collect();
    };
    let mut out: Vec<String> = Vec::with_capacity(tokens.len());
    for token in tokens {
        match token {
            Token::Whitespace(_) | Token::EOF => {}
            Token::Word(word) if word.quote_style.is_none() => out.push(word.value.to_uppercase()),
            other => out.push(other.to_string()),
        }
    }
    while out.last().is_some_and(|t| t == ";") {
        out.pop();
    }
    out
}

/// The tokens of a query exactly as written, without white space, comments and semicolons at the end.
pub(crate) fn exact(sql: &str, dialect: &Dialect) -> Option<Vec<Token>> {
    let mut tokens = Tokenizer::new(dialect.grammar, sql).tokenize().ok()?;
    tokens.retain(|t| !matches!(t, Token::Whitespace(_) | Token::EOF));
    while tokens.last() == Some(&Token::SemiColon) {
        tokens.pop();
    }
    Some(tokens)
}

/// Whether two queries are the same but for white space, comments and the case of keywords and unquoted names.
pub fn same(a: &str, b: &str, dialect: &Dialect) -> bool {
    a == b || normalise(a, dialect) == normalise(b, dialect)
}

/// One replaced stretch: what stood there and what stands there now. One side may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// What changed from one query to another, by the longest common run of tokens, with the snippets as they were written.
pub fn diff(before: &str, after: &str, dialect: &Dialect) -> Vec<Change> {
    let (a, b) = (pieces(before, dialect), pieces(after, dialect));
    // Equal beginnings and ends are the rule, so the table is only built for the middle.
    let head = a.iter().zip(&b).take_while(|(x, y)| x.key == y.key).count();
    let tail = a[head..].iter().rev().zip(b[head..].iter().rev()).take_while(|(x, y)| x.key == y.key).count();
    let (a, b) = (&a[head..a.len() - tail], &b[head..b.len() - tail]);
    if a.is_empty() && b.is_empty() {
        return Vec::new();
    }
    if a.len() + b.len() > MOST_TOKENS {
        return vec![Change { before: joined(a), after: joined(b) }];
    }
    let mut longest = vec![vec![0u32; b.len() + 1]; a.len() + 1];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            longest[i][j] =
                if a[i].key == b[j].key { longest[i + 1][j + 1] + 1 } else { longest[i + 1][j].max(longest[i][j + 1]) };
        }
    }
    let mut changes = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let (from_i, from_j) = (i, j);
        while i < a.len() && j < b.len() && a[i].key != b[j].key || (i < a.len()) != (j < b.len()) {
            if j == b.len() || (i < a.len() && longest[i + 1][j] >= longest[i][j + 1]) {
                i += 1;
            } else {
                j += 1;
            }
        }
        if i > from_i || j > from_j {
            changes.push(Change { before: joined(&a[from_i..i]), after: joined(&b[from_j..j]) });
        }
        if i < a.len() && j < b.len() {
            i += 1;
            j += 1;
        }
    }
    changes
}

struct Piece {
    key: String,
    text: String,
    spaced: bool,
}

fn pieces(sql: &str, dialect: &Dialect) -> Vec<Piece> {
    let Ok(tokens) = Tokenizer::new(dialect.grammar, sql).tokenize() else {
        return sql.split_whitespace().map(|w| Piece { key: w.into(), text: w.into(), spaced: true }).collect();
    };
    let mut out = Vec::new();
    let mut spaced = false;
    for token in tokens {
        match &token {
            Token::Whitespace(Whitespace::SingleLineComment { .. } | Whitespace::MultiLineComment(_)) => spaced = true,
            Token::Whitespace(_) => spaced = true,
            Token::EOF => {}
            Token::Word(word) if word.quote_style.is_none() => {
                let text = if word.keyword == Keyword::NoKeyword { word.value.clone() } else { token.to_string() };
                out.push(Piece { key: word.value.to_uppercase(), text, spaced });
                spaced = false;
            }
            _ => {
                out.push(Piece { key: token.to_string(), text: token.to_string(), spaced });
                spaced = false;
            }
        }
    }
    out
}

fn joined(pieces: &[Piece]) -> String {
    let mut out = String::new();
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 && piece.spaced {
            out.push(' ');
        }
        out.push_str(&piece.text);
    }
    out
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
