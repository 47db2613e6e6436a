//! Spans of expressions in the text of a query.

use sqlparser::ast::{BinaryOperator, Expr};

use super::expr_span;
use crate::finding::Span;
use crate::parse::parsed_query::ParsedQuery;

/// Returns whether an operator is a comparison.
pub(crate) fn is_comparison(operator: &BinaryOperator) -> bool {
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

/// Returns the span of an expression, including the closing parentheses that the parser's own spans
/// omit: `COUNT(*)`, not `COUNT`.
pub(crate) fn expression_span(query: &ParsedQuery, node: &Expr) -> Span {
    let mut span = include_closing_parentheses(query, query.span(expr_span(node)));
    let text = &query.source;
    let before = text[..span.start].trim_end();
    if matches!(node, Expr::Nested(_)) && before.ends_with('(') && !query.text(span).starts_with('(') {
        span = Span::new(before.len() - 1, span.end);
    }
    let mut end = span.end.min(text.len());
    let mut open = unclosed_parentheses(query.text(span));
    if open == 0 && matches!(node, Expr::Function(_)) && text[end..].starts_with('(') {
        (open, end) = (1, end + 1);
    }
    while open > 0 {
        let Some(close) = text[end..].find(')') else { return span };
        open += unclosed_parentheses(&text[end..end + close + 1]);
        end += close + 1;
    }
    Span::new(span.start, end)
}

/// Extends a span to the parentheses that close those opened in it.
pub(crate) fn include_closing_parentheses(query: &ParsedQuery, span: Span) -> Span {
    let text = &query.source;
    let mut end = span.end.min(text.len());
    let mut open = unclosed_parentheses(query.text(span));
    while open > 0 {
        let Some(close) = text[end..].find(')') else { return span };
        open += unclosed_parentheses(&text[end..end + close + 1]);
        end += close + 1;
    }
    Span::new(span.start, end)
}

/// Returns the number of parentheses that a text leaves open, ignoring quoted ones.
pub(crate) fn unclosed_parentheses(text: &str) -> i32 {
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
