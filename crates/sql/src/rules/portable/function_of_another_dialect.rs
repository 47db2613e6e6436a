#![doc = include_str!("function_of_another_dialect.md")]

use sqlparser::ast::FunctionArguments;

use crate::finding::{Finding, Severity};
use crate::fixes;
use crate::fixes::transpile::calls::{is_foreign_call, transpile_call};
use crate::fixes::transpile::dates::{current_time_fix, is_current_time_keyword, with_day_offset};
use crate::resolve::{ColumnBinding, ColumnReference, FunctionCall};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::names::unknown_function::{dialects_with_function, is_unknown_function};

/// The `function-of-another-dialect` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "function-of-another-dialect",
    group: RuleGroup::Portable,
    error_type: ErrorType::FunctionNotFound,
    page: include_str!("function_of_another_dialect.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let dialect = ctx.context.dialect;
    check_current_time_keywords(ctx, out);
    for call in &ctx.resolution.calls {
        if call.definition.is_some() && is_foreign_call(call, ctx) {
            let name = call.lower_name.to_uppercase();
            let message = format!("{} has {name}, but not with these arguments", dialect.name);
            let span = ctx.query.span(call.span);
            let mut finding = Finding::new(RULE.code, Severity::Error, span, &call.lower_name, message).with_advice(
                format!("{name} does not take these arguments in {}. {}", dialect.name, dialect.prompt_notes),
            );
            finding.fixes.extend(transpile_call(call, ctx));
            out.push(finding);
            continue;
        }
        if !is_unknown_function(call, ctx) {
            continue;
        }
        let elsewhere = dialects_with_function(call, ctx);
        if elsewhere.is_empty() {
            continue;
        }
        let name = call.lower_name.to_uppercase();
        let owners = match elsewhere.as_slice() {
            [only] => format!("{only} has"),
            several => format!("{} have", several.join(", ")),
        };
        let mut finding = Finding::new(
            RULE.code,
            Severity::Error,
            ctx.query.span(call.span),
            &call.lower_name,
            format!("{} has no function {name} ({owners} it)", dialect.name),
        )
        .with_advice(format!("{name} does not exist in {}. {}", dialect.name, dialect.prompt_notes));
        finding.fixes.extend(transpile_call(call, ctx));
        out.push(finding);
    }
}

/// Reports keywords for the current time that are written without parentheses.
fn check_current_time_keywords(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let dialect = ctx.context.dialect;
    let names =
        ctx.resolution.references.iter().filter(|r| is_current_time(r)).map(|r| (r.span, r.name.value.as_str()));
    let bare = |call: &&FunctionCall<'_>| {
        let alone = call.node.is_some_and(|n| matches!(n.args, FunctionArguments::None));
        alone && call.definition.is_none() && is_current_time_keyword(&call.lower_name)
    };
    let calls = ctx.resolution.calls.iter().filter(bare).map(|call| (call.span, call.lower_name.as_str()));
    for (place, name) in names.chain(calls) {
        let (span, name) = (ctx.query.span(place), name.to_uppercase());
        let message = format!("{} has no keyword {name}", dialect.name);
        let mut finding = Finding::new(RULE.code, Severity::Error, span, &name, message)
            .with_advice(format!("{name} does not exist in {}. {}", dialect.name, dialect.prompt_notes));
        if fixes::within_fix_budget(ctx, out) {
            finding.fixes.extend(current_time_fix(span, ctx));
            finding.span = with_day_offset(span, &finding.fixes);
        }
        out.push(finding);
    }
}

/// Returns whether a name that is not a column is another dialect's keyword for the current time.
pub(crate) fn is_current_time(reference: &ColumnReference<'_>) -> bool {
    let alone = reference.qualifier.is_none() && reference.name.quote_style.is_none();
    matches!(reference.binding, ColumnBinding::Unresolved) && alone && is_current_time_keyword(&reference.name.value)
}
