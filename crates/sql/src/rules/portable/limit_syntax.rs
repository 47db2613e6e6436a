#![doc = include_str!("limit_syntax.md")]

use sqlparser::ast::{LimitClause, Spanned};

use crate::dialect::LimitSyntax;
use crate::finding::{Finding, Fix, Severity, Span};
use crate::fixes::limits;
use crate::parse::parsed_query::ParseFailure;
use crate::resolve::statement_query;
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::text::lexical::mask_quotes_and_comments;

/// The `limit-syntax` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "limit-syntax",
    group: RuleGroup::Portable,
    error_type: ErrorType::SyntaxError,
    // The number of rows is written differently, at the end.
    rewrites: Some(RewriteScope { clauses: &[], tokens: &["FIRST", "NEXT", "ROW", "ROWS", "ONLY"], moves: true }),
    page: include_str!("limit_syntax.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let limit = ctx.context.dialect.limit;
    // Search the SQL alone: a fence around it reads like quotes.
    let (source, sql) = (&ctx.query.source, &ctx.query.sql);
    if let Some(span) = top_span(sql).filter(|_| !limit.top) {
        let span = ctx.query.to_source_span(span);
        out.push(limit_finding(ctx, span, "TOP n", "LIMIT n", limits::from_top(span, ctx)));
        return;
    }
    if let Some(ParseFailure::Syntax { at, .. }) = &ctx.query.failure {
        if let Some(span) = comma_span(source, at.start).filter(|_| !limit.comma) {
            let fix = limits::from_comma(span, ctx);
            out.push(limit_finding(ctx, span, "LIMIT offset, n", limit_offset_order(limit), fix));
        }
        return;
    }
    let Some(query) = ctx.query.statements.first().and_then(statement_query) else { return };
    if query.fetch.is_some() && !limit.fetch {
        let start = mask_quotes_and_comments(sql).rfind("fetch");
        let place = |s: usize| ctx.query.to_source_span(Span::new(s, s + "fetch".len()));
        let span = start.map_or(ctx.query.span(query.span()), place);
        let fix = limits::from_fetch(span, ctx);
        out.push(limit_finding(ctx, span, "FETCH FIRST n ROWS ONLY", "LIMIT n", fix));
    }
    match &query.limit_clause {
        Some(LimitClause::OffsetCommaLimit { offset, limit: count }) if !limit.comma => {
            let span = ctx.query.span(offset.span()).join(ctx.query.span(count.span()));
            let fix = limits::from_comma(span, ctx);
            out.push(limit_finding(ctx, span, "LIMIT offset, n", limit_offset_order(limit), fix));
        }
        Some(LimitClause::LimitOffset { limit: Some(count), offset: Some(offset), .. }) if limit.offset_first => {
            let (count, offset) = (ctx.query.span(count.span()), ctx.query.span(offset.value.span()));
            if count.start < offset.start {
                let span = count.join(offset);
                let fix = limits::from_offset(span, ctx);
                out.push(limit_finding(ctx, span, "LIMIT n OFFSET offset", limit_offset_order(limit), fix));
            }
        }
        _ => {}
    }
}

fn limit_offset_order(limit: LimitSyntax) -> &'static str {
    if limit.offset_first { "OFFSET offset LIMIT n" } else { "LIMIT n OFFSET offset" }
}

/// Finds `LIMIT 10, 5`, if the parser stopped at the comma.
fn comma_span(text: &str, at: usize) -> Option<Span> {
    let before = text.get(..at)?.trim_end();
    let number = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_limit = number.trim_end().to_ascii_lowercase().ends_with("limit");
    (is_limit && number.len() < before.len() && text[at..].starts_with(',')).then(|| Span::new(number.len(), at + 1))
}

fn limit_finding(ctx: &RuleContext<'_>, span: Span, used: &str, right: &str, fix: Option<Fix>) -> Finding {
    let dialect = ctx.context.dialect.name;
    let mut finding = Finding::new(
        "limit-syntax",
        Severity::Error,
        span,
        used,
        format!("{dialect} does not support {used}: write {right}"),
    )
    .with_advice(format!("Limit rows with {right}, not {used}."));
    finding.fixes.extend(fix);
    finding
}

/// Finds `SELECT TOP 5` or `SELECT DISTINCT TOP (5)`.
fn top_span(text: &str) -> Option<Span> {
    let lower = mask_quotes_and_comments(text);
    lower.match_indices("top").map(|(i, _)| i).find_map(|i| {
        let before = lower[..i].trim_end();
        let after = lower[i + 3..].trim_start().trim_start_matches('(').trim_start();
        let number = after.starts_with(|c: char| c.is_ascii_digit());
        let spaced = lower[i + 3..].starts_with([' ', '(', '\n']) && before.len() < i;
        let leads = before.ends_with("select") || before.ends_with("distinct");
        (leads && number && spaced).then(|| Span::new(i, i + 3))
    })
}
