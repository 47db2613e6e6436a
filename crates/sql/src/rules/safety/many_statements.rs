#![doc = include_str!("many_statements.md")]

use sqlparser::ast::Statement;

use crate::finding::{Applicability, Finding, Severity, Span, trimmed_span};
use crate::fixes;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::text::lexical::statement_starts;

/// The `many-statements` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "many-statements",
    group: RuleGroup::Safety,
    error_type: ErrorType::NotReadOnly,
    repair_order: 1,
    page: include_str!("many_statements.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let count = ctx.query.statements.len();
    if count < 2 {
        return;
    }
    let source = &ctx.query.source;
    let span = statement_starts(source)
        .get(1)
        .map_or(trimmed_span(source), |&start| Span::new(start, source.trim_end().len()));
    let mut finding =
        Finding::new(RULE.code, Severity::Error, span, "", format!("there are {count} statements; one is allowed"))
            .with_advice("Answer with exactly one statement; combine what you need in one SELECT.");
    let only_questions = ctx.query.statements.iter().all(|s| matches!(s, Statement::Query(_)));
    if only_questions && span.start > 0 {
        let why = "the first statement answers the question; the others are separate";
        finding = finding.with_fix(fixes::replace(Span::new(span.start, source.len()), "", Applicability::Likely, why));
    }
    out.push(finding);
}
