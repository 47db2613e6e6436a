//! Token-level view of text that does not parse: its query blocks and clauses, and whether an edit
//! makes it parse.

use sqlparser::ast::{Ident, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span, apply_edits};
use crate::fixes::{keyword, tokens};
use crate::parse::parsed_query::{ParseFailure, parse};
use crate::rule::{Rule, RuleContext};
use crate::rule_group::RuleGroup;
use crate::text::similarity::is_typo;

/// Maximum length of text that is repaired token by token, in bytes: each attempt costs a parse.
const MAX_UNPARSED_BYTES: usize = 20 << 10;

/// A token of the text, with its span and nesting depth.
pub(crate) struct SpannedToken {
    pub token: Token,
    pub span: Span,
    /// Number of parentheses open around the token; a parenthesis itself counts as outside.
    pub depth: usize,
}

/// Clauses of a query, in the order that the grammar requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClauseKind {
    Select,
    From,
    Join,
    Where,
    GroupBy,
    Having,
    OrderBy,
    Limit,
    Offset,
    Fetch,
}

impl ClauseKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ClauseKind::Select => "SELECT",
            ClauseKind::From => "FROM",
            ClauseKind::Join => "JOIN",
            ClauseKind::Where => "WHERE",
            ClauseKind::GroupBy => "GROUP BY",
            ClauseKind::Having => "HAVING",
            ClauseKind::OrderBy => "ORDER BY",
            ClauseKind::Limit => "LIMIT",
            ClauseKind::Offset => "OFFSET",
            ClauseKind::Fetch => "FETCH",
        }
    }
}

/// A query inside the text: from its SELECT to the next parenthesis, set operation, semicolon or
/// end of text.
pub(crate) struct QueryBlock {
    /// Clauses, each with the index of its first token.
    pub clauses: Vec<(ClauseKind, usize)>,
    /// Index after the last token.
    pub end: usize,
    pub depth: usize,
}

/// A single query that does not parse.
pub(crate) struct UnparsedQuery<'s> {
    ctx: &'s RuleContext<'s>,
    /// Tokens without white space and comments.
    pub tokens: Vec<SpannedToken>,
}

impl<'s> UnparsedQuery<'s> {
    /// Returns the text if it is one query that does not parse.
    ///
    /// Returns `None` for wrapped text, which is unwrapped first, and for several statements, which
    /// are not repaired.
    pub(crate) fn from_syntax_error(ctx: &'s RuleContext<'s>) -> Option<Self> {
        let Some(ParseFailure::Syntax { .. }) = &ctx.query.failure else { return None };
        Self::tokenize(ctx)
    }

    /// Like [`Self::from_syntax_error`], but also accepts text that parses only because a keyword
    /// is taken for a name: `COUNT * FROM orders` multiplies two columns, the second of which is
    /// called FROM.
    pub(crate) fn from_syntax_error_or_misparse(ctx: &'s RuleContext<'s>) -> Option<Self> {
        match &ctx.query.failure {
            None => is_misparsed(ctx).then(|| Self::tokenize(ctx)).flatten(),
            Some(_) => Self::from_syntax_error(ctx),
        }
    }

    fn tokenize(ctx: &'s RuleContext<'s>) -> Option<Self> {
        let query = ctx.query;
        if query.source.len() > MAX_UNPARSED_BYTES || !query.steps.is_empty() {
            return None;
        }
        let mut depth = 0usize;
        let mut words = Vec::new();
        for token in tokens(ctx).into_owned() {
            if matches!(token.token, Token::Whitespace(_) | Token::EOF) {
                continue;
            }
            if token.token == Token::RParen {
                depth = depth.saturating_sub(1);
            }
            let opens = token.token == Token::LParen;
            words.push(SpannedToken { span: query.span(token.span), token: token.token, depth });
            depth += usize::from(opens);
        }
        let last = words.iter().rposition(|w| w.token != Token::SemiColon)?;
        let first = words.iter().find(|w| w.token != Token::LParen)?;
        let is_typo = matches!(&first.token, Token::Word(word) if word.quote_style.is_none()
            && is_typo(&word.value.to_ascii_uppercase(), "SELECT"));
        let asks = is_typo || matches!(keyword(&first.token), Some(Keyword::SELECT | Keyword::WITH));
        let several = words[..last].iter().any(|w| w.token == Token::SemiColon);
        (asks && !several).then_some(Self { ctx, tokens: words })
    }

    /// Returns whether the text with these edits is one query.
    pub(crate) fn parses_with(&self, edits: &[Edit]) -> bool {
        Self::parses_as_query(self.ctx, edits)
    }

