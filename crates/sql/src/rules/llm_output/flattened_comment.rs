#![doc = include_str!("flattened_comment.md")]

use crate::extract::restore_swallowed_clauses;
use crate::finding::{Finding, Severity};
use crate::parse::parsed_query::parse;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::llm_output;

/// The `flattened-comment` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "flattened-comment",
    group: RuleGroup::LlmOutput,
    error_type: ErrorType::SyntaxError,
    page: include_str!("flattened_comment.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    if ctx.query.steps.iter().any(|step| step.code == RULE.code) {
        let message = "a newline was lost, so a comment swallows the rest of the query";
        let why = "every name resolves when the comment ends before the next clause";
        return llm_output::report_extraction(ctx, RULE.code, message, why, out);
    }
    // The query is valid as it is: only its author knows whether the comment was intended.
    let query = ctx.query;
    let parses = |sql: &str| parse(sql, ctx.context.dialect, ctx.context.policy).is_ok();
    let steps = if query.failure.is_none() { restore_swallowed_clauses(&query.source, &parses) } else { Vec::new() };
    let Some(comment) = steps.first().and_then(|_| query.comments.first()) else { return };
    let text: String = query.text(comment.span).chars().take(60).collect();
    let message = format!("the comment `{text}` contains SQL, which is not run");
    out.push(
        Finding::new(RULE.code, Severity::Info, comment.span, text, message)
            .with_advice("If a line end was lost, write it again before the clause; else nothing is wrong."),
    );
}
