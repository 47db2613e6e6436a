//! What is left of a query when its names and values are taken away: two queries with one skeleton teach a model the same.

/// Words that make the skeleton; every other word is a name.
#[rustfmt::skip]
const KEPT: &[&str] = &[
    "abs", "all", "and", "avg", "between", "by", "case", "cast", "count", "desc", "distinct", "else", "end", "except", "exists",
    "from", "group", "having", "in", "intersect", "is", "join", "left", "length", "like", "limit", "lower", "max", "min", "not",
    "null", "offset", "on", "or", "order", "over", "partition", "recursive", "round", "select", "strftime", "substr", "sum",
    "then", "union", "upper", "when", "where", "with",
];
/// Behind these a value is likely.
const COMPARED: &[&str] = &["=", "<>", "!=", "<", ">", "<=", ">=", "like", "between"];
/// Words that change nothing.
const DROPPED: &[&str] = &["asc", "inner", "outer"];

/// A number that is the same for queries with the same skeleton: keywords, functions and the number of columns are kept;
/// names, aliases and values are not.
pub fn skeleton(sql: &str) -> u64 {
    let mut sum = 0xcbf2_9ce4_8422_2325_u64;
    let mut say = |word: &str| {
        for byte in word.bytes().chain([b' ']) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    };
    let mut rest = sql.trim().trim_end_matches(';');
    // A name is said only once for `a.b`, `a AS b` and `a b`, so it waits until something else follows.
    let mut name = false;
    // What follows AS is a name, or a type, that changes nothing.
    let mut aliased = false;
    // In some dialects values stand in double quotes too: behind a comparison one that is not part of `a.b` is a value.
    let mut compared = false;
    while let Some(first) = rest.chars().next() {
        let length = token(rest, first);
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
        compared = COMPARED.contains(&word.to_lowercase().as_str());
        if value {
            if std::mem::take(&mut name) {
                say("_");
            }
            say("?");
        } else if first.is_alphabetic() || first == '_' {
            let low = word.to_lowercase();
            if low == "as" {
                aliased = true;
                continue;
            }
            if DROPPED.contains(&low.as_str()) {
                continue;
            }
            if KEPT.binary_search(&low.as_str()).is_ok() {
                if std::mem::take(&mut name) {
                    say("_");
                }
                say(&low);
            } else {
                name = true;
            }
        } else if matches!(first, '"' | '`' | '[') || first == '.' {
            name = true;
        } else {
            if std::mem::take(&mut name) {
                say("_");
            }
            say(if word == "!=" { "<>" } else { word });
        }
    }
    if name {
        say("_");
    }
    sum
}

/// How long the first token is, in bytes.
fn token(text: &str, first: char) -> usize {
    let until = |fits: fn(char) -> bool| text.find(|letter| !fits(letter)).unwrap_or(text.len());
    let through = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    match first {
        '\'' | '"' | '`' => {
            // A quote that is written twice is one inside.
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
    fn f06_names_and_values_are_no_part_of_a_skeleton() {
        assert!(KEPT.is_sorted());
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
            assert_eq!(skeleton(a), skeleton(b), "{a} / {b}");
        }
        let different = [
            ["SELECT a FROM b", "SELECT a, c FROM b"],
            ["SELECT a FROM b", "SELECT max(a) FROM b"],
            ["SELECT a FROM b ORDER BY a", "SELECT a FROM b ORDER BY a DESC"],
        ];
        for [a, b] in different {
            assert_ne!(skeleton(a), skeleton(b), "{a} / {b}");
        }
        for odd in ["", "'", "\"", "[", "/*", "--", "é", "'é", "''", "'a''", "1.", "select '"] {
            skeleton(odd);
        }
    }
}
