#![doc = include_str!("writes_data.md")]

use crate::finding::{Finding, Severity};
use crate::review::whole;
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;

/// See the page.
pub static RULE: Rule = Rule { code: "writes-data", group: "safety", page: include_str!("writes_data.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for hazard in subject.hazards {
        let Hazard::Writes(verb, place) = hazard else { continue };
        let span = subject.query.span(*place);
        let span = if span.end > span.start { span } else { whole(&subject.query.source) };
        out.push(
            Finding::new(
                "writes-data",
                Severity::Error,
                span,
                verb,
                format!("{verb} is not allowed: only questions (SELECT) are answered"),
            )
            .advise(format!("{verb} is refused. Write one SELECT that only reads.")),
        );
    }
}
