#![doc = include_str!("syntax_of_another_dialect.md")]

use sqlparser::keywords::Keyword;

use crate::dialect::Feature;
use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span, trimmed_span};
use crate::fixes;
use crate::fixes::transpile::calls::{
    rewrite_cast_to_date, rewrite_convert, rewrite_extract, rewrite_inline_filter, rewrite_interval_arithmetic,
    rewrite_multi_distinct,
};
use crate::fixes::transpile::hints::{rewrite_hints, rewrite_separator};
use crate::fixes::transpile::{quantified, syntax};
use crate::fixes::windows;
use crate::parse::parsed_query::ParseFailure;
use crate::parse::token_stream::{UnparsedQuery, is_already_reported};
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `syntax-of-another-dialect` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "syntax-of-another-dialect",
    group: RuleGroup::Portable,
    error_type: ErrorType::Unknown,
    // `COUNT(x WHERE …)`, `EXTRACT(YEAR FROM x)` and `x::type` contain no clauses in dialects
    // without them; INTERVAL is not added, and LIMIT ALL is not a limit. DISTINCT ON becomes the
    // first row by ROW_NUMBER(), and `= ANY (…)` becomes IN.
    rewrites: Some(RewriteScope {
        clauses: &["WHERE", "FROM", "LIMIT", "DISTINCT", "ON"],
        tokens: &["::", "a name", "-", "+", "*", "AS", "="],
        moves: true,
    }),
    page: include_str!("syntax_of_another_dialect.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let dialect = ctx.context.dialect;
    if matches!(ctx.query.failure, Some(ParseFailure::Syntax { .. })) && !is_already_reported(out) {
        out.extend(unparsed_syntax_finding(ctx));
    }
    out.extend(syntax::rewrite_intervals(ctx).into_iter().map(|(span, written, fix)| {
        let text = fix.edits.first().map_or("", |edit| edit.text.as_str()).to_string();
        let message = format!("{} does not support {written}: write {text}", dialect.name);
        let mut finding = Finding::new(RULE.code, Severity::Error, span, &written, message)
            .with_advice(format!("{} writes a span of time as {text}, not as {written}.", dialect.name));
        finding.fixes.push(fix);
        finding
    }));
    for (span, feature, fix) in rewrite_hints(ctx) {
        let (written, instead) = (feature.syntax(), feature.alternative());
        let message = format!("{} does not support {written}: use {instead}", dialect.name);
        let mut finding = Finding::new(RULE.code, Severity::Error, span, written, message)
            .with_advice(format!("{written} does not exist in {}: use {instead}.", dialect.name));
        finding.fixes.push(fix);
        out.push(finding);
    }
    for (feature, place) in &ctx.resolution.features {
        if dialect.supports(*feature) {
            continue;
        }
        let span = Some(ctx.query.span(*place)).filter(|s| *s != Span::default());
        let span = span.map_or(trimmed_span(&ctx.query.source), |s| match feature {
            Feature::ParenthesizedSetOperand => syntax::parenthesized_span(s, ctx),
            Feature::KeywordCall | Feature::DistinctMultipleArguments => s,
            Feature::Minus => word_before(&ctx.query.source, s, "MINUS"),
            _ => extend_to_keyword(&ctx.query.source, s, feature.syntax()),
        });
        let (written, instead) = (feature.syntax(), feature.alternative());
        let mut finding = Finding::new(
            RULE.code,
            Severity::Error,
            span,
            written,
            format!("{} does not support {written}: use {instead}", dialect.name),
        )
        .with_advice(match instead.contains("own") {
            true => format!("{written} does not exist in {}. {}", dialect.name, dialect.prompt_notes),
            false => format!("{written} does not exist in {}: use {instead}.", dialect.name),
        });
        finding.fixes.extend(match feature {
            _ if !fixes::within_fix_budget(ctx, out) => None,
            Feature::FilterInArguments => rewrite_inline_filter(ctx, ctx.query.span(*place)),
            Feature::Extract => rewrite_extract(ctx, span.start),
            Feature::Interval => rewrite_interval_arithmetic(ctx, span),
            Feature::Convert | Feature::ConvertTypeFirst => rewrite_convert(ctx, span.start),
            Feature::CastToDate => rewrite_cast_to_date(ctx, span.start),
            Feature::KeywordCall => syntax::remove_call_parentheses(ctx.query.span(*place), ctx),
            Feature::DistinctMultipleArguments => rewrite_multi_distinct(ctx.query.span(*place), ctx),
            Feature::Separator => rewrite_separator(ctx.query.span(*place), ctx),
            Feature::DoubleColonCast => syntax::rewrite_double_colon(ctx.query.span(*place), ctx),
            Feature::TryCast => syntax::rewrite_try_cast(ctx.query.span(*place), ctx),
            Feature::ILike => syntax::rewrite_ilike(ctx.query.span(*place), ctx),
            Feature::TypedLiteral => syntax::rewrite_typed_literal(ctx.query.span(*place), ctx),
            Feature::SubstringFrom => syntax::rewrite_keyword_arguments(span.start, "SUBSTRING", ctx),
            Feature::ParenthesizedSetOperand => syntax::unwrap_set_operand(ctx.query.span(*place), ctx),
            Feature::AnyAll => quantified::rewrite_quantifier(span, ctx),
            Feature::Minus => Some(fixes::replace(span, "EXCEPT", Applicability::Safe, "MINUS is a synonym of EXCEPT")),
            Feature::Qualify => windows::rewrite_qualify(ctx.query.span(*place), ctx),
            Feature::DistinctOn => windows::rewrite_distinct_on(ctx.query.span(*place), ctx),
            Feature::PositionIn => syntax::rewrite_keyword_arguments(span.start, "POSITION", ctx),
            _ => None,
        });
        out.push(finding);
    }
}

