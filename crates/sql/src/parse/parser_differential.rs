//! Detects parser differentials: text that an engine may read differently from this crate's parser.
//!
//! Such text is rejected before parsing, because the executed query must be the reviewed one.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::dialect::Dialect;

/// Returns the first location that can be read in two ways, and the reason.
pub(crate) fn first_ambiguity(
    tokens: &[TokenWithSpan],
    sql: &str,
    dialect: &Dialect,
) -> Option<(Location, &'static str)> {
    if dialect.substitutes_variables && sql.contains("${") {
        return Some((Location::new(1, 1), "${…} is replaced before the query is parsed, even inside literals"));
    }
    unicode_escaped_name(tokens)
        .or_else(|| hidden_comment(tokens, dialect))
        .or_else(|| continued_escape(tokens))
        .or_else(|| prefixed_string(tokens))
        .or_else(|| invisible_character(tokens))
}

fn is_string(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_) | Token::DoubleQuotedString(_))
}

/// Finds names such as `U&"pg\005fsleep"`: one name to some engines, three tokens to the parser.
fn unicode_escaped_name(tokens: &[TokenWithSpan]) -> Option<(Location, &'static str)> {
    tokens.windows(3).find_map(|t| {
        let is_u =
            matches!(&t[0].token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("u"));
        let quoted = is_string(&t[2].token) || matches!(&t[2].token, Token::Word(w) if w.quote_style.is_some());
        (is_u && t[1].token == Token::Ampersand && quoted)
            .then_some((t[0].span.start, "names with Unicode escapes (U&\"…\") are not read"))
    })
}

/// Finds comments that begin inside an operator.
///
/// PostgreSQL ends an operator where a comment begins; the parser reads `<@--` or `||/*` as one
/// operator, or as two.
fn hidden_comment(tokens: &[TokenWithSpan], dialect: &Dialect) -> Option<(Location, &'static str)> {
    let dashes = !dialect.grammar.requires_single_line_comment_whitespace();
    let mut run = String::new();
    for token in tokens {
        let symbol = !matches!(
            token.token,
            Token::Word(_)
                | Token::Number(..)
                | Token::Whitespace(_)
                | Token::LParen
                | Token::RParen
                | Token::Comma
                | Token::SemiColon
                | Token::EOF
        ) && !is_literal(&token.token);
        if !symbol {
            run.clear();
            continue;
        }
        run.push_str(&token.token.to_string());
        if run.contains("/*") || (dashes && run.contains("--")) {
            return Some((token.span.start, "a comment begins inside an operator"));
        }
    }
    None
}

fn is_literal(token: &Token) -> bool {
    is_string(token)
        || matches!(
            token,
            Token::DollarQuotedString(_)
                | Token::EscapedStringLiteral(_)
                | Token::NationalStringLiteral(_)
                | Token::HexStringLiteral(_)
                | Token::UnicodeStringLiteral(_)
                | Token::SingleQuotedByteStringLiteral(_)
                | Token::DoubleQuotedByteStringLiteral(_)
                | Token::SingleQuotedRawStringLiteral(_)
                | Token::DoubleQuotedRawStringLiteral(_)
                | Token::TripleSingleQuotedString(_)
                | Token::TripleDoubleQuotedString(_)
        )
}

/// Finds literals that continue `E'…'` on the next line. They keep its escapes, but the parser
/// reads them as plain strings.
fn continued_escape(tokens: &[TokenWithSpan]) -> Option<(Location, &'static str)> {
    let mut escaped = false;
    for token in tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))) {
        if escaped && matches!(token.token, Token::SingleQuotedString(_)) {
            return Some((token.span.start, "a literal with escapes is continued by another"));
        }
        escaped = matches!(token.token, Token::EscapedStringLiteral(_));
    }
    None
}

/// Finds strings with an unknown prefix: `r'\'` is a raw string to some engines, and a column with
/// an alias to the parser.
fn prefixed_string(tokens: &[TokenWithSpan]) -> Option<(Location, &'static str)> {
    tokens.windows(2).find_map(|t| {
        let Token::Word(word) = &t[0].token else { return None };
        let prefix = word.quote_style.is_none() && word.keyword == Keyword::NoKeyword && word.value.len() <= 2;
        (prefix && is_string(&t[1].token)).then_some((t[0].span.start, "a literal has an unknown prefix"))
    })
}

/// Finds characters that a reader cannot see, such as a byte order mark, which SQLite treats as
/// white space.
fn invisible_character(tokens: &[TokenWithSpan]) -> Option<(Location, &'static str)> {
    let invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    tokens.iter().find_map(|t| match &t.token {
        Token::Word(word) if word.value.chars().any(invisible) => {
            Some((t.span.start, "an identifier contains an invisible character"))
        }
        Token::Char(c) if invisible(*c) => Some((t.span.start, "the text contains an invisible character")),
        _ => None,
    })
}
