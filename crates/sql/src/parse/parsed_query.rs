//! Parsed query: the source text, the SQL extracted from it, its statements and their spans.

use sqlparser::ast::Statement;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Span as TokenSpan, Token, TokenWithSpan, Tokenizer, Whitespace};

use crate::dialect::Dialect;
use crate::extract::{self, ExtractionStep};
use crate::finding::{Edit, Span, apply_edits};
use crate::parse::parser_differential;
use crate::safety::policy::Policy;

/// A comment in the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// Span in the source text.
    pub span: Span,
    /// `true` if MySQL executes its content: `/*! … */`.
    pub executable: bool,
}

/// Reason that a text is not a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParseFailure {
    /// The text contains no SQL.
    Empty,
    /// The text is longer or more deeply nested than allowed; contains the exceeded limit.
    LimitExceeded(String),
    /// The parser reported an error.
    Syntax {
        /// Message of the parser, such as the token it expected.
        message: String,
        /// Span at which the parser stopped.
        at: Span,
    },
}

/// A text under review.
///
/// Spans refer to the source text, even if the SQL was extracted from a longer text.
#[derive(Debug)]
pub struct ParsedQuery {
    /// Text as given.
    pub source: String,
    /// SQL extracted from the source.
    pub sql: String,
    /// Parsed statements; empty on failure.
    pub statements: Vec<Statement>,
    /// Tokens of the statements.
    pub(crate) tokens: Vec<TokenWithSpan>,
    /// Reason that there are no statements; `None` on success.
    pub failure: Option<ParseFailure>,
    /// Steps that extracted the SQL.
    pub steps: Vec<ExtractionStep>,
    /// Comments, in source order.
    pub comments: Vec<Comment>,
    /// Spans of the comments in `sql`.
    comments_in_sql: Vec<Span>,
    extraction_edits: Vec<Edit>,
    line_starts: Vec<usize>,
    /// Byte offset of each character of `sql`, and the number of characters before each line; both
    /// are empty if `sql` is ASCII.
    char_offsets: Vec<u32>,
    chars_before_line: Vec<usize>,
}

impl ParsedQuery {
    /// Parses the text as it is; extracts SQL from it only if it does not parse.
    pub fn parse(text: &str, dialect: &Dialect, policy: &Policy) -> ParsedQuery {
        Self::parse_as(text, dialect, policy, false)
    }

    /// Parses the restored form of a text that parses, but whose names do not resolve: with the
    /// clauses that a comment swallowed, or with plain quotes.
    ///
    /// Returns `None` if no such form parses.
    pub(crate) fn parse_restored(text: &str, dialect: &Dialect, policy: &Policy) -> Option<ParsedQuery> {
        extract::may_be_damaged(text)
            .then(|| Self::parse_as(text, dialect, policy, true))
            .filter(|query| query.failure.is_none() && query.steps.iter().any(|s| s.code != "trailing-semicolon"))
    }

