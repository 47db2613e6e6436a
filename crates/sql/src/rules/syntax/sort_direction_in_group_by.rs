#![doc = include_str!("sort_direction_in_group_by.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Severity};
use crate::parse::token_stream::{ClauseKind, UnparsedQuery, delete, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `sort-direction-in-group-by` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "sort-direction-in-group-by",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("sort_direction_in_group_by.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    for block in unparsed.query_blocks() {
        let Some(group) = block.clauses.iter().position(|c| c.0 == ClauseKind::GroupBy) else { continue };
        let start = block.clauses[group].1;
        let end = block.clauses.get(group + 1).map_or(block.end, |c| c.1);
        let Some(word) = end.checked_sub(1).filter(|&i| {
            i > start + 2
                && unparsed.tokens[i].depth == block.depth
                && matches!(unparsed.keyword(i), Some(Keyword::DESC | Keyword::ASC))
        }) else {
            continue;
        };
        if block.clauses.iter().any(|c| c.0 == ClauseKind::OrderBy) {
            continue;
        }
        // Only the last of several names is a sort key.
        let own = |i: &usize| unparsed.tokens[*i].depth == block.depth && unparsed.is_token(*i, &Token::Comma);
        let from = (start + 2..word).rev().find(own).map_or(start + 2, |i| i + 1);
        let sorted = format!("ORDER BY {} {}", unparsed.slice(from, word), unparsed.slice(word, word + 1));
        // HAVING belongs to the groups and stays with them.
        let having = block.clauses.get(group + 1).filter(|c| c.0 == ClauseKind::Having);
        let both: Vec<Edit> = match having {
            None => vec![Edit { span: unparsed.tokens[word].span, text: sorted }],
            Some(_) => {
                let next = block.clauses.get(group + 2).map_or(block.end, |c| c.1);
                let after = unparsed.tokens[next - 1].span.end;
                vec![delete(unparsed.tokens[word].span), insert(after, format!(" {sorted}"))]
            }
        };
        let only = vec![Edit { span: unparsed.tokens[start].span, text: "ORDER".into() }];
        let selected = block.clauses.get(1).map_or(block.end, |c| c.1);
        let aggregates = (block.clauses[0].1..selected).any(|i| unparsed.is_aggregate_call(i));
        let grouped = fix(both, Applicability::Likely, "old MySQL sorts groups like this; elsewhere ORDER BY does it");
        let sorted =
            fix(only, Applicability::Likely, "DESC and ASC belong to ORDER BY, and the query has no aggregates");
        let mut fixes = vec![grouped];
        if !aggregates && having.is_none() {
            fixes.insert(0, sorted);
        }
        fixes.retain(|f| unparsed.parses_with(&f.edits));
        let span = unparsed.tokens[word].span;
        let which = ctx.query.text(span);
        let mut finding = Finding::new(
            RULE.code,
            Severity::Error,
            span,
            which,
            format!("GROUP BY does not sort: {which} belongs to ORDER BY"),
        )
        .with_advice("GROUP BY takes no ASC or DESC: sort with ORDER BY after it.");
        if fixes.is_empty() {
            continue;
        }
        finding.fixes = fixes;
        out.push(finding);
        return;
    }
}
