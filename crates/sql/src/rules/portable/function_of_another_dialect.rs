#![doc = include_str!("function_of_another_dialect.md")]

use sqlparser::ast::FunctionArguments;

use crate::finding::{Finding, Fix, Severity, Span};
use crate::mend;
use crate::rules::names::unknown_function::{is_unknown, known_elsewhere};
use crate::rules::portable::moments::{is_present, present};
use crate::rules::portable::rephrase::{is_foreign_form, rephrase};
use crate::rules::{Rule, Subject};
use crate::scope::{Call, Meaning, Reference};

/// See the page.
pub static RULE: Rule = Rule {
    code: "function-of-another-dialect",
    group: "portable",
    page: include_str!("function_of_another_dialect.md"),
    check,
};

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    words(subject, out);
    for call in &subject.facts.calls {
        if call.known.is_some() && is_foreign_form(call, subject) {
            let name = call.lower.to_uppercase();
            let message = format!("{} has {name}, but not with these arguments", dialect.name);
            let span = subject.query.span(call.place);
            let mut finding = Finding::new(RULE.code, Severity::Error, span, &call.lower, message)
                .advise(format!("{name} does not take these arguments in {}. {}", dialect.name, dialect.notes));
            finding.fixes.extend(rephrase(call, subject));
            out.push(finding);
            continue;
        }
        if !is_unknown(call, subject) {
            continue;
        }
        let elsewhere = known_elsewhere(call, subject);
        if elsewhere.is_empty() {
            continue;
        }
        let name = call.lower.to_uppercase();
        let owners = match elsewhere.as_slice() {
            [only] => format!("{only} has"),
            several => format!("{} have", several.join(", ")),
        };
        let mut finding = Finding::new(
            RULE.code,
            Severity::Error,
            subject.query.span(call.place),
            &call.lower,
            format!("{} has no function {name} ({owners} it)", dialect.name),
        )
        .advise(format!("{name} does not exist in {}. {}", dialect.name, dialect.notes));
        finding.fixes.extend(rephrase(call, subject));
        out.push(finding);
    }
}

/// Words for the present moment that stand without parentheses.
fn words(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    let names =
        subject.facts.references.iter().filter(|r| is_present_moment(r)).map(|r| (r.place, r.name.value.as_str()));
    let bare = |call: &&Call<'_>| {
        let alone = call.node.is_some_and(|n| matches!(n.args, FunctionArguments::None));
        alone && call.known.is_none() && is_present(&call.lower)
    };
    let calls = subject.facts.calls.iter().filter(bare).map(|call| (call.place, call.lower.as_str()));
    for (place, name) in names.chain(calls) {
        let (span, name) = (subject.query.span(place), name.to_uppercase());
        let message = format!("{} does not know the word {name}", dialect.name);
        let mut finding = Finding::new(RULE.code, Severity::Error, span, &name, message)
            .advise(format!("{name} does not exist in {}. {}", dialect.name, dialect.notes));
        if mend::worth_mending(subject, out) {
            finding.fixes.extend(present(span, subject));
            finding.span = with_days(span, &finding.fixes);
        }
        out.push(finding);
    }
}

/// Whether a name that is no column's is another dialect's word for the present moment.
pub(crate) fn is_present_moment(reference: &Reference<'_>) -> bool {
    let alone = reference.qualifier.is_none() && reference.name.quote_style.is_none();
    matches!(reference.meaning, Meaning::Nowhere) && alone && is_present(&reference.name.value)
}

/// A word for the present moment with the days that are counted from it.
pub(crate) fn with_days(word: Span, fixes: &[Fix]) -> Span {
    let edits = fixes.iter().flat_map(|fix| &fix.edits).map(|edit| edit.span);
    edits.filter(|span| span.start == word.start).fold(word, Span::join)
}
