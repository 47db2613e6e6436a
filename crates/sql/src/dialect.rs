//! Dialect definitions: grammar, quoting, scoping, functions, reserved words, error table and
//! prompt notes.
//!
//! A dialect consists of data, not logic: rules and the resolver read these fields and never
//! compare a dialect's name.

mod datafusion;
mod errors;
mod feature;
mod functions;
mod hive;
mod mysql;
mod postgres;
mod presto;
mod reserved_words;
mod spark;
mod sqlite;
mod sqlite_grammar;
mod trino;

use std::sync::LazyLock;

pub use self::datafusion::DATAFUSION;
pub use self::errors::{ClassifiedError, EngineError, ErrorRow, classify};
pub use self::feature::Feature;
pub use self::functions::{Danger, Function, FunctionKind, FunctionTable};
pub use self::hive::HIVE;
pub use self::mysql::MYSQL;
pub use self::postgres::POSTGRES;
pub use self::presto::PRESTO;
pub use self::reserved_words::ReservedWords;
pub use self::spark::SPARK;
pub use self::sqlite::SQLITE;
pub use self::trino::TRINO;
pub use crate::transpile::function::CanonicalFunction;
pub use crate::transpile::unit::{DatePart, Unit};

/// All dialects in the order in which they are listed to users.
pub static DIALECTS: &[&Dialect] = &[&SQLITE, &POSTGRES, &MYSQL, &TRINO, &PRESTO, &HIVE, &SPARK, &DATAFUSION];

/// Case sensitivity of identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentifierCase {
    /// `Name`, `NAME` and `"name"` are the same identifier.
    Ignored,
    /// Unquoted identifiers are folded to lower case; quoted ones are exact.
    LowerUnlessQuoted,
}

/// Meaning of double quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubleQuotes {
    /// Always an identifier.
    Identifier,
    /// Always a string literal.
    StringLiteral,
    /// An identifier if it resolves, otherwise a string literal (SQLite).
    IdentifierElseString,
}

/// Clauses in which SELECT aliases are visible, besides a plain ORDER BY term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AliasVisibility {
    /// Visible in WHERE and ON.
    pub in_where: bool,
    /// Visible in GROUP BY.
    pub in_group_by: bool,
    /// Visible inside expressions in GROUP BY.
    pub in_group_by_expression: bool,
    /// Visible in HAVING.
    pub in_having: bool,
    /// Visible inside expressions in ORDER BY.
    pub in_order_by_expression: bool,
    /// Visible in later items of the same SELECT list.
    pub in_select: bool,
    /// Visible in QUALIFY.
    pub in_qualify: bool,
    /// `true` if a plain ORDER BY term also resolves to the names of unaliased columns.
    pub order_by_finds_plain_columns: bool,
}

/// Treatment of columns that are neither grouped nor aggregated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UngroupedColumns {
    /// The engine returns the value of any row.
    AnyRow,
    /// The query is rejected unless GROUP BY contains the primary key of the table.
    PrimaryKeyGrouped,
    /// The query is rejected unless GROUP BY contains the primary key, or WHERE and the joins make
    /// the column equal to a grouped column or a constant.
    FunctionallyDependent,
    /// The query is rejected.
    Rejected,
}

/// Result of a division by zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroDivision {
    /// The query fails.
    Error,
    /// The result is NULL.
    Null,
}

/// Supported forms of INTERVAL literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalSyntax {
    /// `true` if `INTERVAL '7 days'` is valid.
    pub tokens: bool,
    /// `true` if `INTERVAL '7' DAY` is valid.
    pub quoted: bool,
    /// `true` if `INTERVAL 7 DAY` is valid.
    pub bare: bool,
}

/// Supported forms of row limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitSyntax {
    /// `true` if `LIMIT offset, count` is valid.
    pub comma: bool,
    /// `true` if `LIMIT count OFFSET offset` is valid (or only the reverse order, see
    /// `offset_first`).
    pub offset: bool,
    /// `true` if `OFFSET n LIMIT m` is the only valid order.
    pub offset_first: bool,
    /// `true` if `FETCH FIRST n ROWS ONLY` is valid.
    pub fetch: bool,
    /// `true` if `TOP n` is valid.
    pub top: bool,
}

