//! What was lost inside SQL: doubled apostrophes, line ends behind comments.

use super::{Draft, Step, cut};
use crate::finding::{Edit, Span};
use crate::pieces::{PieceKind, pieces};

/// `'O'Brien'`: a quote between two letters inside a literal is an apostrophe.
pub(super) fn mend_apostrophes(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = draft.kept();
    let bytes = text.as_bytes();
    let mut edits = Vec::new();
    let mut inside = false;
    for (i, &b) in bytes.iter().enumerate() {
        if b != b'\'' {
            continue;
        }
        let before = i.checked_sub(1).map_or(b' ', |j| bytes[j]);
        let after = bytes.get(i + 1).copied().unwrap_or(b' ');
        let between_letters = before.is_ascii_alphanumeric() && (after.is_ascii_alphabetic());
        let after_plural = before == b's' && after == b' ' && inside && closes_later(&text[i + 1..]);
        if inside && (between_letters || after_plural) {
            let at = draft.start + i;
            edits.push(Edit { span: Span::new(at, at + 1), text: "''".into() });
        } else {
            inside = !inside;
        }
    }
    if edits.is_empty() || !parses(&draft.render(draft.start, draft.end, &edits)) {
        return false;
    }
    draft.steps.push(Step { code: "unescaped-apostrophe", edits });
    true
}

/// Whether a literal that goes on here is closed before the next operator begins another one.
pub(super) fn closes_later(rest: &str) -> bool {
    let Some(next) = rest.find('\'') else { return false };
    let between = &rest[..next];
    !between.contains(['=', ',', '(', ')', '<', '>'])
        && !between
            .split_whitespace()
            .any(|w| ["AND", "OR", "LIKE", "IN", "THEN", "ELSE", "WHEN"].contains(&w.to_ascii_uppercase().as_str()))
}

/// Words a clause begins with; where line ends were lost, a comment ends before one of them.
pub(super) const CLAUSES: &[&str] = &[
    "select", "from", "where", "join", "inner", "left", "right", "full", "cross", "on", "and", "or", "group", "order",
    "having", "limit", "union", "with",
];

/// `SELECT a -- the name FROM t`: the line end after a comment was lost, so it swallows the rest of the query.
pub(super) fn unflatten_comments(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = draft.kept();
    let mut edits: Vec<Edit> = Vec::new();
    let mut tries = 0;
    for comment in pieces(text).filter(|p| p.kind == PieceKind::LineComment) {
        let body = &text[comment.start..comment.end];
        // What stands behind an earlier comment's end may itself hold the next comment.
        let mut starts: Vec<usize> = body.match_indices("--").map(|(i, _)| i).collect();
        while let Some(start) = starts.first().copied() {
            starts.remove(0);
            let limit = starts.first().copied().unwrap_or(body.len());
            let mut found = None;
            for (i, _) in body[start..limit].match_indices(' ') {
                let word: String = body[start + i + 1..].chars().take_while(|c| c.is_ascii_alphabetic()).collect();
                if CLAUSES.contains(&word.to_ascii_lowercase().as_str())
                    || body[start + i + 1..].starts_with([',', ')'])
                {
                    tries += 1;
                    let edit = cut(draft.start + comment.start + start, draft.start + comment.start + start + i + 1);
                    let mut with = edits.clone();
                    with.push(edit.clone());
                    if parses(&draft.render(draft.start, draft.end, &with)) {
                        edits = with;
                        draft.steps.push(Step { code: "flattened-comment", edits });
                        return true;
                    }
                    found.get_or_insert(edit);
                }
                if tries > 64 {
                    return false;
                }
            }
            match found {
                Some(edit) => edits.push(edit),
                None => break,
            }
        }
    }
    false
}
