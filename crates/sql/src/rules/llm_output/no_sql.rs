#![doc = include_str!("no_sql.md")]

use crate::finding::{Finding, Severity, trimmed_span};
use crate::parse::parsed_query::ParseFailure;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `no-sql` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "no-sql",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("no_sql.md"),
    check,
    ..Rule::DEFAULTS
};

/// Advice to a model that wrote no query.
pub const ADVICE: &str = "Answer with one SQL query and nothing else.";

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    if ctx.query.failure != Some(ParseFailure::Empty) {
        return;
    }
    let span = trimmed_span(&ctx.query.source);
    out.push(Finding::new("no-sql", Severity::Error, span, "", "there is no SQL in the text").with_advice(ADVICE));
}