/// Reports syntax that the grammar of the dialect itself does not parse.
fn unparsed_syntax_finding(ctx: &RuleContext<'_>) -> Option<Finding> {
    let dialect = ctx.context.dialect;
    if !ctx.query.steps.is_empty() || !fixes::within_fix_budget(ctx, &[]) {
        return None;
    }
    if !dialect.supports(Feature::AnyAll)
        && let Some(found) = quantified::rewrite_any_array(RULE.code, ctx)
    {
        return Some(found);
    }
    let tokens = fixes::significant_tokens(ctx);
    let selects = |i: usize| tokens.get(i).is_some_and(|w| fixes::keyword(&w.1) == Some(Keyword::SELECT));
    let is_minus = |i: &usize| ctx.query.text(tokens[*i].0).eq_ignore_ascii_case("minus") && selects(i + 1);
    let operators = (1..tokens.len()).filter(is_minus).map(|i| tokens[i].0);
    let edits: Vec<Edit> = operators.map(|span| Edit { span, text: "EXCEPT".into() }).collect();
    let span = edits.first().filter(|_| !dialect.supports(Feature::Minus))?.span;
    if !UnparsedQuery::parses_as_query(ctx, &edits) {
        return None;
    }
    let message = format!("{} does not support MINUS: use EXCEPT", dialect.name);
    let why = "MINUS is a synonym of EXCEPT".to_string();
    Some(
        Finding::new(RULE.code, Severity::Error, span, "MINUS", message)
            .with_advice(format!("MINUS does not exist in {}: use EXCEPT.", dialect.name))
            .with_fix(Fix { edits, applicability: Applicability::Safe, why, is_tied_with_previous: false }),
    )
}

/// Returns the span of the nearest such keyword before a span.
fn word_before(text: &str, span: Span, word: &str) -> Span {
    let start = text[..span.start].to_ascii_uppercase().rfind(word);
    start.map_or(span, |start| Span::new(start, start + word.len()))
}

/// Extends a span to the nearest keyword, which the parser's spans often omit.
fn extend_to_keyword(text: &str, span: Span, written: &str) -> Span {
    let word: String = written.chars().take_while(|c| c.is_ascii_uppercase() || *c == '_').collect();
    if word.is_empty() {
        return span;
    }
    // `FULL OUTER JOIN` is the longest distance between a keyword and its operand.
    let near = 20;
    let upper = text.to_ascii_uppercase();
    let starts = upper.match_indices(&word).map(|(i, _)| i);
    let alone = starts.filter(|i| !upper[..*i].ends_with(|c: char| c.is_alphanumeric() || c == '_'));
    let close = alone.filter(|i| i + near >= span.start && *i <= span.end + near);
    match close.min_by_key(|i| i.abs_diff(span.start)) {
        Some(start) => span.join(Span::new(start, start + word.len())),
        None => span,
    }
}
