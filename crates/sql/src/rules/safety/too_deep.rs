#![doc = include_str!("too_deep.md")]

use crate::finding::{Finding, Severity};
use crate::parse::parsed_query::ParseFailure;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `too-deep` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "too-deep",
    group: RuleGroup::Safety,
    error_type: ErrorType::ResourceLimit,
    page: include_str!("too_deep.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(ParseFailure::LimitExceeded(why)) = &ctx.query.failure else { return };
    let span = crate::finding::Span::new(0, ctx.query.source.len().min(1));
    out.push(
        Finding::new("too-deep", Severity::Error, span, "", format!("the query is not analyzed: {why}"))
            .with_advice("Write a much shorter query."),
    );
}
