//! An aggregate inside another one where nothing says by what the rows are grouped.

use sqlparser::ast::{BinaryOperator, Spanned};
use sqlparser::keywords::Keyword;

use super::aggregate_fixes::{SET_OPERATIONS, fix, groups_end, has, holds, inner_calls, insert};
use crate::finding::{Applicability, Edit, Fix, Span};
use crate::mend;
use crate::rules::Subject;
use crate::scope::{BlockId, Call, Clause};

/// The aggregate right around a call, with its whole extent and its only argument.
fn around<'s>(call: &Call<'_>, block: BlockId, subject: &Subject<'s>) -> Option<(&'s Call<'s>, Span, Span)> {
    let place = subject.query.span(call.place);
    let calls = subject.facts.calls.iter().filter(|c| c.aggregate && !c.nested && c.block == Some(block));
    calls.into_iter().find_map(|c| {
        let (whole, arguments) = mend::call(subject, subject.query.span(c.place))?;
        let [argument] = arguments.as_slice() else { return None };
        holds(*argument, place).then_some((c, whole, *argument))
    })
}

/// `MAX(SUM(x)) … WHERE name = 'A' OR name = 'B'`: those that are named are the groups, and the first of them when they are
/// sorted is meant.
pub(super) fn best_of_those_named(call: &Call<'_>, block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let facts = subject.facts;
    if facts.blocks[block].grouped || facts.blocks[block].items.len() != 1 || has(block, SET_OPERATIONS, subject) {
        return None;
    }
    let (outer, whole, argument) = around(call, block, subject)?;
    let direction = match outer.lower.as_str() {
        "max" => " DESC",
        "min" => "",
        _ => return None,
    };
    let inner = inner_calls(block, subject);
    let text = subject.query.text(argument).trim();
    if !matches!(inner.as_slice(), [only] if subject.query.text(*only) == text) {
        return None;
    }
    let mut named = facts.operations.iter().filter(|o| {
        let choice = *o.operator == BinaryOperator::Eq && !o.required && o.right.literal.is_some();
        choice && o.block == Some(block) && o.clause == Clause::Where
    });
    let first = named.next()?;
    let key = first.left.column?;
    let mut others = 0;
    for o in named {
        if o.left.column != Some(key) {
            return None;
        }
        others += 1;
    }
    if others == 0 || has(block, &[Keyword::ORDER, Keyword::LIMIT, Keyword::FETCH], subject) {
        return None;
    }
    let key = subject.query.text(subject.query.span(first.left_node.span()));
    let end = groups_end(block, true, subject)?;
    let behind = format!(" GROUP BY {key} ORDER BY {text}{direction} LIMIT 1");
    let why = format!("`{key}` is held against several values, and the one with the {} is asked for", outer.lower);
    Some(fix(vec![Edit { span: whole, text: text.to_string() }, insert(end, behind)], why))
}

/// `COUNT(…) FILTER (WHERE MAX(x) = (SELECT MAX(x) …))`: a row cannot have a maximum, so its own value is meant.
pub(super) fn row_itself(call: &Call<'_>, subject: &Subject<'_>) -> Option<Fix> {
    if !matches!(call.lower.as_str(), "min" | "max") {
        return None;
    }
    let (whole, arguments) = mend::call(subject, subject.query.span(call.place))?;
    let [argument] = arguments.as_slice() else { return None };
    let compared = subject.facts.operations.iter().any(|o| {
        let (left, right) = (subject.query.span(o.left_node.span()), subject.query.span(o.right_node.span()));
        let extreme = |span: Span| {
            let text = subject.query.text(span).trim_start_matches(['(', ' ', '\n']).to_ascii_lowercase();
            text.strip_prefix("select").is_some_and(|rest| rest.trim_start().starts_with(&format!("{}(", call.lower)))
        };
        *o.operator == BinaryOperator::Eq
            && ((left.start == whole.start && extreme(right)) || (right.start == whole.start && extreme(left)))
    });
    let text = subject.query.text(*argument).trim().to_string();
    let why = format!("a row is held against the {} of all, so that its own value is meant", call.lower);
    compared.then(|| mend::replace(whole, text, Applicability::Likely, why))
}

/// Without GROUP BY there is one group, and what is computed over its one figure is that figure.
pub(super) fn only_group(call: &Call<'_>, block: BlockId, subject: &Subject<'_>) -> Option<Fix> {
    let facts = subject.facts;
    let (outer, whole, argument) = around(call, block, subject)?;
    let inner = inner_calls(block, subject);
    let free = facts.references.iter().any(|r| {
        let span = subject.query.span(r.place);
        r.block == block && holds(argument, span) && !inner.iter().any(|i| holds(*i, span))
    });
    if facts.blocks[block].grouped || free || !matches!(outer.lower.as_str(), "max" | "min" | "avg" | "sum") {
        return None;
    }
    let text = format!("({})", subject.query.text(argument).trim());
    let why = format!("without GROUP BY there is one group, and the {} of one figure is that figure", outer.lower);
    Some(mend::replace(whole, text, Applicability::Suggested, why))
}
