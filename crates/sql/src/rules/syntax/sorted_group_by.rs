#![doc = include_str!("sorted_group_by.md")]

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::broken::{Broken, Clause, cut, fix, insert, is_explained};
use crate::finding::{Applicability, Edit, Finding, Severity};
use crate::rules::{Rule, Subject};

/// See the page.
pub static RULE: Rule =
    Rule { code: "sorted-group-by", group: "syntax", page: include_str!("sorted_group_by.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(broken) = Broken::of(subject).filter(|_| !is_explained(out)) else { return };
    for block in broken.blocks() {
        let Some(group) = block.clauses.iter().position(|c| c.0 == Clause::GroupBy) else { continue };
        let start = block.clauses[group].1;
        let end = block.clauses.get(group + 1).map_or(block.end, |c| c.1);
        let Some(word) = end.checked_sub(1).filter(|&i| {
            i > start + 2
                && broken.words[i].depth == block.depth
                && matches!(broken.keyword(i), Some(Keyword::DESC | Keyword::ASC))
        }) else {
            continue;
        };
        if block.clauses.iter().any(|c| c.0 == Clause::OrderBy) {
            continue;
        }
        // Only the last of several names is sorted by.
        let own = |i: &usize| broken.words[*i].depth == block.depth && broken.is(*i, &Token::Comma);
        let from = (start + 2..word).rev().find(own).map_or(start + 2, |i| i + 1);
        let sorted = format!("ORDER BY {} {}", broken.slice(from, word), broken.slice(word, word + 1));
        // HAVING belongs to the groups and stays with them.
        let having = block.clauses.get(group + 1).filter(|c| c.0 == Clause::Having);
        let both: Vec<Edit> = match having {
            None => vec![Edit { span: broken.words[word].span, text: sorted }],
            Some(_) => {
                let next = block.clauses.get(group + 2).map_or(block.end, |c| c.1);
                let behind = broken.words[next - 1].span.end;
                vec![cut(broken.words[word].span), insert(behind, format!(" {sorted}"))]
            }
        };
        let only = vec![Edit { span: broken.words[start].span, text: "ORDER".into() }];
        let selected = block.clauses.get(1).map_or(block.end, |c| c.1);
        let aggregates = (block.clauses[0].1..selected).any(|i| broken.is_aggregate(i));
        let grouped = fix(both, Applicability::Likely, "old MySQL sorts groups like this; elsewhere ORDER BY does it");
        let sorted =
            fix(only, Applicability::Likely, "DESC and ASC belong to ORDER BY, and nothing is computed of groups");
        let mut fixes = vec![grouped];
        if !aggregates && having.is_none() {
            fixes.insert(0, sorted);
        }
        fixes.retain(|f| broken.mends(&f.edits));
        let span = broken.words[word].span;
        let which = subject.query.text(span);
        let mut finding = Finding::new(
            RULE.code,
            Severity::Error,
            span,
            which,
            format!("GROUP BY does not sort: {which} belongs to ORDER BY"),
        )
        .advise("GROUP BY takes no ASC or DESC: sort with ORDER BY behind it.");
        if fixes.is_empty() {
            continue;
        }
        finding.fixes = fixes;
        out.push(finding);
        return;
    }
}
