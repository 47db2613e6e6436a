#![doc = include_str!("fan_out.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Applicability, Finding, Severity, Span};
use crate::mend;
use crate::rules::{Rule, Subject};
use crate::scope::{BlockId, Clause, Facts, Meaning, SourceId};

/// See the page.
pub static RULE: Rule = Rule { code: "fan-out", group: "shape", page: include_str!("fan_out.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let facts = subject.facts;
    counted_keys(subject, out);
    for call in facts.calls.iter().filter(|c| c.aggregate && !c.distinct && matches!(c.lower.as_str(), "sum" | "avg")) {
        let (Some(block), Some((source, column))) = (call.block, call.argument.column) else { continue };
        if facts.sources[source].block != block {
            continue;
        }
        if call.lower == "avg" && grouped_by_key(facts, block, source) {
            continue;
        }
        let Some(multiplier) = facts.blocks[block]
            .sources
            .iter()
            .copied()
            .find(|&other| other != source && multiplies(facts, block, source, other))
        else {
            continue;
        };
        let (table, other) = (facts.sources[source].called(), facts.sources[multiplier].called());
        let name = facts.sources[source].column_names().get(column).copied().unwrap_or("").to_string();
        out.push(
            Finding::new(
                "fan-out",
                Severity::Warning,
                subject.query.span(call.place),
                &name,
                format!(
                    "a row of `{table}` can meet many rows of `{other}`: `{name}` is counted more than once in {}",
                    call.lower.to_uppercase()
                ),
            )
            .advise(format!(
                "Aggregate {table}.{name} before joining {other}, or filter with EXISTS instead of joining it."
            )),
        );
    }
}

/// Keys of a table that are counted once for every row of another table that they meet.
fn counted_keys(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let facts = subject.facts;
    for call in facts.calls.iter().filter(|c| c.aggregate && !c.distinct && c.lower == "count") {
        let (Some(block), Some((source, index))) = (call.block, call.argument.column) else { continue };
        let Some(table) = facts.sources[source].table().filter(|_| facts.sources[source].block == block) else {
            continue;
        };
        let column = table.columns[index].name.as_str();
        if !table.is_unique(&[column]) || grouped_by_key(facts, block, source) {
            continue;
        }
        let others = facts.blocks[block].sources.iter().copied();
        let Some(other) = others.filter(|&o| o != source).find(|&o| multiplies(facts, block, source, o)) else {
            continue;
        };
        let (name, other) = (facts.sources[source].called(), facts.sources[other].called());
        let span = subject.query.span(call.place);
        let message =
            format!("a row of `{name}` can meet many rows of `{other}`: its `{column}` is counted more than once");
        let finding = Finding::new(RULE.code, Severity::Warning, span, column, message)
            .advise(format!("Write COUNT(DISTINCT {name}.{column}) to count rows of {name}."));
        out.push(with_distinct(finding, subject));
    }
}

/// Adds DISTINCT. It is not applied by itself: whoever counts a key over a join may well mean the rows of the join.
fn with_distinct(finding: Finding, subject: &Subject<'_>) -> Finding {
    let arguments = mend::call(subject, finding.span).map(|(_, arguments)| arguments).unwrap_or_default();
    let [argument] = arguments.as_slice() else { return finding };
    let at = Span::new(argument.start, argument.start);
    let fix = mend::replace(at, "DISTINCT ", Applicability::Likely, "each row is then counted once");
    finding.mend(fix)
}

/// Whether each group holds one row of the source, so that the mean of its copies is the value itself.
fn grouped_by_key(facts: &Facts<'_>, block: BlockId, source: SourceId) -> bool {
    let Some(table) = facts.sources[source].table() else { return false };
    let keys: Vec<&str> = facts
        .references
        .iter()
        .filter(|r| r.block == block && r.clause == Clause::GroupBy)
        .filter_map(|r| match r.meaning {
            Meaning::Column(s, i) if s == source => Some(table.columns[i].name.as_str()),
            _ => None,
        })
        .collect();
    table.is_unique(&keys)
}

/// Whether each row of one source can meet several of the other: they are joined on a key of the one that is not a key
/// of the other.
fn multiplies(facts: &Facts<'_>, block: BlockId, one: SourceId, many: SourceId) -> bool {
    let (Some(one_table), Some(many_table)) = (facts.sources[one].table(), facts.sources[many].table()) else {
        return false;
    };
    let mut one_columns: Vec<&str> = Vec::new();
    let mut many_columns: Vec<&str> = Vec::new();
    for o in
        facts.operations.iter().filter(|o| o.block == Some(block) && o.required && *o.operator == BinaryOperator::Eq)
    {
        for (a, b) in [(o.left, o.right), (o.right, o.left)] {
            match (a.column, b.column) {
                (Some((s, i)), Some((t, j))) if s == one && t == many => {
                    one_columns.push(&one_table.columns[i].name);
                    many_columns.push(&many_table.columns[j].name);
                }
                // What is compared with a constant is fixed, and may complete a key.
                (Some((s, i)), None) if s == many && b.literal.is_some() => {
                    many_columns.push(&many_table.columns[i].name)
                }
                _ => {}
            }
        }
    }
    let has_keys = !many_table.primary_key.is_empty() || !many_table.unique.is_empty();
    !one_columns.is_empty() && one_table.is_unique(&one_columns) && has_keys && !many_table.is_unique(&many_columns)
}
