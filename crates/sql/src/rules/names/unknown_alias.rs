#![doc = include_str!("unknown_alias.md")]

use crate::finding::{Finding, Severity};
use crate::near::nearest;
use crate::rules::names::{column_fixes, meant};
use crate::rules::{Rule, Subject};
use crate::scope::{Clause, Meaning};

/// See the page.
pub static RULE: Rule = Rule { code: "unknown-alias", group: "names", page: include_str!("unknown_alias.md"), check };

/// Fixes are worked out for the first few names only: mending goes one by one.
const MOST_FIXED: usize = 5;

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let facts = subject.facts;
    for reference in facts.references.iter().filter(|r| r.meaning == Meaning::UnknownQualifier) {
        let Some(qualifier) = reference.qualifier else { continue };
        let name = qualifier.value.as_str();
        let visible = facts.visible(reference.block);
        let renamed = visible
            .iter()
            .map(|&s| &facts.sources[s])
            .find(|s| s.table().is_some_and(|t| t.name.eq_ignore_ascii_case(name)));
        let column = reference.name.value.as_str();
        let owner = visible
            .iter()
            .map(|&s| &facts.sources[s])
            .find(|s| !reference.wildcard && s.column_names().iter().any(|c| c.eq_ignore_ascii_case(column)));
        let stored = subject.context.schema.and_then(|s| s.table(name));
        let in_scope: Vec<&str> = visible.iter().map(|&s| facts.sources[s].called()).collect();
        // It is there, but not for this ON, which looks only at the tables of its own join so far.
        let unseen = reference.clause == Clause::On && in_scope.iter().any(|s| s.eq_ignore_ascii_case(name));
        if unseen {
            out.push(
                Finding::new(
                    "unknown-alias",
                    Severity::Error,
                    subject.query.span(qualifier.span),
                    name,
                    format!("`{name}` cannot be seen in this ON, only the tables joined so far"),
                )
                .advise(format!("This ON cannot see {name}: join {name} before it, or move the condition to WHERE.")),
            );
            continue;
        }
        let homes: Vec<&str> = match subject.context.schema {
            Some(schema) if !reference.wildcard => {
                schema.tables().iter().filter(|t| t.column(column).is_some()).map(|t| t.name.as_str()).collect()
            }
            _ => Vec::new(),
        };
        let (right, hint) = match (renamed, stored, owner) {
            (Some(source), ..) => (Some(source.called()), format!(" (the table is called `{}` here)", source.called())),
            (None, Some(_), _) => (None, format!(" (the table `{name}` is not in FROM)")),
            (None, None, Some(source)) => (Some(source.called()), format!(" (`{}` has `{column}`)", source.called())),
            (None, None, None) => match nearest(name, in_scope.iter().copied()) {
                Some(near) => (Some(near), meant(Some(near))),
                None => match homes.as_slice() {
                    [home] => (None, format!(" (`{home}` has `{column}`, but is not in this FROM)")),
                    _ => (None, String::new()),
                },
            },
        };
        let advice = match right {
            Some(right) => format!("{name} is not defined here; use {right}."),
            None if stored.is_some() => format!("The table {name} is used but not in FROM: join it."),
            None if matches!(homes.len(), 1..=3) => {
                format!("{name} is not defined; {column} is a column of {}: join it.", homes.join(" and of "))
            }
            None => format!("{name} is not defined; in FROM there are: {}.", in_scope.join(", ")),
        };
        let suggestion = right.filter(|_| !reference.wildcard).map(|r| {
            let dialect = subject.context.dialect;
            format!("{}.{}", dialect.quoted(r), dialect.quoted(column))
        });
        let mut finding = Finding::new(
            "unknown-alias",
            Severity::Error,
            subject.query.span(qualifier.span),
            name,
            format!("nothing in FROM is called `{name}`{hint}"),
        )
        .suggest(suggestion)
        .advise(advice);
        if out.iter().filter(|f| !f.fixes.is_empty()).count() < MOST_FIXED {
            finding.fixes = column_fixes::for_qualifier(reference, subject);
        }
        out.push(finding);
    }
}
