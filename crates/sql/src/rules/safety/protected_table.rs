#![doc = include_str!("protected_table.md")]

use crate::dialect::Dialect;
use crate::finding::{Finding, Severity, Span};
use crate::policy::Policy;
use crate::review::{Context, whole};
use crate::rules::{Rule, Subject};
use crate::safety::Hazard;
use crate::scope::TableMeaning;

/// See the page.
pub static RULE: Rule =
    Rule { code: "protected-table", group: "safety", page: include_str!("protected_table.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let context = subject.context;
    let policy = context.policy;
    let mut report = |span: Span, name: &str| out.push(finding(span, name));
    // What hands over a whole table, or tells of all, shows hidden columns as well.
    let restricted = policy.restricts_tables() || !policy.deny_columns.is_empty();
    for hazard in subject.hazards {
        match hazard {
            // Every name in every FROM, also where the resolver does not follow, except those that it knows to be CTEs.
            Hazard::Names(parts, place) => {
                let known = subject.facts.tables.iter().find(|t| t.place == *place).map(|t| t.meaning);
                // Some servers tell `Secret` from `secret`: only a CTE that is spelled the same surely hides the table.
                let spelled = subject.facts.ctes.iter().any(|c| parts.last().is_some_and(|p| *p == c.value));
                if matches!(known, Some(TableMeaning::Cte)) && (spelled || !restricted) {
                    continue;
                }
                let mut full: Vec<&str> = parts.iter().map(String::as_str).collect();
                let listed = match known {
                    Some(TableMeaning::Stored(table)) => {
                        if let (1, Some(schema)) = (full.len(), table.schema.as_deref()) {
                            full.insert(0, schema);
                        }
                        true
                    }
                    _ => false,
                };
                if !may_read(context, &full, listed)
                    || (restricted && !listed && full.iter().any(|p| is_catalog(p, policy)))
                {
                    report(subject.query.span(*place), &parts.join("."));
                }
            }
            // `TABLE t` names a table that the parser gives only as text; `TABLE(t)` and pragma functions take it as an argument.
            Hazard::BareTable(name) => report(whole(&subject.query.source), name),
            Hazard::Calls(name, _, place) if restricted && name == "table" => report(subject.query.span(*place), name),
            Hazard::CallsInFrom(name, place) if name == "only" || (restricted && name.starts_with("pragma_")) => {
                report(subject.query.span(*place), name);
            }
            Hazard::CallsInFrom(..)
            | Hazard::Calls(..)
            | Hazard::Field(..)
            | Hazard::Statement(_)
            | Hazard::Writes(..)
            | Hazard::Locks(_) => {}
        }
    }
}

/// What tells the names of all tables, also of those that may not be read. A list of tables may name the system's own.
fn is_catalog(name: &str, policy: &Policy) -> bool {
    let name = name.to_lowercase();
    let system = name.starts_with("sqlite_") || name == "dbstat";
    name.starts_with("pragma_") || (system && policy.allow_tables.is_none())
}

fn may_read(context: &Context<'_>, parts: &[&str], listed: bool) -> bool {
    let Some((name, before)) = parts.split_last() else { return true };
    let (dialect, schema) = (context.dialect, before.last().copied());
    // `FROM ONLY t` hides the table's name from the parser.
    let only = parts.len() == 1 && name.eq_ignore_ascii_case("only") && dialect.reserved.contains("only");
    let cut_off = dialect.longest_name > 0 && parts.iter().any(|p| p.len() > dialect.longest_name);
    context.policy.allows_table(parts)
        && !only
        && !cut_off
        && !is_secret(dialect, schema, name)
        && (listed || !is_file(dialect, schema, name))
}

/// Whether a name is that of a file, a secret or a denied table, and not merely missing from a list of those that may be read: no
/// other table was meant by it.
pub(crate) fn is_meant(context: &Context<'_>, parts: &[&str]) -> bool {
    let listed = Policy { allow_tables: None, ..context.policy.clone() };
    !may_read(&Context { policy: &listed, ..*context }, parts, false)
}

/// Passwords, keys and settings of the server.
fn is_secret(dialect: &Dialect, schema: Option<&str>, name: &str) -> bool {
    dialect.secret_tables.iter().any(|secret| match secret.split_once('.') {
        Some((s, t)) => (t == "*" || t.eq_ignore_ascii_case(name)) && schema.is_some_and(|x| x.eq_ignore_ascii_case(s)),
        None => secret.eq_ignore_ascii_case(name),
    })
}

/// Some engines read `parquet.`/path`` or 'file.csv' as a table.
fn is_file(dialect: &Dialect, schema: Option<&str>, name: &str) -> bool {
    let lower = name.to_lowercase();
    let ending = [
        ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".avro", ".arrow", ".orc", ".txt", ".gz", ".db",
        ".sqlite",
    ];
    name.contains(['/', '\\', ':'])
        || ending.iter().any(|e| lower.ends_with(e))
        || schema.is_some_and(|s| dialect.file_schemas.iter().any(|f| f.eq_ignore_ascii_case(s)))
}

fn finding(span: Span, name: &str) -> Finding {
    Finding::new("protected-table", Severity::Error, span, name, format!("the table `{name}` may not be read"))
        .advise(format!("The table {name} may not be read; answer from other tables."))
}
