//! Text that does not parse, looked at word by word: where its queries and clauses are, and whether a change makes it parse.

use sqlparser::ast::{Ident, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use crate::finding::{Applicability, Edit, Finding, Fix, Severity, Span, apply};
use crate::mend::{keyword, tokens};
use crate::near::is_slip;
use crate::query::{Failure, parse};
use crate::rules::{Rule, Subject};

/// Longer text is not mended word by word: each try costs a parse.
const LONGEST: usize = 20 << 10;

/// A word, sign or literal of the text.
pub(crate) struct Lexeme {
    pub token: Token,
    pub span: Span,
    /// How many parentheses are open around it; a parenthesis itself counts as outside.
    pub depth: usize,
}

/// The parts of a query, in the order in which they must stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Clause {
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

impl Clause {
    pub(crate) fn written(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::From => "FROM",
            Clause::Join => "JOIN",
            Clause::Where => "WHERE",
            Clause::GroupBy => "GROUP BY",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Fetch => "FETCH",
        }
    }
}

/// A query inside the text: from its SELECT to the parenthesis, set operation, semicolon or end behind it.
pub(crate) struct Block {
    /// The clauses, each with the word it begins with.
    pub clauses: Vec<(Clause, usize)>,
    /// One past its last word.
    pub end: usize,
    pub depth: usize,
}

/// One question that does not parse.
pub(crate) struct Broken<'s> {
    subject: &'s Subject<'s>,
    /// What stands in it, without white space and comments.
    pub words: Vec<Lexeme>,
}

impl<'s> Broken<'s> {
    /// The text, if it is one query that does not parse. Text that still has its wrapping is unwrapped first, and several
    /// statements are nobody's to mend.
    pub(crate) fn of(subject: &'s Subject<'s>) -> Option<Self> {
        let Some(Failure::Syntax { .. }) = &subject.query.failure else { return None };
        Self::read(subject)
    }

    /// The same, and also text that parses only because a keyword is taken for a name: `COUNT * FROM orders` multiplies two
    /// columns, the second of which is called FROM.
    pub(crate) fn or_misread(subject: &'s Subject<'s>) -> Option<Self> {
        match &subject.query.failure {
            None => is_misread(subject).then(|| Self::read(subject)).flatten(),
            Some(_) => Self::of(subject),
        }
    }

    fn read(subject: &'s Subject<'s>) -> Option<Self> {
        let query = subject.query;
        if query.source.len() > LONGEST || !query.steps.is_empty() {
            return None;
        }
        let mut depth = 0usize;
        let mut words = Vec::new();
        for token in tokens(subject).into_owned() {
            if matches!(token.token, Token::Whitespace(_) | Token::EOF) {
                continue;
            }
            if token.token == Token::RParen {
                depth = depth.saturating_sub(1);
            }
            let opens = token.token == Token::LParen;
            words.push(Lexeme { span: query.span(token.span), token: token.token, depth });
            depth += usize::from(opens);
        }
        let last = words.iter().rposition(|w| w.token != Token::SemiColon)?;
        let first = words.iter().find(|w| w.token != Token::LParen)?;
        let is_typo = matches!(&first.token, Token::Word(word) if word.quote_style.is_none()
            && is_slip(&word.value.to_ascii_uppercase(), "SELECT"));
        let asks = is_typo || matches!(keyword(&first.token), Some(Keyword::SELECT | Keyword::WITH));
        let several = words[..last].iter().any(|w| w.token == Token::SemiColon);
        (asks && !several).then_some(Self { subject, words })
    }

    /// Whether the text is one query with these changes.
    pub(crate) fn mends(&self, edits: &[Edit]) -> bool {
        Self::becomes_query(self.subject, edits)
    }

    /// The same for text that cannot even be told apart into words.
    pub(crate) fn becomes_query(subject: &Subject<'_>, edits: &[Edit]) -> bool {
        if subject.query.source.len() > LONGEST {
            return false;
        }
        let text = apply(&subject.query.source, edits);
        let parsed = parse(&text, subject.context.dialect, subject.context.policy);
        parsed.is_ok_and(|p| matches!(p.statements.as_slice(), [Statement::Query(_)]))
    }

