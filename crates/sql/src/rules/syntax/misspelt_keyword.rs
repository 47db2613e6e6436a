#![doc = include_str!("misspelt_keyword.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, fix, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity};
use crate::near::is_slip;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "misspelt-keyword", group: "syntax", page: include_str!("misspelt_keyword.md"), check };

/// Words that clauses are made of; shorter ones are too much like names.
const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "JOIN",
    "INNER",
    "LEFT",
    "UNION",
    "DISTINCT",
    "BETWEEN",
    "LIKE",
    "DESC",
    "OFFSET",
    "EXCEPT",
    "INTERSECT",
    "EXISTS",
    "THEN",
    "ELSE",
    "WHEN",
];

/// Two words written as one.
const GLUED: &[(&str, &str)] = &[
    ("GROUPBY", "GROUP BY"),
    ("ORDERBY", "ORDER BY"),
    ("GROUP_BY", "GROUP BY"),
    ("ORDER_BY", "ORDER BY"),
    ("PARTITIONBY", "PARTITION BY"),
    ("INNERJOIN", "INNER JOIN"),
    ("LEFTJOIN", "LEFT JOIN"),
];

/// How many words are tried.
const MOST_TRIES: usize = 16;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    // Half a word at the end of an open text is cut off, not misspelt.
    let end = if broken.is_closed() { broken.end() } else { broken.end() - 1 };
    let mut found = Vec::new();
    let mut tries = 0;
    for at in 0..end {
        let Token::Word(word) = &broken.words[at].token else { continue };
        if word.quote_style.is_some() || word.keyword != Keyword::NoKeyword {
            continue;
        }
        let known = subject.context.schema.is_some_and(|s| {
            s.tables().iter().any(|t| t.name.eq_ignore_ascii_case(&word.value) || t.column(&word.value).is_some())
        });
        if known {
            continue;
        }
        let upper = word.value.to_ascii_uppercase();
        let glued = GLUED.iter().find(|(one, _)| *one == upper).map(|(_, two)| two);
        for right in glued.into_iter().chain(WORDS.iter().filter(|w| is_slip(&upper, w))) {
            let edits = vec![Edit { span: broken.words[at].span, text: (*right).to_string() }];
            tries += 1;
            if tries > MOST_TRIES {
                return;
            }
            if broken.mends(&edits) {
                found.push((at, *right, edits));
            }
        }
    }
    if found.len() > 1 {
        return;
    }
    let Some((at, right, edits)) = found.pop() else { return };
    let span = broken.words[at].span;
    let word = subject.query.text(span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            word,
            format!("`{word}` is no word of SQL (did you mean {right}?)"),
        )
        .suggest(Some(right.to_string()))
        .advise(format!("{word} should be {right}."))
        .mend(fix(
            edits,
            Applicability::Likely,
            format!("with {right} the query is whole, and nothing is called {word}"),
        )),
    );
}