/// Supported forms of string concatenation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concatenation {
    /// `true` if `a || b` concatenates.
    pub pipes: bool,
    /// `true` if `concat(a, b)` exists.
    pub function: bool,
}

/// Position of NULL in ORDER BY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullOrder {
    /// Before every value: first with ASC, last with DESC.
    Smallest,
    /// After every value: last with ASC, first with DESC.
    Largest,
    /// Last in both directions.
    Last,
}

/// Definition of a SQL dialect.
pub struct Dialect {
    /// Name on the command line.
    pub name: &'static str,
    /// Display name.
    pub title: &'static str,
    /// Alternative names accepted on the command line.
    pub other_names: &'static [&'static str],
    /// Grammar for the parser.
    pub grammar: &'static (dyn sqlparser::dialect::Dialect + Send + Sync),
    /// Quote character for identifiers.
    pub identifier_quote: char,
    /// Case sensitivity of identifiers.
    pub identifier_case: IdentifierCase,
    /// Meaning of double quotes.
    pub double_quotes: DoubleQuotes,
    /// Visibility of SELECT aliases.
    pub alias_visibility: AliasVisibility,
    /// `true` if ON sees every table in FROM, not only those of its own join.
    pub on_sees_all_tables: bool,
    /// `true` if `t.x` resolves in outer scopes when the nearest `t` has no column `x`.
    pub qualified_names_look_outward: bool,
    /// `true` if GROUP BY and ORDER BY of a subquery see the columns of outer queries.
    pub grouping_sees_outer: bool,
    /// `true` if ORDER BY after a set operation accepts only names of the result, not expressions.
    pub set_order_by_names_only: bool,
    /// `true` if ORDER BY after a set operation accepts a qualified column that one of the operands
    /// projects.
    pub set_order_by_sees_parts: bool,
    /// `true` if the name of a table is also a value: its whole row.
    pub rows_are_values: bool,
    /// `true` if a derived table may have two columns with the same name without ambiguity.
    pub duplicate_columns_allowed: bool,
    /// `true` if `column.field` reads a field of a struct.
    pub struct_fields: bool,
    /// `true` if a CTE may reference itself without the keyword RECURSIVE.
    pub recursion_needs_no_keyword: bool,
    /// Treatment of columns that are neither grouped nor aggregated.
    pub grouping: UngroupedColumns,
    /// `true` if comparing different types, such as text and numbers, is an error.
    pub strict_types: bool,
    /// `true` if the difference of two dates is the time between them. Other dialects subtract the
    /// years, or all digits as one number.
    pub subtracts_dates: bool,
    /// `true` if a string literal takes the type of the column it is compared with.
    pub literals_adapt: bool,
    /// `true` if ROUND with a number of digits accepts decimals but not floats.
    pub rounds_decimals_only: bool,
    /// `true` if `1 / 2` is 0.
    pub integer_division: bool,
    /// Result of a division by zero.
    pub zero_division: ZeroDivision,
    /// `true` if a scalar subquery with several rows is an error; otherwise its first row is used.
    pub many_rows_error: bool,
    /// `true` if `LIKE` ignores case.
    pub like_ignores_case: bool,
    /// Supported forms of row limits.
    pub limit: LimitSyntax,
    /// Supported forms of INTERVAL literals.
    pub interval: IntervalSyntax,
    /// Supported forms of string concatenation.
    pub concat: Concatenation,
    /// Implicit columns of every stored table.
    pub system_columns: &'static [&'static str],
    /// Schemas (or name prefixes) of system tables, known without being listed.
    pub system_schemas: &'static [&'static str],
    /// Qualifiers allowed before a table that is listed without a schema; empty allows any.
    pub allowed_qualifiers: &'static [&'static str],
    /// Names of system tables and virtual tables.
    pub system_tables: &'static [&'static str],
    /// System tables that contain secrets; reading them is always rejected.
    pub secret_tables: &'static [&'static str],
    /// Schemas through which the engine reads files and other databases: ``parquet.`/path` ``.
    pub file_schemas: &'static [&'static str],
    /// `true` if the engine substitutes `${…}` before it parses the query.
    pub substitutes_variables: bool,
    /// `true` if a setting can make the engine treat a quoted identifier as a pattern of names.
    pub quoted_names_may_be_patterns: bool,
    /// Maximum length of an identifier in bytes, beyond which it is truncated; 0 if there is none.
    pub max_identifier_bytes: usize,
    /// Position of NULL in ORDER BY.
    pub null_order: NullOrder,
    /// Decides every [`Feature`]; each dialect matches exhaustively, so that none is forgotten.
    pub supports_feature: fn(Feature) -> bool,
    /// Built-in functions.
    pub functions: &'static LazyLock<FunctionTable>,
    /// Recently added functions, which a database that is a few years old lacks.
    pub recent_functions: &'static [&'static str],
    /// Templates that render canonical functions in this dialect.
    pub function_templates: &'static [(CanonicalFunction, &'static str)],
    /// Supported signatures of functions whose arguments differ between dialects, as pairs of name
    /// and signature from `CONFLICTING_SIGNATURES`.
    pub signatures: &'static [(&'static str, &'static str)],
    /// `true` if users can define functions, so that an unknown function is only suspicious.
    pub user_functions: bool,
    /// Keywords that cannot be identifiers without quotes.
    pub reserved_words: &'static LazyLock<ReservedWords>,
    /// `true` if any keyword is a valid alias after AS.
    pub any_word_after_as: bool,
    /// Error table: maps errors of the engine to findings.
    pub errors: &'static [ErrorRow],
    /// Notes on the dialect for the prompt.
    pub prompt_notes: &'static str,
}

