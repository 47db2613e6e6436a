//! Values of the wrong kind.

pub mod argument_types;
pub mod compared_types;
pub mod date_difference;
pub mod date_format;
pub mod division_by_zero;
pub mod integer_division;
pub mod invalid_cast;

use sqlparser::ast::{BinaryOperator, Expr};

use crate::finding::Span;
use crate::query::Query;
use crate::scope::place;

/// Whether an operator compares its sides.
pub(crate) fn compares(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

/// Where an expression stands, with the closing parentheses that the parser's own places leave out: `COUNT(*)`, not `COUNT`.
pub(crate) fn span_of(query: &Query, node: &Expr) -> Span {
    let mut span = closed(query, query.span(place(node)));
    let text = &query.source;
    let before = text[..span.start].trim_end();
    if matches!(node, Expr::Nested(_)) && before.ends_with('(') && !query.text(span).starts_with('(') {
        span = Span::new(before.len() - 1, span.end);
    }
    let mut end = span.end.min(text.len());
    let mut open = parentheses(query.text(span));
    if open == 0 && matches!(node, Expr::Function(_)) && text[end..].starts_with('(') {
        (open, end) = (1, end + 1);
    }
    while open > 0 {
        let Some(close) = text[end..].find(')') else { return span };
        open += parentheses(&text[end..end + close + 1]);
        end += close + 1;
    }
    Span::new(span.start, end)
}

/// A span that takes in the parentheses that close what opens in it.
pub(crate) fn closed(query: &Query, span: Span) -> Span {
    let text = &query.source;
    let mut end = span.end.min(text.len());
    let mut open = parentheses(query.text(span));
    while open > 0 {
        let Some(close) = text[end..].find(')') else { return span };
        open += parentheses(&text[end..end + close + 1]);
        end += close + 1;
    }
    Span::new(span.start, end)
}

/// How many parentheses a piece of text leaves open; those in quotes do not count.
fn parentheses(text: &str) -> i32 {
    let mut quote = None;
    text.chars().fold(0, |open, c| match (quote, c) {
        (Some(q), _) => {
            if c == q {
                quote = None;
            }
            open
        }
        (None, '\'' | '"' | '`') => {
            quote = Some(c);
            open
        }
        (None, '(') => open + 1,
        (None, ')') => open - 1,
        _ => open,
    })
}
