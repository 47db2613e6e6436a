#![doc = include_str!("unknown_table.md")]

use crate::finding::{Finding, Severity};
use crate::near::nearest;
use crate::rules::names::meant;
use crate::rules::{Rule, Subject};
use crate::scope::TableMeaning;

/// See the page.
pub static RULE: Rule = Rule { code: "unknown-table", group: "names", page: include_str!("unknown_table.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(schema) = subject.context.schema else { return };
    for table in subject.facts.tables.iter().filter(|t| matches!(t.meaning, TableMeaning::Unknown)) {
        let name = table.name.0.last().and_then(|p| p.as_ident()).map_or("", |i| i.value.as_str());
        let candidates =
            schema.tables().iter().map(|t| t.name.as_str()).chain(subject.facts.ctes.iter().map(|c| c.value.as_str()));
        let near = nearest(name, candidates);
        // The very name exists: what stands before it does not.
        let elsewhere = near.filter(|n| *n == name && table.name.0.len() > 1).and_then(|n| schema.table(n));
        let written = match elsewhere {
            Some(table) => Some(table.full_name()),
            None => near.map(|n| subject.context.dialect.quoted(n)),
        };
        // Only the case differs, which matters where quotes keep it.
        let other_case = near.is_some_and(|n| n.eq_ignore_ascii_case(name));
        let hint = match &written {
            Some(written) if other_case => format!(" (it is written `{written}`)"),
            _ => meant(near),
        };
        let advice = match (&written, schema.tables().len()) {
            (Some(written), _) if elsewhere.is_some() => format!("There is no table {}: write {written}.", table.name),
            (Some(written), _) if other_case => {
                format!("Names in quotes keep their case and others are lower case: the table is written {written}.")
            }
            (Some(near), _) => format!("There is no table {name}; the nearest is {near}."),
            (None, 0..=30) => {
                let all: Vec<&str> = schema.tables().iter().map(|t| t.name.as_str()).collect();
                format!("There is no table {name}. Tables: {}.", all.join(", "))
            }
            (None, _) => format!("There is no table {name}; use only tables of the schema."),
        };
        out.push(
            Finding::new(
                "unknown-table",
                Severity::Error,
                subject.query.span(table.place),
                name,
                format!(
                    "there is no table `{}`{hint}",
                    if elsewhere.is_some() { table.name.to_string() } else { name.to_string() }
                ),
            )
            .suggest(written)
            .advise(advice),
        );
    }
}
