//! Constrained decoding: restricts generated SQL to existing tables after FROM and JOIN, and to
//! existing columns after `alias.`. A query starts with SELECT or WITH.
//!
//! The text generated so far is analyzed from the start for every token. It is short, and this way
//! there is no state to keep in sync with the decoder.

use crate::request::AllowedNames;

/// Returns whether a text can be completed to a query with known names only; `is_finished` if it
/// ends here.
pub(super) fn is_valid_prefix(text: &str, names: &AllowedNames, is_finished: bool) -> bool {
    let tokens = tokenize(text);
    let Some(first) = tokens.first() else { return !is_finished };
    if !is_query_start(first, is_finished || tokens.len() > 1) {
        return false;
    }
    let declared = DeclaredNames::collect(&tokens);
    // Tokens before the last two were checked when they were generated.
    let from = tokens.len().saturating_sub(2);
    (from..tokens.len()).all(|at| {
        let whole = at + 1 < tokens.len() || is_finished || tokens[at].is_complete;
        match &tokens[at].kind {
            PrefixTokenKind::Name(name) => match name_position(&tokens, at) {
                NamePosition::Table => declared.is_table(name, whole, names),
                NamePosition::Column(owner) => declared.is_column(owner, name, whole, names),
                NamePosition::Other => true,
            },
            PrefixTokenKind::StringLiteral | PrefixTokenKind::Number | PrefixTokenKind::Symbol(_) => true,
        }
    })
}

#[derive(Debug, PartialEq)]
enum PrefixTokenKind {
    /// Word or quoted identifier, in lower case.
    Name(String),
    StringLiteral,
    Number,
    Symbol(u8),
}

#[derive(Debug, PartialEq)]
struct PrefixToken {
    kind: PrefixTokenKind,
    is_quoted: bool,
    /// `true` if the token cannot be extended.
    is_complete: bool,
}

impl PrefixToken {
    fn unquoted_word(&self) -> Option<&str> {
        match &self.kind {
            PrefixTokenKind::Name(name) if !self.is_quoted => Some(name),
            _ => None,
        }
    }

    fn name(&self) -> Option<&str> {
        match &self.kind {
            PrefixTokenKind::Name(name) => Some(name),
            PrefixTokenKind::StringLiteral | PrefixTokenKind::Number | PrefixTokenKind::Symbol(_) => None,
        }
    }
}

fn tokenize(text: &str) -> Vec<PrefixToken> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b if b.is_ascii_whitespace() => at += 1,
            quote @ (b'\'' | b'"' | b'`' | b'[') => {
                let end = if quote == b'[' { b']' } else { quote };
                at += 1;
                while at < bytes.len() && bytes[at] != end {
                    at += 1;
                }
                let closed = at < bytes.len();
                let inner = text.get(start + 1..at).unwrap_or_default().to_lowercase();
                at += 1;
                let kind = if quote == b'\'' { PrefixTokenKind::StringLiteral } else { PrefixTokenKind::Name(inner) };
                tokens.push(PrefixToken { kind, is_quoted: true, is_complete: closed });
            }
            b if word(b) => {
                while at < bytes.len() && word(bytes[at]) {
                    at += 1;
                }
                let inner = text.get(start..at).unwrap_or_default();
                let number = bytes[start].is_ascii_digit();
                let kind = if number { PrefixTokenKind::Number } else { PrefixTokenKind::Name(inner.to_lowercase()) };
                tokens.push(PrefixToken { kind, is_quoted: false, is_complete: at < bytes.len() });
            }
            sign => {
                at += 1;
                tokens.push(PrefixToken { kind: PrefixTokenKind::Symbol(sign), is_quoted: false, is_complete: true });
            }
        }
    }
    tokens
}

fn is_query_start(first: &PrefixToken, is_complete: bool) -> bool {
    let Some(word) = first.unquoted_word() else { return first.kind == PrefixTokenKind::Symbol(b'(') };
    ["select", "with"].iter().any(|begin| if is_complete { *begin == word } else { begin.starts_with(word) })
}

