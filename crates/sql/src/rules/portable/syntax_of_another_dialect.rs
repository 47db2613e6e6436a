#![doc = include_str!("syntax_of_another_dialect.md")]

use crate::finding::{Finding, Severity, Span};
use crate::review::whole;
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule {
    code: "syntax-of-another-dialect",
    group: "portable",
    page: include_str!("syntax_of_another_dialect.md"),
    check,
};

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let dialect = subject.context.dialect;
    for (feature, place) in &subject.facts.features {
        if !dialect.lacks.contains(feature) {
            continue;
        }
        let span = Some(subject.query.span(*place)).filter(|s| *s != Span::default());
        let span = span.unwrap_or(whole(&subject.query.source));
        let (written, instead) = (feature.written(), feature.instead());
        out.push(
            Finding::new(
                RULE.code,
                Severity::Error,
                span,
                written,
                format!("{} does not know {written}: use {instead}", dialect.name),
            )
            .advise(format!("{written} does not exist in {}: use {instead}.", dialect.name)),
        );
    }
}
