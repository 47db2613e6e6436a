//! The parser's SQLite grammar, extended with `NOT GLOB`, `NOT MATCH`, `NOT REGEXP` and `IS`
//! between any two values.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, Expr, Statement, UnaryOperator};
use sqlparser::dialect::{Dialect, Precedence, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Grammar of SQLite, based on [`SQLiteDialect`].
#[derive(Debug)]
pub(super) struct SqliteGrammar;

static BASE: SQLiteDialect = SQLiteDialect {};

const OPERATORS: &[(Keyword, BinaryOperator)] = &[
    (Keyword::REGEXP, BinaryOperator::Regexp),
    (Keyword::MATCH, BinaryOperator::Match),
    (Keyword::GLOB, BinaryOperator::Glob),
];

impl SqliteGrammar {
    fn next_is_not_operator(&self, parser: &Parser) -> bool {
        let [first, second] = parser.peek_tokens_ref::<2>().map(|t| &t.token);
        matches!(first, Token::Word(w) if w.keyword == Keyword::NOT)
            && matches!(second, Token::Word(w) if OPERATORS.iter().any(|(k, _)| *k == w.keyword))
    }

    /// Returns whether the next tokens are `IS` or `IS NOT` before an operand other than NULL, TRUE
    /// and the like.
    fn next_is_plain_is(&self, parser: &Parser) -> bool {
        const OWN: &[Keyword] = &[
            Keyword::NULL,
            Keyword::TRUE,
            Keyword::FALSE,
            Keyword::UNKNOWN,
            Keyword::DISTINCT,
            Keyword::JSON,
            Keyword::NORMALIZED,
        ];
        let [is, second, third] = parser.peek_tokens_ref::<3>().map(|t| &t.token);
        let own = |t: &Token| matches!(t, Token::Word(w) if OWN.contains(&w.keyword));
        let is_not = |t: &Token| matches!(t, Token::Word(w) if w.keyword == Keyword::NOT);
        matches!(is, Token::Word(w) if w.keyword == Keyword::IS) && !own(second) && !(is_not(second) && own(third))
    }
}

impl Dialect for SqliteGrammar {
    fn dialect(&self) -> TypeId {
        TypeId::of::<SQLiteDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        BASE.is_delimited_identifier_start(ch)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        BASE.identifier_quote_style(identifier)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        BASE.is_identifier_start(ch) || ch as u32 > 0xffff
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        BASE.is_identifier_part(ch) || ch == '$' || ch as u32 > 0xffff
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_start_transaction_modifier(&self) -> bool {
        true
    }

    fn supports_in_empty_list(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn supports_asc_desc_in_column_definition(&self) -> bool {
        true
    }

    fn supports_dollar_placeholder(&self) -> bool {
        true
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    // SQLite supports neither of the following two. They are parsed so that a rule can report them.
    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        BASE.parse_statement(parser)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        if self.next_is_not_operator(parser) {
            return Some(Ok(self.prec_value(Precedence::Like)));
        }
        if self.next_is_plain_is(parser) {
            return Some(Ok(self.prec_value(Precedence::Is)));
        }
        None
    }

    fn parse_infix(&self, parser: &mut Parser, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        if self.next_is_plain_is(parser) {
            parser.next_token();
            let negated = parser.parse_keyword(Keyword::NOT);
            let right = match parser.parse_subexpr(precedence) {
                Ok(right) => Box::new(right),
                Err(error) => return Some(Err(error)),
            };
            let left = Box::new(expr.clone());
            return Some(Ok(if negated {
                Expr::IsDistinctFrom(left, right)
            } else {
                Expr::IsNotDistinctFrom(left, right)
            }));
        }
        let negated = self.next_is_not_operator(parser);
        if negated {
            parser.next_token();
        }
        let (_, op) = OPERATORS.iter().find(|(keyword, _)| parser.parse_keyword(*keyword))?;
        let right = match parser.parse_subexpr(precedence) {
            Ok(right) => Box::new(right),
            Err(error) => return Some(Err(error)),
        };
        let compared = Expr::BinaryOp { left: Box::new(expr.clone()), op: op.clone(), right };
        Some(Ok(if negated { Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(compared) } } else { compared }))
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::parser::Parser;

    use super::SqliteGrammar;

    #[test]
    fn parses_sqlite_specific_operators_and_joins() {
        for sql in [
            "SELECT a FROM t WHERE a NOT GLOB '*[^0-9]*'",
            "SELECT a FROM t WHERE a IS b AND c IS NOT d",
            "SELECT a FROM t WHERE a IS NULL AND b IS NOT NULL AND c IS NOT DISTINCT FROM d",
            "SELECT a << 2, b >> 1 FROM t WHERE a NOT REGEXP 'x'",
            "SELECT a FROM (t) JOIN ((u) JOIN v)",
            "SELECT a FROM t WHERE x NOT IN (1) AND NOT a GLOB 'b'",
        ] {
            if let Err(error) = Parser::parse_sql(&SqliteGrammar, sql) {
                panic!("{sql}: {error}");
            }
        }
    }
}
