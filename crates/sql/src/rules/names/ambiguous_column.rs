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
        let list = owners.iter().map(|o| format!("`{o}`")).collect::<Vec<_>>().join(" and ");
        let message = match owners.len() {
            1 => format!("{list} has two columns called `{name}`"),
            _ => format!("`{name}` could be a column of {list}"),
        };
        let choices: Vec<String> = owners.iter().map(|o| format!("{o}.{name}")).collect();
        out.push(
            Finding::new("ambiguous-column", Severity::Error, subject.query.span(reference.place), name, message)
                .advise(format!("{name} is ambiguous: write {}.", choices.join(" or "))),
        );
    }
}
