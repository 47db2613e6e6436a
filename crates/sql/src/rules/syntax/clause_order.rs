#![doc = include_str!("clause_order.md")]

use sqlparser::keywords::Keyword;

use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::parse::token_stream::{ClauseKind, QueryBlock, UnparsedQuery, fix, is_already_reported};
use crate::rule::{ErrorType, Rule, RuleContext};
use crate::rule_group::RuleGroup;

/// The `clause-order` rule, described in the module documentation.
pub static RULE: Rule = Rule {
    code: "clause-order",
    group: RuleGroup::Syntax,
    error_type: ErrorType::SyntaxError,
    repair_order: 0,
    page: include_str!("clause_order.md"),
    check,
    ..Rule::DEFAULTS
};

fn check(ctx: &RuleContext<'_>, out: &mut Vec<Finding>) {
    let Some(unparsed) = UnparsedQuery::from_syntax_error(ctx).filter(|_| !is_already_reported(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<(Span, String)> = None;
    for block in unparsed.query_blocks() {
        let Some((late, early)) = misplaced_clause(&block) else { continue };
        let Some(edit) = reorder_clauses(ctx, &unparsed, &block) else { return };
        if edits.iter().any(|e| e.span.start < edit.span.end && edit.span.start < e.span.end) {
            return;
        }
        edits.push(edit);
        first.get_or_insert_with(|| {
            let message = match late.0 == early {
                true => format!("there is more than one {}: combine the conditions with AND", early.as_str()),
                false => format!("{} must come before {}", late.0.as_str(), early.as_str()),
            };
            (unparsed.tokens[late.1].span, message)
        });
    }
    let Some((span, message)) = first.filter(|_| unparsed.parses_with(&edits)) else { return };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, ctx.query.text(span), message)
            .with_advice(
                "Clauses come in this order, each once: SELECT, FROM, JOIN … ON, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT.",
            )
            .with_fix(fix(edits, Applicability::Likely, "every clause is complete; only their order was wrong")),
    );
}

/// Returns the first clause that is too late or repeated, and the one that it must precede.
fn misplaced_clause(block: &QueryBlock) -> Option<((ClauseKind, usize), ClauseKind)> {
    let mut latest = ClauseKind::Select;
    for &(clause, at) in block.clauses.iter().skip(1) {
        let again = clause == latest && clause != ClauseKind::Join;
        if clause < latest || again {
            let early = block.clauses.iter().map(|c| c.0).find(|&c| c > clause).filter(|_| !again);
            return Some(((clause, at), early.unwrap_or(clause)));
        }
        latest = clause;
    }
    None
}

/// Returns an edit that sorts the clauses, from the first one that moves.
fn reorder_clauses(ctx: &RuleContext<'_>, unparsed: &UnparsedQuery<'_>, block: &QueryBlock) -> Option<Edit> {
    let twice = |clause: ClauseKind| block.clauses.iter().filter(|c| c.0 == clause).count() > 1;
    let merged = |clause: ClauseKind| matches!(clause, ClauseKind::Where | ClauseKind::Having);
    if block.clauses.iter().any(|c| twice(c.0) && !merged(c.0) && c.0 != ClauseKind::Join) {
        return None;
    }
    // Conditions before FROM belong to aggregates: `COUNT(a) WHERE b / COUNT(a) WHERE c FROM t`.
    let from_late = block.clauses.get(1).is_some_and(|c| c.0 != ClauseKind::From);
    if from_late && twice(ClauseKind::Where) {
        return None;
    }
    let mut order: Vec<usize> = (0..block.clauses.len()).collect();
    order.sort_by_key(|&i| block.clauses[i].0);
    let moved = order.iter().enumerate().position(|(i, &o)| i != o);
    let again = (1..block.clauses.len()).find(|&i| merged(block.clauses[i].0) && twice(block.clauses[i].0));
    let from = [moved, again].into_iter().flatten().min()?;
    let span = |i: usize| {
        let start = block.clauses[i].1;
        (start, block.clauses.get(i + 1).map_or(block.end, |c| c.1))
    };
    let mut parts: Vec<String> = Vec::new();
    let mut last: Option<ClauseKind> = None;
    for &i in order.iter().skip(from) {
        let clause = block.clauses[i].0;
        let (start, end) = span(i);
        if twice(clause) && merged(clause) {
            let is_or = (start..end)
                .any(|w| unparsed.tokens[w].depth == block.depth && unparsed.keyword(w) == Some(Keyword::OR));
            let condition = unparsed.slice(start + 1, end);
            if condition.is_empty() {
                return None;
            }
            let condition = if is_or { format!("({condition})") } else { condition.to_string() };
            let word = if last == Some(clause) { "AND" } else { clause.as_str() };
            parts.push(format!("{word} {condition}"));
        } else {
            parts.push(unparsed.slice(start, end).to_string());
        }
        last = Some(clause);
    }
    let start = unparsed.tokens[block.clauses[from].1].span.start;
    let end = start + unparsed.slice(block.clauses[from].1, block.end).len();
    let old = ctx.query.text(Span::new(start, end));
    // A line comment must not swallow the text that follows it after the edit.
    let between = if old.contains('\n') || old.contains("--") { "\n" } else { " " };
    Some(Edit { span: Span::new(start, end), text: parts.join(between) })
}