    /// Like [`Self::parses_with`], for text that cannot be tokenized.
    pub(crate) fn parses_as_query(ctx: &RuleContext<'_>, edits: &[Edit]) -> bool {
        if ctx.query.source.len() > MAX_UNPARSED_BYTES {
            return false;
        }
        let text = apply_edits(&ctx.query.source, edits);
        let parsed = parse(&text, ctx.context.dialect, ctx.context.policy);
        parsed.is_ok_and(|p| matches!(p.statements.as_slice(), [Statement::Query(_)]))
    }

    /// Returns the text from one token up to another, excluding the latter and trailing white
    /// space.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &'s str {
        let Some(start) = self.tokens.get(from).map(|w| w.span.start).filter(|_| from < to) else { return "" };
        let end = self.tokens.get(to).map_or(self.ctx.query.source.len(), |w| w.span.start);
        self.ctx.query.source[start..end].trim_end()
    }

    pub(crate) fn keyword(&self, at: usize) -> Option<Keyword> {
        self.tokens.get(at).and_then(|w| keyword(&w.token))
    }

    pub(crate) fn is_token(&self, at: usize, token: &Token) -> bool {
        self.tokens.get(at).is_some_and(|w| w.token == *token)
    }

    /// Returns the index after the last token that is not a semicolon.
    pub(crate) fn end(&self) -> usize {
        self.tokens.iter().rposition(|w| w.token != Token::SemiColon).map_or(0, |i| i + 1)
    }

    /// Returns whether a semicolon marks the intended end of the text.
    pub(crate) fn ends_with_semicolon(&self) -> bool {
        self.tokens.last().is_some_and(|w| w.token == Token::SemiColon)
    }

    /// Returns the clause that begins at a token.
    pub(crate) fn clause_at(&self, at: usize) -> Option<ClauseKind> {
        let before = |n: usize| at.checked_sub(n).and_then(|i| self.keyword(i));
        if at > 0 && self.is_token(at - 1, &Token::Period) {
            return None;
        }
        let by = self.keyword(at + 1) == Some(Keyword::BY);
        let number = || self.tokens.get(at + 1).is_some_and(|w| matches!(w.token, Token::Number(..) | Token::LParen));
        match self.keyword(at)? {
            Keyword::SELECT => Some(ClauseKind::Select),
            // `IS DISTINCT FROM` is a comparison.
            Keyword::FROM
                if before(1) == Some(Keyword::DISTINCT) && matches!(before(2), Some(Keyword::IS | Keyword::NOT)) =>
            {
                None
            }
            Keyword::FROM => Some(ClauseKind::From),
            Keyword::JOIN if !before(1).is_some_and(is_join_modifier) => Some(ClauseKind::Join),
            word if is_join_modifier(word) && !before(1).is_some_and(is_join_modifier) => {
                let joins = (at + 1..at + 4).take_while(|&i| {
                    self.keyword(i - 1).is_some_and(is_join_modifier)
                        && self.keyword(i).is_some_and(|k| is_join_modifier(k) || k == Keyword::JOIN)
                });
                joins.last().filter(|&i| self.keyword(i) == Some(Keyword::JOIN)).map(|_| ClauseKind::Join)
            }
            Keyword::WHERE => Some(ClauseKind::Where),
            Keyword::GROUP if by => Some(ClauseKind::GroupBy),
            Keyword::HAVING => Some(ClauseKind::Having),
            Keyword::ORDER if by => Some(ClauseKind::OrderBy),
            Keyword::LIMIT if number() => Some(ClauseKind::Limit),
            Keyword::OFFSET if number() => Some(ClauseKind::Offset),
            Keyword::FETCH => Some(ClauseKind::Fetch),
            _ => None,
        }
    }

    /// Returns the end of the query that contains a token of this depth.
    pub(crate) fn block_end(&self, from: usize, depth: usize) -> usize {
        let closes = |w: &SpannedToken, i: usize| {
            w.token == Token::SemiColon
                || (w.token == Token::RParen && w.depth < depth)
                || (w.depth == depth
                    && matches!(self.keyword(i), Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT)))
        };
        (from..self.tokens.len()).find(|&i| closes(&self.tokens[i], i)).unwrap_or(self.tokens.len())
    }

    /// Returns all queries of the text.
    pub(crate) fn query_blocks(&self) -> Vec<QueryBlock> {
        let selects = (0..self.tokens.len()).filter(|&i| self.clause_at(i) == Some(ClauseKind::Select));
        let block = |start: usize| {
            let depth = self.tokens[start].depth;
            let end = self.block_end(start, depth);
            let own = (start..end).filter(|&i| self.tokens[i].depth == depth);
            QueryBlock { clauses: own.filter_map(|i| Some((self.clause_at(i)?, i))).collect(), end, depth }
        };
        selects.map(block).collect()
    }

    /// Returns the parenthesis that closes the one at `open`.
    pub(crate) fn matching_close(&self, open: usize) -> Option<usize> {
        let depth = self.tokens[open].depth;
        (open + 1..self.tokens.len()).find(|&i| self.is_token(i, &Token::RParen) && self.tokens[i].depth == depth)
    }

    /// Returns the parenthesis that the one at `close` closes.
    pub(crate) fn matching_open(&self, close: usize) -> Option<usize> {
        let depth = self.tokens[close].depth;
        (0..close).rev().find(|&i| self.is_token(i, &Token::LParen) && self.tokens[i].depth == depth)
    }

    /// Returns the parenthesis that encloses a token.
    pub(crate) fn enclosing_open(&self, at: usize) -> Option<usize> {
        let depth = self.tokens[at].depth.checked_sub(1)?;
        (0..at).rev().find(|&i| self.is_token(i, &Token::LParen) && self.tokens[i].depth == depth)
    }

    /// Returns whether the schema has a table or column of this name.
    pub(crate) fn is_schema_name(&self, word: &str) -> bool {
        is_schema_name(self.ctx, word)
    }

    /// Returns whether a token begins the call of an aggregate.
    pub(crate) fn is_aggregate_call(&self, at: usize) -> bool {
        let Some(Token::Word(word)) = self.tokens.get(at).map(|w| &w.token) else { return false };
        let functions = self.ctx.context.dialect.functions;
        let known = functions.get(&word.value.to_lowercase()).is_some_and(|f| f.aggregate);
        known && self.is_token(at + 1, &Token::LParen)
    }
}

