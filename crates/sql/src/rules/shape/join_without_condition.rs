#![doc = include_str!("join_without_condition.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Finding, Severity};
use crate::rules::{Rule, Subject};
use crate::scope::{Clause, Facts, JoinKind, SourceId};

/// See the page.
pub static RULE: Rule =
    Rule { code: "join-without-condition", group: "shape", page: include_str!("join_without_condition.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let facts = subject.facts;
    for (id, block) in facts.blocks.iter().enumerate() {
        if block.sources.len() < 2 || block.sources.iter().any(|&s| s >= 64) {
            continue;
        }
        // Conditions that mention two sources, directly or in expressions, tie them together.
        let ties: Vec<u64> = facts
            .operations
            .iter()
            .filter(|o| o.block == Some(id) && matches!(o.clause, Clause::On | Clause::Where))
            .filter(|o| !matches!(o.operator, BinaryOperator::And | BinaryOperator::Or))
            .map(|o| o.left.touches | o.right.touches)
            .filter(|t| t.count_ones() > 1)
            .collect();
        // What has a condition of its own, or cannot multiply, hangs together with what stands before it.
        let mut groups: Vec<u64> = Vec::new();
        for &s in &block.sources {
            let source = &facts.sources[s];
            let free = matches!(source.join, JoinKind::First | JoinKind::Comma | JoinKind::Inner)
                && !source.has_condition
                && !source.single_row
                && !block.merged_any(facts, s);
            groups.push(1 << s);
            if !free {
                merge(&mut groups, u64::MAX);
            }
        }
        ties.iter().for_each(|tie| merge(&mut groups, *tie));
        // The rows of the largest group were meant; the others multiply them.
        let Some(largest) = groups.iter().copied().max_by_key(|g| (g.count_ones(), std::cmp::Reverse(*g))) else {
            continue;
        };
        for group in groups.iter().filter(|g| **g != largest) {
            let s = group.trailing_zeros() as usize;
            let source = &facts.sources[s];
            let name = source.called();
            out.push(
                Finding::new(
                    "join-without-condition",
                    Severity::Warning,
                    subject.query.span(source.place),
                    name,
                    format!("nothing ties `{name}` to the other tables: every row meets every row"),
                )
                .advise(match tie(facts, s, &block.sources) {
                    Some(tie) => format!("Join {name} ON {tie}."),
                    None => format!("Join {name} with an ON condition over its key."),
                }),
            );
        }
    }
}

/// Makes one group of all that a condition mentions.
fn merge(groups: &mut Vec<u64>, tie: u64) {
    let (tied, apart): (Vec<u64>, Vec<u64>) = groups.iter().partition(|g| **g & tie != 0);
    *groups = apart;
    if !tied.is_empty() {
        groups.push(tied.iter().fold(0, |a, b| a | b));
    }
}

/// The condition that a foreign key between a source and one of the others asks for.
fn tie(facts: &Facts<'_>, source: SourceId, others: &[SourceId]) -> Option<String> {
    others.iter().filter(|&&o| o != source).find_map(|&other| {
        [(source, other), (other, source)].into_iter().find_map(|(from, to)| {
            let (table, target) = (facts.sources[from].table()?, facts.sources[to].table()?);
            let key = table.foreign_keys.iter().find(|k| k.table.eq_ignore_ascii_case(&target.name))?;
            let (from, to) = (facts.sources[from].called(), facts.sources[to].called());
            let pairs = key.columns.iter().zip(&key.references);
            let conditions: Vec<String> = pairs.map(|(a, b)| format!("{from}.{a} = {to}.{b}")).collect();
            (!conditions.is_empty()).then(|| conditions.join(" AND "))
        })
    })
}
