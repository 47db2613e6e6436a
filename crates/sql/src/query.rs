//! The text that was given, the SQL inside it, its statements, and where each piece stands.

use sqlparser::ast::Statement;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span as Place, Token, TokenWithSpan, Tokenizer, Whitespace};

use crate::dialect::Dialect;
use crate::differential;
use crate::finding::{Edit, Span, apply};
use crate::policy::Policy;
use crate::salvage::{self, Step};

/// A comment in the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// Where it stands in the given text.
    pub span: Span,
    /// MySQL runs what stands in it: `/*! … */`.
    pub executable: bool,
}

/// Why the text is not a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// There is no SQL in it.
    Empty,
    /// It is longer or deeper than is allowed; the text says in which way.
    TooMuch(String),
    /// The parser stopped.
    Syntax {
        /// What it expected.
        message: String,
        /// Where it stopped.
        at: Span,
    },
}

/// A text under review. Spans speak of the text as given, also where the SQL was salvaged out of more.
#[derive(Debug)]
pub struct Query {
    /// As given.
    pub source: String,
    /// The SQL in it.
    pub sql: String,
    /// The parsed statements; none if there is a failure.
    pub statements: Vec<Statement>,
    /// The tokens that they were made of.
    pub(crate) tokens: Vec<TokenWithSpan>,
    /// Why there are no statements.
    pub failure: Option<Failure>,
    /// What was done to get at the SQL.
    pub steps: Vec<Step>,
    /// Comments, in the order of the text.
    pub comments: Vec<Comment>,
    /// Where the comments stand in `sql`.
    comments_in_sql: Vec<Span>,
    edits: Vec<Edit>,
    lines: Vec<usize>,
    /// Where the letters of `sql` begin, and how many stand before each line; nothing if every letter is one byte.
    letters: Vec<u32>,
    letters_before: Vec<usize>,
}

impl Query {
    /// Parses the text as it is; extracts the SQL from it only where it does not parse.
    pub fn read(text: &str, dialect: &Dialect, policy: &Policy) -> Query {
        Self::read_as(text, dialect, policy, false)
    }

    /// Parses a text that parses as it is, but whose names do not resolve, in the form that it had before characters were lost:
    /// with the clauses that a comment swallowed, or with plain quotes. `None` where no such form parses.
    pub(crate) fn read_restored(text: &str, dialect: &Dialect, policy: &Policy) -> Option<Query> {
        salvage::may_be_damaged(text)
            .then(|| Self::read_as(text, dialect, policy, true))
            .filter(|query| query.failure.is_none() && query.steps.iter().any(|s| s.code != "trailing-semicolon"))
    }

    fn read_as(text: &str, dialect: &Dialect, policy: &Policy, restores: bool) -> Query {
        let mut query = Query {
            source: text.to_string(),
            sql: String::new(),
            statements: Vec::new(),
            tokens: Vec::new(),
            failure: None,
            steps: Vec::new(),
            comments: Vec::new(),
            comments_in_sql: Vec::new(),
            edits: Vec::new(),
            lines: Vec::new(),
            letters: Vec::new(),
            letters_before: Vec::new(),
        };
        if text.len() > policy.max_bytes {
            let (is, most) = (text.len(), policy.max_bytes);
            query.failure = Some(Failure::TooMuch(format!("the text has {is} bytes; at most {most} are looked at")));
            return query;
        }
        if text.trim().is_empty() {
            query.failure = Some(Failure::Empty);
            return query;
        }
        let parses = |sql: &str| parse(sql, dialect, policy).is_ok();
        let parsed = match parse(text, dialect, policy) {
            Ok(parsed) => {
                if restores {
                    query.steps = salvage::swallowed_clauses(text, &parses);
                }
                if restores && query.steps.is_empty() {
                    query.steps = salvage::typographic_quotes(text, &parses);
                }
                if query.steps.is_empty() {
                    query.steps = salvage::trailing_semicolon(text).into_iter().collect();
                    query.sql = text.to_string();
                    Ok(parsed)
                } else {
                    query.salvaged();
                    parse(&query.sql, dialect, policy)
                }
            }
            Err(Stop::Syntax(stop)) => {
                query.steps = salvage::salvage(text, &parses);
                query.salvaged();
                if query.steps.is_empty() { Err(Stop::Syntax(stop)) } else { parse(&query.sql, dialect, policy) }
            }
            Err(stop) => {
                query.sql = text.to_string();
                Err(stop)
            }
        };
        query.lines = std::iter::once(0).chain(query.sql.match_indices('\n').map(|(i, _)| i + 1)).collect();
        if !query.sql.is_ascii() {
            query.letters = query.sql.char_indices().map(|(at, _)| at as u32).collect();
            let before = |line: &usize| query.letters.partition_point(|&at| (at as usize) < *line);
            query.letters_before = query.lines.iter().map(before).collect();
        }
        match parsed {
            Ok(parsed) => {
                query.comments = parsed
                    .comments
                    .iter()
                    .map(|(place, executable)| Comment { span: query.span(*place), executable: *executable })
                    .collect();
                query.comments_in_sql = parsed
                    .comments
                    .iter()
                    .map(|(p, _)| Span::new(query.offset(p.start), query.offset(p.end)))
                    .collect();
                query.statements = parsed.statements;
                query.tokens = parsed.tokens;
                if query.statements.is_empty() {
                    query.failure = Some(Failure::Empty);
                }
            }
            Err(Stop::TooMuch(why)) => query.failure = Some(Failure::TooMuch(why)),
            Err(Stop::Syntax(_)) if !salvage::mentions_sql(&query.sql) => query.failure = Some(Failure::Empty),
            Err(Stop::Syntax(stop)) => {
                let at = query.word_at(stop.at);
                query.failure = Some(Failure::Syntax { message: stop.message, at });
            }
        }
        query
    }

