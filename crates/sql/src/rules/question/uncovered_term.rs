#![doc = include_str!("uncovered_term.md")]

use crate::coverage::{missing_subject, uncovered_qualifiers};
use crate::finding::{Finding, Severity, trimmed_span};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::value_index::fold;

/// The `uncovered-term` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "uncovered-term",
    group: RuleGroup::Question,
    error_type: ErrorType::Unknown,
    page: include_str!("uncovered_term.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let (Some(schema), Some(question)) = (ctx.context.schema, ctx.context.question) else { return };
    if ctx.query.statements.len() != 1 {
        return;
    }
    let mut report = |term: &str, message: String, advice: String| {
        let span = trimmed_span(&ctx.query.source);
        out.push(Finding::new(RULE.code, Severity::Warning, span, term, message).with_advice(advice));
    };
    // A term that the query itself spells out is an interpretation that a reader can see.
    let query = fold(&ctx.query.sql);
    if let Some(missing) = missing_subject(question, &[&query], schema) {
        let advice = format!("The database has no {}: do not answer for another table.", missing.subject);
        report(&missing.subject, missing.message(), advice);
    }
    for term in uncovered_qualifiers(question, &[&query], schema) {
        let message = format!("no table, column or value covers `{term}`, and the query leaves it out");
        report(
            &term,
            message,
            format!("The question mentions {term}: find the column for it, or say that there is none."),
        );
    }
}
