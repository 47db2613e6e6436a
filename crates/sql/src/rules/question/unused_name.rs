#![doc = include_str!("unused_name.md")]

use crate::coverage::unknown_proper_names;
use crate::finding::{Finding, Severity, trimmed_span};
use crate::question::question_words;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::value_index::fold;

/// The `unused-name` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unused-name",
    group: RuleGroup::Question,
    error_type: ErrorType::Unknown,
    page: include_str!("unused_name.md"),
    check,
    ..Rule::DEFAULTS
};

/// Four-digit numbers that are taken for years.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=2099;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let (Some(schema), Some(question)) = (ctx.context.schema, ctx.context.question) else { return };
    if ctx.query.statements.len() != 1 {
        return;
    }
    let query = fold(&ctx.query.sql);
    let words = question_words(question);
    let is_year = |word: &str| word.len() == 4 && word.parse().is_ok_and(|year| YEARS.contains(&year));
    let years = words.iter().map(|w| w.text.as_str()).filter(|word| is_year(word) && !query.contains(*word));
    let mut terms: Vec<String> = years.map(str::to_string).collect();
    let is_used = |name: &str| fold(name).split(' ').any(|word| query.contains(word));
    terms.extend(unknown_proper_names(question, &[&query], schema).into_iter().filter(|name| !is_used(name)));
    // Values of the database that the question mentions and the query does not use.
    let hits = schema.value_index().map(|values| values.mentions(question)).unwrap_or_default();
    let unused = hits.iter().filter(|hit| hit.is_distinctive && !hit.value.is_empty() && !is_used(&hit.value));
    terms.extend(unused.map(|hit| question[hit.start..hit.end].to_string()));
    terms.sort_unstable();
    terms.dedup();
    for term in terms {
        let message = format!("the question mentions {term}, but no condition of the query uses it");
        let advice = format!("The question is restricted to {term}: add the condition, or say that no column has it.");
        let span = trimmed_span(&ctx.query.source);
        out.push(Finding::new(RULE.code, Severity::Warning, span, &term, message).with_advice(advice));
    }
}
