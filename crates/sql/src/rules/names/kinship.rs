//! What the rest of a query says about whose a column is.

use sqlparser::ast::BinaryOperator;

use crate::mend;
use crate::rules::Subject;
use crate::scope::{Clause, Meaning, Reference, SourceId, place};

/// How much something tells.
const PLAIN: isize = 6;
const SLIGHT: isize = 2;

/// What speaks for a source as the owner of a column that a reference names; against it where it is below zero.
pub(super) fn evidence(reference: &Reference<'_>, source: SourceId, column: &str, subject: &Subject<'_>) -> isize {
    let names = subject.facts.sources[source].column_names();
    let Some(index) = names.iter().position(|c| c.eq_ignore_ascii_case(column)) else { return 0 };
    let owned = (source, index);
    grouped(reference, owned, subject) + selected(reference, owned, subject) + joined(reference, owned, subject)
}

/// What is selected is what is grouped by, and the other way round.
fn grouped(reference: &Reference<'_>, owned: (SourceId, usize), subject: &Subject<'_>) -> isize {
    let others: &[Clause] = match reference.clause {
        Clause::Select | Clause::OrderBy | Clause::Having if !reference.in_aggregate => &[Clause::GroupBy],
        Clause::GroupBy => &[Clause::Select, Clause::OrderBy],
        _ => return 0,
    };
    let kin = subject.facts.references.iter().any(|r| {
        r.block == reference.block
            && others.contains(&r.clause)
            && !r.in_aggregate
            && r.meaning == Meaning::Column(owned.0, owned.1)
    });
    if kin { PLAIN } else { 0 }
}

/// Nobody selects the same column twice.
fn selected(reference: &Reference<'_>, owned: (SourceId, usize), subject: &Subject<'_>) -> isize {
    let facts = subject.facts;
    let items = &facts.blocks[reference.block].items;
    let is_item = |r: &Reference<'_>| {
        let stands = |expression| place(expression) == r.place;
        r.clause == Clause::Select && items.iter().any(|item| item.expression.is_some_and(stands))
    };
    let twin = |r: &&Reference<'_>| r.block == reference.block && r.meaning == Meaning::Column(owned.0, owned.1);
    if is_item(reference) && facts.references.iter().filter(twin).any(is_item) { -PLAIN } else { 0 }
}

/// The condition of a join speaks of what is joined, and ties it to something that is not tied yet.
fn joined(reference: &Reference<'_>, owned: (SourceId, usize), subject: &Subject<'_>) -> isize {
    let facts = subject.facts;
    if reference.clause != Clause::On {
        return 0;
    }
    let at = subject.query.span(reference.place).start;
    let before = |s: &&SourceId| subject.query.span(facts.sources[**s].place).start < at;
    let Some(&new) = facts.blocks[reference.block].sources.iter().filter(before).next_back() else { return 0 };
    let Some((partner, _)) = mend::partner(subject, reference) else { return 0 };
    if partner != new {
        return if owned.0 == new { PLAIN } else { 0 };
    }
    let tied = facts.operations.iter().any(|o| {
        *o.operator == BinaryOperator::Eq
            && o.clause == Clause::On
            && (o.left.column == Some(owned) || o.right.column == Some(owned))
    });
    if tied { -SLIGHT } else { 0 }
}
