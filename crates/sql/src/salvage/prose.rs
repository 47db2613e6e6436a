//! Prose before the query, and prose or a continued prompt behind it.

use super::Draft;
use super::lost::CLAUSES;
use super::wrapping::starts_like_sql;
use crate::near::is_slip;
use crate::pieces::{PieceKind, pieces};

/// Words that begin a statement which is not a question.
pub(super) const OTHER_STATEMENTS: &[&str] = &[
    "insert",
    "update",
    "delete",
    "merge",
    "replace",
    "create",
    "alter",
    "drop",
    "truncate",
    "grant",
    "revoke",
    "begin",
    "commit",
    "rollback",
    "call",
    "do",
    "exec",
    "execute",
    "set",
    "copy",
    "load",
    "attach",
    "detach",
    "pragma",
    "vacuum",
    "lock",
    "declare",
    "upsert",
    "from",
    "table",
    "values",
    "rename",
    "savepoint",
    "start",
    "explain",
    "analyze",
    "reindex",
    "use",
    "reset",
    "prepare",
    "listen",
    "notify",
];

/// Words that, following each other, are a statement wherever they stand.
pub(super) const PHRASES: &[&str] = &[
    "insert into",
    "insert overwrite",
    "delete from",
    "drop table",
    "drop view",
    "drop schema",
    "drop database",
    "alter table",
    "truncate table",
    "create table",
    "merge into",
    "replace into",
    "grant all",
    "copy into",
];

/// Whether text that would be cut away looks like another statement. It is then not cut: the reviewer must see it.
pub(super) fn hides_a_statement(text: &str) -> bool {
    // A comment does nothing, whatever it says.
    let code = pieces(text).filter(|p| p.kind != PieceKind::BlockComment).map(|p| &text[p.start..p.end]);
    let lower = code.collect::<String>().to_ascii_lowercase();
    let begins = lower.split(['\n', ';']).any(|line| {
        let line = line
            .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '(' | '-' | '*' | '>' | '`' | '#' | '/'));
        let word: String = line.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        OTHER_STATEMENTS.contains(&word.as_str())
    });
    begins || has_phrase(&lower)
}

/// Whether words follow each other that are a statement wherever they stand. `UPDATE … SET` has a name between them, which may
/// have several parts; prose that updates something names it with an article.
pub(super) fn has_phrase(lower: &str) -> bool {
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty()).collect();
    let updates = |at: usize| {
        let rest = words.get(at + 1..).unwrap_or_default();
        let named = rest.first().is_some_and(|w| !matches!(*w, "set" | "the" | "a" | "an" | "this" | "that" | "your"));
        words[at] == "update" && named && rest.iter().skip(1).take(4).any(|w| *w == "set")
    };
    words.windows(2).any(|w| PHRASES.iter().any(|p| p.split_once(' ') == Some((w[0], w[1]))))
        || (0..words.len()).any(updates)
}

/// Whether a statement that is no question begins at the front of the text, behind a semicolon or an empty line, or wherever
/// words stand that are nothing else. A clause on a line of its own (`FROM …`) is part of a question.
pub(crate) fn begins_a_statement(text: &str) -> bool {
    let code = pieces(text).filter(|p| !matches!(p.kind, PieceKind::BlockComment | PieceKind::LineComment));
    let lower = code.map(|p| &text[p.start..p.end]).collect::<String>().to_ascii_lowercase();
    let begins = lower.split(';').flat_map(|part| part.split("\n\n")).any(|part| {
        let start = part.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        let word: String = start.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        OTHER_STATEMENTS.contains(&word.as_str())
    });
    begins || has_phrase(&lower)
}

/// Returns whether there is anything in the text that a query could begin with, or begins with but for a typo.
pub(crate) fn mentions_sql(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    let first = words.clone().next().unwrap_or("");
    OTHER_STATEMENTS.contains(&first)
        || is_slip(first, "select") && first != "selects" && words.clone().nth(1).is_some()
        || words.any(|w| matches!(w, "select" | "values" | "insert" | "update" | "delete" | "drop"))
        || !lower.contains(|c: char| c.is_ascii_alphabetic())
}

