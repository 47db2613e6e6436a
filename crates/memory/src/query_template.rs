//! Query templates: queries without identifiers and literals.
//!
//! Two queries with the same template teach a model the same thing.

use std::hash::Hasher;

use querymend_net::Fnv1aHasher;

/// Keywords and functions that are part of the template; all other words are identifiers.
#[rustfmt::skip]
const TEMPLATE_KEYWORDS: &[&str] = &[
    "abs", "all", "and", "avg", "between", "by", "case", "cast", "count", "desc", "distinct", "else", "end", "except", "exists",
    "from", "group", "having", "in", "intersect", "is", "join", "left", "length", "like", "limit", "lower", "max", "min", "not",
    "null", "offset", "on", "or", "order", "over", "partition", "recursive", "round", "select", "strftime", "substr", "sum",
    "then", "union", "upper", "when", "where", "with",
];
/// Tokens that are usually followed by a literal.
const COMPARISON_TOKENS: &[&str] = &["=", "<>", "!=", "<", ">", "<=", ">=", "like", "between"];
/// Keywords that do not change the meaning.
const IGNORED_KEYWORDS: &[&str] = &["asc", "inner", "outer"];

/// Returns a hash that is equal for queries with the same template.
///
/// Keywords, functions and the number of columns count; identifiers, aliases and literals do not.
pub fn template_hash(sql: &str) -> u64 {
    let mut hasher = Fnv1aHasher::default();
    let mut add_token = |word: &str| {
        hasher.write(word.as_bytes());
        hasher.write(b" ");
    };
    let mut rest = sql.trim().trim_end_matches(';');
    // `a.b`, `a AS b` and `a b` count as one identifier, so it is emitted only when another token
    // follows.
    let mut pending_name = false;
    // The alias or type after AS is ignored.
    let mut aliased = false;
    // Some dialects allow literals in double quotes: after a comparison, one that is not part of
    // `a.b` is a literal.
    let mut compared = false;
    while let Some(first) = rest.chars().next() {
        let length = token_length(rest, first);
        let (word, after) = rest.split_at(length);
        rest = after;
        if first.is_whitespace() || word.starts_with("--") || word.starts_with("/*") || first == ';' {
            continue;
        }
        let word_like = first.is_alphabetic() || matches!(first, '_' | '"' | '`' | '[');
        if std::mem::take(&mut aliased) && word_like {
            continue;
        }
        let value = first == '\'' || first.is_ascii_digit() || (first == '"' && compared && !rest.starts_with('.'));
        compared = COMPARISON_TOKENS.contains(&word.to_lowercase().as_str());
        if value {
            if std::mem::take(&mut pending_name) {
                add_token("_");
            }
            add_token("?");
        } else if first.is_alphabetic() || first == '_' {
            let low = word.to_lowercase();
            if low == "as" {
                aliased = true;
                continue;
            }
            if IGNORED_KEYWORDS.contains(&low.as_str()) {
                continue;
            }
            if TEMPLATE_KEYWORDS.binary_search(&low.as_str()).is_ok() {
                if std::mem::take(&mut pending_name) {
                    add_token("_");
                }
                add_token(&low);
            } else {
                pending_name = true;
            }
        } else if matches!(first, '"' | '`' | '[') || first == '.' {
            pending_name = true;
        } else {
            if std::mem::take(&mut pending_name) {
                add_token("_");
            }
            add_token(if word == "!=" { "<>" } else { word });
        }
    }
    if pending_name {
        add_token("_");
    }
    hasher.finish()
}

/// Returns the length of the first token, in bytes.
fn token_length(text: &str, first: char) -> usize {
    let until = |fits: fn(char) -> bool| text.find(|letter| !fits(letter)).unwrap_or(text.len());
    let through = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    match first {
        '\'' | '"' | '`' => {
            // A doubled quote is an escaped quote.
            let mut at = 1;
            loop {
                at = through(&text[..1], at);
                if at >= text.len() || !text[at..].starts_with(first) {
                    break at;
                }
                at += 1;
            }
        }
        '[' => through("]", 1),
        '-' if text.starts_with("--") => through("\n", 2),
        '/' if text.starts_with("/*") => through("*/", 2),
        _ if first.is_whitespace() => until(char::is_whitespace),
        _ if first.is_alphabetic() || first == '_' => until(|letter| letter.is_alphanumeric() || letter == '_'),
        _ if first.is_ascii_digit() => until(|letter| letter.is_ascii_digit() || letter == '.'),
        _ => ["<>", "!=", "<=", ">=", "||"]
            .iter()
            .find(|sign| text.starts_with(**sign))
            .map_or(first.len_utf8(), |sign| sign.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_ignore_names_and_values() {
        assert!(TEMPLATE_KEYWORDS.is_sorted());
        let same = [
            ["SELECT name FROM singer WHERE age > 20", "select t1.title from movie as t1 where t1.year > 1999 ;"],
            ["SELECT COUNT(*) FROM a", "SELECT count(*)\n-- all\nFROM `long name`"],
            ["SELECT a FROM b WHERE c = 'it''s'", "SELECT \"x y\" FROM [b c] d WHERE d.e = 'z'"],
            ["SELECT a FROM b INNER JOIN c ON b.d = c.d", "SELECT e FROM f x JOIN g y ON x.h = y.h"],
            ["SELECT a FROM b WHERE c = \"France\"", "SELECT a FROM b WHERE c = 5"],
            ["SELECT a FROM b JOIN c ON \"b\".\"d\" = \"c\".\"d\"", "SELECT a FROM b JOIN c ON b.d = c.d"],
            ["SELECT count(*) AS n FROM b", "SELECT count(*) FROM b"],
            ["SELECT a FROM b WHERE c != 1", "SELECT a FROM b WHERE c <> 2 /* not two */"],
        ];
        for [a, b] in same {
            assert_eq!(template_hash(a), template_hash(b), "{a} / {b}");
        }
        let different = [
            ["SELECT a FROM b", "SELECT a, c FROM b"],
            ["SELECT a FROM b", "SELECT max(a) FROM b"],
            ["SELECT a FROM b ORDER BY a", "SELECT a FROM b ORDER BY a DESC"],
        ];
        for [a, b] in different {
            assert_ne!(template_hash(a), template_hash(b), "{a} / {b}");
        }
        for odd in ["", "'", "\"", "[", "/*", "--", "é", "'é", "''", "'a''", "1.", "select '"] {
            template_hash(odd);
        }
    }
}
