#![doc = include_str!("function_of_another_dialect.md")]

use crate::finding::{Finding, Severity};
use crate::rules::names::unknown_function::{is_unknown, known_elsewhere};
use crate::rules::portable::rephrase::{is_foreign_form, rephrase};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule {
    code: "function-of-another-dialect",
    group: "portable",
    page: include_str!("function_of_another_dialect.md"),
    check,
};

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
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
