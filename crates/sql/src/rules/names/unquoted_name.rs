#![doc = include_str!("unquoted_name.md")]

use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::fixes;
use crate::parse::parsed_query::ParseFailure;
use crate::resolve::FunctionCall;
use crate::rule::{ErrorType, RewriteScope, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::names::unknown_function::{dialects_with_function, is_unknown_function};
use crate::text::lexical::mask_quotes_and_comments;

/// The `unquoted-name` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unquoted-name",
    group: RuleGroup::Names,
    error_type: ErrorType::SyntaxError,
    repair_order: 2,
    // Every name that was split into tokens is joined at once.
    rewrites: Some(RewriteScope { clauses: &[], tokens: &["a name"], moves: false }),
    page: include_str!("unquoted_name.md"),
    check,
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(schema) = ctx.context.schema else { return };
    let parses = match &ctx.query.failure {
        Some(ParseFailure::Syntax { .. }) => false,
        None => true,
        Some(_) => return,
    };
    // Text that parses contains a split name only if it calls an unknown function.
    let made_up = |c: &FunctionCall<'_>| is_unknown_function(c, ctx) && dialects_with_function(c, ctx).is_empty();
    let calls: Vec<usize> = ctx.resolution.calls.iter().filter(|c| made_up(c)).map(|c| call_start(c, ctx)).collect();
    // A reserved word cannot be a name either, so one at the start of such a name is its first
    // token.
    let reserved =
        ctx.resolution.unquoted_identifiers.iter().filter(|n| ctx.context.dialect.reserved_words.contains(&n.value));
    let pieces: Vec<usize> = reserved.map(|n| ctx.query.span(n.span).start).collect();
    if parses && calls.is_empty() && pieces.is_empty() {
        return;
    }
    let code = mask_quotes_and_comments(&ctx.query.source);
    let mut names: Vec<&str> = Vec::new();
    for table in schema.tables() {
        let own = std::iter::once(table.name.as_str()).chain(table.columns.iter().map(|c| c.name.as_str()));
        names.extend(own.filter(|n| n.contains([' ', '(', '%', '-', '/']) && n.len() > 3));
    }
    // Longest first: `Free Meal Count (K-12)` contains `Free Meal Count`.
    names.sort_by_key(|n| (std::cmp::Reverse(n.len()), *n));
    names.dedup();
    let mut found: Vec<(Span, &str)> = Vec::new();
    for span in unknown_call_spans(ctx) {
        let squeezed = alphanumeric_lowercase(ctx.query.text(span));
        let Some(name) = names.iter().find(|n| alphanumeric_lowercase(n) == squeezed) else { continue };
        if (!parses || calls.contains(&span.start)) && ctx.query.text(span) != *name {
            found.push((span, name));
        }
    }
    for name in names {
        for (start, _) in code.match_indices(&name.to_ascii_lowercase()) {
            let span = Span::new(start, start + name.len());
            let whole = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
            let alone = whole(code[..start].chars().next_back()) && whole(code[span.end..].chars().next());
            let broken = !parses || pieces.contains(&start);
            if broken && alone && !found.iter().any(|(f, _)| f.start < span.end && span.start < f.end) {
                found.push((span, name));
            }
        }
    }
    found.sort_by_key(|(span, _)| *span);
    let Some((first, name)) = found.first().copied() else { return };
    let dialect = ctx.context.dialect;
    let edits = found.iter().map(|(span, name)| Edit { span: *span, text: dialect.quote_identifier(name) }).collect();
    let quoted = dialect.quote_identifier(name);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            first,
            name,
            format!("`{name}` contains spaces or special characters: it needs quotes"),
        )
        .with_suggestion(Some(quoted.clone()))
        .with_advice(format!("{name} needs quotes: write {quoted}."))
        .with_fix(Fix {
            is_tied_with_previous: false,
            edits,
            applicability: Applicability::Safe,
            why: "an identifier with spaces or special characters must be quoted".into(),
        }),
    );
}

fn call_start(call: &FunctionCall<'_>, ctx: &RuleContext<'_>) -> usize {
    ctx.query.span(call.span).start
}

/// Returns the letters and digits of a name, in lower case.
fn alphanumeric_lowercase(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns the spans, including parentheses, of what look like calls of functions that the dialect
/// does not have: `Enrollment(K-12)`.
fn unknown_call_spans(ctx: &RuleContext<'_>) -> Vec<Span> {
    if !fixes::within_fix_budget(ctx, &[]) {
        return Vec::new();
    }
    let tokens = fixes::significant_tokens(ctx);
    let functions = ctx.context.dialect.functions;
    let mut out: Vec<Span> = Vec::new();
    for (at, (span, token)) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let opens = tokens.get(at + 1).is_some_and(|(_, t)| *t == Token::LParen);
        let known = functions.get(&word.value.to_lowercase()).is_some();
        if word.quote_style.is_some() || !opens || known || out.last().is_some_and(|o| span.start < o.end) {
            continue;
        }
        // A name has no nested parentheses.
        let close = tokens[at + 2..].iter().find(|(_, t)| matches!(t, Token::LParen | Token::RParen));
        out.extend(close.filter(|(_, t)| *t == Token::RParen).map(|(c, _)| span.join(*c)));
    }
    out
}
