#![doc = include_str!("clause_order.md")]

use sqlparser::keywords::Keyword;

use crate::broken::{Block, Broken, Clause, fix, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity, Span};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "clause-order", group: "syntax", page: include_str!("clause_order.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let mut edits: Vec<Edit> = Vec::new();
    let mut first: Option<(Span, String)> = None;
    for block in broken.blocks() {
        let Some((late, early)) = misplaced(&block) else { continue };
        let Some(edit) = reordered(subject, &broken, &block) else { return };
        if edits.iter().any(|e| e.span.start < edit.span.end && edit.span.start < e.span.end) {
            return;
        }
        edits.push(edit);
        first.get_or_insert_with(|| {
            let message = match late.0 == early {
                true => format!("there is more than one {}: conditions are joined by AND", early.written()),
                false => format!("{} must stand before {}", late.0.written(), early.written()),
            };
            (broken.words[late.1].span, message)
        });
    }
    let Some((span, message)) = first.filter(|_| broken.mends(&edits)) else { return };
    out.push(
        Finding::new(RULE.code, Severity::Error, span, subject.query.text(span), message)
            .advise(
                "Clauses stand in this order, each once: SELECT, FROM, JOIN … ON, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT.",
            )
            .mend(fix(edits, Applicability::Likely, "every clause is whole; only their order was not SQL's")),
    );
}

/// The first clause that comes too late, or again, and the one it must stand before.
fn misplaced(block: &Block) -> Option<((Clause, usize), Clause)> {
    let mut latest = Clause::Select;
    for &(clause, at) in block.clauses.iter().skip(1) {
        let again = clause == latest && clause != Clause::Join;
        if clause < latest || again {
            let early = block.clauses.iter().map(|c| c.0).find(|&c| c > clause).filter(|_| !again);
            return Some(((clause, at), early.unwrap_or(clause)));
        }
        latest = clause;
    }
    None
}

/// The clauses from the first that moves on, in their order.
fn reordered(subject: &Subject<'_>, broken: &Broken<'_>, block: &Block) -> Option<Edit> {
    let twice = |clause: Clause| block.clauses.iter().filter(|c| c.0 == clause).count() > 1;
    let merged = |clause: Clause| matches!(clause, Clause::Where | Clause::Having);
    if block.clauses.iter().any(|c| twice(c.0) && !merged(c.0) && c.0 != Clause::Join) {
        return None;
    }
    // Conditions before FROM belong to aggregates: `COUNT(a) WHERE b / COUNT(a) WHERE c FROM t`.
    let from_late = block.clauses.get(1).is_some_and(|c| c.0 != Clause::From);
    if from_late && twice(Clause::Where) {
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
    let mut last: Option<Clause> = None;
    for &i in order.iter().skip(from) {
        let clause = block.clauses[i].0;
        let (start, end) = span(i);
        if twice(clause) && merged(clause) {
            let is_or =
                (start..end).any(|w| broken.words[w].depth == block.depth && broken.keyword(w) == Some(Keyword::OR));
            let condition = broken.slice(start + 1, end);
            if condition.is_empty() {
                return None;
            }
            let condition = if is_or { format!("({condition})") } else { condition.to_string() };
            let word = if last == Some(clause) { "AND" } else { clause.written() };
            parts.push(format!("{word} {condition}"));
        } else {
            parts.push(broken.slice(start, end).to_string());
        }
        last = Some(clause);
    }
    let start = broken.words[block.clauses[from].1].span.start;
    let end = start + broken.slice(block.clauses[from].1, block.end).len();
    let old = subject.query.text(Span::new(start, end));
    // A comment to the end of its line must not swallow what now follows it.
    let between = if old.contains('\n') || old.contains("--") { "\n" } else { " " };
    Some(Edit { span: Span::new(start, end), text: parts.join(between) })
}
