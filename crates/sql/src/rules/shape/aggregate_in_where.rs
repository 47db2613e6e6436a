#![doc = include_str!("aggregate_in_where.md")]

use sqlparser::keywords::Keyword;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::mend;
use crate::rules::{Rule, Subject};
use crate::scope::{Call, Clause, Meaning};

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
        if call.clause == Clause::Where && !call.nested {
            finding.fixes.extend(to_having(call, subject));
            finding.fixes.extend(to_subquery(call, subject));
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
        out.push(
            Finding::new("aggregate-in-where", Severity::Error, subject.query.span(call.place), &call.lower, message)
                .advise(format!("Compute {name} OVER (…) in a subquery, then filter its result outside.")),
        );
    }
    for reference in &facts.references {
        let Meaning::Alias(item) = reference.meaning else { continue };
        let misplaced = matches!(reference.clause, Clause::Where | Clause::On | Clause::GroupBy);
        if misplaced && subject.item_aggregates(reference.block, item) {
            let (name, clause) = (&reference.name.value, reference.clause.word());
            let advice = match reference.clause {
                Clause::GroupBy => format!("{name} is an aggregate: group by plain columns instead."),
                _ => format!("{name} is an aggregate: filter it in HAVING, not in {clause}."),
            };
            out.push(
                Finding::new(
                    "aggregate-in-where",
                    Severity::Error,
                    subject.query.span(reference.place),
                    name,
                    format!("`{name}` is an aggregate and cannot be used in {clause}"),
                )
                .advise(advice),
            );
        }
    }
}

/// The condition moves to HAVING, where the block groups.
fn to_having(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let block = call.block.filter(|&b| subject.facts.blocks[b].grouped)?;
    let (word, parts) = mend::conditions(subject, block)?;
    let place = subject.query.span(call.place);
    let at = parts.iter().position(|p| p.start <= place.start && place.end <= p.end)?;
    let condition = subject.query.text(parts[at]).to_string();
    // The condition goes with the AND before it, or the one behind it, or with WHERE itself.
    let gone = match (at, parts.get(at + 1)) {
        (0, None) => word.join(parts[0]),
        (0, Some(next)) => Span::new(parts[0].start, next.start),
        _ => Span::new(parts[at - 1].end, parts[at].end),
    };
    let start = subject.facts.blocks[block].from;
    let stops: Vec<Keyword> = mend::AFTER_FROM
        .iter()
        .copied()
        .filter(|k| !matches!(k, Keyword::WHERE | Keyword::GROUP | Keyword::HAVING))
        .collect();
    let end = mend::clause_end(subject, start, &stops)?;
    let has_having = subject.facts.references.iter().any(|r| r.block == block && r.clause == Clause::Having)
        || subject.facts.calls.iter().any(|c| c.block == Some(block) && c.clause == Clause::Having);
    let text = if has_having { format!(" AND {condition}") } else { format!(" HAVING {condition}") };
    let edits = vec![Edit { span: gone, text: String::new() }, Edit { span: Span::new(end, end), text }];
    Some(Fix {
        edits,
        applicability: Applicability::Likely,
        why: "aggregates are known only when rows are grouped, which HAVING waits for".into(),
    })
}

/// `x = MAX(x)` compares with the maximum of the whole table.
fn to_subquery(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    let (source, _) = call.argument.column.filter(|_| matches!(call.lower.as_str(), "min" | "max" | "avg"))?;
    let table = subject.facts.sources[source].table()?;
    let (whole, arguments) = mend::call(subject, subject.query.span(call.place))?;
    let argument = subject.query.text(*arguments.first()?).rsplit('.').next()?.trim().to_string();
    let text = format!(
        "(SELECT {}({argument}) FROM {})",
        call.lower.to_uppercase(),
        subject.context.dialect.quoted(&table.name)
    );
    let why = format!("a row is compared with the {} of all of `{}`", call.lower, table.name);
    Some(mend::replace(whole, text, Applicability::Likely, why))
}
