//! What the rest of a query, and the question, say about whose a column is.

use sqlparser::ast::BinaryOperator;

use crate::mend;
use crate::near::{is_nearly, words_of};
use crate::rules::Subject;
use crate::rules::types::compares;
use crate::scope::{BlockId, Clause, Meaning, Reference, SourceId, place};

/// How much something tells.
const PLAIN: isize = 6;
const SLIGHT: isize = 2;

/// A longer question is a text in which all words stand together somewhere.
const LONGEST: usize = 2_000;

/// What speaks for a source as the owner of a column that a reference names; against it where it is below zero.
pub(super) fn evidence(reference: &Reference<'_>, source: SourceId, column: &str, subject: &Subject<'_>) -> isize {
    // Hostile texts have names without end.
    if !mend::worth_mending(subject, &[]) {
        return 0;
    }
    let names = subject.facts.sources[source].column_names();
    let Some(index) = names.iter().position(|c| c.eq_ignore_ascii_case(column)) else { return 0 };
    let owned = (source, index);
    let of_item = item_of(reference, subject).map_or(0, |item| selected(reference, item, owned, subject));
    beside(reference, owned, subject)
        + of_item
        + joined(reference, owned, subject)
        + compared(reference, owned, subject)
}

/// Whether a column would be compared with itself if it were this source's: nobody does that.
pub(super) fn is_itself(reference: &Reference<'_>, source: SourceId, column: &str, subject: &Subject<'_>) -> bool {
    let names = subject.facts.sources[source].column_names();
    let index = names.iter().position(|c| c.eq_ignore_ascii_case(column));
    index.is_some_and(|index| compared(reference, (source, index), subject) < 0)
}

/// Whether a column that must be one value already would have to be another one as well.
pub(super) fn is_bound_otherwise(
    reference: &Reference<'_>,
    source: SourceId,
    column: &str,
    subject: &Subject<'_>,
) -> bool {
    let facts = subject.facts;
    let names = facts.sources[source].column_names();
    let Some(index) = names.iter().position(|c| c.eq_ignore_ascii_case(column)) else { return false };
    let must = || facts.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.required && !o.is_in);
    let wanted = must().find(|o| place(o.left_node) == reference.place).and_then(|o| o.right.literal);
    let bound = must().find(|o| o.left.column == Some((source, index))).and_then(|o| o.right.literal);
    wanted.zip(bound).is_some_and(|(wanted, bound)| wanted != bound)
}

/// Whether the question speaks of a column and a table in one breath: `the names of all tracks`, `branch names`.
pub(super) fn named_together(table: &str, column: &str, subject: &Subject<'_>) -> bool {
    let Some(question) = subject.context.question.filter(|question| question.len() <= LONGEST) else { return false };
    let said = words_of(question);
    let owner = words_of(table);
    let mut own: Vec<String> = words_of(column).into_iter().filter(|w| !owner.contains(w)).collect();
    if own.is_empty() {
        own = words_of(column);
    }
    let stands = |words: &[String], at: usize| {
        let there = said.get(at..at + words.len());
        !words.is_empty() && there.is_some_and(|there| there.iter().zip(words).all(|(a, b)| is_nearly(a, b, 0.98)))
    };
    let fills = |word: &String| {
        matches!(word.as_str(), "the" | "all" | "each" | "every" | "a" | "an" | "any" | "different" | "distinct")
    };
    (0..said.len()).any(|at| {
        if stands(&owner, at) {
            let behind = at + owner.len();
            return stands(&own, behind) || said.get(behind).is_some_and(|w| w == "s") && stands(&own, behind + 1);
        }
        let of = at + own.len();
        if !stands(&own, at) || !said.get(of).is_some_and(|w| w == "of" || w == "for") {
            return false;
        }
        let filled = said[of + 1..].iter().take_while(|w| fills(w)).count();
        stands(&owner, of + 1 + filled)
    })
}

