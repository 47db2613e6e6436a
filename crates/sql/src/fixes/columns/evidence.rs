//! Evidence from the query and the question for the source that owns a column.

use sqlparser::ast::BinaryOperator;

use crate::fixes;
use crate::fixes::score::WEIGHTS;
use crate::resolve::spans::is_comparison;
use crate::resolve::{BlockId, Clause, ColumnBinding, ColumnReference, SourceId, expr_span};
use crate::rule::RuleContext;
use crate::text::similarity::{identifier_words, is_similar};

/// Maximum length of a question in bytes; in a longer text all words occur together somewhere.
const MAX_QUESTION_BYTES: usize = 2_000;

/// Scores a source as the owner of the referenced column; negative if the evidence is against it.
pub(crate) fn ownership_evidence(
    reference: &ColumnReference<'_>,
    source: SourceId,
    column: &str,
    ctx: &RuleContext<'_>,
) -> isize {
    // Bounds the work for hostile queries with very many names.
    if !fixes::within_fix_budget(ctx, &[]) {
        return 0;
    }
    let names = ctx.resolution.sources[source].column_names();
    let Some(index) = names.iter().position(|c| c.eq_ignore_ascii_case(column)) else { return 0 };
    let owned = (source, index);
    let of_item = select_item_index(reference, ctx).map_or(0, |item| projection_evidence(reference, item, owned, ctx));
    clause_co_occurrence(reference, owned, ctx)
        + of_item
        + join_position(reference, owned, ctx)
        + self_comparison(reference, owned, ctx)
}

/// Returns whether the column would be compared with itself if it belonged to this source.
pub(crate) fn is_self_comparison(
    reference: &ColumnReference<'_>,
    source: SourceId,
    column: &str,
    ctx: &RuleContext<'_>,
) -> bool {
    let names = ctx.resolution.sources[source].column_names();
    let index = names.iter().position(|c| c.eq_ignore_ascii_case(column));
    index.is_some_and(|index| self_comparison(reference, (source, index), ctx) < 0)
}

/// Returns whether the column is already required to equal a different literal.
pub(crate) fn contradicts_filter(
    reference: &ColumnReference<'_>,
    source: SourceId,
    column: &str,
    ctx: &RuleContext<'_>,
) -> bool {
    let resolution = ctx.resolution;
    let names = resolution.sources[source].column_names();
    let Some(index) = names.iter().position(|c| c.eq_ignore_ascii_case(column)) else { return false };
    let must =
        || resolution.operations.iter().filter(|o| *o.operator == BinaryOperator::Eq && o.is_conjunct && !o.is_in);
    let wanted = must().find(|o| expr_span(o.left_node) == reference.span).and_then(|o| o.right.literal);
    let bound = must().find(|o| o.left.column == Some((source, index))).and_then(|o| o.right.literal);
    wanted.zip(bound).is_some_and(|(wanted, bound)| wanted != bound)
}

/// Returns whether the question mentions a column together with its table.
///
/// Matches `the names of all tracks` and `branch names`.
pub(crate) fn question_mentions_together(table: &str, column: &str, ctx: &RuleContext<'_>) -> bool {
    let Some(question) = ctx.context.question.filter(|question| question.len() <= MAX_QUESTION_BYTES) else {
        return false;
    };
    let question_words = identifier_words(question);
    let owner = identifier_words(table);
    let mut own: Vec<String> = identifier_words(column).into_iter().filter(|w| !owner.contains(w)).collect();
    if own.is_empty() {
        own = identifier_words(column);
    }
    let stands = |words: &[String], at: usize| {
        let there = question_words.get(at..at + words.len());
        !words.is_empty()
            && there.is_some_and(|there| {
                there.iter().zip(words).all(|(a, b)| is_similar(a, b, WEIGHTS.min_same_name_similarity))
            })
    };
    let fills = |word: &String| {
        matches!(word.as_str(), "the" | "all" | "each" | "every" | "a" | "an" | "any" | "different" | "distinct")
    };
    (0..question_words.len()).any(|at| {
        if stands(&owner, at) {
            let after = at + owner.len();
            return stands(&own, after)
                || question_words.get(after).is_some_and(|w| w == "s") && stands(&own, after + 1);
        }
        let of = at + own.len();
        if !stands(&own, at) || !question_words.get(of).is_some_and(|w| w == "of" || w == "for") {
            return false;
        }
        let filled = question_words[of + 1..].iter().take_while(|w| fills(w)).count();
        stands(&owner, of + 1 + filled)
    })
}

/// Scores a column that also occurs in the related clauses SELECT, GROUP BY and ORDER BY.
fn clause_co_occurrence(reference: &ColumnReference<'_>, owned: (SourceId, usize), ctx: &RuleContext<'_>) -> isize {
    let others: &[Clause] = match reference.clause {
        _ if reference.in_aggregate => return 0,
        Clause::Select => &[Clause::GroupBy, Clause::OrderBy],
        Clause::OrderBy => &[Clause::GroupBy, Clause::Select],
        Clause::Having => &[Clause::GroupBy],
        Clause::GroupBy => &[Clause::Select, Clause::OrderBy],
        _ => return 0,
    };
    let co_occurs = ctx.resolution.references.iter().any(|r| {
        r.block == reference.block
            && others.contains(&r.clause)
            && !r.in_aggregate
            && r.binding == ColumnBinding::Column(owned.0, owned.1)
    });
    if co_occurs { WEIGHTS.clause_co_occurrence } else { 0 }
}

