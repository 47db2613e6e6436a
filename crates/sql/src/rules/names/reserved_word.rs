#![doc = include_str!("reserved_word.md")]

use crate::finding::{Applicability, Finding, Severity, Span};
use crate::fixes;
use crate::parse::parsed_query::ParseFailure;
use crate::parse::token_stream::{is_already_reported, is_misplaced_keyword, is_schema_name};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::rules::names::is_bare_function;

/// The `reserved-word` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "reserved-word",
    group: RuleGroup::Names,
    error_type: ErrorType::SyntaxError,
    repair_order: 4,
    page: include_str!("reserved_word.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let dialect = ctx.context.dialect;
    for name in &ctx.resolution.unquoted_identifiers {
        // `dual` in `FROM dual` is not a user's name.
        let own = dialect.system_tables.iter().any(|t| t.eq_ignore_ascii_case(&name.value));
        if dialect.reserved_words.contains(&name.value) && !own && !is_bare_function(name, ctx) {
            let span = ctx.query.span(name.span);
            if is_misplaced_keyword(ctx, name) {
                if !is_already_reported(out) {
                    out.push(misplaced_finding(ctx, span, &name.value));
                }
                continue;
            }
            let mut finding = reserved_word_finding(ctx, span, &name.value);
            if is_truncated(ctx, span, &name.value) {
                finding.fixes.clear();
            }
            out.push(finding);
        }
    }
    // The parser stopped at, or right after, a reserved word that is a name of the schema.
    let Some(ParseFailure::Syntax { at, .. }) = &ctx.query.failure else { return };
    if is_already_reported(out) {
        return;
    }
    let before = ctx.query.source[..at.start].trim_end();
    let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
    for span in [*at, Span::new(start, before.len())] {
        let word = ctx.query.text(span);
        // In `ORDER BY` and `GROUP BY` it is a keyword.
        let by = ctx.query.source[span.end..].trim_start().get(..2).is_some_and(|w| w.eq_ignore_ascii_case("by"));
        if dialect.reserved_words.contains(word) && is_schema_name(ctx, word) && !by {
            out.push(reserved_word_finding(ctx, span, word));
            return;
        }
    }
}

/// Returns whether the text was truncated after a keyword, as in `FROM matches OR`. At the end of a
/// text it is more likely a keyword than a name, unless AS precedes it.
fn is_truncated(ctx: &RuleContext<'_>, span: Span, word: &str) -> bool {
    let source = &ctx.query.source;
    let named = source[..span.start].trim_end().to_ascii_lowercase().ends_with(" as");
    source[span.end..].trim().is_empty() && !named && !is_schema_name(ctx, word)
}

/// Reports a keyword that is not a name in the schema, so missing quotes are not the problem.
fn misplaced_finding(ctx: &RuleContext<'_>, span: Span, word: &str) -> Finding {
    let message = format!("`{word}` is used where a name or a value is expected");
    Finding::new(RULE.code, Severity::Error, span, word, message)
        .with_advice(format!(
            "{word} is out of place: something before it is missing or in the wrong order. Write the query again in {} syntax.",
            ctx.context.dialect.name
        ))
}

fn reserved_word_finding(ctx: &RuleContext<'_>, span: Span, word: &str) -> Finding {
    let dialect = ctx.context.dialect;
    let quoted = dialect.quote_identifier(word);
    Finding::new(
        "reserved-word",
        Severity::Error,
        span,
        word,
        format!("`{word}` is a reserved word of {}: as a name it needs quotes", dialect.name),
    )
    .with_suggestion(Some(quoted.clone()))
    .with_fix(fixes::replace(span, quoted.clone(), Applicability::Safe, "a reserved word is a name only in quotes"))
    .with_advice(format!("{word} is a reserved word: write {quoted}."))
}