    /// The very SQL that was parsed, without comments and without semicolons around it: what is sent. To some engines, what stands
    /// before a semicolon is a statement even if it is nothing.
    pub fn sendable(&self) -> String {
        let mut edits: Vec<Edit> =
            // A comment separates words, so a space takes its place.
            self.comments_in_sql.iter().map(|span| Edit { span: *span, text: " ".into() }).collect();
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        let sql = apply(&self.sql, &edits);
        sql.trim_matches(|c: char| c == ';' || c.is_whitespace()).to_string()
    }

    fn salvaged(&mut self) {
        self.edits = salvage::edits(&self.steps);
        self.sql = apply(&self.source, &self.edits);
    }

    /// Where a piece of the parsed SQL stands in the given text.
    pub fn span(&self, place: Place) -> Span {
        if place.start.line == 0 {
            return Span::default();
        }
        Span::new(self.to_source(self.offset(place.start)), self.to_source(self.offset(place.end)))
    }

    /// Where a stretch of the SQL, which may have been salvaged out of more, stands in the given text.
    pub(crate) fn place(&self, in_sql: Span) -> Span {
        Span::new(self.to_source(in_sql.start), self.to_source(in_sql.end))
    }

    /// The given text of a span.
    pub fn text(&self, span: Span) -> &str {
        self.source.get(span.start..span.end).unwrap_or("")
    }

    fn offset(&self, location: Location) -> usize {
        let line = (location.line as usize).saturating_sub(1);
        let Some(&start) = self.lines.get(line) else { return self.sql.len() };
        let column = (location.column as usize).saturating_sub(1);
        let Some(&before) = self.letters_before.get(line) else { return (start + column).min(self.sql.len()) };
        let end = self.lines.get(line + 1).copied().unwrap_or(self.sql.len());
        self.letters.get(before + column).map_or(end, |&at| (at as usize).min(end))
    }

    fn to_source(&self, offset: usize) -> usize {
        let mut shift: isize = 0;
        for edit in &self.edits {
            let starts_at = (edit.span.start as isize - shift) as usize;
            if offset < starts_at || (offset == starts_at && edit.span.start == edit.span.end) {
                break;
            }
            if offset < starts_at + edit.text.len() {
                return edit.span.start;
            }
            shift += (edit.span.end - edit.span.start) as isize - edit.text.len() as isize;
        }
        ((offset as isize + shift).max(0) as usize).min(self.source.len())
    }

    fn word_at(&self, location: Location) -> Span {
        let start = self.offset(location);
        let rest = &self.sql[floor(&self.sql, start)..];
        let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let len = word.max(rest.chars().next().map_or(0, char::len_utf8));
        Span::new(self.to_source(start), self.to_source(start + len))
    }
}

