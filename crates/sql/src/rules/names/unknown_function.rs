#![doc = include_str!("unknown_function.md")]

use sqlparser::ast::FunctionArguments;

use crate::dialect::{DIALECTS, Dialect};
use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::fixes;
use crate::fixes::transpile::calls::{alternative_call, concat_skipping_null, transpile_call};
use crate::fixes::transpile::dates::{is_current_time_keyword, with_day_offset};
use crate::resolve::FunctionCall;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::names::did_you_mean;
use crate::text::similarity::{best_match, is_typo};
use crate::transpile::parse_call::has_canonical_form;

/// The `unknown-function` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unknown-function",
    group: RuleGroup::Names,
    error_type: ErrorType::FunctionNotFound,
    page: include_str!("unknown_function.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of unknown functions for which the most similar known one is searched.
const MAX_COMPARED_FUNCTIONS: usize = 20;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let dialect = ctx.context.dialect;
    for call in ctx.resolution.calls.iter().filter(|c| is_rejected_by_engine(c, ctx)) {
        let name = &call.lower_name;
        let span = ctx.query.span(call.span);
        let message = format!("this database has no function `{name}`");
        let mut finding = Finding::new("unknown-function", Severity::Error, span, name, message)
            .with_advice(format!("This database has no function {name}: say it in another way."));
        if fixes::within_fix_budget(ctx, out) {
            finding.fixes.extend(alternative_call(call, ctx));
        }
        out.push(finding);
    }
    let first = out.len();
    for call in &ctx.resolution.calls {
        // A CAST that was parsed as a call is reported by `cast-syntax`.
        if call.lower_name == "cast" || !is_unknown_function(call, ctx) || !dialects_with_function(call, ctx).is_empty()
        {
            continue;
        }
        let name = &call.lower_name;
        // Thousands of names are compared, which does not help a query with this many unknown
        // functions.
        let few = out.len() - first < MAX_COMPARED_FUNCTIONS;
        let best_match = few.then(|| best_match(name, dialect.functions.names().filter(|n| n.len() > 2))).flatten();
        // It may exist if users can define functions and the schema does not list them.
        let may_exist = dialect.user_functions && !ctx.context.schema.is_some_and(|s| s.has_function_list());
        let severity = if may_exist { Severity::Warning } else { Severity::Error };
        let mut finding = Finding::new(
            "unknown-function",
            severity,
            ctx.query.span(call.span),
            name,
            format!("{}{} has no function `{name}`{}", dialect.name, itself_suffix(dialect), did_you_mean(best_match)),
        )
        .with_suggestion(best_match.map(str::to_string))
        .with_advice(format!(
            "{}{} has no function {name}{}.",
            dialect.name,
            itself_suffix(dialect),
            best_match.map_or(String::new(), |n| format!("; the nearest is {n}"))
        ));
        if few && fixes::within_fix_budget(ctx, out) {
            finding.fixes.extend(transpile_call(call, ctx));
            if is_current_time_keyword(name) {
                finding.span = with_day_offset(finding.span, &finding.fixes);
            }
            finding.fixes.extend(column_of_alias(call, ctx));
            // A known function that has no equivalent here is not misspelled.
            finding.fixes.extend(typo_fix(call, ctx).filter(|_| !has_canonical_form(name)));
        }
        out.push(finding);
    }
}

/// Returns a fix for `t(x)` if `t` in FROM has a column `x`: a period was meant.
fn column_of_alias(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    let resolution = ctx.resolution;
    let (whole, arguments) = fixes::call_span(ctx, ctx.query.span(call.span))?;
    let [argument] = arguments.as_slice() else { return None };
    let column = ctx.query.text(*argument).trim();
    let sources = resolution.visible_sources(call.block?);
    let source =
        sources.into_iter().find(|&s| resolution.sources[s].display_name().eq_ignore_ascii_case(&call.lower_name))?;
    let name = column.trim_matches(['`', '"']);
    resolution.sources[source].column_names().iter().find(|c| c.eq_ignore_ascii_case(name))?;
    let called = &ctx.query.source[whole.start..][..call.lower_name.len()];
    let why = format!("`{called}` is not a function here but a table in FROM, which has the column `{name}`");
    Some(fixes::replace(whole, format!("{called}.{column}"), Applicability::Likely, why))
}

/// Returns a fix if exactly one function of the dialect is a single edit away.
fn typo_fix(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Option<Fix> {
    (call.lower_name.len() > 3).then_some(())?;
    let dialect = ctx.context.dialect;
    let mut near = dialect.functions.names().filter(|name| is_typo(&call.lower_name, name));
    let only = near.next().filter(|_| near.next().is_none())?;
    let span = ctx.query.span(call.span);
    let shouted = ctx.query.text(span).chars().all(|c| !c.is_lowercase());
    let text = if shouted { only.to_uppercase() } else { only.to_string() };
    let why = format!("`{only}` is the only function of {} that differs in one letter", dialect.name);
    Some(fixes::replace(span, text, Applicability::Likely, why))
}

/// Returns a suffix that leaves room for functions defined in the database.
fn itself_suffix(dialect: &Dialect) -> &'static str {
    if dialect.user_functions { " itself" } else { "" }
}

/// Returns whether the database rejected a function that its dialect has: it is older, or was built
/// without it.
fn is_rejected_by_engine(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> bool {
    let named = ctx
        .engine_error
        .filter(|r| ErrorType::of(r.finding) == ErrorType::FunctionNotFound)
        .and_then(|r| r.name("function"));
    let bare = named.map(|n| n.split('(').next().unwrap_or(n).trim_matches(['`', '"', '\'', ' ']));
    let bare = bare.map(|n| n.rsplit('.').next().unwrap_or(n));
    // A database that lacks one recent function is too old for all of them.
    bare.is_some_and(|n| {
        n.eq_ignore_ascii_case(&call.lower_name)
            || is_recent_function(n, ctx) && is_recent_function(&call.lower_name, ctx)
    }) && !is_unknown_function(call, ctx)
}

/// Returns whether a function was added late to the dialect.
fn is_recent_function(name: &str, ctx: &RuleContext<'_>) -> bool {
    ctx.context.dialect.recent_functions.iter().any(|newer| newer.eq_ignore_ascii_case(name))
}

/// Rewrites the first recent function in a form that older databases support as well.
pub(crate) fn compatibility_fix(ctx: &RuleContext<'_>) -> Option<Fix> {
    let own = |call: &&FunctionCall<'_>| !ctx.context.schema.is_some_and(|s| s.has_function(&call.lower_name));
    let newer = ctx.resolution.calls.iter().filter(|call| is_recent_function(&call.lower_name, ctx)).filter(own);
    newer.filter_map(|call| concat_skipping_null(call, ctx).or_else(|| alternative_call(call, ctx))).next()
}

/// Returns whether neither the dialect, nor the schema, nor the policy knows the function.
pub(crate) fn is_unknown_function(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> bool {
    let name = call.lower_name.as_str();
    let no_parentheses = call.node.is_some_and(|n| matches!(n.args, FunctionArguments::None));
    call.definition.is_none()
        && !no_parentheses
        && !ctx.context.schema.is_some_and(|s| s.has_function(name))
        && !ctx.context.policy.allow_functions.iter().any(|f| f.eq_ignore_ascii_case(name))
}

/// Returns the other dialects that have the function.
pub(crate) fn dialects_with_function(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> Vec<&'static str> {
    let own = ctx.context.dialect;
    DIALECTS.iter().filter(|d| ***d != *own && d.functions.get(&call.lower_name).is_some()).map(|d| d.name).collect()
}
