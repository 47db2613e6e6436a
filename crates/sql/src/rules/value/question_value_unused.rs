#![doc = include_str!("question_value_unused.md")]

use sqlparser::tokenizer::Token;

use crate::finding::{Finding, Severity, trimmed_span};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::value_index::{ValueMention, fold};

/// The `question-value-unused` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "question-value-unused",
    group: RuleGroup::Value,
    error_type: ErrorType::Unknown,
    page: include_str!("question_value_unused.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let (Some(schema), Some(question)) = (ctx.context.schema, ctx.context.question) else { return };
    let Some(values) = schema.value_index().filter(|_| ctx.query.statements.len() == 1) else { return };
    let query = fold(&ctx.query.sql);
    let texts = folded_literals(ctx);
    let letters = |name: &str| fold(name).replace(' ', "");
    let mut reported: Vec<String> = Vec::new();
    let is_distinctive = |hit: &&ValueMention| hit.value.trim().contains(' ');
    for hit in values.mentions(question).iter().filter(is_distinctive) {
        let plain = fold(&hit.value);
        let words: Vec<&str> = plain.split(' ').collect();
        // `LIKE 'Ford%'` may well mean the Ford Motor Company.
        let in_part = texts.iter().any(|text| text.len() > 2 && text.split(' ').all(|w| words.contains(&w)));
        let is_name = schema.tables().iter().any(|t| {
            letters(&t.name) == letters(&plain) || t.columns.iter().any(|c| letters(&c.name) == letters(&plain))
        });
        if in_part || is_name || query.contains(&plain) || reported.contains(&plain) {
            continue;
        }
        let place = format!("{}.{}", hit.table, hit.column);
        out.push(
            Finding::new(
                RULE.code,
                Severity::Warning,
                trimmed_span(&ctx.query.source),
                &hit.value,
                format!("the question mentions '{}', a value of `{place}`, but the query does not", hit.value),
            )
            .with_advice(format!(
                "The question speaks of '{}', which is a value of {place}: look for it there.",
                hit.value
            )),
        );
        reported.push(plain);
    }
}

/// Returns the text literals of the query, folded.
fn folded_literals(ctx: &RuleContext<'_>) -> Vec<String> {
    let text = |token: &Token| match token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => Some(fold(text)),
        Token::Word(word) if word.quote_style == Some('"') => Some(fold(&word.value)),
        _ => None,
    };
    ctx.query.tokens.iter().filter_map(|t| text(&t.token)).collect()
}
