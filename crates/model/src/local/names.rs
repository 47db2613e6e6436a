//! Holds a model to names that exist, while it writes: behind FROM and JOIN a table, behind `alias.` a column. A query begins
//! with SELECT or WITH.
//!
//! What is written so far is looked at as a whole each time; it is short, and this way nothing has to be kept in step with what
//! the model does.

use crate::request::Names;

/// Whether a text may still become a query whose names are all known. `over` says that it ends here.
pub(super) fn fits(text: &str, names: &Names, over: bool) -> bool {
    let tokens = lexed(text);
    let Some(first) = tokens.first() else { return !over };
    if !begins(first, over || tokens.len() > 1) {
        return false;
    }
    let known = Known::of(&tokens);
    // What stands before the last two tokens was looked at when it was written.
    let from = tokens.len().saturating_sub(2);
    (from..tokens.len()).all(|at| {
        let whole = at + 1 < tokens.len() || over || tokens[at].closed;
        match &tokens[at].kind {
            Kind::Name(name) => match place(&tokens, at) {
                Place::Table => known.is_table(name, whole, names),
                Place::Column(owner) => known.is_column(owner, name, whole, names),
                Place::Elsewhere => true,
            },
            Kind::Text | Kind::Number | Kind::Sign(_) => true,
        }
    })
}

#[derive(Debug, PartialEq)]
enum Kind {
    /// A word or a quoted name, in lower case.
    Name(String),
    Text,
    Number,
    Sign(u8),
}

#[derive(Debug, PartialEq)]
struct Token {
    kind: Kind,
    quoted: bool,
    /// Nothing can be added to it any more.
    closed: bool,
}

impl Token {
    fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) if !self.quoted => Some(name),
            _ => None,
        }
    }

    fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name),
            Kind::Text | Kind::Number | Kind::Sign(_) => None,
        }
    }
}

fn lexed(text: &str) -> Vec<Token> {
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
                let kind = if quote == b'\'' { Kind::Text } else { Kind::Name(inner) };
                tokens.push(Token { kind, quoted: true, closed });
            }
            b if word(b) => {
                while at < bytes.len() && word(bytes[at]) {
                    at += 1;
                }
                let inner = text.get(start..at).unwrap_or_default();
                let number = bytes[start].is_ascii_digit();
                let kind = if number { Kind::Number } else { Kind::Name(inner.to_lowercase()) };
                tokens.push(Token { kind, quoted: false, closed: at < bytes.len() });
            }
            sign => {
                at += 1;
                tokens.push(Token { kind: Kind::Sign(sign), quoted: false, closed: true });
            }
        }
    }
    tokens
}

fn begins(first: &Token, whole: bool) -> bool {
    let Some(word) = first.word() else { return first.kind == Kind::Sign(b'(') };
    ["select", "with"].iter().any(|begin| if whole { *begin == word } else { begin.starts_with(word) })
}

enum Place<'t> {
    Table,
    Column(&'t str),
    Elsewhere,
}

/// What the name at this place is a name of.
fn place(tokens: &[Token], at: usize) -> Place<'_> {
    let before = |back: usize| at.checked_sub(back).map(|place| &tokens[place]);
    let Some(last) = before(1) else { return Place::Elsewhere };
    if last.kind == Kind::Sign(b'.') {
        // A name of three parts begins with a schema, about which nothing is said here.
        let longer = before(3).is_some_and(|token| token.kind == Kind::Sign(b'.'));
        let table = before(3).and_then(Token::word).is_some_and(|word| ["from", "join"].contains(&word));
        return match before(2).and_then(Token::name) {
            Some(owner) if !longer && !table => Place::Column(owner),
            _ => Place::Elsewhere,
        };
    }
    let opens = matches!(last.word(), Some("join")) || (last.word() == Some("from") && is_clause(tokens, at - 1));
    if opens { Place::Table } else { Place::Elsewhere }
}

