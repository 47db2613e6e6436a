#![doc = include_str!("ambiguous_column.md")]

use sqlparser::ast::BinaryOperator;

use crate::finding::{Applicability, Finding, Fix, Severity};
use crate::fixes;
use crate::fixes::columns::duplicate_alias;
use crate::fixes::columns::evidence::ownership_evidence;
use crate::fixes::score::WEIGHTS;
use crate::resolve::{ColumnBinding, ColumnReference, JoinKind, SourceId};
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `ambiguous-column` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "ambiguous-column",
    group: RuleGroup::Names,
    error_type: ErrorType::AmbiguousColumn,
    // References to the second use of a table are qualified with its own alias.
    rewrites: Some(RewriteScope { clauses: &[], tokens: &["a name"], moves: false }),
    page: include_str!("ambiguous_column.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for reference in &ctx.resolution.references {
        let ColumnBinding::Ambiguous(sources) = &reference.binding else { continue };
        let name = reference.name.value.as_str();
        let mut owners: Vec<&str> = sources.iter().map(|&s| ctx.resolution.sources[s].display_name()).collect();
        owners.dedup();
        let quoted = |n: &str| ctx.context.dialect.quote_identifier(n);
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
        let mut finding =
            Finding::new("ambiguous-column", Severity::Error, ctx.query.span(reference.span), name, message)
                .with_advice(advice);
        if owners.len() > 1 {
            finding.fixes = qualifier_fixes(reference, sources, ctx);
        } else if fixes::within_fix_budget(ctx, out) {
            finding.fixes = duplicate_alias::alias_fixes(sources, ctx);
        }
        out.push(finding);
    }
}

/// Returns a fix for each source that has the column. If the join makes them equal, any of them is
/// right.
fn qualifier_fixes(reference: &ColumnReference<'_>, sources: &[SourceId], ctx: &RuleContext<'_>) -> Vec<Fix> {
    let resolution = ctx.resolution;
    let name = reference.name.value.as_str();
    let column = |s: SourceId| {
        resolution.sources[s].column_names().iter().position(|c| c.eq_ignore_ascii_case(name)).map(|i| (s, i))
    };
    let equal = |a: SourceId, b: SourceId| {
        let (a, b) = (column(a), column(b));
        resolution.operations.iter().any(|o| {
            *o.operator == BinaryOperator::Eq
                && o.is_conjunct
                && ((o.left.column == a && o.right.column == b) || (o.left.column == b && o.right.column == a))
        })
    };
    let compared_column = fixes::compared_column(ctx, reference);
    let all_equal = sources.windows(2).all(|w| equal(w[0], w[1]));
    // A table that the question mentions, or that the query refers to more often, is the likelier
    // owner.
    let mut ranked: Vec<ColumnOwner> = sources
        .iter()
        .enumerate()
        .map(|(n, &s)| {
            let mentioned =
                isize::from(resolution.sources[s].table().is_some_and(|t| fixes::question_mentions(ctx, &t.name)));
            let uses = resolution.references.iter().filter(|r| {
                r.block == reference.block
                    && r.clause == reference.clause
                    && matches!(r.binding, ColumnBinding::Column(x, _) if x == s)
            });
            let comparison_penalty = fixes::comparison_penalty(ctx, compared_column, s, name);
            let uses = uses.count().min(WEIGHTS.max_owner_uses) as isize;
            let penalty = comparison_penalty as isize - WEIGHTS.owner_mention * mentioned - WEIGHTS.owner_use * uses;
            ColumnOwner {
                penalty: penalty - ownership_evidence(reference, s, name, ctx),
                position: n as isize,
                source: s,
            }
        })
        .collect();
    if all_equal {
        // Equal, except that an outer join may leave the joined side empty.
        let is_outer =
            |s: SourceId| WEIGHTS.outer_joined_owner * isize::from(resolution.sources[s].join == JoinKind::Outer);
        ranked = sources.iter().map(|&s| ColumnOwner { penalty: is_outer(s), position: 0, source: s }).collect();
    }
    ranked.sort_by_key(ColumnOwner::rank);
    ranked.dedup_by_key(|owner| owner.source);
    // Two uses of one table differ only in their position, which is not evidence.
    let table = |s: SourceId| resolution.sources[s].table();
    let tied = match ranked.as_slice() {
        [best, next, ..] => {
            let same = table(best.source).zip(table(next.source)).is_some_and(|(a, b)| std::ptr::eq(a, b));
            same && next.rank() - best.rank() < WEIGHTS.min_owner_lead
        }
        _ => false,
    };
    let likely = if tied { Applicability::Suggested } else { Applicability::Likely };
    let span = ctx.query.span(reference.span);
    let best = ranked.first().map(|owner| owner.penalty);
    let fixes = ranked.into_iter().enumerate().filter_map(|(n, ColumnOwner { penalty: doubt, source, .. })| {
        let names = resolution.sources[source].column_names();
        let written = names.iter().find(|c| c.eq_ignore_ascii_case(name))?;
        let text = fixes::qualified_column(ctx, source, written)?;
        let called = resolution.sources[source].display_name();
        if all_equal {
            let why = format!("the join makes `{name}` equal in all of them, so `{called}` gives the same result");
            return Some(fixes::replace(span, text, Applicability::Safe, why));
        }
        let why = format!("`{called}` is the most likely table for `{name}`");
        Some(Fix { is_tied_with_previous: n > 0 && best == Some(doubt), ..fixes::replace(span, text, likely, why) })
    });
    fixes.collect()
}

/// A source that has the ambiguous column.
struct ColumnOwner {
    /// Evidence against it; lower is better.
    penalty: isize,
    /// Position in FROM: breaks ties between equal penalties, but is not evidence.
    position: isize,
    source: SourceId,
}

impl ColumnOwner {
    fn rank(&self) -> isize {
        self.penalty + self.position
    }
}