/// What is selected is what is grouped or ordered by, and the other way round.
fn beside(reference: &Reference<'_>, owned: (SourceId, usize), subject: &Subject<'_>) -> isize {
    let others: &[Clause] = match reference.clause {
        _ if reference.in_aggregate => return 0,
        Clause::Select => &[Clause::GroupBy, Clause::OrderBy],
        Clause::OrderBy => &[Clause::GroupBy, Clause::Select],
        Clause::Having => &[Clause::GroupBy],
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

/// Which item of its SELECT list a reference is, if it is one.
fn item_of(reference: &Reference<'_>, subject: &Subject<'_>) -> Option<usize> {
    let items = &subject.facts.blocks[reference.block].items;
    let stands = |expression| place(expression) == reference.place;
    (reference.clause == Clause::Select).then_some(())?;
    items.iter().position(|item| item.expression.is_some_and(stands))
}

/// Nobody selects the same column twice, or one that is bound to be a certain value; what UNION and its kin put together is alike.
fn selected(reference: &Reference<'_>, item: usize, owned: (SourceId, usize), subject: &Subject<'_>) -> isize {
    let facts = subject.facts;
    let is_it = |r: &&Reference<'_>| r.block == reference.block && r.meaning == Meaning::Column(owned.0, owned.1);
    let twice = facts.references.iter().filter(is_it).any(|r| item_of(r, subject).is_some());
    let bound = facts.operations.iter().any(|o| {
        let sides = [(&o.left, &o.right), (&o.right, &o.left)];
        *o.operator == BinaryOperator::Eq
            && o.required
            && !o.is_in
            && o.clause == Clause::Where
            && sides.iter().any(|(column, value)| column.column == Some(owned) && value.literal.is_some())
    });
    let alike = branches(reference.block, subject).any(|block| is_column(block, item, owned, subject));
    PLAIN * (isize::from(alike) - isize::from(twice)) - 2 * SLIGHT * isize::from(bound)
}

/// Whether an item of a block is the same column of the same table.
fn is_column(block: BlockId, item: usize, owned: (SourceId, usize), subject: &Subject<'_>) -> bool {
    let facts = subject.facts;
    let Some(expression) = facts.blocks[block].items.get(item).and_then(|item| item.expression) else { return false };
    let table = |source: SourceId| facts.sources[source].table();
    facts.references.iter().any(|r| match r.meaning {
        Meaning::Column(source, index) if r.block == block && r.place == place(expression) => {
            let same = table(source).zip(table(owned.0)).is_some_and(|(a, b)| std::ptr::eq(a, b));
            same && index == owned.1
        }
        _ => false,
    })
}

/// The queries that UNION, INTERSECT or EXCEPT put beside this one.
fn branches<'s>(block: BlockId, subject: &'s Subject<'_>) -> impl Iterator<Item = BlockId> + 's {
    let blocks = &subject.facts.blocks;
    let start = |block: BlockId| subject.query.span(blocks[block].place).start;
    let beside = move |other: &BlockId| *other != block && blocks[*other].parent == blocks[block].parent;
    let before = (0..blocks.len()).filter(beside).filter(|&b| start(b) < start(block)).max_by_key(|&b| start(b));
    let behind = (0..blocks.len()).filter(beside).filter(|&b| start(b) > start(block)).min_by_key(|&b| start(b));
    // A word or two before the second of the two says how they are put together.
    let put_together = move |second: BlockId| {
        let mut words = subject.query.source[..start(second)].split_whitespace().rev();
        let last = words.next().filter(|word| !word.eq_ignore_ascii_case("all")).or_else(|| words.next());
        last.is_some_and(|word| ["union", "intersect", "except"].iter().any(|o| word.eq_ignore_ascii_case(o)))
    };
    before.filter(|_| put_together(block)).into_iter().chain(behind.filter(|&b| put_together(b)))
}

/// The condition of a join speaks of what is joined, and ties it to something before it that is not tied yet.
fn joined(reference: &Reference<'_>, owned: (SourceId, usize), subject: &Subject<'_>) -> isize {
    let facts = subject.facts;
    if reference.clause != Clause::On {
        return 0;
    }
    let at = subject.query.span(reference.place).start;
    let before = |s: &&SourceId| subject.query.span(facts.sources[**s].place).start < at;
    if facts.sources[owned.0].block == reference.block && !before(&&owned.0) {
        return -2 * PLAIN;
    }
    let Some(&new) = facts.blocks[reference.block].sources.iter().rfind(before) else { return 0 };
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

/// Nobody compares a column with itself.
fn compared(reference: &Reference<'_>, owned: (SourceId, usize), subject: &Subject<'_>) -> isize {
    let itself = subject.facts.operations.iter().any(|o| {
        let stands = |node| place(node) == reference.place;
        compares(o.operator)
            && (stands(o.left_node) && o.right.column == Some(owned)
                || stands(o.right_node) && o.left.column == Some(owned))
    });
    if itself { -2 * PLAIN } else { 0 }
}