/// Returns the index of the SELECT item that consists of the reference.
fn select_item_index(reference: &ColumnReference<'_>, ctx: &RuleContext<'_>) -> Option<usize> {
    let items = &ctx.resolution.blocks[reference.block].items;
    let is_reference = |expression| expr_span(expression) == reference.span;
    (reference.clause == Clause::Select).then_some(())?;
    items.iter().position(|item| item.expression.is_some_and(is_reference))
}

/// Scores a column as a SELECT item.
///
/// A column that is already selected or fixed to a literal is unlikely. The same column at the same
/// position of a set operation's other operand is likely.
fn projection_evidence(
    reference: &ColumnReference<'_>,
    item: usize,
    owned: (SourceId, usize),
    ctx: &RuleContext<'_>,
) -> isize {
    let resolution = ctx.resolution;
    let is_it =
        |r: &&ColumnReference<'_>| r.block == reference.block && r.binding == ColumnBinding::Column(owned.0, owned.1);
    let twice = resolution.references.iter().filter(is_it).any(|r| select_item_index(r, ctx).is_some());
    let bound = resolution.operations.iter().any(|o| {
        let sides = [(&o.left, &o.right), (&o.right, &o.left)];
        *o.operator == BinaryOperator::Eq
            && o.is_conjunct
            && !o.is_in
            && o.clause == Clause::Where
            && sides.iter().any(|(column, value)| column.column == Some(owned) && value.literal.is_some())
    });
    let alike = set_operation_siblings(reference.block, ctx).any(|block| is_same_column(block, item, owned, ctx));
    WEIGHTS.set_operation_match * isize::from(alike)
        - WEIGHTS.already_selected * isize::from(twice)
        - WEIGHTS.fixed_to_literal * isize::from(bound)
}

/// Returns whether an item of a block is the same column of the same table.
fn is_same_column(block: BlockId, item: usize, owned: (SourceId, usize), ctx: &RuleContext<'_>) -> bool {
    let resolution = ctx.resolution;
    let Some(expression) = resolution.blocks[block].items.get(item).and_then(|item| item.expression) else {
        return false;
    };
    let table = |source: SourceId| resolution.sources[source].table();
    resolution.references.iter().any(|r| match r.binding {
        ColumnBinding::Column(source, index) if r.block == block && r.span == expr_span(expression) => {
            let same = table(source).zip(table(owned.0)).is_some_and(|(a, b)| std::ptr::eq(a, b));
            same && index == owned.1
        }
        _ => false,
    })
}

/// Returns the adjacent operands of UNION, INTERSECT or EXCEPT.
fn set_operation_siblings<'s>(block: BlockId, ctx: &'s RuleContext<'_>) -> impl Iterator<Item = BlockId> + 's {
    let blocks = &ctx.resolution.blocks;
    let start = |block: BlockId| ctx.query.span(blocks[block].select_span).start;
    let beside = move |other: &BlockId| *other != block && blocks[*other].parent == blocks[block].parent;
    let before = (0..blocks.len()).filter(beside).filter(|&b| start(b) < start(block)).max_by_key(|&b| start(b));
    let after = (0..blocks.len()).filter(beside).filter(|&b| start(b) > start(block)).min_by_key(|&b| start(b));
    // The set operator, perhaps with ALL, directly precedes the second operand.
    let put_together = move |second: BlockId| {
        let mut words = ctx.query.source[..start(second)].split_whitespace().rev();
        let last = words.next().filter(|word| !word.eq_ignore_ascii_case("all")).or_else(|| words.next());
        last.is_some_and(|word| ["union", "intersect", "except"].iter().any(|o| word.eq_ignore_ascii_case(o)))
    };
    before.filter(|_| put_together(block)).into_iter().chain(after.filter(|&b| put_together(b)))
}

/// Scores a column by the position of its join.
///
/// An ON clause refers to the joined table and connects it with an earlier one, preferably by a
/// column that is not yet joined.
fn join_position(reference: &ColumnReference<'_>, owned: (SourceId, usize), ctx: &RuleContext<'_>) -> isize {
    let resolution = ctx.resolution;
    if reference.clause != Clause::On {
        return 0;
    }
    let at = ctx.query.span(reference.span).start;
    let before = |s: &&SourceId| ctx.query.span(resolution.sources[**s].span).start < at;
    if resolution.sources[owned.0].block == reference.block && !before(&&owned.0) {
        return -WEIGHTS.joined_later;
    }
    let Some(&new) = resolution.blocks[reference.block].sources.iter().rfind(before) else { return 0 };
    let Some((partner, _)) = fixes::compared_column(ctx, reference) else { return 0 };
    if partner != new {
        return if owned.0 == new { WEIGHTS.joined_in_on } else { 0 };
    }
    let tied = resolution.operations.iter().any(|o| {
        *o.operator == BinaryOperator::Eq
            && o.clause == Clause::On
            && (o.left.column == Some(owned) || o.right.column == Some(owned))
    });
    if tied { -WEIGHTS.already_joined } else { 0 }
}

/// Returns a negative score if the column would be compared with itself.
fn self_comparison(reference: &ColumnReference<'_>, owned: (SourceId, usize), ctx: &RuleContext<'_>) -> isize {
    let itself = ctx.resolution.operations.iter().any(|o| {
        let is_reference = |node| expr_span(node) == reference.span;
        is_comparison(o.operator)
            && (is_reference(o.left_node) && o.right.column == Some(owned)
                || is_reference(o.right_node) && o.left.column == Some(owned))
    });
    if itself { -WEIGHTS.self_comparison } else { 0 }
}
