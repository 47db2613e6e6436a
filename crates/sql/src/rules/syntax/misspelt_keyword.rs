#![doc = include_str!("misspelt_keyword.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity};
use crate::parse::token_stream::{UnparsedQuery, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::text::similarity::is_typo;

/// The `misspelt-keyword` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "misspelt-keyword",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("misspelt_keyword.md"),
    check,
    ..Rule::DEFAULTS
};

/// Keywords of clauses; shorter ones are too similar to names.
const CLAUSE_KEYWORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "HAVING",
    "LIMIT",
    "JOIN",
    "INNER",
    "LEFT",
    "UNION",
    "DISTINCT",
    "BETWEEN",
    "LIKE",
    "DESC",
    "OFFSET",
    "EXCEPT",
    "INTERSECT",
    "EXISTS",
    "THEN",
    "ELSE",
    "WHEN",
];

/// Two keywords written as one.
const GLUED_KEYWORDS: &[(&str, &str)] = &[
    ("GROUPBY", "GROUP BY"),
    ("ORDERBY", "ORDER BY"),
    ("GROUP_BY", "GROUP BY"),
    ("ORDER_BY", "ORDER BY"),
    ("PARTITIONBY", "PARTITION BY"),
    ("INNERJOIN", "INNER JOIN"),
    ("LEFTJOIN", "LEFT JOIN"),
];

/// Maximum number of tokens that are tried.
const MAX_ATTEMPTS: usize = 16;

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    // Half a keyword at the end of an unterminated text is truncated, not misspelled.
    let end = if unparsed.ends_with_semicolon() { unparsed.end() } else { unparsed.end() - 1 };
    let mut found = Vec::new();
    let mut tries = 0;
    for at in 0..end {
        let Token::Word(word) = &unparsed.tokens[at].token else { continue };
        if word.quote_style.is_some() || word.keyword != Keyword::NoKeyword {
            continue;
        }
        let known = ctx.context.schema.is_some_and(|s| {
            s.tables().iter().any(|t| t.name.eq_ignore_ascii_case(&word.value) || t.column(&word.value).is_some())
        });
        if known {
            continue;
        }
        let upper = word.value.to_ascii_uppercase();
        let glued = GLUED_KEYWORDS.iter().find(|(one, _)| *one == upper).map(|(_, two)| two);
        for right in glued.into_iter().chain(CLAUSE_KEYWORDS.iter().filter(|w| is_typo(&upper, w))) {
            let edits = vec![Edit { span: unparsed.tokens[at].span, text: (*right).to_string() }];
            tries += 1;
            if tries > MAX_ATTEMPTS {
                return;
            }
            if unparsed.parses_with(&edits) {
                found.push((at, *right, edits));
            }
        }
    }
    if found.len() > 1 {
        return;
    }
    let Some((at, right, edits)) = found.pop() else { return };
    let span = unparsed.tokens[at].span;
    let word = ctx.query.text(span);
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            word,
            format!("`{word}` is not an SQL keyword (did you mean {right}?)"),
        )
        .with_suggestion(Some(right.to_string()))
        .with_advice(format!("{word} should be {right}."))
        .with_fix(fix(
            edits,
            Applicability::Likely,
            format!("with {right} the query parses, and nothing is called {word}"),
        )),
    );
}
