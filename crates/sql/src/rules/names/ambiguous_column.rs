#![doc = include_str!("ambiguous_column.md")]

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject};
use crate::scope::Meaning;

/// See the page.
pub static RULE: Rule =
    Rule { code: "ambiguous-column", group: "names", page: include_str!("ambiguous_column.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for reference in &subject.facts.references {
        let Meaning::Ambiguous(sources) = &reference.meaning else { continue };
        let name = reference.name.value.as_str();
        let mut owners: Vec<&str> = sources.iter().map(|&s| subject.facts.sources[s].called()).collect();
        owners.dedup();
        let quoted = |n: &str| subject.context.dialect.quoted(n);
        let (message, advice) = match (owners.as_slice(), sources.as_slice()) {
            ([only], [first, second, ..]) if first == second => (
                format!("`{only}` has two columns called `{name}`"),
                format!("{only} selects two columns called {name}: give one of them another name with AS there."),
            ),
            ([only], _) => (
                format!("two tables are called `{only}` here, and both have `{name}`"),
                format!("{only} is in FROM twice: give each its own alias and write alias.{name}."),
            ),
            (several, _) => {
                let list: Vec<String> = several.iter().map(|o| format!("`{o}`")).collect();
                let choices: Vec<String> = several.iter().map(|o| format!("{}.{}", quoted(o), quoted(name))).collect();
                (
                    format!("`{name}` could be a column of {}", list.join(" and ")),
                    format!("{name} is ambiguous: write {}.", choices.join(" or ")),
                )
            }
        };
        out.push(
            Finding::new("ambiguous-column", Severity::Error, subject.query.span(reference.place), name, message)
                .advise(advice),
        );
    }
}
