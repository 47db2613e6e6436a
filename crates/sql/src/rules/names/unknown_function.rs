#![doc = include_str!("unknown_function.md")]

use sqlparser::ast::FunctionArguments;

use crate::dialect::meaning::is_meant;
use crate::dialect::{DIALECTS, Dialect, ErrorType};
use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::mend;
use crate::near::{is_slip, nearest};
use crate::rules::names::meant;
use crate::rules::portable::function_of_another_dialect::with_days;
use crate::rules::portable::moments::is_present;
use crate::rules::portable::rephrase::{joined_without_null, rephrase, say_otherwise};
use crate::rules::{Rule, Subject};
use crate::scope::Call;

/// See the page.
pub static RULE: Rule =
    Rule { code: "unknown-function", group: "names", page: include_str!("unknown_function.md"), check };

/// For so many unknown functions the nearest known one is looked for.
const MOST_COMPARED: usize = 20;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    for call in subject.facts.calls.iter().filter(|c| is_refused(c, subject)) {
        let name = &call.lower;
        let span = subject.query.span(call.place);
        let message = format!("this database has no function `{name}`");
        let mut finding = Finding::new("unknown-function", Severity::Error, span, name, message)
            .advise(format!("This database has no function {name}: say it in another way."));
        if mend::worth_mending(subject, out) {
            finding.fixes.extend(say_otherwise(call, subject));
        }
        out.push(finding);
    }
    let first = out.len();
    for call in &subject.facts.calls {
        // A CAST that the grammar took for a call is `cast-syntax`'s.
        if call.lower == "cast" || !is_unknown(call, subject) || !known_elsewhere(call, subject).is_empty() {
            continue;
        }
        let name = &call.lower;
        // Thousands of names are compared: a query with this many unknown functions is helped by none of them.
        let few = out.len() - first < MOST_COMPARED;
        let near = few.then(|| nearest(name, dialect.functions.names().filter(|n| n.len() > 2))).flatten();
        // Where users can define functions and the schema does not list them, it may well exist.
        let may_exist = dialect.user_functions && !subject.context.schema.is_some_and(|s| s.lists_functions());
        let severity = if may_exist { Severity::Warning } else { Severity::Error };
        let mut finding = Finding::new(
            "unknown-function",
            severity,
            subject.query.span(call.place),
            name,
            format!("{}{} has no function `{name}`{}", dialect.name, itself(dialect), meant(near)),
        )
        .suggest(near.map(str::to_string))
        .advise(format!(
            "{}{} has no function {name}{}.",
            dialect.name,
            itself(dialect),
            near.map_or(String::new(), |n| format!("; the nearest is {n}"))
        ));
        if few && mend::worth_mending(subject, out) {
            finding.fixes.extend(rephrase(call, subject));
            if is_present(name) {
                finding.span = with_days(finding.span, &finding.fixes);
            }
            finding.fixes.extend(column_of_alias(call, subject));
            // A name that means something, and cannot be said here, is not misspelled.
            finding.fixes.extend(misspelt(call, subject).filter(|_| !is_meant(name)));
        }
        out.push(finding);
    }
}

/// `t(x)` where something in FROM is called `t` and has a column `x`: a point was meant.
fn column_of_alias(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let facts = subject.facts;
    let (whole, arguments) = mend::call(subject, subject.query.span(call.place))?;
    let [argument] = arguments.as_slice() else { return None };
    let column = subject.query.text(*argument).trim();
    let sources = facts.visible(call.block?);
    let source = sources.into_iter().find(|&s| facts.sources[s].called().eq_ignore_ascii_case(&call.lower))?;
    let name = column.trim_matches(['`', '"']);
    facts.sources[source].column_names().iter().find(|c| c.eq_ignore_ascii_case(name))?;
    let called = &subject.query.source[whole.start..][..call.lower.len()];
    let why = format!("`{called}` is no function here but something in FROM, which has the column `{name}`");
    Some(mend::replace(whole, format!("{called}.{column}"), Applicability::Likely, why))
}

/// The one function of the dialect whose name is a letter away.
fn misspelt(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    (call.lower.len() > 3).then_some(())?;
    let dialect = subject.context.dialect;
    let mut near = dialect.functions.names().filter(|name| is_slip(&call.lower, name));
    let only = near.next().filter(|_| near.next().is_none())?;
    let span = subject.query.span(call.place);
    let shouted = subject.query.text(span).chars().all(|c| !c.is_lowercase());
    let text = if shouted { only.to_uppercase() } else { only.to_string() };
    let why = format!("`{only}` is the only function of {} that is a letter away", dialect.name);
    Some(mend::replace(span, text, Applicability::Likely, why))
}

/// A word that leaves room for functions of the database's own.
fn itself(dialect: &Dialect) -> &'static str {
    if dialect.user_functions { " itself" } else { "" }
}

/// Whether the database said that it lacks the function, which its dialect has: it is older, or was built without.
fn is_refused(call: &Call<'_>, subject: &Subject<'_>) -> bool {
    let named =
        subject.refusal.filter(|r| r.error_type == ErrorType::FunctionNotFound).and_then(|r| r.name("function"));
    let bare = named.map(|n| n.split('(').next().unwrap_or(n).trim_matches(['`', '"', '\'', ' ']));
    let bare = bare.map(|n| n.rsplit('.').next().unwrap_or(n));
    // A database that lacks one of the late ones is too old for all of them.
    bare.is_some_and(|n| n.eq_ignore_ascii_case(&call.lower) || is_newer(n, subject) && is_newer(&call.lower, subject))
        && !is_unknown(call, subject)
}

/// Whether a function came late to the dialect.
fn is_newer(name: &str, subject: &Subject<'_>) -> bool {
    subject.context.dialect.newer.iter().any(|newer| newer.eq_ignore_ascii_case(name))
}

/// The first function that came late in words that older databases have as well.
pub(crate) fn plainer(subject: &Subject<'_>) -> Option<Fix> {
    let own = |call: &&Call<'_>| !subject.context.schema.is_some_and(|s| s.has_function(&call.lower));
    let newer = subject.facts.calls.iter().filter(|call| is_newer(&call.lower, subject)).filter(own);
    newer.filter_map(|call| joined_without_null(call, subject).or_else(|| say_otherwise(call, subject))).next()
}

/// Whether neither the dialect, nor the schema, nor the policy knows the function.
pub(crate) fn is_unknown(call: &Call<'_>, subject: &Subject<'_>) -> bool {
    let name = call.lower.as_str();
    let no_parentheses = call.node.is_some_and(|n| matches!(n.args, FunctionArguments::None));
    call.known.is_none()
        && !no_parentheses
        && !subject.context.schema.is_some_and(|s| s.has_function(name))
        && !subject.context.policy.allow_functions.iter().any(|f| f.eq_ignore_ascii_case(name))
}

/// Other dialects that have the function.
pub(crate) fn known_elsewhere(call: &Call<'_>, subject: &Subject<'_>) -> Vec<&'static str> {
    let own = subject.context.dialect;
    DIALECTS.iter().filter(|d| ***d != *own && d.functions.get(&call.lower).is_some()).map(|d| d.name).collect()
}