/// Line and column, both from 1, of a byte of a text.
pub(crate) fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..floor(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn floor(text: &str, mut offset: usize) -> usize {
    offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

pub(crate) struct Parsed {
    pub statements: Vec<Statement>,
    comments: Vec<(Place, bool)>,
    tokens: Vec<TokenWithSpan>,
}

pub(crate) struct SyntaxStop {
    message: String,
    at: Location,
}

pub(crate) enum Stop {
    TooMuch(String),
    Syntax(SyntaxStop),
}

/// The most operators that may follow each other without a comma or parenthesis between them. The parser nests them
/// to the left, and whoever walks or drops the tree needs a stack that deep. SQLite's own limit is 1,000.
const LONGEST_CHAIN: usize = 3_000;

/// The most words a query may have. Each is looked up among the others, so the work grows with their square; lists of
/// literals are not words.
const MOST_WORDS: usize = 10_000;

/// A set operation nests with each of its parts; SQLite takes 500.
const MOST_SELECTS: usize = 1_000;

/// How often the parser may call itself; it grows its stack as it goes.
const PARSER_DEPTH: usize = 400;

pub(crate) fn parse(sql: &str, dialect: &Dialect, policy: &Policy) -> Result<Parsed, Stop> {
    if let Some(nul) = sql.find('\0') {
        return Err(Stop::Syntax(SyntaxStop {
            message: "there is a NUL byte in the text".into(),
            at: location(sql, nul),
        }));
    }
    let mut tokens = Tokenizer::new(dialect.grammar, sql)
        .tokenize_with_location()
        .map_err(|e| Stop::Syntax(SyntaxStop { message: e.message, at: e.location }))?;
    let comments = scan(&tokens, sql, dialect, policy)?;
    if !dialect.grammar.supports_string_literal_concatenation_with_newline() {
        // The parser steps over white space again and again; only that rule looks at it.
        tokens.retain(|t| !matches!(t.token, Token::Whitespace(_)));
    }
    let mut parser = Parser::new(dialect.grammar).with_recursion_limit(PARSER_DEPTH).with_tokens_with_locations(tokens);
    let statements = statements(&mut parser).map_err(|e| stop(e, sql))?;
    Ok(Parsed { statements, comments, tokens: parser.into_tokens() })
}

/// All statements up to the end of the text. The parser's own loop stops without a word at END, and what stands behind it
/// would be sent unseen.
fn statements(parser: &mut Parser<'_>) -> Result<Vec<Statement>, ParserError> {
    let mut out = Vec::new();
    loop {
        while parser.consume_token(&Token::SemiColon) {}
        if parser.peek_token_ref().token == Token::EOF {
            return Ok(out);
        }
        out.push(parser.parse_statement()?);
        if !matches!(parser.peek_token_ref().token, Token::SemiColon | Token::EOF) {
            return parser.expected_ref("end of statement", parser.peek_token_ref());
        }
    }
}

/// Whether an expression of a text would nest deeper than anybody should walk. A text that has no tokens has none either.
pub(crate) fn has_long_chain(sql: &str, dialect: &Dialect) -> bool {
    let Ok(tokens) = Tokenizer::new(dialect.grammar, sql).tokenize() else { return false };
    let mut chains = vec![0usize];
    for token in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => chains.push(0),
            Token::RParen | Token::RBracket | Token::RBrace if chains.len() > 1 => _ = chains.pop(),
            Token::Comma | Token::SemiColon => chains.iter_mut().next_back().into_iter().for_each(|chain| *chain = 0),
            Token::Whitespace(_) => continue,
            _ => {}
        }
        if let Some(chain) = chains.last_mut() {
            *chain += 1;
            if *chain > LONGEST_CHAIN {
                return true;
            }
        }
    }
    false
}