enum NamePosition<'t> {
    Table,
    Column(&'t str),
    Other,
}

/// Classifies the identifier at this position.
fn name_position(tokens: &[PrefixToken], at: usize) -> NamePosition<'_> {
    let before = |back: usize| at.checked_sub(back).map(|place| &tokens[place]);
    let Some(last) = before(1) else { return NamePosition::Other };
    if last.kind == PrefixTokenKind::Symbol(b'.') {
        // A name with three parts starts with a schema, and schemas are not checked.
        let longer = before(3).is_some_and(|token| token.kind == PrefixTokenKind::Symbol(b'.'));
        let table = before(3).and_then(PrefixToken::unquoted_word).is_some_and(|word| ["from", "join"].contains(&word));
        return match before(2).and_then(PrefixToken::name) {
            Some(owner) if !longer && !table => NamePosition::Column(owner),
            _ => NamePosition::Other,
        };
    }
    let opens = matches!(last.unquoted_word(), Some("join"))
        || (last.unquoted_word() == Some("from") && is_from_clause(tokens, at - 1));
    if opens { NamePosition::Table } else { NamePosition::Other }
}

/// Returns whether this FROM starts a FROM clause, unlike in `extract(year FROM day)` and `IS
/// DISTINCT FROM`.
fn is_from_clause(tokens: &[PrefixToken], from: usize) -> bool {
    if from > 0 && tokens[from - 1].unquoted_word() == Some("distinct") {
        return false;
    }
    let mut depth = 0usize;
    for at in (0..from).rev() {
        match &tokens[at].kind {
            PrefixTokenKind::Symbol(b')') => depth += 1,
            PrefixTokenKind::Symbol(b'(') if depth == 0 => {
                let function = at.checked_sub(1).and_then(|place| tokens[place].unquoted_word());
                return !matches!(function, Some("extract" | "substring" | "trim" | "overlay"));
            }
            PrefixTokenKind::Symbol(b'(') => depth -= 1,
            _ => {}
        }
    }
    true
}

/// Names declared by the query itself.
struct DeclaredNames<'t> {
    /// Names of CTEs.
    cte_names: Vec<&'t str>,
    /// Aliases with their tables; `None` for the alias of a subquery.
    aliases: Vec<(&'t str, Option<&'t str>)>,
}

impl<'t> DeclaredNames<'t> {
    fn collect(tokens: &'t [PrefixToken]) -> Self {
        let mut known = Self { cte_names: Vec::new(), aliases: Vec::new() };
        for at in 0..tokens.len() {
            let Some(name) = tokens[at].name() else { continue };
            let next = |on: usize| tokens.get(at + on);
            let word = |on: usize| next(on).and_then(PrefixToken::unquoted_word);
            let with = at > 0 && (["with", "recursive"].contains(&tokens[at - 1].unquoted_word().unwrap_or_default()));
            let more = at > 0 && tokens[at - 1].kind == PrefixTokenKind::Symbol(b',');
            if (with || more)
                && word(1) == Some("as")
                && next(2).is_some_and(|t| t.kind == PrefixTokenKind::Symbol(b'('))
            {
                known.cte_names.push(name);
            }
            let table = matches!(name_position(tokens, at), NamePosition::Table);
            if table {
                let alias = if word(1) == Some("as") { next(2) } else { next(1) };
                known.aliases.push((name, Some(name)));
                if let Some(alias) =
                    alias.and_then(PrefixToken::name).filter(|alias| !KEYWORDS_AFTER_TABLE.contains(alias))
                {
                    known.aliases.push((alias, Some(name)));
                }
            }
            // Alias of a subquery or after a comma: its columns are unknown.
            let after = at > 0
                && (tokens[at - 1].kind == PrefixTokenKind::Symbol(b')')
                    || tokens[at - 1].unquoted_word() == Some("as"));
            if after && !known.aliases.iter().any(|(alias, _)| *alias == name) {
                known.aliases.push((name, None));
            }
        }
        known
    }