    fn parse_as(text: &str, dialect: &Dialect, policy: &Policy, restores: bool) -> ParsedQuery {
        let mut query = ParsedQuery {
            source: text.to_string(),
            sql: String::new(),
            statements: Vec::new(),
            tokens: Vec::new(),
            failure: None,
            steps: Vec::new(),
            comments: Vec::new(),
            comments_in_sql: Vec::new(),
            extraction_edits: Vec::new(),
            line_starts: Vec::new(),
            char_offsets: Vec::new(),
            chars_before_line: Vec::new(),
        };
        if text.len() > policy.max_bytes {
            let (is, most) = (text.len(), policy.max_bytes);
            query.failure =
                Some(ParseFailure::LimitExceeded(format!("the text has {is} bytes; at most {most} are analyzed")));
            return query;
        }
        if text.trim().is_empty() {
            query.failure = Some(ParseFailure::Empty);
            return query;
        }
        let parses = |sql: &str| parse(sql, dialect, policy).is_ok();
        let parsed = match parse(text, dialect, policy) {
            Ok(parsed) => {
                if restores {
                    query.steps = extract::restore_swallowed_clauses(text, &parses);
                }
                if restores && query.steps.is_empty() {
                    query.steps = extract::replace_typographic_quotes(text, &parses);
                }
                if query.steps.is_empty() {
                    query.steps = extract::strip_trailing_semicolon(text).into_iter().collect();
                    query.sql = text.to_string();
                    Ok(parsed)
                } else {
                    query.apply_extraction();
                    parse(&query.sql, dialect, policy)
                }
            }
            Err(ParseError::Syntax(stop)) => {
                query.steps = extract::extract_sql(text, &parses);
                query.apply_extraction();
                if query.steps.is_empty() { Err(ParseError::Syntax(stop)) } else { parse(&query.sql, dialect, policy) }
            }
            Err(stop) => {
                query.sql = text.to_string();
                Err(stop)
            }
        };
        query.line_starts = std::iter::once(0).chain(query.sql.match_indices('\n').map(|(i, _)| i + 1)).collect();
        if !query.sql.is_ascii() {
            query.char_offsets = query.sql.char_indices().map(|(at, _)| at as u32).collect();
            let before = |line: &usize| query.char_offsets.partition_point(|&at| (at as usize) < *line);
            query.chars_before_line = query.line_starts.iter().map(before).collect();
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
                    query.failure = Some(ParseFailure::Empty);
                }
            }
            Err(ParseError::LimitExceeded(why)) => query.failure = Some(ParseFailure::LimitExceeded(why)),
            Err(ParseError::Syntax(_)) if !extract::may_contain_sql(&query.sql) => {
                query.failure = Some(ParseFailure::Empty)
            }
            Err(ParseError::Syntax(stop)) => {
                let at = query.token_span_at(stop.at);
                query.failure = Some(ParseFailure::Syntax { message: stop.message, at });
            }
        }
        query
    }

    /// Returns the parsed SQL as it is sent to the engine, without comments and surrounding
    /// semicolons.
    ///
    /// To some engines, text before a semicolon is a statement even if it is empty.
    pub fn executable_sql(&self) -> String {
        let mut edits: Vec<Edit> =
            // A comment separates tokens, so a space replaces it.
            self.comments_in_sql.iter().map(|span| Edit { span: *span, text: " ".into() }).collect();
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        let sql = apply_edits(&self.sql, &edits);
        sql.trim_matches(|c: char| c == ';' || c.is_whitespace()).to_string()
    }

    fn apply_extraction(&mut self) {
        self.extraction_edits = extract::sorted_edits(&self.steps);
        self.sql = apply_edits(&self.source, &self.extraction_edits);
    }

    /// Maps a span of the parsed SQL to the source text.
    pub fn span(&self, place: TokenSpan) -> Span {
        if place.start.line == 0 {
            return Span::default();
        }
        Span::new(self.to_source(self.offset(place.start)), self.to_source(self.offset(place.end)))
    }

    /// Maps a byte span of the extracted SQL to the source text.
    pub(crate) fn to_source_span(&self, in_sql: Span) -> Span {
        Span::new(self.to_source(in_sql.start), self.to_source(in_sql.end))
    }

    /// Returns the source text of a span.
    pub fn text(&self, span: Span) -> &str {
        self.source.get(span.start..span.end).unwrap_or("")
    }

    fn offset(&self, location: Location) -> usize {
        let line = (location.line as usize).saturating_sub(1);
        let Some(&start) = self.line_starts.get(line) else { return self.sql.len() };
        let column = (location.column as usize).saturating_sub(1);
        let Some(&before) = self.chars_before_line.get(line) else { return (start + column).min(self.sql.len()) };
        let end = self.line_starts.get(line + 1).copied().unwrap_or(self.sql.len());
        self.char_offsets.get(before + column).map_or(end, |&at| (at as usize).min(end))
    }

    fn to_source(&self, offset: usize) -> usize {
        let mut shift: isize = 0;
        for edit in &self.extraction_edits {
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

    fn token_span_at(&self, location: Location) -> Span {
        let start = self.offset(location);
        let rest = &self.sql[floor_char_boundary(&self.sql, start)..];
        let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let len = word.max(rest.chars().next().map_or(0, char::len_utf8));
        Span::new(self.to_source(start), self.to_source(start + len))
    }
}

/// Returns the line and column of a byte offset, both starting at 1.
pub(crate) fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..floor_char_boundary(text, offset)];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

