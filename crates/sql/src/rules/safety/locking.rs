#![doc = include_str!("locking.md")]

use crate::finding::{Finding, Severity, Span};
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;

/// See the page.
pub static RULE: Rule = Rule { code: "locking", group: "safety", page: include_str!("locking.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for hazard in subject.hazards {
        let Hazard::Locks(place) = hazard else { continue };
        // The parser's place ends before the clause.
        let end = subject.query.span(*place).end;
        let clause = subject.query.source[end..].to_ascii_lowercase().find("for");
        let span = clause.map_or(Span::new(end, end), |i| Span::new(end + i, end + i + 3));
        out.push(
            Finding::new(RULE.code, Severity::Error, span, "FOR", "the query locks rows, which is not reading")
                .advise("Leave out FOR UPDATE / FOR SHARE."),
        );
    }
}
