#![doc = include_str!("dangling_keyword.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Finding, Severity, Span};
use crate::parse::token_stream::{UnparsedQuery, delete, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `dangling-keyword` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "dangling-keyword",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("dangling_keyword.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let idle: Vec<Span> = (1..unparsed.tokens.len()).filter_map(|i| dangling_span(&unparsed, i)).collect();
    let Some(&span) = idle.first() else { return };
    let edits: Vec<_> = idle.iter().map(|s| delete(*s)).collect();
    if !unparsed.parses_with(&edits) {
        return;
    }
    let word = ctx.query.text(span);
    // At the very end of an unterminated text, more was to come.
    let last = idle.last().is_some_and(|s| ctx.query.source[s.end..].trim().is_empty());
    let (sure, why) = match last {
        true => (Applicability::Suggested, "nothing else of the query is removed, but more may have been meant"),
        false => {
            (Applicability::Likely, "nothing else of the query is removed: what the keyword introduces is missing")
        }
    };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, word, format!("nothing follows that `{word}` could introduce"))
            .with_advice(format!("Complete what {word} begins, or leave it out."))
            .with_fix(fix(edits, sure, why)),
    );
}

/// Returns the span of keywords whose operand is missing: a clause, a closing parenthesis or the
/// end follows instead.
fn dangling_span(unparsed: &UnparsedQuery<'_>, at: usize) -> Option<Span> {
    let word = unparsed.tokens.get(at)?;
    if unparsed.is_token(at - 1, &Token::Period) {
        return None;
    }
    let len = match unparsed.keyword(at) {
        Some(Keyword::AND | Keyword::OR | Keyword::WHERE | Keyword::HAVING) => 1,
        Some(Keyword::LIMIT | Keyword::OFFSET) => 1,
        Some(Keyword::GROUP | Keyword::ORDER) if unparsed.keyword(at + 1) == Some(Keyword::BY) => 2,
        _ if word.token == Token::Comma => 1,
        _ => return None,
    };
    let next = at + len;
    let ends = match unparsed.tokens.get(next).map(|w| &w.token) {
        None | Some(Token::RParen | Token::SemiColon) => true,
        Some(_) => {
            let set = matches!(unparsed.keyword(next), Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT));
            // `WHERE AND a = 1` has one keyword too many.
            let doubled = len == 1
                && matches!(unparsed.keyword(at), Some(Keyword::AND | Keyword::OR))
                && matches!(unparsed.keyword(at - 1), Some(Keyword::WHERE | Keyword::AND | Keyword::OR | Keyword::ON));
            set || doubled || unparsed.clause_at(next).is_some_and(|c| c > crate::parse::token_stream::ClauseKind::Join)
        }
    };
    ends.then(|| word.span.join(unparsed.tokens[next - 1].span))
}
