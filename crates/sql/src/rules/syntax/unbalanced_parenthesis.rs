#![doc = include_str!("unbalanced_parenthesis.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, delete, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `unbalanced-parenthesis` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "unbalanced-parenthesis",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("unbalanced_parenthesis.md"),
    check,
    ..Rule::DEFAULTS
};

/// Maximum number of positions that are tried.
const MAX_ATTEMPTS: usize = 32;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut open: Vec<usize> = Vec::new();
    for (i, word) in unparsed.tokens.iter().enumerate() {
        match word.token {
            Token::LParen => open.push(i),
            Token::RParen if open.pop().is_none() => {
                report_surplus(ctx, &unparsed, i, out);
                return;
            }
            _ => {}
        }
    }
    if !open.is_empty() {
        report_missing(ctx, &unparsed, &open, out);
    }
}

/// Reports more `)` than `(`; the first that closes nothing is at a token.
fn report_surplus(ctx: &RuleContext<'_>, unparsed: &UnparsedQuery<'_>, at: usize, out: &mut Vec<Finding>) {
    let end = unparsed.end();
    let closes = |i: usize| unparsed.is_token(i, &Token::RParen);
    // Adjacent parentheses are interchangeable, so only the last of them is tried.
    let places = (0..=at).rev().filter(|&i| closes(i) && !(i < at && closes(i + 1))).take(MAX_ATTEMPTS);
    let edits = |i: usize| -> Vec<Edit> {
        let at_end = unparsed.tokens[i..end].iter().all(|w| w.token == Token::RParen);
        let last = if at_end { end } else { i + 1 };
        unparsed.tokens[i..last].iter().map(|w| delete(w.span)).collect()
    };
    if let Some((span, edits)) = unopened_call_fix(unparsed, at) {
        let name = ctx.query.text(span);
        out.push(
            Finding::new(RULE.code, Severity::Error, span, name, format!("the parenthesis after {name} is missing"))
                .with_advice(format!("Write {name}(…), with a ( after the name of the function."))
                .with_fix(fix(
                    edits,
                    Applicability::Likely,
                    format!("{name} is a function call, and its arguments end with the parenthesis"),
                )),
        );
        return;
    }
    let mut found: Vec<usize> = places.filter(|&i| unparsed.parses_with(&edits(i))).collect();
    // A parenthesis right after another is the likeliest to be superfluous.
    let doubled = |i: usize| i > 0 && closes(i - 1);
    found.sort_by_key(|&i| !doubled(i));
    found.truncate(4);
    let rivals = found.iter().skip(1).any(|&i| doubled(i) == doubled(found[0]));
    let at_end = found.first() == Some(&at) && unparsed.tokens[at..end].iter().all(|w| w.token == Token::RParen);
    let sure = found.len() == 1 || at_end || (found.first() == Some(&at) && doubled(at) && !rivals);
    let sure = if sure { Applicability::Likely } else { Applicability::Suggested };
    let why = "without this parenthesis the query parses";
    let fixes: Vec<Fix> = found.into_iter().map(|i| fix(edits(i), sure, why)).collect();
    if fixes.is_empty() {
        return;
    }
    let span = unparsed.tokens[at].span;
    let mut finding =
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), "this parenthesis closes nothing")
            .with_advice("There is a ) too many. Each ( has one ).");
    finding.fixes = fixes;
    out.push(finding);
}

/// Fixes an aggregate that lost its `(` before the `)` that closes nothing: `SUMo.total)`.
fn unopened_call_fix(unparsed: &UnparsedQuery<'_>, close: usize) -> Option<(Span, Vec<Edit>)> {
    const CALLS: [&str; 5] = ["COUNT", "SUM", "AVG", "MIN", "MAX"];
    // Its only argument: a star, or a column with its table.
    let argument = |w: &Token| matches!(w, Token::Word(_) | Token::Period | Token::Mul);
    let start = (0..close).rev().take(4).take_while(|&i| argument(&unparsed.tokens[i].token)).last()?;
    (start..close).find_map(|i| {
        let Token::Word(word) = &unparsed.tokens[i].token else { return None };
        let name = CALLS.iter().find(|c| word.value.get(..c.len()).is_some_and(|w| w.eq_ignore_ascii_case(c)))?;
        let rest = &word.value[name.len()..];
        let qualifies = unparsed.is_token(i + 1, &Token::Period);
        let known =
            if rest.is_empty() { i + 1 < close && !qualifies } else { qualifies || unparsed.is_schema_name(rest) };
        let span = unparsed.tokens[i].span;
        let name = Span::new(span.start, span.start + name.len());
        let edits = vec![insert(name.end, "(")];
        (word.quote_style.is_none() && known && !unparsed.is_schema_name(&word.value) && unparsed.parses_with(&edits))
            .then_some((name, edits))
    })
}

