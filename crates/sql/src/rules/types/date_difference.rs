#![doc = include_str!("date_difference.md")]

use sqlparser::ast::BinaryOperator;

use crate::dialect::{CanonicalFunction, Unit};
use crate::finding::{Finding, Severity};
use crate::resolve::spans;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::Type;
use crate::transpile::call::CanonicalCall;

/// The `date-difference` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "date-difference",
    group: RuleGroup::Types,
    error_type: ErrorType::Unknown,
    page: include_str!("date_difference.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let dialect = ctx.context.dialect;
    if dialect.subtracts_dates {
        return;
    }
    for operation in ctx.resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Minus) {
        let kinds = [operation.left.kind, operation.right.kind];
        if !kinds.iter().all(|kind| kind.is_date_or_timestamp()) {
            continue;
        }
        let (later, earlier) = (
            spans::expression_span(ctx.query, operation.left_node),
            spans::expression_span(ctx.query, operation.right_node),
        );
        let span = later.join(earlier);
        let dates = [ctx.query.text(later), ctx.query.text(earlier)];
        let function = if kinds == [Type::Date; 2] {
            CanonicalFunction::DateDiffBoundaries(Unit::Day)
        } else {
            CanonicalFunction::SecondsBetween
        };
        let rendered = CanonicalCall::new(function, &dates).render(dialect).map(|(text, _)| text);
        let what = if function == CanonicalFunction::SecondsBetween { "seconds" } else { "days" };
        out.push(
            Finding::new(
                RULE.code,
                Severity::Warning,
                span,
                ctx.query.text(span),
                format!("a date minus a date is not a number of {what} in {}", dialect.name),
            )
            .with_advice(match &rendered {
                Some(rendered) => format!("{} does not count {what} with a minus: write {rendered}.", dialect.name),
                None => format!("{} does not count {what} with a minus. {}", dialect.name, dialect.prompt_notes),
            })
            .with_suggestion(rendered),
        );
    }
}