/// Looks over the tokens before they are parsed: how deep, how long, which comments.
fn scan(tokens: &[TokenWithSpan], sql: &str, dialect: &Dialect, policy: &Policy) -> Result<Vec<(Place, bool)>, Stop> {
    let mut comments = Vec::new();
    let mut chains = vec![0usize];
    let (mut words, mut selects) = (0, 0);
    for token in tokens {
        match &token.token {
            Token::Word(word) => {
                words += 1;
                if words > MOST_WORDS {
                    return Err(Stop::TooMuch(format!("it has more than {MOST_WORDS} words")));
                }
                if word.keyword == Keyword::SELECT {
                    selects += 1;
                    if selects > MOST_SELECTS {
                        return Err(Stop::TooMuch(format!("it has more than {MOST_SELECTS} SELECTs")));
                    }
                    if let Some(chain) = chains.last_mut() {
                        *chain = 0;
                    }
                }
            }
            Token::LParen | Token::LBracket | Token::LBrace => {
                chains.push(0);
                if chains.len() > policy.max_depth {
                    return Err(Stop::TooMuch(format!("it is nested more than {} levels deep", policy.max_depth)));
                }
            }
            Token::RParen | Token::RBracket | Token::RBrace if chains.len() > 1 => _ = chains.pop(),
            Token::Comma | Token::SemiColon => {
                if let Some(chain) = chains.last_mut() {
                    *chain = 0;
                }
            }
            Token::Whitespace(Whitespace::SingleLineComment { .. }) => comments.push((token.span, false)),
            Token::Whitespace(Whitespace::MultiLineComment(_)) => comments.push((token.span, false)),

            Token::Whitespace(_) => continue,
            _ => {}
        }
        if let Some(chain) = chains.last_mut() {
            *chain += 1;
            if *chain > LONGEST_CHAIN {
                return Err(Stop::TooMuch(format!(
                    "more than {LONGEST_CHAIN} words and operators follow each other in one expression"
                )));
            }
        }
    }
    if let Some((at, why)) = differential::suspicious(tokens, sql, dialect) {
        return Err(Stop::Syntax(SyntaxStop { message: why.into(), at }));
    }
    if dialect.grammar.supports_multiline_comment_hints() {
        // The tokenizer opens such comments and gives their inside as SQL, so they are looked for in the text itself.
        comments.extend(executable_comments(sql));
    }
    Ok(comments)
}

/// Fails closed: such a mark inside a literal counts as well, since what a literal is depends on the server's settings.
fn executable_comments(sql: &str) -> Vec<(Place, bool)> {
    let marks = ["/*!", "/*M!"].into_iter().flat_map(|mark| sql.match_indices(mark));
    marks.map(|(start, mark)| (Place::new(location(sql, start), location(sql, start + mark.len())), true)).collect()
}

fn location(text: &str, offset: usize) -> Location {
    let before = &text[..offset];
    let line = before.rsplit('\n').next().unwrap_or("");
    Location::new(before.matches('\n').count() as u64 + 1, line.chars().count() as u64 + 1)
}

/// The parser tells the place only in its message: `… at Line: 1, Column: 8`.
fn stop(error: sqlparser::parser::ParserError, sql: &str) -> Stop {
    use sqlparser::parser::ParserError::{ParserError, RecursionLimitExceeded, TokenizerError};
    let text = match error {
        RecursionLimitExceeded => return Stop::TooMuch("it is nested too deep".into()),
        ParserError(text) | TokenizerError(text) => text,
    };
    // Without a place it stopped at the end.
    let mut at = location(sql, sql.trim_end().len());
    let mut message = text.clone();
    if let Some(i) = text.rfind(" at Line: ") {
        let mut numbers = text[i + 10..].split(", Column: ").map(|n| n.trim().parse::<u64>());
        if let (Some(Ok(line)), Some(Ok(column))) = (numbers.next(), numbers.next()) {
            at = Location::new(line, column);
            message = text[..i].to_string();
        }
    }
    Stop::Syntax(SyntaxStop { message, at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MYSQL, SQLITE};

    #[test]
    fn spans_count_bytes_also_after_other_scripts() {
        let query = Query::read("SELECT 'Ünï' AS a,\n  'ß', nme FROM t", &SQLITE, &Policy::default());
        let Some(Statement::Query(select)) = query.statements.first() else { panic!("no query") };
        let sqlparser::ast::SetExpr::Select(select) = &*select.body else { panic!("no select") };
        let sqlparser::ast::SelectItem::UnnamedExpr(sqlparser::ast::Expr::Identifier(ident)) = &select.projection[2]
        else {
            panic!("{select:?}")
        };
        assert_eq!(query.text(query.span(ident.span)), "nme");
    }

    #[test]
    fn executable_comments_are_seen() {
        let query = Query::read("SELECT 1 /*!50000 , sleep(5) */", &MYSQL, &Policy::default());
        assert!(query.comments.iter().any(|c| c.executable), "{query:?}");
    }
}
