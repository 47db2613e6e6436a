#![doc = include_str!("locking.md")]

use crate::finding::{Finding, Severity, Span};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::safety::side_effects::SideEffect;

/// The `locking` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "locking",
    group: RuleGroup::Safety,
    error_type: ErrorType::NotReadOnly,
    page: include_str!("locking.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for effect in ctx.side_effects {
        let SideEffect::Locks(place) = effect else { continue };
        // The parser's span ends before the clause.
        let end = ctx.query.span(*place).end;
        let clause = ctx.query.source[end..].to_ascii_lowercase().find("for");
        let span = clause.map_or(Span::new(end, end), |i| Span::new(end + i, end + i + 3));
        out.push(
            Finding::new(RULE.code, Severity::Error, span, "FOR", "the query locks rows, which is not read-only")
                .with_advice("Leave out FOR UPDATE / FOR SHARE."),
        );
    }
}
