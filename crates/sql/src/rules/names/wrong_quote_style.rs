#![doc = include_str!("wrong_quote_style.md")]

use sqlparser::ast::Expr;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::fixes;
use crate::parse::parsed_query::ParseFailure;
use crate::resolve::{ColumnBinding, ColumnReference};
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::text::lexical::{SegmentKind, segments};
use crate::text::similarity::best_match;

/// The `wrong-quote-style` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "wrong-quote-style",
    group: RuleGroup::Names,
    error_type: ErrorType::SyntaxError,
    // Quotes of another dialect are removed from every name at once.
    rewrites: Some(RewriteScope { clauses: &[], tokens: &["`"], moves: false }),
    page: include_str!("wrong_quote_style.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for reference in &ctx.resolution.references {
        let span = ctx.query.span(reference.span);
        let text = reference.name.value.as_str();
        let literal = format!("'{}'", text.replace('\'', "''"));
        if reference.binding == ColumnBinding::StringLiteral {
            out.push(
                Finding::new(
                    "wrong-quote-style",
                    Severity::Info,
                    span,
                    text,
                    format!("`{text}` is not a column, so this is read as text, which belongs in single quotes"),
                )
                .with_suggestion(Some(literal.clone()))
                .with_advice(format!("Text goes in single quotes: {literal}.")),
            );
        } else if reference.binding == ColumnBinding::Unresolved && is_string_literal(reference, ctx) {
            out.push(
                Finding::new(
                    "wrong-quote-style",
                    Severity::Error,
                    span,
                    text,
                    format!("double quotes make `{text}` a name, and there is no such column"),
                )
                .with_suggestion(Some(literal.clone()))
                .with_fix(fixes::replace(
                    span,
                    literal.clone(),
                    Applicability::Likely,
                    "nothing has this name, and a value is allowed here",
                ))
                .with_advice(format!("Text goes in single quotes: write {literal}.")),
            );
        }
    }
    let Some(ParseFailure::Syntax { .. }) = &ctx.query.failure else { return };
    let dialect = ctx.context.dialect;
    if dialect.grammar.is_delimited_identifier_start('`') {
        return;
    }
    if let Some((start, end)) = first_backticked(&ctx.query.source) {
        let name = &ctx.query.source[start + 1..end - 1];
        let right = dialect.quote_identifier(name);
        out.push(
            Finding::new(
                "wrong-quote-style",
                Severity::Error,
                Span::new(start, end),
                name,
                format!("{} does not support backticks: quote names with {}", dialect.name, dialect.identifier_quote),
            )
            .with_suggestion(Some(right.clone()))
            .with_fix(requote_fix(ctx))
            .with_advice(format!("{} does not know backticks: write {right}.", dialect.name)),
        );
    }
}

/// Replaces backticks around all names with the quotes of the dialect.
fn requote_fix(ctx: &RuleContext<'_>) -> Fix {
    let source = &ctx.query.source;
    let dialect = ctx.context.dialect;
    let quoted = segments(source)
        .filter(|p| p.kind == SegmentKind::Quoted && source[p.start..].starts_with('`') && p.end > p.start + 2);
    let edits = quoted.map(|p| {
        let name = source[p.start + 1..p.end - 1].replace("``", "`");
        // If case matters, the schema has the actual spelling.
        let tables = ctx.context.schema.map_or(&[][..], |s| s.tables());
        let actual = tables.iter().find_map(|t| {
            t.column(&name).map(|c| c.name.as_str()).or((t.name.eq_ignore_ascii_case(&name)).then_some(&t.name))
        });
        Edit { span: Span::new(p.start, p.end), text: dialect.quote_identifier(actual.unwrap_or(&name)) }
    });
    Fix {
        is_tied_with_previous: false,
        edits: edits.collect(),
        applicability: Applicability::Safe,
        why: format!("{} quotes names with {}", dialect.name, dialect.identifier_quote),
    }
}

fn first_backticked(text: &str) -> Option<(usize, usize)> {
    let start = text.find('`').filter(|&i| !text[i..].starts_with("```"))?;
    let end = start + 1 + text[start + 1..].find('`')? + 1;
    (end > start + 2).then_some((start, end))
}

/// Returns whether a double-quoted name is a string in the wrong quotes: it is not similar to any
/// column in scope.
pub(crate) fn is_string_literal(reference: &ColumnReference<'_>, ctx: &RuleContext<'_>) -> bool {
    if reference.name.quote_style != Some('"') || reference.qualifier.is_some() {
        return false;
    }
    let name = reference.name.value.as_str();
    let resolution = ctx.resolution;
    let in_reach =
        resolution.visible_sources(reference.block).into_iter().flat_map(|s| resolution.sources[s].column_names());
    let anywhere = ctx.context.schema.is_some_and(|s| s.tables().iter().any(|t| t.column(name).is_some()));
    !anywhere && best_match(name, in_reach).is_none() && is_operand(reference, ctx)
}

/// Returns whether a reference is an operand or an argument, rather than a SELECT item by itself.
fn is_operand(reference: &ColumnReference<'_>, ctx: &RuleContext<'_>) -> bool {
    let alone = ctx.resolution.blocks[reference.block].items.iter().any(|i| match i.expression {
        Some(Expr::Identifier(ident)) => ident.span == reference.name.span,
        _ => false,
    });
    !alone
}
