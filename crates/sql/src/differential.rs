//! Text that an engine may read differently from our parser. Such text is refused before it is parsed: what was reviewed
//! must be what is run.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::dialect::Dialect;

/// The first place that could be read in two ways, and why.
pub(crate) fn suspicious(tokens: &[TokenWithSpan], sql: &str, dialect: &Dialect) -> Option<(Location, &'static str)> {
    if dialect.substitutes_variables && sql.contains("${") {
        return Some((Location::new(1, 1), "${…} is replaced before the query is read, also inside literals"));
    }
    unicode_name(tokens)
        .or_else(|| hidden_comment(tokens, dialect))
        .or_else(|| continued_escape(tokens))
        .or_else(|| prefixed_string(tokens))
        .or_else(|| invisible_letter(tokens))
}

fn is_string(token: &Token) -> bool {
    matches!(token, Token::SingleQuotedString(_) | Token::DoubleQuotedString(_))
}

/// `U&"pg\005fsleep"` is one name to some engines, and three tokens to the parser.
fn unicode_name(tokens: &[TokenWithSpan]) -> Option<(Location, &'static str)> {
    tokens.windows(3).find_map(|t| {
        let is_u =
            matches!(&t[0].token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case("u"));
        let quoted = is_string(&t[2].token) || matches!(&t[2].token, Token::Word(w) if w.quote_style.is_some());
        (is_u && t[1].token == Token::Ampersand && quoted)
            .then_some((t[0].span.start, "names with Unicode escapes (U&\"…\") are not read"))
    })
}

/// PostgreSQL ends an operator where a comment begins; the parser takes `<@--` or `||/*` for one operator, or for two.
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

/// What continues `E'…'` on the next line keeps its escapes; the parser reads it as a plain string.
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

/// `r'\'` is a raw string to some engines, and a column with an alias to the parser.
fn prefixed_string(tokens: &[TokenWithSpan]) -> Option<(Location, &'static str)> {
    tokens.windows(2).find_map(|t| {
        let Token::Word(word) = &t[0].token else { return None };
        let prefix = word.quote_style.is_none() && word.keyword == Keyword::NoKeyword && word.value.len() <= 2;
        (prefix && is_string(&t[1].token)).then_some((t[0].span.start, "a literal has a prefix that is not known here"))
    })
}

/// SQLite takes a byte order mark for white space; nobody sees the others.
fn invisible_letter(tokens: &[TokenWithSpan]) -> Option<(Location, &'static str)> {
    let invisible = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    tokens.iter().find_map(|t| match &t.token {
        Token::Word(word) if word.value.chars().any(invisible) => {
            Some((t.span.start, "a name has a letter that cannot be seen"))
        }
        Token::Char(c) if invisible(*c) => Some((t.span.start, "there is a letter that cannot be seen")),
        _ => None,
    })
}
