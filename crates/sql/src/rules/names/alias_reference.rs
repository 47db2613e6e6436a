#![doc = include_str!("alias_reference.md")]

use sqlparser::ast::Spanned;

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject};
use crate::scope::Meaning;

/// See the page.
pub static RULE: Rule =
    Rule { code: "alias-reference", group: "names", page: include_str!("alias_reference.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for reference in &subject.facts.references {
        let Meaning::HiddenAlias(item) = reference.meaning else { continue };
        let name = reference.name.value.as_str();
        let clause = reference.clause.word();
        let expression = subject.facts.blocks[reference.block]
            .items
            .get(item)
            .and_then(|i| i.expression)
            .map(|e| subject.query.text(subject.query.span(e.span())).to_string());
        let aggregate = subject.item_aggregates(reference.block, item);
        let advice = match &expression {
            Some(_) if aggregate => format!(
                "The alias {name} is not visible in {clause}, and it is an aggregate: filter it in HAVING or in an outer query."
            ),
            Some(e) => format!(
                "The alias {name} is not visible in {clause}: repeat the expression {e}, or filter in an outer query."
            ),
            None => format!("The alias {name} is not visible in {clause}."),
        };
        out.push(
            Finding::new(
                "alias-reference",
                Severity::Error,
                subject.query.span(reference.place),
                name,
                format!("the alias `{name}` cannot be used in {clause}"),
            )
            .suggest(expression.filter(|e| !aggregate && !e.is_empty()))
            .advise(advice),
        );
    }
}
