#![doc = include_str!("string_concat.md")]

use sqlparser::ast::{BinaryOperator, Spanned, Value as Literal};
use sqlparser::tokenizer::Token;

use crate::finding::{Finding, Severity, Span};
use crate::fixes;
use crate::fixes::transpile::syntax;
use crate::resolve::{ExprInfo, spans};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::schema::Type;

/// The `string-concat` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "string-concat",
    group: RuleGroup::Portable,
    error_type: ErrorType::TypeMismatch,
    page: include_str!("string_concat.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let dialect = ctx.context.dialect;
    let first = out.len();
    // All of `a || b || c` is recorded after its parts.
    for operation in ctx.resolution.operations.iter().rev() {
        let (used, severity, message) = match operation.operator {
            BinaryOperator::StringConcat if !dialect.concat.pipes => {
                ("||", Severity::Warning, format!("in {} `||` means OR", dialect.name))
            }
            BinaryOperator::Plus if is_text_concatenation(operation.left, operation.right, dialect.strict_types) => {
                let severity = if dialect.strict_types { Severity::Error } else { Severity::Warning };
                ("+", severity, format!("in {} `+` adds numbers and does not concatenate text", dialect.name))
            }
            _ => continue,
        };
        let span = ctx.query.span(operation.left_node.span()).join(ctx.query.span(operation.right_node.span()));
        if out[first..].iter().any(|f| f.span.start <= span.start && span.end <= f.span.end) {
            continue;
        }
        let right = if dialect.concat.pipes { "a || b" } else { "CONCAT(a, b)" };
        let mut finding =
            Finding::new("string-concat", severity, span, used, format!("{message}: concatenate text with {right}"))
                .with_advice(format!("Join text with {right}, not with {used}."));
        let operator = if used == "+" { Token::Plus } else { Token::StringConcat };
        if !fixes::within_fix_budget(ctx, out) {
            out.push(finding);
            continue;
        }
        let chain = spans::include_closing_parentheses(ctx.query, operator_chain_span(span, operation.operator, ctx));
        finding.fixes.extend(syntax::rewrite_concat(chain, &operator, ctx));
        out.push(finding);
    }
}

/// Extends `a + b` to `a + b + c`, whose type cannot be known.
fn operator_chain_span(mut span: Span, operator: &BinaryOperator, ctx: &RuleContext<'_>) -> Span {
    for operation in ctx.resolution.operations.iter().filter(|o| o.operator == operator) {
        let left = ctx.query.span(operation.left_node.span());
        let right = ctx.query.span(operation.right_node.span());
        if left.start == span.start && right.end > span.end {
            span = left.join(right);
        }
    }
    span
}

/// Returns whether both sides are text and at least one cannot be a number. A date plus '1 day' is
/// something else.
fn is_text_concatenation(left: ExprInfo<'_>, right: ExprInfo<'_>, strict: bool) -> bool {
    let both = left.kind == Type::Text && right.kind == Type::Text;
    // Text columns may contain numbers, which a lenient database adds.
    both && (is_non_numeric_literal(left)
        || is_non_numeric_literal(right)
        || (strict && left.literal.is_none() && right.literal.is_none()))
}

/// Returns whether a value is a literal that is not a number.
fn is_non_numeric_literal(value: ExprInfo<'_>) -> bool {
    match value.literal {
        Some(Literal::SingleQuotedString(text)) => text.trim().parse::<f64>().is_err() && !text.is_empty(),
        Some(_) | None => false,
    }
}
