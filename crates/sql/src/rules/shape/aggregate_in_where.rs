#![doc = include_str!("aggregate_in_where.md")]

use crate::finding::{Finding, Severity};
use crate::mend;
use crate::rules::shape::{aggregate_fixes, window_fixes};
use crate::rules::{Rule, Subject};
use crate::scope::{Clause, Meaning};

/// See the page.
pub static RULE: Rule =
    Rule { code: "aggregate-in-where", group: "shape", page: include_str!("aggregate_in_where.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let facts = subject.facts;
    for call in facts.calls.iter().filter(|c| c.aggregate) {
        let misplaced = matches!(call.clause, Clause::Where | Clause::On | Clause::GroupBy);
        // An aggregate over columns of an outer query belongs to that query, wherever it stands.
        let outer = call.argument.column.is_some_and(|(s, _)| Some(facts.sources[s].block) != call.block);
        // Without groups there is nothing to sort by an aggregate, unless the query is one aggregate as a whole.
        let lonely = call.clause == Clause::OrderBy
            && call.block.is_some_and(|b| !facts.blocks[b].grouped)
            && !facts.calls.iter().any(|c| c.aggregate && c.block == call.block && c.clause != Clause::OrderBy);
        if outer && subject.refused_for(RULE.code) {
            out.extend(aggregate_fixes::of_own_table(call, subject).map(|fix| {
                let name = call.lower.to_uppercase();
                let message =
                    format!("{name} is taken over a column of the query around it, which cannot have it here");
                let advice =
                    format!("{name} in this subquery must be taken over a column of the subquery's own tables.");
                Finding::new(RULE.code, Severity::Error, subject.query.span(call.place), &call.lower, message)
                    .advise(advice)
                    .mend(fix)
            }));
        }
        if outer || !(misplaced || call.nested || lonely) {
            continue;
        }
        let name = call.lower.to_uppercase();
        let clause = call.clause.word();
        let (message, advice) = if call.nested {
            (
                format!("{name} stands inside another aggregate"),
                format!("Compute {name} in a subquery, then aggregate its result."),
            )
        } else if lonely {
            (
                format!("{name} sorts rows that are not grouped"),
                format!("Sort by the column itself, or add GROUP BY before sorting by {name}."),
            )
        } else if call.clause == Clause::GroupBy {
            (format!("{name} cannot be used in GROUP BY"), "Group by plain columns, not by aggregates.".to_string())
        } else {
            (
                format!("{name} cannot be used in {clause}: rows are not grouped yet"),
                format!("Move the condition on {name} from {clause} to HAVING, or compare with a subquery."),
            )
        };
        let mut finding =
            Finding::new("aggregate-in-where", Severity::Error, subject.query.span(call.place), &call.lower, message)
                .advise(advice);
        if mend::worth_mending(subject, out) {
            finding.fixes = aggregate_fixes::for_call(call, subject);
        }
        out.push(finding);
    }
    for call in facts
        .calls
        .iter()
        .filter(|c| c.window && matches!(c.clause, Clause::Where | Clause::On | Clause::GroupBy | Clause::Having))
    {
        let (name, clause) = (call.lower.to_uppercase(), call.clause.word());
        let message = format!("{name} OVER (…) cannot be used in {clause}: windows are looked at last");
        let mut finding =
            Finding::new("aggregate-in-where", Severity::Error, subject.query.span(call.place), &call.lower, message)
                .advise(format!("Compute {name} OVER (…) in a subquery, then filter its result outside."));
        if let Some(block) = call.block.filter(|_| call.clause == Clause::Where && mend::worth_mending(subject, out)) {
            finding.fixes.extend(window_fixes::from_where(block, subject));
        }
        out.push(finding);
    }
    for reference in &facts.references {
        let Meaning::Alias(item) = reference.meaning else { continue };
        let misplaced = matches!(reference.clause, Clause::Where | Clause::On | Clause::GroupBy);
        if misplaced && window_fixes::item_has_window(reference.block, item, subject) {
            let (name, clause) = (&reference.name.value, reference.clause.word());
            let message =
                format!("`{name}` comes of a window and cannot be used in {clause}: windows are looked at last");
            let mut finding =
                Finding::new(RULE.code, Severity::Error, subject.query.span(reference.place), name, message)
                    .advise(format!("Compute {name} in a subquery, then use it in the query around it."));
            if reference.clause == Clause::Where && mend::worth_mending(subject, out) {
                finding.fixes.extend(window_fixes::from_where(reference.block, subject));
            }
            out.push(finding);
            continue;
        }
        if misplaced && subject.item_aggregates(reference.block, item) {
            let (name, clause) = (&reference.name.value, reference.clause.word());
            let advice = match reference.clause {
                Clause::GroupBy => format!("{name} is an aggregate: group by plain columns instead."),
                _ => format!("{name} is an aggregate: filter it in HAVING, not in {clause}."),
            };
            let mut finding = Finding::new(
                "aggregate-in-where",
                Severity::Error,
                subject.query.span(reference.place),
                name,
                format!("`{name}` is an aggregate and cannot be used in {clause}"),
            )
            .advise(advice);
            if mend::worth_mending(subject, out) {
                finding.fixes.extend(aggregate_fixes::for_alias(reference, item, subject));
            }
            out.push(finding);
        }
    }
}
