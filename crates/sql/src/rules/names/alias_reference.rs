#![doc = include_str!("alias_reference.md")]

use sqlparser::ast::Expr;

use crate::finding::{Applicability, Finding, Severity};
use crate::mend;
use crate::rules::shape::{aggregate_fixes, window_fixes};
use crate::rules::{Rule, Subject};
use crate::scope::{Clause, Meaning, place};

/// See the page.
pub static RULE: Rule =
    Rule { code: "alias-reference", group: "names", page: include_str!("alias_reference.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    for reference in &subject.facts.references {
        let Meaning::HiddenAlias(item) = reference.meaning else { continue };
        let name = reference.name.value.as_str();
        let clause = match reference.clause {
            Clause::Select => "the same SELECT",
            other => other.word(),
        };
        let expression = subject.facts.blocks[reference.block].items.get(item).and_then(|i| i.expression);
        let filters = matches!(reference.clause, Clause::Where | Clause::On);
        // An aggregate may stand in HAVING and ORDER BY, a window function in ORDER BY; nowhere else but in SELECT.
        let aggregate =
            subject.item_aggregates(reference.block, item) && (filters || reference.clause == Clause::GroupBy);
        let window = expression.is_some_and(|e| has_window(subject, e)) && reference.clause != Clause::OrderBy;
        let written = expression.map(|e| if is_simple(e) { e.to_string() } else { format!("({e})") });
        let rest = match &written {
            Some(_) if window => "compute it in a subquery and use it in the outer query".to_string(),
            Some(e) if aggregate && filters => format!("it is an aggregate, so filter on {e} in HAVING"),
            Some(_) if aggregate => "it is an aggregate, so group by plain columns instead".to_string(),
            Some(e) => format!("repeat the expression {e}"),
            None => "repeat its expression".to_string(),
        };
        let repeated = written.filter(|_| !aggregate && !window);
        let mut finding = Finding::new(
            "alias-reference",
            Severity::Error,
            subject.query.span(reference.place),
            name,
            format!("the alias `{name}` cannot be used in {clause}"),
        )
        .suggest(repeated.clone())
        .advise(format!("The alias {name} is not visible in {clause}: {rest}."));
        if aggregate && mend::worth_mending(subject, out) {
            finding.fixes.extend(aggregate_fixes::for_alias(reference, item, subject));
        } else if window && reference.clause == Clause::Where && mend::worth_mending(subject, out) {
            finding.fixes.extend(window_fixes::from_where(reference.block, subject));
        } else if let Some(text) = repeated.filter(|_| mend::worth_mending(subject, out)) {
            let why = format!("`{name}` stands for that expression, which every clause can compute");
            let span = subject.query.span(reference.place);
            finding.fixes.push(mend::replace(span, text, Applicability::Safe, why));
        }
        out.push(finding);
    }
}

/// Whether an expression keeps its meaning wherever it is put.
fn is_simple(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_) | Expr::Value(_) | Expr::Nested(_)
    )
}

fn has_window(subject: &Subject<'_>, expression: &Expr) -> bool {
    let span = subject.query.span(place(expression));
    subject.facts.calls.iter().any(|c| {
        c.window && span.start <= subject.query.span(c.place).start && subject.query.span(c.place).start < span.end
    })
}
