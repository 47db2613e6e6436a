#![doc = include_str!("unknown_column.md")]

use crate::dialect::IdentifierCase;
use crate::finding::{Finding, Severity};
use crate::fixes::columns::candidates;
use crate::resolve::{ColumnBinding, ColumnReference, QuerySource, SourceId};
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::names::{is_bare_function, wrong_quote_style};
use crate::rules::portable::function_of_another_dialect::is_current_time;
use crate::schema::Table;
use crate::text::similarity::best_match;

/// The `unknown-column` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unknown-column",
    group: RuleGroup::Names,
    error_type: ErrorType::ColumnNotFound,
    // A table that has every column replaces the table, or the condition goes through a table in
    // between.
    rewrites: Some(RewriteScope { clauses: &[], tokens: &["a name"], moves: false }),
    page: include_str!("unknown_column.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of names with computed fixes: repair proceeds one name at a time.
const MAX_FIXED_NAMES: usize = 5;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for reference in &ctx.resolution.references {
        let owner = match reference.binding {
            ColumnBinding::NotInSource(source) => Some(source),
            ColumnBinding::Unresolved if is_bare_function(reference.name, ctx) || is_current_time(reference) => {
                continue;
            }
            ColumnBinding::Unresolved if !wrong_quote_style::is_string_literal(reference, ctx) => None,
            _ => continue,
        };
        let mut finding = finding(reference, owner, ctx);
        if out.iter().filter(|f| !f.fixes.is_empty()).count() < MAX_FIXED_NAMES {
            finding.fixes = candidates::fixes_for_column(reference, owner, ctx);
        }
        out.push(finding);
    }
}

fn finding(reference: &ColumnReference<'_>, owner: Option<SourceId>, ctx: &RuleContext<'_>) -> Finding {
    let resolution = ctx.resolution;
    let name = reference.name.value.as_str();
    let visible = resolution.visible_sources(reference.block);
    // With a single table in scope, the owner of the column is certain.
    let of = owner.or(match visible.as_slice() {
        [only] => Some(*only),
        _ => None,
    });
    let message = match of.map(|s| resolution.sources[s].display_name()) {
        Some(table) => format!("`{table}` has no column `{name}`"),
        None => format!("no table of the query has a column `{name}`"),
    };
    let unjoined: Vec<&str> = match ctx.context.schema {
        Some(schema) => schema.tables().iter().filter(|t| t.column(name).is_some()).map(|t| t.name.as_str()).collect(),
        None => Vec::new(),
    };
    let (suggestion, hint, advice) = suggest_replacement(reference, owner, of, &unjoined, ctx);
    let mut finding = Finding::new(
        "unknown-column",
        Severity::Error,
        ctx.query.span(reference.span),
        name,
        format!("{message}{hint}"),
    )
    .with_suggestion(suggestion)
    .with_advice(advice);
    for table in unjoined.iter().take(5) {
        finding = finding.with_evidence(format!("`{table}` has a column `{name}`"));
    }
    finding
}

/// Returns the replacement, the hint for a reader, and the advice for a model.
fn suggest_replacement(
    reference: &ColumnReference<'_>,
    owner: Option<SourceId>,
    of: Option<SourceId>,
    unjoined: &[&str],
    ctx: &RuleContext<'_>,
) -> (Option<String>, String, String) {
    let resolution = ctx.resolution;
    let name = reference.name.value.as_str();
    let quoted = |n: &str| ctx.context.dialect.quote_identifier(n);
    let qualifier =
        reference.qualifier.map_or(String::new(), |q| format!("{}.", ctx.query.text(ctx.query.span(q.span))));
    let visible = resolution.visible_sources(reference.block);
    let candidates = visible.iter().copied().filter(|&s| owner.is_none_or(|o| o == s));

    // Only the case differs, which matters if quotes preserve the case.
    let other_case = candidates.clone().flat_map(|s| resolution.sources[s].column_names()).find(|c| {
        *c != name
            && c.eq_ignore_ascii_case(name)
            && ctx.context.dialect.identifier_case == IdentifierCase::LowerUnlessQuoted
    });
    let exact = candidates.clone().flat_map(|s| resolution.sources[s].column_names()).find(|c| *c == name);
    if let Some(column) = other_case.or(exact.filter(|_| quoted(name) != name && reference.name.quote_style.is_none()))
    {
        let right = format!("{qualifier}{}", quoted(column));
        let why = match reference.name.quote_style {
            Some(_) => "Names in quotes keep their case",
            None => "Names without quotes are lower case",
        };
        let advice = format!("{why}: the column is written {right}.");
        return (Some(right.clone()), format!(" (it is written `{right}`)"), advice);
    }
    if let Some(other) = visible.iter().find(|&&s| Some(s) != owner && has_column(&resolution.sources[s], name)) {
        let other = resolution.sources[*other].display_name();
        let right = format!("{}.{}", quoted(other), quoted(name));
        if owner.is_none() {
            // ON sees only the tables joined so far.
            let advice = format!("{name} is a column of {other}, which this condition cannot see: join {other} first.");
            return (None, format!(" (`{other}` has it, but is not visible here)"), advice);
        }
        let advice = format!("{name} is a column of {other}: write {right}.");
        return (Some(right), format!(" (`{other}` has it)"), advice);
    }
    let key = candidates.clone().filter_map(|s| resolution.sources[s].table()).find_map(single_primary_key);
    if let Some(key) = key.filter(|_| name.eq_ignore_ascii_case("id")) {
        let advice = match of.map(|s| resolution.sources[s].display_name()) {
            Some(table) => format!("{name} is not a column of {table}; its key is {key}."),
            None => format!("There is no column {name}; the key is {key}."),
        };
        return (Some(format!("{qualifier}{}", quoted(key))), format!(" (did you mean `{key}`?)"), advice);
    }
    if let Some(near) = best_match(name, candidates.flat_map(|s| resolution.sources[s].column_names())) {
        let advice = match of.map(|s| resolution.sources[s].display_name()) {
            Some(table) => format!("{name} is not a column of {table}; the nearest is {near}."),
            None => format!("There is no column {name}; the nearest is {near}."),
        };
        return (Some(format!("{qualifier}{}", quoted(near))), format!(" (did you mean `{near}`?)"), advice);
    }
    if let Some(table) = unjoined.first() {
        let listed = visible.iter().map(|&s| &resolution.sources[s]).find(|s| s.table().is_none());
        let or = listed.map_or(String::new(), |s| format!(", or select it in {}", s.display_name()));
        let hint = format!(" (`{table}` has it, but is not in this FROM)");
        return (None, hint, format!("{name} is a column of {}: join it{or}.", unjoined.join(" and of ")));
    }
    let columns: Vec<&str> = visible.iter().flat_map(|&s| resolution.sources[s].column_names()).take(40).collect();
    (None, String::new(), format!("There is no column {name}. Columns in reach: {}.", columns.join(", ")))
}

fn has_column(source: &QuerySource<'_>, name: &str) -> bool {
    source.column_names().iter().any(|c| c.eq_ignore_ascii_case(name))
}

fn single_primary_key(table: &Table) -> Option<&str> {
    match table.primary_key.as_slice() {
        [key] => Some(key.as_str()),
        _ => None,
    }
}