fn floor_char_boundary(text: &str, mut offset: usize) -> usize {
    offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

pub(crate) struct ParsedStatements {
    pub statements: Vec<Statement>,
    comments: Vec<(TokenSpan, bool)>,
    tokens: Vec<TokenWithSpan>,
}

pub(crate) struct SyntaxError {
    message: String,
    at: Location,
}

pub(crate) enum ParseError {
    LimitExceeded(String),
    Syntax(SyntaxError),
}

/// Maximum number of operators in a row without a comma or parenthesis between them.
///
/// The parser nests them to the left, so walking or dropping the tree needs a stack that deep.
/// SQLite's own limit is 1,000.
const MAX_CHAIN_LENGTH: usize = 3_000;

/// Maximum number of identifiers and keywords in a query.
///
/// Each is looked up among the others, so the work is quadratic; literals in lists do not count.
const MAX_WORD_TOKENS: usize = 10_000;

/// Maximum number of SELECTs in a query. A set operation nests with each operand; SQLite's limit is
/// 500.
const MAX_SELECTS: usize = 1_000;

/// Maximum recursion depth of the parser, which grows its stack as needed.
const MAX_PARSER_DEPTH: usize = 400;

pub(crate) fn parse(sql: &str, dialect: &Dialect, policy: &Policy) -> Result<ParsedStatements, ParseError> {
    if let Some(nul) = sql.find('\0') {
        return Err(ParseError::Syntax(SyntaxError {
            message: "the text contains a NUL byte".into(),
            at: location(sql, nul),
        }));
    }
    let mut tokens = Tokenizer::new(dialect.grammar, sql)
        .tokenize_with_location()
        .map_err(|e| ParseError::Syntax(SyntaxError { message: e.message, at: e.location }))?;
    let comments = check_tokens(&tokens, sql, dialect, policy)?;
    if !dialect.grammar.supports_string_literal_concatenation_with_newline() {
        // The parser skips white space again and again; only that grammar rule needs it.
        tokens.retain(|t| !matches!(t.token, Token::Whitespace(_)));
    }
    let mut parser =
        Parser::new(dialect.grammar).with_recursion_limit(MAX_PARSER_DEPTH).with_tokens_with_locations(tokens);
    let statements = parse_statements(&mut parser).map_err(|e| to_parse_error(e, sql))?;
    Ok(ParsedStatements { statements, comments, tokens: parser.into_tokens() })
}

/// Parses all statements up to the end of the text.
///
/// The parser's own loop stops silently at END, and the text after it would be sent without review.
fn parse_statements(parser: &mut Parser<'_>) -> Result<Vec<Statement>, ParserError> {
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

/// Returns whether an expression would be nested too deeply to walk. Text that cannot be tokenized
/// has no expressions.
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
            if *chain > MAX_CHAIN_LENGTH {
                return true;
            }
        }
    }
    false
}

