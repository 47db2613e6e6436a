#![doc = include_str!("unknown_table.md")]

use crate::finding::{Applicability, Edit, Finding, Fix, Severity};
use crate::mend;
use crate::near::{likeness, nearest};
use crate::rules::names::meant;
use crate::rules::{Rule, Subject};
use crate::schema::{Schema, Table};
use crate::scope::{Meaning, TableMeaning, TableUse};

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
        let mut finding = Finding::new(
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
        .advise(advice);
        finding.fixes = fixes(table, name, subject, schema);
        out.push(finding);
    }
}

/// Tables of nearly that name, then tables that have every column that is asked of it.
fn fixes(table: &TableUse<'_>, name: &str, subject: &Subject<'_>, schema: &Schema) -> Vec<Fix> {
    let facts = subject.facts;
    let source = facts.sources.iter().position(|s| s.place == table.place);
    let called = source.and_then(|s| facts.sources[s].name).map_or(name, |n| n.value.as_str());
    let asked: Vec<&str> = facts
        .references
        .iter()
        .filter(|r| match r.qualifier {
            Some(q) => q.value.eq_ignore_ascii_case(called),
            None => r.meaning == Meaning::Open && source.is_some_and(|s| facts.sources[s].block == r.block),
        })
        .filter(|r| !r.wildcard)
        .map(|r| r.name.value.as_str())
        .collect();
    let mut ways: Vec<(usize, &Table)> = schema
        .tables()
        .iter()
        .filter_map(|t| {
            let like = likeness(name, &t.name);
            let missing = asked.iter().filter(|a| t.column(a).is_none()).count();
            let by_name = match like {
                l if l >= 0.98 => 0,
                l if l >= 0.85 => 2,
                l if l >= 0.75 => 4,
                _ if !asked.is_empty() && missing == 0 => 6,
                _ => return None,
            };
            Some((by_name + 2 * missing - usize::from(by_name > 0 && mend::asked_for(subject, &t.name)), t))
        })
        .collect();
    ways.sort_by_key(|(doubt, _)| *doubt);
    let clear = matches!(ways.as_slice(), [(doubt, _)] if *doubt <= 2)
        || matches!(ways.as_slice(), [(0, _), (second, _), ..] if *second > 2);
    let dialect = subject.context.dialect;
    let ways = ways.into_iter().take(4).enumerate().map(|(n, (_, t))| {
        let right = dialect.quoted(&t.name);
        let mut edits = vec![Edit { span: subject.query.span(table.place), text: right.clone() }];
        // Without an alias the columns are qualified with the wrong name too.
        if called.eq_ignore_ascii_case(name) {
            let qualifiers =
                facts.references.iter().filter_map(|r| r.qualifier).filter(|q| q.value.eq_ignore_ascii_case(name));
            edits.extend(qualifiers.map(|q| Edit { span: subject.query.span(q.span), text: right.clone() }));
        }
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        edits.dedup();
        let applicability = if clear && n == 0 { Applicability::Safe } else { Applicability::Likely };
        Fix { edits, applicability, why: format!("`{}` is the table nearest to `{name}`", t.name) }
    });
    ways.collect()
}
