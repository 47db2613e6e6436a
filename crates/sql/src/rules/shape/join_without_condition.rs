#![doc = include_str!("join_without_condition.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Finding, Severity};
use crate::resolve::{Clause, JoinKind, Resolution, SourceId};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `join-without-condition` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "join-without-condition",
    group: RuleGroup::Shape,
    error_type: ErrorType::Unknown,
    page: include_str!("join_without_condition.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let resolution = ctx.resolution;
    for (id, block) in resolution.blocks.iter().enumerate() {
        if block.sources.len() < 2 || block.sources.iter().any(|&s| s >= 64) {
            continue;
        }
        // Conditions that mention two sources, directly or in expressions, connect them.
        let ties: Vec<u64> = resolution
            .operations
            .iter()
            .filter(|o| o.block == Some(id) && matches!(o.clause, Clause::On | Clause::Where))
            .filter(|o| !matches!(o.operator, BinaryOperator::And | BinaryOperator::Or))
            .map(|o| o.left.source_mask | o.right.source_mask)
            .filter(|t| t.count_ones() > 1)
            .collect();
        // A source that has its own condition, or cannot multiply rows, is connected to the sources
        // before it.
        let mut groups: Vec<u64> = Vec::new();
        for &s in &block.sources {
            let source = &resolution.sources[s];
            let free = matches!(source.join, JoinKind::First | JoinKind::Comma | JoinKind::Inner)
                && !source.has_condition
                && !source.is_single_row
                && !block.is_joined_by_using(resolution, s);
            groups.push(1 << s);
            if !free {
                merge_groups(&mut groups, u64::MAX);
            }
        }
        ties.iter().for_each(|tie| merge_groups(&mut groups, *tie));
        // The largest group is assumed to be intended; the others multiply its rows.
        let Some(largest) = groups.iter().copied().max_by_key(|g| (g.count_ones(), std::cmp::Reverse(*g))) else {
            continue;
        };
        for group in groups.iter().filter(|g| **g != largest) {
            let s = group.trailing_zeros() as usize;
            let source = &resolution.sources[s];
            let name = source.display_name();
            out.push(
                Finding::new(
                    "join-without-condition",
                    Severity::Warning,
                    ctx.query.span(source.span),
                    name,
                    format!("no condition joins `{name}` to the other tables: this is a cross join"),
                )
                .with_advice(match foreign_key_condition(resolution, s, &block.sources) {
                    Some(tie) => format!("Join {name} ON {tie}."),
                    None => format!("Join {name} with an ON condition over its key."),
                }),
            );
        }
    }
}

/// Merges all groups that a condition mentions.
fn merge_groups(groups: &mut Vec<u64>, tie: u64) {
    let (tied, apart): (Vec<u64>, Vec<u64>) = groups.iter().partition(|g| **g & tie != 0);
    *groups = apart;
    if !tied.is_empty() {
        groups.push(tied.iter().fold(0, |a, b| a | b));
    }
}

/// Returns the condition of a foreign key between a source and one of the others.
fn foreign_key_condition(resolution: &Resolution<'_>, source: SourceId, others: &[SourceId]) -> Option<String> {
    others.iter().filter(|&&o| o != source).find_map(|&other| {
        [(source, other), (other, source)].into_iter().find_map(|(from, to)| {
            let (table, target) = (resolution.sources[from].table()?, resolution.sources[to].table()?);
            let key = table.foreign_keys.iter().find(|k| k.table.eq_ignore_ascii_case(&target.name))?;
            let (from, to) = (resolution.sources[from].display_name(), resolution.sources[to].display_name());
            let pairs = key.columns.iter().zip(&key.references);
            let conditions: Vec<String> = pairs.map(|(a, b)| format!("{from}.{a} = {to}.{b}")).collect();
            (!conditions.is_empty()).then(|| conditions.join(" AND "))
        })
    })
}
