#![doc = include_str!("unknown_column.md")]

use crate::finding::{Finding, Severity};
use crate::near::nearest;
use crate::rules::names::wrong_quotes;
use crate::rules::{Rule, Subject};
use crate::schema::Table;
use crate::scope::{Meaning, Reference, Source, SourceId};

/// See the page.
pub static RULE: Rule = Rule { code: "unknown-column", group: "names", page: include_str!("unknown_column.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for reference in &subject.facts.references {
        let owner = match reference.meaning {
            Meaning::NotInSource(source) => Some(source),
            Meaning::Nowhere if !wrong_quotes::is_text(reference, subject) => None,
            _ => continue,
        };
        out.push(finding(reference, owner, subject));
    }
}

fn finding(reference: &Reference<'_>, owner: Option<SourceId>, subject: &Subject<'_>) -> Finding {
    let facts = subject.facts;
    let name = reference.name.value.as_str();
    let visible = facts.visible(reference.block);
    let elsewhere: Vec<&str> = visible
        .iter()
        .filter(|&&s| Some(s) != owner && has(&facts.sources[s], name))
        .map(|&s| facts.sources[s].called())
        .collect();
    let own_names: Vec<&str> = match owner {
        Some(source) => facts.sources[source].column_names(),
        None => visible.iter().flat_map(|&s| facts.sources[s].column_names()).collect(),
    };
    let keys = visible
        .iter()
        .filter(|&&s| owner.is_none_or(|o| o == s))
        .filter_map(|&s| facts.sources[s].table())
        .filter_map(single_key);
    let key = if name.eq_ignore_ascii_case("id") { keys.into_iter().next() } else { None };
    let near = key.or_else(|| nearest(name, own_names));
    let unjoined: Vec<&str> = match subject.context.schema {
        Some(schema) => schema.tables().iter().filter(|t| t.column(name).is_some()).map(|t| t.name.as_str()).collect(),
        None => Vec::new(),
    };

    let subject_of = owner.map(|s| facts.sources[s].called());
    let message = match subject_of {
        Some(table) => format!("`{table}` has no column `{name}`"),
        None => format!("no table of the query has a column `{name}`"),
    };
    let quoted = |n: &str| subject.context.dialect.quoted(n);
    let (suggestion, hint, advice) = if let Some(other) = elsewhere.first() {
        let right = format!("{}.{}", quoted(other), quoted(name));
        (Some(right.clone()), format!(" (`{other}` has it)"), format!("{name} is a column of {other}: write {right}."))
    } else if let Some(near) = near {
        let advice = match subject_of {
            Some(table) => format!("{name} is not a column of {table}; the nearest is {near}."),
            None => format!("There is no column {name}; the nearest is {near}."),
        };
        let qualifier = reference
            .qualifier
            .map_or(String::new(), |q| format!("{}.", subject.query.text(subject.query.span(q.span))));
        (Some(format!("{qualifier}{}", quoted(near))), format!(" (did you mean `{near}`?)"), advice)
    } else if let Some(table) = unjoined.first() {
        (
            None,
            format!(" (`{table}` has it, but is not in the query)"),
            format!("{name} is a column of {}: join it.", unjoined.join(" and of ")),
        )
    } else {
        let columns: Vec<&str> = visible.iter().flat_map(|&s| facts.sources[s].column_names()).take(40).collect();
        (None, String::new(), format!("There is no column {name}. Columns in reach: {}.", columns.join(", ")))
    };
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

fn has(source: &Source<'_>, name: &str) -> bool {
    source.column_names().iter().any(|c| c.eq_ignore_ascii_case(name))
}

fn single_key(table: &Table) -> Option<&str> {
    match table.primary_key.as_slice() {
        [key] => Some(key.as_str()),
        _ => None,
    }
}
