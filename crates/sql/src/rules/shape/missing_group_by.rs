#![doc = include_str!("missing_group_by.md")]

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Span as Place;

use crate::dialect::Grouping;
use crate::finding::{Applicability, Finding, Fix, Severity, Span};
use crate::mend;
use crate::rules::{Rule, Subject};
use crate::scope::{Block, BlockId, Clause, Facts, Meaning, Reference, SourceId, place};

/// See the page.
pub static RULE: Rule =
    Rule { code: "missing-group-by", group: "shape", page: include_str!("missing_group_by.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let facts = subject.facts;
    for (id, block) in facts.blocks.iter().enumerate() {
        if block.fancy_grouping || !(block.grouped || block.aggregates) {
            continue;
        }
        let (in_keys, keys) = (fixed_by_keys(subject, id, false), fixed_by_keys(subject, id, true));
        let loose = subject.context.dialect.grouping == Grouping::AnyRow;
        if loose && picks_a_row(facts, id) {
            continue;
        }
        for reference in facts.references.iter().filter(|r| r.block == id && !r.in_aggregate && !r.in_key) {
            let Meaning::Column(source, column) = reference.meaning else { continue };
            let clause_counts = matches!(reference.clause, Clause::Select | Clause::Having | Clause::OrderBy);
            // `upper(o.x)` may be the `upper(x)` that is grouped by; a column by itself is no expression.
            let fixed = if !loose && is_item(block, reference) { &keys } else { &in_keys };
            if !clause_counts || facts.sources[source].block != id || determined(subject, fixed, source, column) {
                continue;
            }
            let severity = if loose { Severity::Warning } else { Severity::Error };
            let span = subject.query.span(reference.place);
            let qualifier = reference.qualifier.map_or(String::new(), |q| format!("{}.", q.value));
            let name = format!("{qualifier}{}", reference.name.value);
            let written = subject.query.text(span);
            let message = match (loose, block.grouped) {
                (true, _) => format!("`{name}` is neither aggregated nor in GROUP BY: any row's value is taken"),
                (false, true) => format!("`{name}` must be in GROUP BY or in an aggregate"),
                (false, false) => format!("`{name}` stands beside an aggregate: GROUP BY is missing"),
            };
            let mut finding = Finding::new("missing-group-by", severity, span, &name, message)
                .advise(format!("Keep every aggregate, and add {written} to GROUP BY or aggregate it."));
            if !loose {
                let equal = equal_to_a_key(subject, id, keys.clone(), (source, column));
                finding.fixes.extend(grouped(subject, id, written, equal));
            }
            out.push(finding);
        }
    }
}

/// In SQLite a bare column beside one MIN or MAX comes from the row that holds it: people rely on that.
fn picks_a_row(facts: &Facts<'_>, block: BlockId) -> bool {
    let mut calls = facts.calls.iter().filter(|c| c.block == Some(block) && c.aggregate);
    matches!((calls.next(), calls.next()), (Some(only), None) if matches!(only.lower.as_str(), "min" | "max"))
}

/// Whether a reference is all of an item of the SELECT list.
fn is_item(block: &Block<'_>, reference: &Reference<'_>) -> bool {
    reference.clause == Clause::Select
        && block
            .items
            .iter()
            .filter_map(|i| i.expression)
            .any(|e| matches!(e, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) && place(e) == reference.place)
}

/// Columns that have one value in each group: the keys (or, unless they must be `exact`, whatever stands in a key), and
/// what the joins make equal to them.
fn fixed_by_keys(subject: &Subject<'_>, block: BlockId, exact: bool) -> Vec<(SourceId, usize)> {
    let facts = subject.facts;
    let keys: Vec<Place> = facts.blocks[block].keys.iter().map(|k| place(k)).collect();
    let mut fixed: Vec<(SourceId, usize)> = facts
        .references
        .iter()
        // Keys that are written as a position or an alias stand in SELECT.
        .filter(|r| r.block == block && r.in_key && matches!(r.clause, Clause::GroupBy | Clause::Select))
        .filter(|r| !exact || keys.contains(&r.place))
        .filter_map(|r| match r.meaning {
            Meaning::Column(s, c) => Some((s, c)),
            _ => None,
        })
        .collect();
    for merged in &facts.blocks[block].merged {
        let columns: Vec<(SourceId, usize)> = facts.blocks[block]
            .sources
            .iter()
            .filter_map(|&s| {
                let at = facts.sources[s].column_names().iter().position(|c| c.eq_ignore_ascii_case(merged))?;
                Some((s, at))
            })
            .collect();
        if columns.iter().any(|c| fixed.contains(c)) {
            fixed.extend(columns);
        }
    }
    if matches!(subject.context.dialect.grouping, Grouping::AnyRow | Grouping::KeyOrEqualityDecides) {
        follow_equality(facts, block, &mut fixed, &|_| true);
    }
    fixed
}

/// Adds the columns that equality with one that is fixed, or with a constant, gives one value as well.
fn follow_equality(
    facts: &Facts<'_>,
    block: BlockId,
    fixed: &mut Vec<(SourceId, usize)>,
    counts: &dyn Fn(Clause) -> bool,
) {
    let equal: Vec<_> = facts
        .operations
        .iter()
        .filter(|o| o.block == Some(block) && o.required && *o.operator == BinaryOperator::Eq && counts(o.clause))
        .collect();
    loop {
        let before = fixed.len();
        for o in &equal {
            for (a, b) in [(o.left, o.right), (o.right, o.left)] {
                let known = b.column.is_some_and(|c| fixed.contains(&c)) || b.literal.is_some();
                if let Some(a) = a.column.filter(|a| known && !fixed.contains(a)) {
                    fixed.push(a);
                }
            }
        }
        if fixed.len() == before {
            return;
        }
    }
}

/// Whether a column has one value in each group: it is fixed, or a key of its table is.
fn determined(subject: &Subject<'_>, fixed: &[(SourceId, usize)], source: SourceId, column: usize) -> bool {
    if fixed.contains(&(source, column)) {
        return true;
    }
    if subject.context.dialect.grouping == Grouping::Refused {
        return false;
    }
    let Some(table) = subject.facts.sources[source].table() else {
        // Nothing is known of the keys of a subquery.
        return subject.context.dialect.grouping == Grouping::AnyRow && fixed.iter().any(|(s, _)| *s == source);
    };
    let names: Vec<&str> =
        fixed.iter().filter(|(s, _)| *s == source).map(|(_, c)| table.columns[*c].name.as_str()).collect();
    table.is_unique(&names)
}

/// Whether each group has one value of a column, though the engine does not see it: grouping by it makes no more groups.
fn equal_to_a_key(
    subject: &Subject<'_>,
    block: BlockId,
    mut keys: Vec<(SourceId, usize)>,
    column: (SourceId, usize),
) -> bool {
    if !subject.facts.blocks[block].grouped {
        return false;
    }
    follow_equality(subject.facts, block, &mut keys, &|clause| matches!(clause, Clause::Where | Clause::On));
    keys.contains(&column)
}

/// The column is added to GROUP BY, or GROUP BY is added with every bare column; every aggregate stays.
fn grouped(subject: &Subject<'_>, block: BlockId, name: &str, equal: bool) -> Option<Fix> {
    let stops: Vec<Keyword> =
        mend::AFTER_FROM.iter().copied().filter(|k| !matches!(k, Keyword::WHERE | Keyword::GROUP)).collect();
    let end = mend::clause_end(subject, subject.facts.blocks[block].from, &stops)?;
    let text = if subject.facts.blocks[block].grouped { format!(", {name}") } else { format!(" GROUP BY {name}") };
    let (sure, why) = match equal {
        true => (Applicability::Safe, "it is equal to what is grouped already, so the groups stay the same"),
        false => (Applicability::Likely, "every column that is not aggregated must be in GROUP BY"),
    };
    Some(mend::replace(Span::new(end, end), text, sure, why))
}