    /// The text between two words, the first included, the second not, without the white space at its end.
    pub(crate) fn slice(&self, from: usize, to: usize) -> &'s str {
        let Some(start) = self.words.get(from).map(|w| w.span.start).filter(|_| from < to) else { return "" };
        let end = self.words.get(to).map_or(self.subject.query.source.len(), |w| w.span.start);
        self.subject.query.source[start..end].trim_end()
    }

    pub(crate) fn keyword(&self, at: usize) -> Option<Keyword> {
        self.words.get(at).and_then(|w| keyword(&w.token))
    }

    pub(crate) fn is(&self, at: usize, token: &Token) -> bool {
        self.words.get(at).is_some_and(|w| w.token == *token)
    }

    /// One past the last word that is not a semicolon.
    pub(crate) fn end(&self) -> usize {
        self.words.iter().rposition(|w| w.token != Token::SemiColon).map_or(0, |i| i + 1)
    }

    /// Whether a semicolon says that the text was meant to end here.
    pub(crate) fn is_closed(&self) -> bool {
        self.words.last().is_some_and(|w| w.token == Token::SemiColon)
    }

    /// The clause that begins with a word.
    pub(crate) fn clause(&self, at: usize) -> Option<Clause> {
        let before = |n: usize| at.checked_sub(n).and_then(|i| self.keyword(i));
        if at > 0 && self.is(at - 1, &Token::Period) {
            return None;
        }
        let by = self.keyword(at + 1) == Some(Keyword::BY);
        let number = || self.words.get(at + 1).is_some_and(|w| matches!(w.token, Token::Number(..) | Token::LParen));
        match self.keyword(at)? {
            Keyword::SELECT => Some(Clause::Select),
            // `IS DISTINCT FROM` compares.
            Keyword::FROM
                if before(1) == Some(Keyword::DISTINCT) && matches!(before(2), Some(Keyword::IS | Keyword::NOT)) =>
            {
                None
            }
            Keyword::FROM => Some(Clause::From),
            Keyword::JOIN if !before(1).is_some_and(is_join_word) => Some(Clause::Join),
            word if is_join_word(word) && !before(1).is_some_and(is_join_word) => {
                let joins = (at + 1..at + 4).take_while(|&i| {
                    self.keyword(i - 1).is_some_and(is_join_word)
                        && self.keyword(i).is_some_and(|k| is_join_word(k) || k == Keyword::JOIN)
                });
                joins.last().filter(|&i| self.keyword(i) == Some(Keyword::JOIN)).map(|_| Clause::Join)
            }
            Keyword::WHERE => Some(Clause::Where),
            Keyword::GROUP if by => Some(Clause::GroupBy),
            Keyword::HAVING => Some(Clause::Having),
            Keyword::ORDER if by => Some(Clause::OrderBy),
            Keyword::LIMIT if number() => Some(Clause::Limit),
            Keyword::OFFSET if number() => Some(Clause::Offset),
            Keyword::FETCH => Some(Clause::Fetch),
            _ => None,
        }
    }

    /// Where the query ends that a word of this depth stands in.
    pub(crate) fn block_end(&self, from: usize, depth: usize) -> usize {
        let closes = |w: &Lexeme, i: usize| {
            w.token == Token::SemiColon
                || (w.token == Token::RParen && w.depth < depth)
                || (w.depth == depth
                    && matches!(self.keyword(i), Some(Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT)))
        };
        (from..self.words.len()).find(|&i| closes(&self.words[i], i)).unwrap_or(self.words.len())
    }

    /// All queries of the text.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let selects = (0..self.words.len()).filter(|&i| self.clause(i) == Some(Clause::Select));
        let block = |start: usize| {
            let depth = self.words[start].depth;
            let end = self.block_end(start, depth);
            let own = (start..end).filter(|&i| self.words[i].depth == depth);
            Block { clauses: own.filter_map(|i| Some((self.clause(i)?, i))).collect(), end, depth }
        };
        selects.map(block).collect()
    }

    /// The parenthesis that closes the one at a word.
    pub(crate) fn closing(&self, open: usize) -> Option<usize> {
        let depth = self.words[open].depth;
        (open + 1..self.words.len()).find(|&i| self.is(i, &Token::RParen) && self.words[i].depth == depth)
    }

    /// The parenthesis that the one at a word closes.
    pub(crate) fn opening(&self, close: usize) -> Option<usize> {
        let depth = self.words[close].depth;
        (0..close).rev().find(|&i| self.is(i, &Token::LParen) && self.words[i].depth == depth)
    }

    /// The parenthesis around a word.
    pub(crate) fn around(&self, at: usize) -> Option<usize> {
        let depth = self.words[at].depth.checked_sub(1)?;
        (0..at).rev().find(|&i| self.is(i, &Token::LParen) && self.words[i].depth == depth)
    }

    /// Whether a table or column of the schema is called so.
    pub(crate) fn is_name(&self, word: &str) -> bool {
        is_a_name(self.subject, word)
    }

    /// Whether an aggregate is called at a word.
    pub(crate) fn is_aggregate(&self, at: usize) -> bool {
        let Some(Token::Word(word)) = self.words.get(at).map(|w| &w.token) else { return false };
        let functions = self.subject.context.dialect.functions;
        let known = functions.get(&word.value.to_lowercase()).is_some_and(|f| f.aggregate);
        known && self.is(at + 1, &Token::LParen)
    }
}