/// Whether this FROM begins a list of tables: in `extract(year FROM day)` it does not, nor in `IS DISTINCT FROM`.
fn is_clause(tokens: &[Token], from: usize) -> bool {
    if from > 0 && tokens[from - 1].word() == Some("distinct") {
        return false;
    }
    let mut depth = 0usize;
    for at in (0..from).rev() {
        match &tokens[at].kind {
            Kind::Sign(b')') => depth += 1,
            Kind::Sign(b'(') if depth == 0 => {
                let function = at.checked_sub(1).and_then(|place| tokens[place].word());
                return !matches!(function, Some("extract" | "substring" | "trim" | "overlay"));
            }
            Kind::Sign(b'(') => depth -= 1,
            _ => {}
        }
    }
    true
}

/// The names that the query itself gives.
struct Known<'t> {
    /// Names of queries in WITH.
    queries: Vec<&'t str>,
    /// Aliases, each with its table; nothing for a query.
    aliases: Vec<(&'t str, Option<&'t str>)>,
}

impl<'t> Known<'t> {
    fn of(tokens: &'t [Token]) -> Self {
        let mut known = Self { queries: Vec::new(), aliases: Vec::new() };
        for at in 0..tokens.len() {
            let Some(name) = tokens[at].name() else { continue };
            let next = |on: usize| tokens.get(at + on);
            let word = |on: usize| next(on).and_then(Token::word);
            let with = at > 0 && (["with", "recursive"].contains(&tokens[at - 1].word().unwrap_or_default()));
            let more = at > 0 && tokens[at - 1].kind == Kind::Sign(b',');
            if (with || more) && word(1) == Some("as") && next(2).is_some_and(|t| t.kind == Kind::Sign(b'(')) {
                known.queries.push(name);
            }
            let table = matches!(place(tokens, at), Place::Table);
            if table {
                let alias = if word(1) == Some("as") { next(2) } else { next(1) };
                known.aliases.push((name, Some(name)));
                if let Some(alias) = alias.and_then(Token::name).filter(|alias| !CLAUSES.contains(alias)) {
                    known.aliases.push((alias, Some(name)));
                }
            }
            // An alias of a query, or of what stands behind a comma: nothing is known of its columns.
            let after = at > 0 && (tokens[at - 1].kind == Kind::Sign(b')') || tokens[at - 1].word() == Some("as"));
            if after && !known.aliases.iter().any(|(alias, _)| *alias == name) {
                known.aliases.push((name, None));
            }
        }
        known
    }

    fn is_table(&self, name: &str, whole: bool, names: &Names) -> bool {
        let fits = |known: &str| if whole { known == name } else { known.starts_with(name) };
        // SELECT may follow in brackets only, and a function may give rows: neither is written like this.
        names.tables().any(fits) || self.queries.iter().any(|query| fits(query))
    }

    fn is_column(&self, owner: &str, name: &str, whole: bool, names: &Names) -> bool {
        let fits = |known: &str| if whole { known == name } else { known.starts_with(name) };
        let tables: Vec<&str> = self.aliases.iter().filter(|(a, _)| *a == owner).filter_map(|(_, t)| *t).collect();
        let bound = self.aliases.iter().any(|(alias, _)| *alias == owner);
        match (bound, names.columns(owner)) {
            // Its columns are whatever that query selects.
            (true, _) if tables.is_empty() || tables.iter().any(|table| self.queries.contains(table)) => true,
            (true, _) => tables.iter().filter_map(|table| names.columns(table)).flatten().any(|c| fits(c)),
            (false, Some(columns)) => columns.iter().any(|column| fits(column)),
            // Not said yet what it stands for: any column may be meant.
            (false, None) => names.all_columns().any(fits),
        }
    }
}

/// What may follow a table instead of an alias.
const CLAUSES: &[&str] = &[
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
    fn names_that_do_not_exist_are_not_written() {
        let names = Names::new([
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
            assert_eq!(fits(text, &names, over), expected, "{text}");
        }
    }
}
