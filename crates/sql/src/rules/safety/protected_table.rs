#![doc = include_str!("protected_table.md")]

use crate::finding::{Finding, Severity, Span};
use crate::review::whole;
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;
use crate::scope::TableMeaning;

/// See the page.
pub static RULE: Rule =
    Rule { code: "protected-table", group: "safety", page: include_str!("protected_table.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let policy = subject.context.policy;
    for table in subject.facts.tables.iter().filter(|t| !matches!(t.meaning, TableMeaning::Cte)) {
        let parts: Vec<&str> = table.name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.as_str()).collect();
        let Some(name) = parts.last() else { continue };
        let written = parts.len().checked_sub(2).map(|i| parts[i]);
        let stored = if let TableMeaning::Stored(t) = table.meaning { t.schema.as_deref() } else { None };
        let secret = subject.context.dialect.secret_tables.iter().any(|s| s.eq_ignore_ascii_case(name));
        if policy.allows_table(written.or(stored), name) && !secret {
            continue;
        }
        report(subject.query.span(table.place), name, out);
    }
    let restricted = !policy.allow_tables.is_empty() || !policy.deny_tables.is_empty();
    for hazard in subject.hazards {
        if let Hazard::BareTable(name) = hazard
            && restricted
            && !policy.allows_table(None, name)
        {
            report(whole(&subject.query.source), name, out);
        }
    }
}

fn report(span: Span, name: &str, out: &mut Vec<Finding>) {
    out.push(
        Finding::new("protected-table", Severity::Error, span, name, format!("the table `{name}` may not be read"))
            .advise(format!("The table {name} may not be read; answer from other tables.")),
    );
}
