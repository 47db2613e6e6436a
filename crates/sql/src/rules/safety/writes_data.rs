#![doc = include_str!("writes_data.md")]

use crate::finding::{Finding, Severity, Span, trimmed_span};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::safety::side_effects::SideEffect;
use crate::text::lexical::statement_starts;

/// The `writes-data` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "writes-data",
    group: RuleGroup::Safety,
    error_type: ErrorType::NotReadOnly,
    page: include_str!("writes_data.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    for effect in ctx.side_effects {
        match effect {
            SideEffect::Statement(index) => {
                let (source, sql) = (&ctx.query.source, &ctx.query.sql);
                let words = first_words(sql, *index);
                let verb = sql[words.start..words.end].to_ascii_uppercase();
                // Text around the statement is not part of it.
                let span = source.find(sql).map(|at| Span::new(at + words.start, at + words.end));
                out.push(writes_data_finding(span.unwrap_or(trimmed_span(source)), &verb));
            }
            SideEffect::Writes(verb, place) => {
                let span = Some(ctx.query.span(*place)).filter(|s| s.end > s.start);
                out.push(writes_data_finding(span.unwrap_or(trimmed_span(&ctx.query.source)), verb));
            }
            SideEffect::Locks(_)
            | SideEffect::Call(..)
            | SideEffect::FieldAccess(..)
            | SideEffect::TableFunction(..)
            | SideEffect::TableName(..)
            | SideEffect::TableCommand(_) => {}
        }
    }
}

fn writes_data_finding(span: Span, verb: &str) -> Finding {
    Finding::new(
        RULE.code,
        Severity::Error,
        span,
        verb,
        format!("{verb} is not allowed: only read-only queries (SELECT) are run"),
    )
    .with_advice(format!("{verb} is refused. Write one SELECT that only reads."))
}

/// Returns the span of the first keyword of a statement, and of the second if it names what is
/// created, altered or dropped.
fn first_words(sql: &str, index: usize) -> Span {
    let start = statement_starts(sql).get(index).copied().unwrap_or(0);
    let text = &sql[start..];
    let word = |from: usize| {
        let rest = &text[from..];
        let begin = from + (rest.len() - rest.trim_start().len());
        begin + text[begin..].find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len() - begin)
    };
    let first = word(0);
    let twofold = ["create", "alter", "drop"].iter().any(|w| text[..first].eq_ignore_ascii_case(w));
    Span::new(start, start + if twofold { word(first) } else { first })
}