/// Checks depth, length and parser differentials before parsing, and returns the comments.
fn check_tokens(
    tokens: &[TokenWithSpan],
    sql: &str,
    dialect: &Dialect,
    policy: &Policy,
) -> Result<Vec<(TokenSpan, bool)>, ParseError> {
    let mut comments = Vec::new();
    let mut chains = vec![0usize];
    let (mut words, mut selects) = (0, 0);
    for token in tokens {
        match &token.token {
            Token::Word(word) => {
                words += 1;
                if words > MAX_WORD_TOKENS {
                    return Err(ParseError::LimitExceeded(format!(
                        "it has more than {MAX_WORD_TOKENS} keywords and identifiers"
                    )));
                }
                if word.keyword == Keyword::SELECT {
                    selects += 1;
                    if selects > MAX_SELECTS {
                        return Err(ParseError::LimitExceeded(format!("it has more than {MAX_SELECTS} SELECTs")));
                    }
                    if let Some(chain) = chains.last_mut() {
                        *chain = 0;
                    }
                }
            }
            Token::LParen | Token::LBracket | Token::LBrace => {
                chains.push(0);
                if chains.len() > policy.max_depth {
                    return Err(ParseError::LimitExceeded(format!(
                        "it is nested more than {} levels deep",
                        policy.max_depth
                    )));
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
            if *chain > MAX_CHAIN_LENGTH {
                return Err(ParseError::LimitExceeded(format!(
                    "one expression has more than {MAX_CHAIN_LENGTH} consecutive tokens"
                )));
            }
        }
    }
    if let Some((at, why)) = parser_differential::first_ambiguity(tokens, sql, dialect) {
        return Err(ParseError::Syntax(SyntaxError { message: why.into(), at }));
    }
    if dialect.grammar.supports_multiline_comment_hints() {
        // The tokenizer opens such comments and returns their content as SQL, so search the text
        // itself.
        comments.extend(executable_comments(sql));
    }
    Ok(comments)
}

/// Returns the comments that MySQL and MariaDB execute.
///
/// Fails closed: a marker inside a literal counts as well, because the extent of a literal depends
/// on the server's settings.
fn executable_comments(sql: &str) -> Vec<(TokenSpan, bool)> {
    let marks = ["/*!", "/*M!"].into_iter().flat_map(|mark| sql.match_indices(mark));
    marks.map(|(start, mark)| (TokenSpan::new(location(sql, start), location(sql, start + mark.len())), true)).collect()
}

fn location(text: &str, offset: usize) -> Location {
    let before = &text[..offset];
    let line = before.rsplit('\n').next().unwrap_or("");
    Location::new(before.matches('\n').count() as u64 + 1, line.chars().count() as u64 + 1)
}

/// Converts a parser error, whose location is only in its message: `… at Line: 1, Column: 8`.
fn to_parse_error(error: sqlparser::parser::ParserError, sql: &str) -> ParseError {
    use sqlparser::parser::ParserError::{ParserError, RecursionLimitExceeded, TokenizerError};
    let text = match error {
        RecursionLimitExceeded => return ParseError::LimitExceeded("it is nested too deeply".into()),
        ParserError(text) | TokenizerError(text) => text,
    };
    // An error without a location occurred at the end.
    let mut at = location(sql, sql.trim_end().len());
    let mut message = text.clone();
    if let Some(i) = text.rfind(" at Line: ") {
        let mut numbers = text[i + 10..].split(", Column: ").map(|n| n.trim().parse::<u64>());
        if let (Some(Ok(line)), Some(Ok(column))) = (numbers.next(), numbers.next()) {
            at = Location::new(line, column);
            message = text[..i].to_string();
        }
    }
    ParseError::Syntax(SyntaxError { message, at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{MYSQL, SQLITE};

    #[test]
    fn maps_spans_to_bytes_after_multibyte_text() {
        let query = ParsedQuery::parse("SELECT 'Ünï' AS a,\n  'ß', nme FROM t", &SQLITE, &Policy::default());
        let Some(Statement::Query(select)) = query.statements.first() else { panic!("no query") };
        let sqlparser::ast::SetExpr::Select(select) = &*select.body else { panic!("no select") };
        let sqlparser::ast::SelectItem::UnnamedExpr(sqlparser::ast::Expr::Identifier(ident)) = &select.projection[2]
        else {
            panic!("{select:?}")
        };
        assert_eq!(query.text(query.span(ident.span)), "nme");
    }

    #[test]
    fn detects_executable_comments() {
        let query = ParsedQuery::parse("SELECT 1 /*!50000 , sleep(5) */", &MYSQL, &Policy::default());
        assert!(query.comments.iter().any(|c| c.executable), "{query:?}");
    }
}
