//! Removes prose before the query, and prose or a continued prompt after it.

use super::ExtractionBuffer;
use super::quotes_and_newlines::CLAUSE_KEYWORDS;
use crate::text::lexical::{SegmentKind, segments};
use crate::text::similarity::is_typo;

/// Keywords that begin a statement other than a query.
pub(super) const NON_QUERY_KEYWORDS: &[&str] = &[
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

/// Keyword pairs that indicate a statement anywhere in a text.
pub(super) const STATEMENT_PHRASES: &[&str] = &[
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

/// Returns whether text to be removed looks like another statement. Such text is kept, so that the
/// review sees it.
pub(super) fn has_hidden_statement(text: &str) -> bool {
    // A comment has no effect, whatever it contains.
    let code = segments(text).filter(|p| p.kind != SegmentKind::BlockComment).map(|p| &text[p.start..p.end]);
    let lower = code.collect::<String>().to_ascii_lowercase();
    let begins = lower.split(['\n', ';']).any(|line| {
        let line = line
            .trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '(' | '-' | '*' | '>' | '`' | '#' | '/'));
        let word: String = line.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        NON_QUERY_KEYWORDS.contains(&word.as_str())
    });
    begins || has_statement_phrase(&lower)
}

/// Returns whether text contains keywords that indicate a statement anywhere.
///
/// `UPDATE … SET` has a name between its keywords, which may have several parts; prose that updates
/// something has an article after the verb.
pub(super) fn has_statement_phrase(lower: &str) -> bool {
    let words: Vec<&str> = lower.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| !w.is_empty()).collect();
    let updates = |at: usize| {
        let rest = words.get(at + 1..).unwrap_or_default();
        let named = rest.first().is_some_and(|w| !matches!(*w, "set" | "the" | "a" | "an" | "this" | "that" | "your"));
        words[at] == "update" && named && rest.iter().skip(1).take(4).any(|w| *w == "set")
    };
    words.windows(2).any(|w| STATEMENT_PHRASES.iter().any(|p| p.split_once(' ') == Some((w[0], w[1]))))
        || (0..words.len()).any(updates)
}

/// Returns whether a statement other than a query begins at the start of the text, after a
/// semicolon or an empty line, or at keywords that are unambiguous anywhere.
///
/// A clause on its own line (`FROM …`) is part of a query.
pub(crate) fn has_non_query_statement(text: &str) -> bool {
    let code = segments(text).filter(|p| !matches!(p.kind, SegmentKind::BlockComment | SegmentKind::LineComment));
    let lower = code.map(|p| &text[p.start..p.end]).collect::<String>().to_ascii_lowercase();
    let begins = lower.split(';').flat_map(|part| part.split("\n\n")).any(|part| {
        let start = part.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        let word: String = start.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
        NON_QUERY_KEYWORDS.contains(&word.as_str())
    });
    begins || has_statement_phrase(&lower)
}

/// Returns whether the text contains a keyword that a query can begin with, possibly misspelled.
pub(crate) fn may_contain_sql(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| !w.is_empty());
    let first = words.clone().next().unwrap_or("");
    NON_QUERY_KEYWORDS.contains(&first)
        || is_typo(first, "select") && first != "selects" && words.clone().nth(1).is_some()
        || words.any(|w| matches!(w, "select" | "values" | "insert" | "update" | "delete" | "drop"))
        || !lower.contains(|c: char| c.is_ascii_alphabetic())
}

