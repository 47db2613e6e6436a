#![doc = include_str!("limited_part.md")]

use sqlparser::keywords::Keyword;

use crate::broken::{Block, Broken, Clause, fix, insert, is_explained};
use crate::dialect::Feature;
use crate::finding::{Applicability, Edit, Finding, Severity};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule = Rule { code: "limited-part", group: "syntax", page: include_str!("limited_part.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    let blocks = broken.blocks();
    // The parts of the first set operation: blocks side by side.
    let joined =
        |b: &Block| matches!(broken.keyword(b.end), Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT));
    let Some(early) = blocks.iter().position(|b| joined(b) && sorted(b).is_some()) else { return };
    let depth = blocks[early].depth;
    let parts: Vec<&Block> = blocks.iter().filter(|b| b.depth == depth).collect();
    let Some(last) = parts.last().filter(|b| !joined(b)) else { return };
    if parts.iter().filter(|b| joined(b)).count() + 1 != parts.len() {
        return;
    }
    let limited = |b: &Block| b.clauses.iter().any(|c| c.0 == Clause::Limit);
    // What stands at the end is that of the last part if each of the others has its own.
    let each = parts.iter().all(|b| limited(b));
    let none = sorted(last).is_none();
    let plain = !subject.context.dialect.lacks.contains(&Feature::QueryInParentheses);
    let mut edits: Vec<Edit> = Vec::new();
    for (n, part) in parts.iter().enumerate() {
        if sorted(part).is_none() || (n + 1 == parts.len() && !each) {
            continue;
        }
        let (open, close) = match plain {
            true => ("(".to_string(), ")".to_string()),
            false => ("SELECT * FROM (".to_string(), format!(") AS part_{}", n + 1)),
        };
        edits.push(insert(broken.words[part.clauses[0].1].span.start, open));
        edits.push(insert(broken.words[part.end.min(broken.end()) - 1].span.end, close));
    }
    if edits.is_empty() || !broken.mends(&edits) {
        return;
    }
    let (clause, at) = sorted(&blocks[early]).unwrap_or((Clause::OrderBy, 0));
    let span = broken.words[at].span;
    let sure = if each || none { Applicability::Likely } else { Applicability::Suggested };
    out.push(
        Finding::new(
            RULE.code,
            Severity::Error,
            span,
            subject.query.text(span),
            format!(
                "{} stands behind the last part of a set operation; a part of its own goes in parentheses",
                clause.written()
            ),
        )
        .advise("Sort and limit the whole behind its last part; to limit one part, make a subquery of it.")
        .mend(fix(edits, sure, "each part is sorted and limited by itself, and then they are put together")),
    );
}

/// Where a block begins to sort or limit.
fn sorted(block: &Block) -> Option<(Clause, usize)> {
    block.clauses.iter().copied().find(|c| matches!(c.0, Clause::OrderBy | Clause::Limit))
}