fn is_join_word(word: Keyword) -> bool {
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

/// Whether a table or column of the schema is called so.
pub(crate) fn is_a_name(subject: &Subject<'_>, word: &str) -> bool {
    let named =
        |s: &crate::Schema| s.tables().iter().any(|t| t.name.eq_ignore_ascii_case(word) || t.column(word).is_some());
    subject.context.schema.is_some_and(named)
}

/// Words that a query is made of: where one is taken for a name that nothing has, it stands in the wrong place, or something before
/// it is missing. Behind AS and behind a period it is a name.
pub(crate) fn is_misplaced(subject: &Subject<'_>, name: &Ident) -> bool {
    const WORDS: &[&str] = &[
        "SELECT", "DISTINCT", "FROM", "WHERE", "JOIN", "ON", "HAVING", "UNION", "AND", "OR", "NOT", "IN", "BETWEEN",
        "CASE", "WHEN", "THEN", "ELSE", "AS",
    ];
    if !WORDS.iter().any(|w| w.eq_ignore_ascii_case(&name.value)) || is_a_name(subject, &name.value) {
        return false;
    }
    let before = subject.query.source[..subject.query.span(name.span).start].trim_end().to_ascii_lowercase();
    !before.ends_with('.') && !before.ends_with(" as")
}

fn is_misread(subject: &Subject<'_>) -> bool {
    subject.facts.plain_names.iter().any(|name| is_misplaced(subject, name))
}

/// Whether a rule of this group has already said how the text parses; one fault needs one finding.
pub(crate) fn is_explained(out: &[Finding]) -> bool {
    let own = |f: &Finding| Rule::named(f.code).is_some_and(|r| r.group == "syntax");
    out.iter().any(|f| f.severity == Severity::Error && own(f) && !f.fixes.is_empty())
}

/// Takes words away.
pub(crate) fn cut(span: Span) -> Edit {
    Edit { span, text: String::new() }
}

/// Puts text before a place.
pub(crate) fn insert(at: usize, text: impl Into<String>) -> Edit {
    Edit { span: Span::new(at, at), text: text.into() }
}

/// A fix of several changes.
pub(crate) fn fix(edits: Vec<Edit>, applicability: Applicability, why: impl Into<String>) -> Fix {
    Fix { edits, applicability, why: why.into(), tied: false }
}
