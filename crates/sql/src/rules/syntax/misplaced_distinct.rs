#![doc = include_str!("misplaced_distinct.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Severity, Span};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, delete, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `misplaced-distinct` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "misplaced-distinct",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("misplaced_distinct.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of queries that are examined; text with more is not repaired.
const MAX_ATTEMPTS: usize = 16;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error_or_misparse(ctx).filter(|_| !is_already_reported(out)) else {
        return;
    };
    for block in unparsed.query_blocks().into_iter().take(MAX_ATTEMPTS) {
        let select = block.clauses[0].1;
        let end = block.clauses.get(1).map_or(block.end, |c| c.1);
        let own = |i: &usize| unparsed.tokens[*i].depth == block.depth;
        let late = (select + 2..end)
            .filter(own)
            .find(|&i| unparsed.keyword(i) == Some(Keyword::DISTINCT) && unparsed.is_token(i - 1, &Token::Comma));
        let Some(late) = late else { continue };
        let first = unparsed.keyword(select + 1) == Some(Keyword::DISTINCT);
        let span = unparsed.tokens[late].span;
        let next = unparsed.tokens.get(late + 1).map_or(span.end, |w| w.span.start);
        let mut edits = vec![delete(Span::new(span.start, next))];
        if !first {
            edits.insert(0, insert(unparsed.tokens[select].span.end, " DISTINCT"));
        }
        if block.clauses.get(1).is_none_or(|c| c.0 != ClauseKind::From) || !unparsed.parses_with(&edits) {
            continue;
        }
        // Next to an aggregate, DISTINCT may be meant for its argument.
        let aggregates = (select..end).any(|i| unparsed.is_aggregate_call(i));
        let applicability = if aggregates { Applicability::Suggested } else { Applicability::Likely };
        out.push(
            Finding::new(
                RULE.code,
                Severity::Error,
                span,
                ctx.query.text(span),
                "DISTINCT comes directly after SELECT: it applies to whole rows",
            )
            .with_advice("Write SELECT DISTINCT a, b: DISTINCT is written once, for the whole row.")
            .with_fix(fix(
                edits,
                applicability,
                "DISTINCT applies to whole rows and is written once, after SELECT",
            )),
        );
        return;
    }
}
