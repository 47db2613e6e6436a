#![doc = include_str!("most_without_count.md")]

use crate::coverage::{name_words, singular};
use crate::finding::{Finding, Severity};
use crate::question::question_words;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `most-without-count` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "most-without-count",
    group: RuleGroup::Question,
    error_type: ErrorType::Unknown,
    page: include_str!("most_without_count.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let (Some(schema), Some(question)) = (ctx.context.schema, ctx.context.question) else { return };
    let resolution = ctx.resolution;
    let Some(outer) = resolution.blocks.first() else { return };
    if resolution.calls.iter().any(|call| call.is_aggregate || call.has_over) {
        return;
    }
    let words = question_words(question);
    let is_most = |word: &str| matches!(word, "most" | "fewest");
    let counted = words.windows(2).filter(|pair| is_most(&pair[0].lower)).map(|pair| &pair[1]);
    for noun in counted.filter(|noun| noun.lower.ends_with('s')) {
        let one = singular(&noun.lower);
        let is_named = |name: &str| name_words(name).last().is_some_and(|last| singular(last) == one);
        let has_column =
            resolution.references.iter().any(|r| name_words(&r.name.value).iter().any(|w| singular(w) == one));
        if !has_column && schema.tables().iter().any(|table| is_named(&table.name)) {
            let message = format!("the question asks for the most {}, and the query counts nothing", noun.lower);
            let advice = format!("Count the {} of each group and order by that count.", noun.lower);
            let span = ctx.query.span(outer.select_span);
            out.push(Finding::new(RULE.code, Severity::Warning, span, &noun.lower, message).with_advice(advice));
        }
    }
}
