#![doc = include_str!("protected_table.md")]

use crate::context::ReviewContext;
use crate::dialect::Dialect;
use crate::finding::{Finding, Severity, Span, trimmed_span};
use crate::resolve::TableBinding;
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::safety::policy::Policy;
use crate::safety::side_effects::SideEffect;

/// The `protected-table` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "protected-table",
    group: RuleGroup::Safety,
    error_type: ErrorType::PermissionDenied,
    page: include_str!("protected_table.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let context = ctx.context;
    let policy = context.policy;
    let mut report = |span: Span, name: &str| out.push(protected_table_finding(span, name));
    // Access to a whole table, or to a list of all tables, reveals hidden columns as well.
    let restricted = policy.restricts_tables() || !policy.deny_columns.is_empty();
    for effect in ctx.side_effects {
        match effect {
            // Every name in every FROM, even where the resolver does not track it, except known
            // CTEs.
            SideEffect::TableName(parts, place) => {
                let known = ctx.resolution.tables.iter().find(|t| t.span == *place).map(|t| t.binding);
                // Some servers distinguish `Secret` from `secret`: only a CTE with the same
                // spelling certainly shadows the table.
                let spelled = ctx.resolution.ctes.iter().any(|c| parts.last().is_some_and(|p| *p == c.value));
                if matches!(known, Some(TableBinding::Cte)) && (spelled || !restricted) {
                    continue;
                }
                let mut full: Vec<&str> = parts.iter().map(String::as_str).collect();
                let listed = match known {
                    Some(TableBinding::Stored(table)) => {
                        if let (1, Some(schema)) = (full.len(), table.schema.as_deref()) {
                            full.insert(0, schema);
                        }
                        true
                    }
                    _ => false,
                };
                if !is_readable(context, &full, listed)
                    || (restricted && !listed && full.iter().any(|p| is_catalog_table(p, policy)))
                {
                    report(ctx.query.span(*place), &parts.join("."));
                }
            }
            // `TABLE t` names a table that the parser returns only as text; `TABLE(t)` and pragma
            // functions take it as an argument.
            SideEffect::TableCommand(name) => report(trimmed_span(&ctx.query.source), name),
            SideEffect::Call(name, _, place) if restricted && name == "table" => report(ctx.query.span(*place), name),
            SideEffect::TableFunction(name, place) if name == "only" || (restricted && name.starts_with("pragma_")) => {
                report(ctx.query.span(*place), name);
            }
            SideEffect::TableFunction(..)
            | SideEffect::Call(..)
            | SideEffect::FieldAccess(..)
            | SideEffect::Statement(_)
            | SideEffect::Writes(..)
            | SideEffect::Locks(_) => {}
        }
    }
}

/// Returns whether a table lists the names of all tables, including those that may not be read. An
/// allowlist may include system tables.
fn is_catalog_table(name: &str, policy: &Policy) -> bool {
    let name = name.to_lowercase();
    let system = name.starts_with("sqlite_") || name == "dbstat";
    name.starts_with("pragma_") || (system && policy.allow_tables.is_none())
}

fn is_readable(context: &ReviewContext<'_>, parts: &[&str], listed: bool) -> bool {
    let Some((name, before)) = parts.split_last() else { return true };
    let (dialect, schema) = (context.dialect, before.last().copied());
    // `FROM ONLY t` hides the table's name from the parser.
    let only = parts.len() == 1 && name.eq_ignore_ascii_case("only") && dialect.reserved_words.contains("only");
    let cut_off = dialect.max_identifier_bytes > 0 && parts.iter().any(|p| p.len() > dialect.max_identifier_bytes);
    context.policy.allows_table(parts)
        && !only
        && !cut_off
        && !is_secret_table(dialect, schema, name)
        && (listed || !is_file_name(dialect, schema, name))
}

/// Returns whether a name is that of a file, a secret or a denied table, rather than merely missing
/// from an allowlist: no other table was meant by it.
pub(crate) fn is_denied_by_name(context: &ReviewContext<'_>, parts: &[&str]) -> bool {
    let listed = Policy { allow_tables: None, ..context.policy.clone() };
    !is_readable(&ReviewContext { policy: &listed, ..*context }, parts, false)
}

/// Returns whether a table contains passwords, keys or settings of the server.
fn is_secret_table(dialect: &Dialect, schema: Option<&str>, name: &str) -> bool {
    dialect.secret_tables.iter().any(|secret| match secret.split_once('.') {
        Some((s, t)) => (t == "*" || t.eq_ignore_ascii_case(name)) && schema.is_some_and(|x| x.eq_ignore_ascii_case(s)),
        None => secret.eq_ignore_ascii_case(name),
    })
}

/// Returns whether a name is a file, which some engines read as a table: ``parquet.`/path` `` or
/// 'file.csv'.
fn is_file_name(dialect: &Dialect, schema: Option<&str>, name: &str) -> bool {
    let lower = name.to_lowercase();
    let ending = [
        ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".avro", ".arrow", ".orc", ".txt", ".gz", ".db",
        ".sqlite",
    ];
    name.contains(['/', '\\', ':'])
        || ending.iter().any(|e| lower.ends_with(e))
        || schema.is_some_and(|s| dialect.file_schemas.iter().any(|f| f.eq_ignore_ascii_case(s)))
}

fn protected_table_finding(span: Span, name: &str) -> Finding {
    Finding::new("protected-table", Severity::Error, span, name, format!("the table `{name}` may not be read"))
        .with_advice(format!("The table {name} may not be read; answer from other tables."))
}
