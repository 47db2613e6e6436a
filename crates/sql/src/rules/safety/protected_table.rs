#![doc = include_str!("protected_table.md")]

use crate::dialect::Dialect;
use crate::finding::{Finding, Severity, Span};
use crate::review::whole;
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;
use crate::scope::TableMeaning;

/// See the page.
pub static RULE: Rule =
    Rule { code: "protected-table", group: "safety", page: include_str!("protected_table.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let context = subject.context;
    let policy = context.policy;
    for table in subject.facts.tables.iter().filter(|t| !matches!(t.meaning, TableMeaning::Cte)) {
        let parts: Vec<&str> = table.name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.as_str()).collect();
        let Some(name) = parts.last() else { continue };
        let stored = if let TableMeaning::Stored(t) = table.meaning { t.schema.as_deref() } else { None };
        let schema = parts.len().checked_sub(2).map(|i| parts[i]).or(stored);
        let listed = matches!(table.meaning, TableMeaning::Stored(_));
        if !policy.allows_table(schema, name)
            || is_secret(context.dialect, schema, name)
            || (!listed && is_file(context.dialect, schema, name))
        {
            report(subject.query.span(table.place), name, out);
        }
    }
    let restricted = !policy.allow_tables.is_empty() || !policy.deny_tables.is_empty();
    for hazard in subject.hazards {
        match hazard {
            Hazard::BareTable(name) if restricted && !policy.allows_table(None, name) => {
                report(whole(&subject.query.source), name, out)
            }
            // `FROM ONLY t` hides the table's name from the parser, and `TABLE(t)` and pragma functions take it as an argument.
            Hazard::Names(name, place) | Hazard::CallsInFrom(name, place)
                if name == "only" && context.dialect.reserved.contains("only") =>
            {
                report(subject.query.span(*place), name, out);
            }
            Hazard::Calls(name, place) if restricted && name == "table" => {
                report(subject.query.span(*place), name, out)
            }
            Hazard::Names(name, place) | Hazard::CallsInFrom(name, place)
                if restricted && name.starts_with("pragma_") =>
            {
                report(subject.query.span(*place), name, out);
            }
            Hazard::Names(..)
            | Hazard::CallsInFrom(..)
            | Hazard::Calls(..)
            | Hazard::BareTable(_)
            | Hazard::Statement(_)
            | Hazard::Writes(..)
            | Hazard::Locks(_) => {}
        }
    }
}

/// Passwords, keys and settings of the server.
fn is_secret(dialect: &Dialect, schema: Option<&str>, name: &str) -> bool {
    dialect.secret_tables.iter().any(|secret| match secret.split_once('.') {
        Some((s, t)) => t.eq_ignore_ascii_case(name) && schema.is_some_and(|x| x.eq_ignore_ascii_case(s)),
        None => secret.eq_ignore_ascii_case(name),
    })
}

/// Some engines read `parquet.`/path`` or '/path/file.csv' as a table.
fn is_file(dialect: &Dialect, schema: Option<&str>, name: &str) -> bool {
    name.contains(['/', '\\']) || schema.is_some_and(|s| dialect.file_schemas.iter().any(|f| f.eq_ignore_ascii_case(s)))
}

fn report(span: Span, name: &str, out: &mut Vec<Finding>) {
    out.push(
        Finding::new("protected-table", Severity::Error, span, name, format!("the table `{name}` may not be read"))
            .advise(format!("The table {name} may not be read; answer from other tables.")),
    );
}