impl std::fmt::Debug for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dialect({})", self.name)
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Dialect {
    /// Returns whether the dialect has a syntax feature.
    pub fn supports(&self, feature: Feature) -> bool {
        (self.supports_feature)(feature)
    }

    /// Returns the dialect with a name or alternative name, ignoring case.
    pub fn from_name(name: &str) -> Option<&'static Dialect> {
        let is = |n: &str| n.eq_ignore_ascii_case(name);
        DIALECTS.iter().find(|d| is(d.name) || d.other_names.iter().any(|n| is(n))).copied()
    }

    /// Quotes and escapes a string literal.
    pub fn quote_string(&self, value: &str) -> String {
        let value = value.replace('\'', "''");
        let escaped =
            if self.grammar.supports_string_literal_backslash_escape() { value.replace('\\', "\\\\") } else { value };
        format!("'{escaped}'")
    }

    /// Quotes an identifier if necessary.
    pub fn quote_identifier(&self, name: &str) -> String {
        let plain = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !self.reserved_words.contains(name)
            && (self.identifier_case == IdentifierCase::Ignored || !name.chars().any(|c| c.is_ascii_uppercase()));
        if plain {
            return name.to_string();
        }
        let quote = self.identifier_quote;
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_dialects_by_name_and_alias() {
        for (name, found) in
            [("postgresql", "postgres"), ("SparkSQL", "spark"), ("mariadb", "mysql"), ("sqlite3", "sqlite")]
        {
            assert_eq!(Dialect::from_name(name).map(|d| d.name), Some(found), "{name}");
        }
        assert!(Dialect::from_name("cobol").is_none());
    }

    #[test]
    fn quotes_identifiers_only_when_required() {
        for (dialect, name, written) in [
            (&POSTGRES, "mixedCase", "\"mixedCase\""),
            (&SQLITE, "mixedCase", "mixedCase"),
            (&MYSQL, "order", "`order`"),
            (&SQLITE, "free meals (%)", "`free meals (%)`"),
            (&POSTGRES, "a\"b", "\"a\"\"b\""),
        ] {
            assert_eq!(dialect.quote_identifier(name), written);
        }
    }
}