    fn is_table(&self, name: &str, is_complete: bool, names: &AllowedNames) -> bool {
        let fits = |known: &str| if is_complete { known == name } else { known.starts_with(name) };
        // A subquery starts with a parenthesis; table functions are not allowed here.
        names.tables().any(fits) || self.cte_names.iter().any(|query| fits(query))
    }

    fn is_column(&self, owner: &str, name: &str, is_complete: bool, names: &AllowedNames) -> bool {
        let fits = |known: &str| if is_complete { known == name } else { known.starts_with(name) };
        let tables: Vec<&str> = self.aliases.iter().filter(|(a, _)| *a == owner).filter_map(|(_, t)| *t).collect();
        let bound = self.aliases.iter().any(|(alias, _)| *alias == owner);
        match (bound, names.columns(owner)) {
            // Its columns are those that the subquery selects.
            (true, _) if tables.is_empty() || tables.iter().any(|table| self.cte_names.contains(table)) => true,
            (true, _) => tables.iter().filter_map(|table| names.columns(table)).flatten().any(|c| fits(c)),
            (false, Some(columns)) => columns.iter().any(|column| fits(column)),
            // The alias is not bound yet, so any column is possible.
            (false, None) => names.all_columns().any(fits),
        }
    }
}

/// Keywords that may follow a table instead of an alias.
const KEYWORDS_AFTER_TABLE: &[&str] = &[
    "on",
    "where",
    "join",
    "inner",
    "left",
    "right",
    "full",
    "cross",
    "natural",
    "group",
    "order",
    "having",
    "limit",
    "union",
    "intersect",
    "except",
    "using",
    "as",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_excludes_names_that_do_not_exist() {
        let names = AllowedNames::new([
            ("singer", vec!["singer_id", "name", "age"]),
            ("concert", vec!["concert_id", "year", "theme"]),
        ]);
        for (text, over, expected) in [
            ("", false, true),
            ("", true, false),
            ("SEL", false, true),
            ("The query", false, false),
            ("```sql", false, false),
            ("WITH", false, true),
            ("SELECT name FROM sin", false, true),
            ("SELECT name FROM sin", true, false),
            ("SELECT name FROM sin ", false, false),
            ("SELECT name FROM singer ", false, true),
            ("SELECT name FROM singers", false, false),
            ("SELECT name FROM Singer", true, true),
            ("SELECT name FROM \"singer\"", false, true),
            ("SELECT name FROM \"sing\"", false, false),
            ("SELECT name FROM (SELECT", false, true),
            ("SELECT T1.na", false, true),
            ("SELECT T1.nationality", false, false),
            ("SELECT T1.year FROM singer AS T1 JOIN concert AS T2 ON T1.si", false, true),
            ("SELECT T1.year FROM singer AS T1 JOIN concert AS T2 ON T1.ye", false, false),
            ("SELECT T1.year FROM singer T1 JOIN concert T2 ON T2.ye", false, true),
            ("SELECT singer.theme", false, false),
            ("SELECT extract(year FROM day", false, true),
            ("SELECT a IS DISTINCT FROM b", false, true),
            ("WITH x AS (SELECT 1 AS n) SELECT n FROM x", true, true),
            ("WITH x AS (SELECT 1 AS n) SELECT x.n FROM x WHERE x.whatever", false, true),
            ("SELECT s.n FROM (SELECT count(*) AS n FROM singer) AS s WHERE s.n", false, true),
            ("SELECT name FROM singer WHERE name = 'from nowhere", false, true),
            ("SELECT count(*) FROM singer WHERE age > 3.5", true, true),
        ] {
            assert_eq!(is_valid_prefix(text, &names, over), expected, "{text}");
        }
    }
}
