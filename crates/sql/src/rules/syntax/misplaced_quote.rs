#![doc = include_str!("misplaced_quote.md")]

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::parsed_query::ParseFailure;
use crate::parse::token_stream::{UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `misplaced-quote` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "misplaced-quote",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("misplaced_quote.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of names that are examined.
const MAX_NAMES: usize = 12;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(ParseFailure::Syntax { .. }) = &ctx.query.failure else { return };
    if is_already_reported(out) || !ctx.query.steps.is_empty() {
        return;
    }
    let candidates = [closed_too_early(ctx), doubled_quotes(ctx), unclosed_quote(ctx)];
    for (span, message, edits) in candidates.into_iter().flatten() {
        if !UnparsedQuery::parses_as_query(ctx, &edits) {
            continue;
        }
        out.push(
            Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), message)
                .with_advice("Put one quote before and one after each name that needs them.")
                .with_fix(fix(edits, Applicability::Likely, "quoted like this, it is a name of the schema")),
        );
        return;
    }
}

type QuoteFix = (Span, String, Vec<Edit>);

/// Returns the names of the schema, longest first, so that a name is not mistaken for the prefix of
/// another.
fn schema_names<'s>(ctx: &'s RuleContext<'_>) -> Vec<&'s str> {
    let tables = ctx.context.schema.map_or(&[][..], |s| s.tables());
    let mut out: Vec<&str> = Vec::new();
    for table in tables {
        out.push(&table.name);
        out.extend(table.columns.iter().map(|c| c.name.as_str()));
    }
    out.sort_by_key(|n| (std::cmp::Reverse(n.len()), *n));
    out.dedup();
    out
}

fn starts_with_ignore_case(text: &str, name: &str) -> bool {
    text.get(..name.len()).is_some_and(|t| t.eq_ignore_ascii_case(name))
}

fn quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    text.char_indices().filter(|(_, c)| matches!(c, '`' | '"'))
}

/// Fixes a quote that closes before the name ends: `` `Net Price (EUR`) ``.
fn closed_too_early(ctx: &RuleContext<'_>) -> Option<QuoteFix> {
    let source = &ctx.query.source;
    let names = schema_names(ctx);
    let mut edits: Vec<Edit> = Vec::new();
    let mut first = None;
    for (start, quote) in quotes(source).take(4 * MAX_NAMES) {
        let inside = &source[start + 1..];
        let Some(len) = inside.find(quote).filter(|&n| n > 2) else { continue };
        let (head, tail) = (&inside[..len], &inside[len + 1..]);
        if names.iter().any(|n| n.eq_ignore_ascii_case(head)) {
            continue;
        }
        let rest = names.iter().find_map(|n| {
            let rest = n.get(head.len()..).filter(|r| !r.is_empty() && starts_with_ignore_case(n, head))?;
            // `name`s is more likely a plural than a name.
            (starts_with_ignore_case(tail, rest) && !rest.starts_with(char::is_alphanumeric)).then_some(rest.len())
        });
        let Some(rest) = rest else { continue };
        let close = start + 1 + len;
        edits.push(Edit { span: Span::new(close, close + 1), text: String::new() });
        edits.push(insert(close + 1 + rest, quote));
        first.get_or_insert((Span::new(close, close + 1), format!("`{}{}` is one name", head, &tail[..rest])));
    }
    first.map(|(span, message)| (span, message, edits))
}

/// Fixes quotes that were written twice: ``` ``name`` ```.
fn doubled_quotes(ctx: &RuleContext<'_>) -> Option<QuoteFix> {
    let source = &ctx.query.source;
    let mut edits: Vec<Edit> = Vec::new();
    for mark in ["``", "\"\""] {
        edits.extend(source.match_indices(mark).map(|(i, _)| Edit { span: Span::new(i, i + 1), text: String::new() }));
    }
    edits.sort_by_key(|e| e.span.start);
    let span = edits.first()?.span;
    Some((Span::new(span.start, span.end + 1), "the quote is repeated".into(), edits))
}

/// Fixes a quote before a name of the schema that no other quote closes: `` `Item Name FROM``.
fn unclosed_quote(ctx: &RuleContext<'_>) -> Option<QuoteFix> {
    let source = &ctx.query.source;
    let names = schema_names(ctx);
    let mut found = None;
    let mut edits = Vec::new();
    for (start, quote) in quotes(source).take(4 * MAX_NAMES) {
        let inside = &source[start + 1..];
        let Some(name) = names.iter().find(|n| n.len() > 2 && starts_with_ignore_case(inside, n)) else { continue };
        let after = inside[name.len()..].chars().next();
        if after.is_some_and(|c| c == quote || c.is_alphanumeric() || c == '_') {
            continue;
        }
        let end = start + 1 + name.len();
        edits.push(insert(end, quote));
        found.get_or_insert((Span::new(start, start + 1), format!("the quote before `{name}` is not closed")));
    }
    found.map(|(span, message)| (span, message, edits))
}
