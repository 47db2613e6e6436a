#![doc = include_str!("missing_group.md")]

use crate::coverage::is_named;
use crate::finding::{Finding, Severity};
use crate::question::{QuestionWord, question_words};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `missing-group` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "missing-group",
    group: RuleGroup::Question,
    error_type: ErrorType::Unknown,
    page: include_str!("missing_group.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(question) = ctx.context.question else { return };
    let resolution = ctx.resolution;
    let Some(outer) = resolution.blocks.first() else { return };
    let is_grouped =
        resolution.blocks.iter().any(|b| b.is_grouped || b.is_distinct) || resolution.calls.iter().any(|c| c.has_over);
    let is_one_row = outer.has_aggregates && (0..outer.items.len()).all(|item| ctx.item_has_aggregate(0, item));
    if is_grouped || !is_one_row {
        return;
    }
    // `miles per gallon` is a measure, unless the schema has something called gallon.
    let is_group = |group: &String| ctx.context.schema.is_none_or(|schema| is_named(group, schema));
    if let Some(group) = grouping_noun(&question_words(question)).filter(is_group) {
        let message = format!("the question asks for a result per {group}, and the query returns one row for all");
        let advice = format!("Select what identifies each {group} and GROUP BY it.");
        let span = ctx.query.span(outer.select_span);
        out.push(Finding::new(RULE.code, Severity::Warning, span, &group, message).with_advice(advice));
    }
}

/// Returns the noun after "for each", "does each" or "per".
fn grouping_noun(words: &[QuestionWord]) -> Option<String> {
    let lower: Vec<&str> = words.iter().map(|w| w.lower.as_str()).collect();
    // "The average number of orders per customer" is a single number.
    let is_average = lower.iter().any(|word| matches!(*word, "average" | "avg" | "mean" | "ratio" | "rate"));
    let before = ["for", "in", "of", "by", "to", "from", "does", "do", "did", "has", "have", "had"];
    let begins = |at: usize| match lower[at] {
        "each" | "every" => at > 0 && before.contains(&lower[at - 1]),
        "per" => !is_average,
        _ => false,
    };
    let at = (0..lower.len()).find(|&at| begins(at))?;
    words.get(at + 1).filter(|w| w.lower.starts_with(char::is_alphabetic)).map(|w| w.text.clone())
}
