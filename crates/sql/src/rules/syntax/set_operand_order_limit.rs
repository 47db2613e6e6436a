#![doc = include_str!("set_operand_order_limit.md")]

use sqlparser::keywords::Keyword;

use crate::dialect::Feature;
use crate::finding::{Applicability, Edit, Finding, Severity};
use crate::parse::token_stream::{ClauseKind, QueryBlock, UnparsedQuery, fix, insert, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `set-operand-order-limit` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "set-operand-order-limit",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("set_operand_order_limit.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let blocks = unparsed.query_blocks();
    // Operands of the first set operation: blocks of the same depth.
    let joined =
        |b: &QueryBlock| matches!(unparsed.keyword(b.end), Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT));
    let Some(early) = blocks.iter().position(|b| joined(b) && sort_or_limit_clause(b).is_some()) else { return };
    let depth = blocks[early].depth;
    let parts: Vec<&QueryBlock> = blocks.iter().filter(|b| b.depth == depth).collect();
    let Some(last) = parts.last().filter(|b| !joined(b)) else { return };
    if parts.iter().filter(|b| joined(b)).count() + 1 != parts.len() {
        return;
    }
    let limited = |b: &QueryBlock| b.clauses.iter().any(|c| c.0 == ClauseKind::Limit);
    // The clause at the end belongs to the last operand if each of the others has its own.
    let each = parts.iter().all(|b| limited(b));
    let none = sort_or_limit_clause(last).is_none();
    let plain = ctx.context.dialect.supports(Feature::ParenthesizedSetOperand);
    let mut edits: Vec<Edit> = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        if sort_or_limit_clause(part).is_none() || (n + 1 == parts.len() && !each) {
            continue;
        }
        let (open, close) = match plain {
            true => ("(".to_string(), ")".to_string()),
            false => ("SELECT * FROM (".to_string(), format!(") AS part_{}", n + 1)),
        };
        edits.push(insert(unparsed.tokens[part.clauses[0].1].span.start, open));
        edits.push(insert(unparsed.tokens[part.end.min(unparsed.end()) - 1].span.end, close));
    }
    if edits.is_empty() || !unparsed.parses_with(&edits) {
        return;
    }
    let (clause, at) = sort_or_limit_clause(&blocks[early]).unwrap_or((ClauseKind::OrderBy, 0));
    let span = unparsed.tokens[at].span;
    let applicability = if each || none { Applicability::Likely } else { Applicability::Suggested };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            ctx.query.text(span),
            format!(
                "{} comes after the last part of a set operation; a part with its own goes in parentheses",
                clause.as_str()
            ),
        )
        .with_advice("Sort and limit the whole after its last part; to limit one part, make a subquery of it.")
        .with_fix(fix(
            edits,
            applicability,
            "each part is sorted and limited separately, then the parts are combined",
        )),
    );
}

/// Returns the first clause of a block that sorts or limits.
fn sort_or_limit_clause(block: &QueryBlock) -> Option<(ClauseKind, usize)> {
    block.clauses.iter().copied().find(|c| matches!(c.0, ClauseKind::OrderBy | ClauseKind::Limit))
}
