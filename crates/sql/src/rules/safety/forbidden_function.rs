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
        let (name, place, in_from, called) = match hazard {
            Hazard::Calls(name, place) => (name, place, false, true),
            Hazard::CallsInFrom(name, place) => (name, place, true, true),
            Hazard::Names(name, place) => (name, place, true, false),
            Hazard::Statement(_) | Hazard::Writes(..) | Hazard::Locks(_) | Hazard::BareTable(_) => continue,
        };
        let listed = |list: &[String]| list.iter().any(|f| f.eq_ignore_ascii_case(name));
        let known = context.dialect.functions.get(name).filter(|f| called || f.table);
        let allowed = listed(&context.policy.allow_functions) || context.schema.is_some_and(|s| s.has_function(name));
        let reason = if called && listed(&context.policy.deny_functions) {
            "the policy denies it".to_string()
        } else if let Some(danger) = known.and_then(|f| f.danger).filter(|_| !allowed) {
            format!("it {}", danger.does())
        } else if in_from && called && known.is_none() && !allowed {
            // Functions that give tables are how engines reach files and other servers.
            "what it would read is not known".to_string()
        } else {
            continue;
        };
        out.push(
            Finding::new(
                RULE.code,
                Severity::Error,
                subject.query.span(*place),
                name,
                format!("`{name}` is not allowed: {reason}"),
            )
            .advise(format!("The function {name} is refused ({reason}). Answer without it.")),
        );
    }
}