fn is_join_modifier(word: Keyword) -> bool {
    matches!(
        word,
        Keyword::INNER
            | Keyword::LEFT
            | Keyword::RIGHT
            | Keyword::FULL
            | Keyword::CROSS
            | Keyword::NATURAL
            | Keyword::OUTER
    )
}

/// Returns whether the schema has a table or column of this name.
pub(crate) fn is_schema_name(ctx: &RuleContext<'_>, word: &str) -> bool {
    let named =
        |s: &crate::Schema| s.tables().iter().any(|t| t.name.eq_ignore_ascii_case(word) || t.column(word).is_some());
    ctx.context.schema.is_some_and(named)
}

/// Returns whether a keyword was parsed as a name that does not exist.
///
/// It is then misplaced, or something before it is missing. After AS or a period it is a name.
pub(crate) fn is_misplaced_keyword(ctx: &RuleContext<'_>, name: &Ident) -> bool {
    const WORDS: &[&str] = &[
        "SELECT", "DISTINCT", "FROM", "WHERE", "JOIN", "ON", "HAVING", "UNION", "AND", "OR", "NOT", "IN", "BETWEEN",
        "CASE", "WHEN", "THEN", "ELSE", "AS",
    ];
    if !WORDS.iter().any(|w| w.eq_ignore_ascii_case(&name.value)) || is_schema_name(ctx, &name.value) {
        return false;
    }
    let before = ctx.query.source[..ctx.query.span(name.span).start].trim_end().to_ascii_lowercase();
    !before.ends_with('.') && !before.ends_with(" as")
}

fn is_misparsed(ctx: &RuleContext<'_>) -> bool {
    ctx.resolution.unquoted_identifiers.iter().any(|name| is_misplaced_keyword(ctx, name))
}

/// Returns whether a rule of this group has already reported a fix for the text; one fault needs
/// one finding.
pub(crate) fn is_already_reported(out: &[Finding]) -> bool {
    let own = |f: &Finding| Rule::from_code(f.code).is_some_and(|r| r.group == RuleGroup::Syntax);
    out.iter().any(|f| f.severity == Severity::Error && own(f) && !f.fixes.is_empty())
}

/// Returns an edit that deletes a span.
pub(crate) fn delete(span: Span) -> Edit {
    Edit { span, text: String::new() }
}

/// Returns an edit that inserts text at an offset.
pub(crate) fn insert(at: usize, text: impl Into<String>) -> Edit {
    Edit { span: Span::new(at, at), text: text.into() }
}

/// Returns a fix that consists of several edits.
pub(crate) fn fix(edits: Vec<Edit>, applicability: Applicability, why: impl Into<String>) -> Fix {
    Fix { edits, applicability, why: why.into(), is_tied_with_previous: false }
}