/// Prose before the query, and prose or a continued prompt behind it.
pub(super) fn cut_prose(draft: &mut Draft, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = draft.kept();
    let lower = text.to_ascii_lowercase();
    let is_word = |i: usize, len: usize| {
        let before = i
            .checked_sub(1)
            .and_then(|j| lower.as_bytes().get(j))
            .is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'_');
        let after = lower
            .as_bytes()
            .get(i + len)
            .is_none_or(|b| b.is_ascii_whitespace() || matches!(b, b'*' | b'(' | b'"' | b'\'' | b'`' | b'-'));
        before && after
    };
    let mut starts: Vec<usize> = ["select", "with"]
        .iter()
        .flat_map(|w| lower.match_indices(w).filter(|(i, w)| is_word(*i, w.len())))
        .map(|(i, _)| i)
        .collect();
    starts.sort_unstable();
    // A SELECT inside another query is no beginning: what stands before it is SQL, and not prose.
    let first = starts.first().copied().unwrap_or(0);
    let lists = lists_queries(&lower[first..]);
    starts.retain(|&start| {
        let behind_list = lists && lower[..start].trim_end().ends_with(')');
        start == first || !(is_inner(&lower[..start]) || behind_list)
    });
    for start in starts.into_iter().take(6) {
        if hides_a_statement(&text[..start]) {
            return false;
        }
        // The longest forms first, then the shortest: a prompt that goes on has its answer at the beginning.
        let mut all = ends(&text[start..]);
        let queries = ["`select ", "`with "].iter().map(|query| lower.matches(query).count()).sum::<usize>();
        let others = || text.split('`').any(hides_a_statement);
        if text[..start].ends_with('`') && queries == 1 && !others() {
            // Code inside a sentence ends where its quote closes. Of several such queries nobody says which is the answer.
            all.extend(text[start..].match_indices('`').map(|(i, _)| i));
            all.sort_unstable_by(|a, b| b.cmp(a));
        }
        let (long, short) = all.split_at(all.len().min(8));
        for end in long.iter().chain(short.iter().rev().take(16)).map(|e| start + e) {
            let (from, to) = (draft.start + start, draft.start + end);
            if !parses(&draft.render(from, to, &[])) {
                continue;
            }
            if hides_a_statement(&text[end..]) {
                return false;
            }
            if to < draft.end {
                let begin = draft.start;
                draft.narrow("continuation", begin, to);
            }
            if from > draft.start {
                let last = draft.end;
                draft.narrow("surrounding-prose", from, last);
            }
            return true;
        }
    }
    false
}

/// Whether text begins with `WITH name AS (`: it is SQL and no prose, and a SELECT behind a parenthesis of it belongs to it.
fn lists_queries(lower: &str) -> bool {
    let mut words = lower.split_whitespace();
    words.next() == Some("with") && words.take(4).any(|w| w == "as" || w.starts_with("as("))
}

/// Whether a SELECT behind this text belongs to what has already begun: it stands in parentheses, behind a set operation or a
/// sign, or is the next of several statements.
fn is_inner(before: &str) -> bool {
    let before = before.trim_end();
    let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
    // A statement that ends here is one of several, whether it parses or not.
    let another = before.ends_with(';') && starts_like_sql(before);
    another
        || before.ends_with(['(', ',', '=', '<', '>', '+', '-', '*', '/', '|'])
        || matches!(word, "union" | "all" | "except" | "intersect" | "minus" | "as" | "in" | "exists" | "not" | "any")
}

/// Where a query may end, the longest first: at its end, before a semicolon, a fence, an empty line, or a line that
/// begins like prose.
pub(super) fn ends(text: &str) -> Vec<usize> {
    let mut out = vec![text.len()];
    out.extend(pieces(text).filter(|p| p.kind == PieceKind::Semicolon).map(|p| p.start));
    for mark in ["```", "<|", "</"] {
        out.extend(text.match_indices(mark).map(|(i, _)| i));
    }
    // MySQL's shell shows rows below each other; nothing stands behind that.
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    out.extend(["\\G", "\\g"].iter().filter_map(|mark| end.strip_suffix(mark)).map(str::len));
    // A comment behind which another query begins is the next prompt.
    for comment in pieces(text).filter(|p| p.kind == PieceKind::BlockComment) {
        let next = text[comment.end..].trim_start();
        if next.is_empty() || starts_like_sql(next) {
            out.push(comment.start);
        }
    }
    for (i, _) in text.match_indices('\n') {
        let next = text[i + 1..].trim_start_matches([' ', '\t', '\r']);
        let empty_line = next.starts_with('\n') && !goes_on(next.trim_start());
        let prompt = [
            "#",
            "Question",
            "Q:",
            "A:",
            "Answer",
            "Explanation",
            "Note",
            "This ",
            "The ",
            "Here",
            "Output",
            "Result",
            "</",
            "[",
            "Example",
            "Let ",
            "In this",
            "To ",
            "-- ",
            "Human",
            "User",
            "SQL",
        ];
        if empty_line || prompt.iter().any(|p| next.starts_with(p)) {
            out.push(i);
        }
    }
    out.sort_unstable_by(|a, b| b.cmp(a));
    out.dedup();
    out
}

/// Whether a line goes on with a clause of the query above it.
pub(super) fn goes_on(line: &str) -> bool {
    let word: String = line.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    CLAUSES.contains(&word.to_ascii_lowercase().as_str())
        && !word.eq_ignore_ascii_case("select")
        && !word.eq_ignore_ascii_case("with")
}
