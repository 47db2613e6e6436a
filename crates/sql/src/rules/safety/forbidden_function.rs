#![doc = include_str!("forbidden_function.md")]

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;

/// See the page.
pub static RULE: Rule =
    Rule { code: "forbidden-function", group: "safety", page: include_str!("forbidden_function.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let context = subject.context;
    for hazard in subject.hazards {
        let (name, place, bare) = match hazard {
            Hazard::Calls(name, place) => (name, place, false),
            Hazard::Names(name, place) => (name, place, true),
            Hazard::Writes(..) | Hazard::Locks(_) | Hazard::BareTable(_) => continue,
        };
        let known = context.dialect.functions.get(name).filter(|f| !bare || f.table);
        let denied = !bare && context.policy.deny_functions.iter().any(|f| f.eq_ignore_ascii_case(name));
        let allowed = context.policy.allow_functions.iter().any(|f| f.eq_ignore_ascii_case(name));
        let why = match known.and_then(|f| f.danger) {
            _ if denied => "the policy denies it",
            Some(danger) if !allowed => danger.does(),
            _ => continue,
        };
        let reason = if denied { why.to_string() } else { format!("it {why}") };
        out.push(
            Finding::new(
                "forbidden-function",
                Severity::Error,
                subject.query.span(*place),
                name,
                format!("`{name}` is not allowed: {reason}"),
            )
            .advise(format!("The function {name} is refused ({reason}). Answer without it.")),
        );
    }
}