/// Removes prose before the query, and prose or a continued prompt after it. Returns whether a
/// query was found.
pub(super) fn strip_prose(buffer: &mut ExtractionBuffer, parses: &dyn Fn(&str) -> bool) -> bool {
    let text = buffer.selected();
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
    // A SELECT nested in another query is not a start: the text before it is SQL, not prose.
    let first = starts.first().copied().unwrap_or(0);
    let lists = starts_with_cte(&lower[first..]);
    starts.retain(|&start| {
        let behind_list = lists && lower[..start].trim_end().ends_with(')');
        start == first || !(is_nested_select(&lower[..start]) || behind_list)
    });
    for start in starts.into_iter().take(6) {
        if has_hidden_statement(&text[..start]) {
            return false;
        }
        // Longest candidates first, then the shortest: a continued prompt begins with the answer.
        let mut all = candidate_ends(&text[start..]);
        let queries = ["`select ", "`with "].iter().map(|query| lower.matches(query).count()).sum::<usize>();
        let others = || text.split('`').any(has_hidden_statement);
        if text[..start].ends_with('`') && queries == 1 && !others() {
            // Inline code ends at its closing backtick. With several such queries, the answer is
            // ambiguous.
            all.extend(text[start..].match_indices('`').map(|(i, _)| i));
            all.sort_unstable_by(|a, b| b.cmp(a));
        }
        let (long, short) = all.split_at(all.len().min(8));
        for end in long.iter().chain(short.iter().rev().take(16)).map(|e| start + e) {
            let (from, to) = (buffer.start + start, buffer.start + end);
            if !parses(&buffer.render(from, to, &[])) {
                continue;
            }
            if has_hidden_statement(&text[end..]) {
                return false;
            }
            if to < buffer.end {
                let begin = buffer.start;
                buffer.narrow("continuation", begin, to);
            }
            if from > buffer.start {
                let last = buffer.end;
                buffer.narrow("surrounding-prose", from, last);
            }
            return true;
        }
    }
    false
}

/// Returns whether the text begins with `WITH name AS (`, which is SQL and not prose. A SELECT
/// after one of its parentheses belongs to it.
fn starts_with_cte(lower: &str) -> bool {
    let mut words = lower.split_whitespace();
    words.next() == Some("with") && words.take(4).any(|w| w == "as" || w.starts_with("as("))
}

/// Returns whether a SELECT after this text belongs to a query that has already begun: it is in
/// parentheses, after a set operation or an operator, or the next of several statements.
fn is_nested_select(before: &str) -> bool {
    let before = before.trim_end();
    let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
    // A statement that ends here is one of several, whether it parses or not.
    let another = before.ends_with(';') && starts_with_query_keyword(before);
    another
        || before.ends_with(['(', ',', '=', '<', '>', '+', '-', '*', '/', '|'])
        || matches!(word, "union" | "all" | "except" | "intersect" | "minus" | "as" | "in" | "exists" | "not" | "any")
}

/// Returns the offsets at which a query may end, largest first: the end of the text, a semicolon, a
/// fence, an empty line, or a line that begins like prose.
pub(super) fn candidate_ends(text: &str) -> Vec<usize> {
    let mut out = vec![text.len()];
    out.extend(segments(text).filter(|p| p.kind == SegmentKind::Semicolon).map(|p| p.start));
    for mark in ["```", "<|", "</"] {
        out.extend(text.match_indices(mark).map(|(i, _)| i));
    }
    // `\G` makes MySQL's client print rows vertically; nothing follows it.
    let end = text.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    out.extend(["\\G", "\\g"].iter().filter_map(|mark| end.strip_suffix(mark)).map(str::len));
    // A comment followed by another query is the next prompt.
    for comment in segments(text).filter(|p| p.kind == SegmentKind::BlockComment) {
        let next = text[comment.end..].trim_start();
        if next.is_empty() || starts_with_query_keyword(next) {
            out.push(comment.start);
        }
    }
    for (i, _) in text.match_indices('\n') {
        let next = text[i + 1..].trim_start_matches([' ', '\t', '\r']);
        let empty_line = next.starts_with('\n') && !is_clause_start(next.trim_start());
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

/// Returns whether a line continues the query above it with a clause.
pub(super) fn is_clause_start(line: &str) -> bool {
    let word: String = line.chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    CLAUSE_KEYWORDS.contains(&word.to_ascii_lowercase().as_str())
        && !word.eq_ignore_ascii_case("select")
        && !word.eq_ignore_ascii_case("with")
}

pub(crate) fn starts_with_query_keyword(text: &str) -> bool {
    let word: String =
        text.trim_start().trim_start_matches('(').chars().take_while(|c| c.is_ascii_alphabetic()).collect();
    word.eq_ignore_ascii_case("select") || word.eq_ignore_ascii_case("with")
}
