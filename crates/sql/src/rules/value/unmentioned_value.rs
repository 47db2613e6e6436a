#![doc = include_str!("unmentioned_value.md")]

use sqlparser::tokenizer::Token;

use crate::finding::{Finding, Severity};
use crate::review::whole;
use crate::rules::{Rule, Subject};
use crate::values::{Hit, fold};

/// See the page.
pub static RULE: Rule =
    Rule { code: "unmentioned-value", group: "value", page: include_str!("unmentioned_value.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let (Some(schema), Some(question)) = (subject.context.schema, subject.context.question) else { return };
    let Some(values) = schema.values().filter(|_| subject.query.statements.len() == 1) else { return };
    let query = fold(&subject.query.sql);
    let texts = texts(subject);
    let letters = |name: &str| fold(name).replace(' ', "");
    let mut told: Vec<String> = Vec::new();
    let telling = |hit: &&Hit| hit.value.trim().contains(' ');
    for hit in values.hits(question).iter().filter(telling) {
        let plain = fold(&hit.value);
        let words: Vec<&str> = plain.split(' ').collect();
        // `LIKE 'Ford%'` may well stand for the Ford Motor Company.
        let in_part = texts.iter().any(|text| text.len() > 2 && text.split(' ').all(|w| words.contains(&w)));
        let is_name = schema.tables().iter().any(|t| {
            letters(&t.name) == letters(&plain) || t.columns.iter().any(|c| letters(&c.name) == letters(&plain))
        });
        if in_part || is_name || query.contains(&plain) || told.contains(&plain) {
            continue;
        }
        let place = format!("{}.{}", hit.table, hit.column);
        out.push(
            Finding::new(
                RULE.code,
                Severity::Warning,
                whole(&subject.query.source),
                &hit.value,
                format!("the question speaks of '{}', a value of `{place}`, and the query does not", hit.value),
            )
            .advise(format!("The question speaks of '{}', which is a value of {place}: look for it there.", hit.value)),
        );
        told.push(plain);
    }
}

/// The texts that stand in the query, folded.
fn texts(subject: &Subject<'_>) -> Vec<String> {
    let text = |token: &Token| match token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Some(fold(text)),
        Token::Word(word) if word.quote_style == Some('"') => Some(fold(&word.value)),
        _ => None,
    };
    subject.query.tokens.iter().filter_map(|t| text(&t.token)).collect()
}
