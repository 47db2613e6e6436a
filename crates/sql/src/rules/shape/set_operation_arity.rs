#![doc = include_str!("set_operation_arity.md")]

use crate::finding::{Finding, Severity};
use crate::resolve::ArityKind;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `set-operation-arity` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "set-operation-arity",
    group: RuleGroup::Shape,
    error_type: ErrorType::Cardinality,
    page: include_str!("set_operation_arity.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for arity in ctx.resolution.arity_mismatches.iter().filter(|a| a.kind == ArityKind::SetOperation) {
        let (left, right) = (arity.left, arity.right);
        out.push(
            Finding::new(
                "set-operation-arity",
                Severity::Error,
                ctx.query.span(arity.span),
                "",
                format!("the first part returns {}, this one {right}", column_count(left)),
            )
            .with_advice(format!(
                "Both sides of the set operation must select the same number of columns: {left} and {right} now."
            )),
        );
    }
}

/// Formats a number of columns: `1 column`, `2 columns`.
pub(super) fn column_count(count: usize) -> String {
    format!("{count} column{}", if count == 1 { "" } else { "s" })
}
