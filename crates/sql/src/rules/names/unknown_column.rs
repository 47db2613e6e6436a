#![doc = include_str!("unknown_column.md")]

use crate::dialect::NameCase;
use crate::finding::{Finding, Severity};
use crate::near::nearest;
use crate::rules::names::{column_fixes, is_bare_function, wrong_quotes};
use crate::rules::portable::function_of_another_dialect::is_present_moment;
use crate::rules::{Rule, Subject};
use crate::schema::Table;
use crate::scope::{Meaning, Reference, Source, SourceId};

/// See the page.
pub static RULE: Rule = Rule { code: "unknown-column", group: "names", page: include_str!("unknown_column.md"), check };

/// Fixes are worked out for the first few names only: mending goes one by one.
const MOST_FIXED: usize = 5;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for reference in &subject.facts.references {
        let owner = match reference.meaning {
            Meaning::NotInSource(source) => Some(source),
            Meaning::Nowhere if is_bare_function(reference.name, subject) || is_present_moment(reference) => continue,
            Meaning::Nowhere if !wrong_quotes::is_text(reference, subject) => None,
            _ => continue,
        };
        let mut finding = finding(reference, owner, subject);
        if out.iter().filter(|f| !f.fixes.is_empty()).count() < MOST_FIXED {
            finding.fixes = column_fixes::for_column(reference, owner, subject);
        }
        out.push(finding);
    }
}

fn finding(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>) -> Finding {
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let visible = facts.visible(reference.block);
    // With a single table in reach there is no doubt whose column was meant.
    let of = owner.or(match visible.as_slice() {
        [only] => Some(*only),
        _ => None,
    });
    let message = match of.map(|s| facts.sources[s].called()) {
        Some(table) => format!("`{table}` has no column `{name}`"),
        None => format!("no table of the query has a column `{name}`"),
    };
    let unjoined: Vec<&str> = match subject.context.schema {
        Some(schema) => schema.tables().iter().filter(|t| t.column(name).is_some()).map(|t| t.name.as_str()).collect(),
        None => Vec::new(),
    };
    let (suggestion, hint, advice) = instead(reference, owner, of, &unjoined, subject);
    let mut finding = Finding::new(
        "unknown-column",
        Severity::Error,
        subject.query.span(reference.place),
        name,
        format!("{message}{hint}"),
    )
    .suggest(suggestion)
    .advise(advice);
    for table in unjoined.iter().take(5) {
        finding = finding.because(format!("`{table}` has a column `{name}`"));
    }
    finding
}

/// What to write instead, what a person is told of it, and what a model is told.
fn instead(
    reference: &Reference<'_>,
    owner: Option<SourceId>,
    of: Option<SourceId>,
    unjoined: &[&str],
    subject: &Subject<'_>,
) -> (Option<String>, String, String) {
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let quoted = |n: &str| subject.context.dialect.quoted(n);
    let qualifier =
        reference.qualifier.map_or(String::new(), |q| format!("{}.", subject.query.text(subject.query.span(q.span))));
    let visible = facts.visible(reference.block);
    let candidates = visible.iter().copied().filter(|&s| owner.is_none_or(|o| o == s));

    // The letters are right and their case is not, which only matters where quotes keep the case.
    let other_case = candidates.clone().flat_map(|s| facts.sources[s].column_names()).find(|c| {
        *c != name && c.eq_ignore_ascii_case(name) && subject.context.dialect.names == NameCase::LowerUnlessQuoted
    });
    let exact = candidates.clone().flat_map(|s| facts.sources[s].column_names()).find(|c| *c == name);
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
    if let Some(other) = visible.iter().find(|&&s| Some(s) != owner && has(&facts.sources[s], name)) {
        let other = facts.sources[*other].called();
        let right = format!("{}.{}", quoted(other), quoted(name));
        if owner.is_none() {
            // ON looks only at the tables joined so far.
            let advice = format!("{name} is a column of {other}, which this condition cannot see: join {other} first.");
            return (None, format!(" (`{other}` has it, but cannot be seen here)"), advice);
        }
        let advice = format!("{name} is a column of {other}: write {right}.");
        return (Some(right), format!(" (`{other}` has it)"), advice);
    }
    let key = candidates.clone().filter_map(|s| facts.sources[s].table()).find_map(single_key);
    if let Some(key) = key.filter(|_| name.eq_ignore_ascii_case("id")) {
        let advice = match of.map(|s| facts.sources[s].called()) {
            Some(table) => format!("{name} is not a column of {table}; its key is {key}."),
            None => format!("There is no column {name}; the key is {key}."),
        };
        return (Some(format!("{qualifier}{}", quoted(key))), format!(" (did you mean `{key}`?)"), advice);
    }
    if let Some(near) = nearest(name, candidates.flat_map(|s| facts.sources[s].column_names())) {
        let advice = match of.map(|s| facts.sources[s].called()) {
            Some(table) => format!("{name} is not a column of {table}; the nearest is {near}."),
            None => format!("There is no column {name}; the nearest is {near}."),
        };
        return (Some(format!("{qualifier}{}", quoted(near))), format!(" (did you mean `{near}`?)"), advice);
    }
    if let Some(table) = unjoined.first() {
        let listed = visible.iter().map(|&s| &facts.sources[s]).find(|s| s.table().is_none());
        let or = listed.map_or(String::new(), |s| format!(", or select it in {}", s.called()));
        let hint = format!(" (`{table}` has it, but is not in this FROM)");
        return (None, hint, format!("{name} is a column of {}: join it{or}.", unjoined.join(" and of ")));
    }
    let columns: Vec<&str> = visible.iter().flat_map(|&s| facts.sources[s].column_names()).take(40).collect();
    (None, String::new(), format!("There is no column {name}. Columns in reach: {}.", columns.join(", ")))
}

fn has(source: &Source<'_>, name: &str) -> bool {
    source.column_names().iter().any(|c| c.eq_ignore_ascii_case(name))
}

fn single_key(table: &Table) -> Option<&str> {
    match table.primary_key.as_slice() {
        [key] => Some(key.as_str()),
        _ => None,
    }
}
