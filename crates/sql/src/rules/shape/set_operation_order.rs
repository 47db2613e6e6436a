#![doc = include_str!("set_operation_order.md")]

use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::fixes;
use crate::resolve::{Clause, ColumnBinding, spans};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `set-operation-order` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "set-operation-order",
    group: RuleGroup::Shape,
    error_type: ErrorType::Cardinality,
    page: include_str!("set_operation_order.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of terms with computed fixes.
const MAX_FIXED_TERMS: usize = 5;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for (n, term) in ctx.resolution.unresolved_order_terms.iter().enumerate() {
        let span = spans::expression_span(ctx.query, term);
        let text = ctx.query.text(span);
        let message =
            format!("`{text}` is not a column of the combined result, and ORDER BY sees no other columns here");
        let mut finding = Finding::new(RULE.code, Severity::Error, span, text, message).with_advice(format!(
            "After a set operation ORDER BY takes names of result columns only: select {text} in every part, or wrap \
             the whole in a subquery."
        ));
        // One term is repaired at a time, and a genuine query does not have many more.
        if n < MAX_FIXED_TERMS && fixes::within_fix_budget(ctx, out) {
            finding.fixes.extend(result_column(term, span, ctx).or_else(|| wrap_in_subquery(term, span, ctx)));
        }
        out.push(finding);
    }
}

/// Returns the column names of the result, which are those of its first operand, if the whole text
/// is one set operation.
fn result_names<'s>(ctx: &'s RuleContext<'_>) -> Option<Vec<&'s str>> {
    let tokens = fixes::significant_tokens(ctx);
    // With anything before it, other operands may be meant.
    (fixes::keyword(&tokens.first()?.1) == Some(Keyword::SELECT)).then_some(())?;
    let items = &ctx.resolution.blocks.first()?.items;
    let names: Option<Vec<&str>> = items.iter().map(|i| i.expression.and(i.name).map(|n| n.value.as_str())).collect();
    let names = names?;
    let twice = (1..names.len()).any(|i| names[..i].iter().any(|n| n.eq_ignore_ascii_case(names[i])));
    (!twice).then_some(names)
}

/// Fixes `products.price`, if every operand that reads `products` returns that very column as
/// `price`.
fn result_column(term: &Expr, span: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let Expr::CompoundIdentifier(parts) = term else { return None };
    let [table, column] = parts.as_slice() else { return None };
    let names = result_names(ctx)?;
    let at = names.iter().position(|n| n.eq_ignore_ascii_case(&column.value))?;
    let resolution = ctx.resolution;
    let item = resolution.blocks[0].items.get(at)?;
    let place = ctx.query.span(crate::resolve::expr_span(item.expression?));
    // The column that the first operand returns under that name is the one that is meant.
    let own =
        resolution.references.iter().find(|r| ctx.query.span(r.span).end == place.end && r.clause == Clause::Select)?;
    let ColumnBinding::Column(source, _) = own.binding else { return None };
    let named = resolution.sources[source].name.is_some_and(|n| n.value.eq_ignore_ascii_case(&table.value));
    (named && own.name.value.eq_ignore_ascii_case(&column.value)).then_some(())?;
    let text = ctx.context.dialect.quote_identifier(&column.value);
    Some(fixes::replace(span, text, Applicability::Likely, "the result has that column, without the name of its table"))
}

/// Wraps the set operation in a subquery, so that an expression of its columns can sort it.
fn wrap_in_subquery(term: &Expr, span: Span, ctx: &RuleContext<'_>) -> Option<Fix> {
    let names = result_names(ctx)?;
    let Expr::Function(_) = term else { return None };
    let tokens = fixes::significant_tokens(ctx);
    let inside: Vec<usize> =
        (0..tokens.len()).filter(|&i| span.start <= tokens[i].0.start && tokens[i].0.end <= span.end).collect();
    // Every name in it is a called function, or a column of the result.
    let known = inside.iter().all(|&i| match &tokens[i].1 {
        Token::Word(word) => {
            tokens.get(i + 1).is_some_and(|w| w.1 == Token::LParen)
                || names.iter().any(|n| n.eq_ignore_ascii_case(&word.value))
        }
        Token::Period => false,
        _ => true,
    });
    let aggregates = ctx.context.dialect.functions;
    let called = inside.iter().any(|&i| matches!(&tokens[i].1, Token::Word(w) if aggregates.get(&w.value.to_lowercase()).is_some_and(|f| f.aggregate)));
    let mut depth = 0usize;
    let mut order = None;
    for (at, (_, token)) in tokens.iter().enumerate() {
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            token if depth == 0 && fixes::keyword(token) == Some(Keyword::ORDER) => order = Some(at),
            _ => {}
        }
    }
    let order = order.filter(|_| known && !called)?;
    let end = tokens.get(order.checked_sub(1)?)?.0.end;
    let insert = |at: usize, text: &str| Edit { span: Span::new(at, at), text: text.into() };
    let edits = vec![insert(tokens.first()?.0.start, "SELECT * FROM ("), insert(end, ") AS combined")];
    let why = "a query around the whole sees the columns of the result, and can compute with them".into();
    Some(Fix { edits, applicability: Applicability::Likely, why, is_tied_with_previous: false })
}