/// Reports more `(` than `)`.
fn report_missing(ctx: &RuleContext<'_>, unparsed: &UnparsedQuery<'_>, open: &[usize], out: &mut Vec<Finding>) {
    let end = unparsed.end();
    let last = unparsed.tokens[end - 1].span.end;
    let mut fixes: Vec<Fix> = Vec::new();
    let at_end = vec![insert(last, ")".repeat(open.len()))];
    if unparsed.parses_with(&at_end) && !makes_tuple(unparsed, end) {
        let applicability =
            if is_complete(ctx, unparsed, open) { Applicability::Likely } else { Applicability::Suggested };
        fixes.push(fix(at_end, applicability, "the query is complete except for the closing parenthesis"));
    }
    if open.len() == 1 {
        let why = "with a parenthesis here the query parses";
        let edit = |i: usize| vec![insert(unparsed.tokens[i - 1].span.end, ")")];
        let mut found: Vec<usize> = closing_positions(unparsed, open[0])
            .into_iter()
            .filter(|&i| unparsed.parses_with(&edit(i)) && !makes_tuple(unparsed, i))
            .collect();
        // A position before another parenthesis is the least likely.
        if found.iter().any(|&i| !unparsed.is_token(i, &Token::RParen)) {
            found.retain(|&i| !unparsed.is_token(i, &Token::RParen));
        }
        // `COUNT(*` has no other position for its parenthesis.
        let star = |i: usize| unparsed.is_token(i - 1, &Token::Mul) && unparsed.is_token(i - 2, &Token::LParen);
        if let Some(&place) = found.iter().find(|&&i| star(i)) {
            fixes = vec![fix(edit(place), Applicability::Likely, "only a parenthesis can follow the * of a call")];
        } else {
            let many = found.len() + fixes.len() > 1;
            let sure = if many { Applicability::Suggested } else { Applicability::Likely };
            fixes.extend(found.into_iter().take(4).map(|i| fix(edit(i), sure, why)));
        }
    }
    let Some(first) = open.last().filter(|_| !fixes.is_empty()) else { return };
    let span = unparsed.tokens[*first].span;
    let mut finding =
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), "this parenthesis is never closed")
            .with_advice("There is a ) missing. Each ( has one ).");
    finding.fixes = fixes;
    out.push(finding);
}

/// Returns the positions inside the text at which one `)` may be missing, last first: before a
/// comma, an alias, a clause or another parenthesis, and after the star of a call.
fn closing_positions(unparsed: &UnparsedQuery<'_>, open: usize) -> Vec<usize> {
    let depth = unparsed.tokens[open].depth + 1;
    let may_end = |&i: &usize| {
        let here = &unparsed.tokens[i];
        let star = unparsed.is_token(i - 1, &Token::Mul) && unparsed.is_token(i - 2, &Token::LParen);
        // Before and after a parenthesis are equivalent, so only the last of several counts.
        let closes = here.token == Token::RParen && !unparsed.is_token(i + 1, &Token::RParen);
        let stands = closes
            || here.token == Token::Comma
            || matches!(
                unparsed.keyword(i),
                Some(
                    Keyword::AS
                        | Keyword::ASC
                        | Keyword::DESC
                        | Keyword::UNION
                        | Keyword::EXCEPT
                        | Keyword::INTERSECT
                        | Keyword::THEN
                )
            )
            || unparsed.clause_at(i).is_some_and(|c| c != ClauseKind::Select);
        let inside = here.depth + usize::from(here.token == Token::RParen) >= depth;
        let begins = matches!(unparsed.tokens[i - 1].token, Token::LParen | Token::Comma | Token::Period);
        (stands || star) && inside && !begins && !(star && here.token == Token::RParen)
    };
    (open + 2..unparsed.end()).rev().filter(may_end).take(MAX_ATTEMPTS).collect()
}

/// Returns whether a `)` before a token makes a list of something that is not a call: `(a, b)` is
/// hardly ever meant.
fn makes_tuple(unparsed: &UnparsedQuery<'_>, place: usize) -> bool {
    // For each open parenthesis: whether it may contain a list, and whether it contains a comma.
    let mut open: Vec<(bool, bool)> = Vec::new();
    let is_tuple = |(may, comma): (bool, bool)| !may && comma;
    for i in 0..unparsed.end() {
        if i == place && open.pop().is_some_and(is_tuple) {
            return true;
        }
        match unparsed.tokens[i].token {
            Token::LParen => open.push((may_hold_list(unparsed, i), false)),
            Token::RParen if open.pop().is_some_and(is_tuple) => return true,
            Token::Comma => {
                if let Some(last) = open.last_mut() {
                    last.1 = true;
                }
            }
            _ => {}
        }
    }
    open.into_iter().any(is_tuple)
}

/// Returns whether a parenthesis may contain a list: a call, `IN (…)`, a subquery.
fn may_hold_list(unparsed: &UnparsedQuery<'_>, open: usize) -> bool {
    let selects = matches!(unparsed.keyword(open + 1), Some(Keyword::SELECT | Keyword::WITH));
    let before = open.checked_sub(1).and_then(|i| unparsed.keyword(i));
    let grouping = matches!(
        before,
        Some(
            Keyword::SELECT
                | Keyword::DISTINCT
                | Keyword::WHERE
                | Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::ON
                | Keyword::HAVING
                | Keyword::BY
                | Keyword::WHEN
                | Keyword::THEN
                | Keyword::ELSE
                | Keyword::BETWEEN
        )
    );
    selects || (before.is_some() && !grouping)
}

/// Returns whether the text appears to be complete.
///
/// Truncated text may have lost more than a parenthesis: half a number looks like a number, and a
/// whole condition may have followed a name.
fn is_complete(ctx: &RuleContext<'_>, unparsed: &UnparsedQuery<'_>, open: &[usize]) -> bool {
    if unparsed.ends_with_semicolon() {
        return true;
    }
    // Models do not end with a space, unless generation is stopped.
    if ctx.query.source.ends_with(' ') {
        return false;
    }
    let ends = match &unparsed.tokens[unparsed.end() - 1].token {
        Token::RParen | Token::SingleQuotedString(_) => true,
        Token::Word(word) => {
            word.quote_style.is_some()
                || matches!(word.keyword, Keyword::ASC | Keyword::DESC | Keyword::NULL | Keyword::END)
        }
        _ => false,
    };
    // A truncated condition leaves many open; only one is forgotten.
    ends && open.len() == 1
}
