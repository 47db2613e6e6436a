#![doc = include_str!("locking.md")]

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;

/// See the page.
pub static RULE: Rule = Rule { code: "locking", group: "safety", page: include_str!("locking.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for hazard in subject.hazards {
        let Hazard::Locks(place) = hazard else { continue };
        out.push(
            Finding::new(
                "locking",
                Severity::Error,
                subject.query.span(*place),
                "FOR",
                "the query locks rows, which is not reading",
            )
            .advise("Leave out FOR UPDATE / FOR SHARE."),
        );
    }
}
