//! Restores characters lost inside SQL: doubled apostrophes, newlines after comments.

use super::{ExtractionBuffer, ExtractionStep, deletion};
use crate::finding::{Edit, Span};
use crate::text::lexical::{SegmentKind, segments};

/// Doubles apostrophes in literals, such as the quote between two letters in `'O'Brien'`.
pub(super) fn escape_apostrophes(buffer: &mut ExtractionBuffer, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = buffer.selected();
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
        let after_plural = before == b's' && after == b' ' && inside && is_closed_later(&text[i + 1..]);
        if inside && (between_letters || after_plural) {
            let at = buffer.start + i;
            edits.push(Edit { span: Span::new(at, at + 1), text: "''".into() });
        } else {
            inside = !inside;
        }
    }
    if edits.is_empty() || !parses(&buffer.render(buffer.start, buffer.end, &edits)) {
        return false;
    }
    buffer.steps.push(ExtractionStep { code: "unescaped-apostrophe", edits });
    true
}

/// Returns whether a literal that continues here is closed before the next operator begins another
/// one.
pub(super) fn is_closed_later(rest: &str) -> bool {
    let Some(next) = rest.find('\'') else { return false };
    let between = &rest[..next];
    !between.contains(['=', ',', '(', ')', '<', '>'])
        && !between
            .split_whitespace()
            .any(|w| ["AND", "OR", "LIKE", "IN", "THEN", "ELSE", "WHEN"].contains(&w.to_ascii_uppercase().as_str()))
}

/// Keywords that begin a clause. If newlines were lost, a comment ends before one of them.
pub(super) const CLAUSE_KEYWORDS: &[&str] = &[
    "select", "from", "where", "join", "inner", "left", "right", "full", "cross", "on", "and", "or", "group", "order",
    "having", "limit", "union", "with",
];

/// Removes comments that swallow the rest of the query because their newline was lost: `SELECT a --
/// the name FROM t`.
pub(super) fn restore_comment_newlines(buffer: &mut ExtractionBuffer, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = buffer.selected();
    let mut edits: Vec<Edit> = Vec::new();
    let mut tries = 0;
    for comment in segments(text).filter(|p| p.kind == SegmentKind::LineComment) {
        let body = &text[comment.start..comment.end];
        // The text after the end of one comment may contain the next one.
        let mut starts: Vec<usize> = body.match_indices("--").map(|(i, _)| i).collect();
        while let Some(start) = starts.first().copied() {
            starts.remove(0);
            let limit = starts.first().copied().unwrap_or(body.len());
            let mut found = None;
            for (i, _) in body[start..limit].match_indices(' ') {
                let word: String = body[start + i + 1..].chars().take_while(|c| c.is_ascii_alphabetic()).collect();
                if CLAUSE_KEYWORDS.contains(&word.to_ascii_lowercase().as_str())
                    || body[start + i + 1..].starts_with([',', ')'])
                {
                    tries += 1;
                    let edit =
                        deletion(buffer.start + comment.start + start, buffer.start + comment.start + start + i + 1);
                    let mut with = edits.clone();
                    with.push(edit.clone());
                    if parses(&buffer.render(buffer.start, buffer.end, &with)) {
                        edits = with;
                        buffer.steps.push(ExtractionStep { code: "flattened-comment", edits });
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
