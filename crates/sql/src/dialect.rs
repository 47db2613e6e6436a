//! One value per dialect: grammar, quoting, what is visible where, functions, reserved words, error table, notes.
//!
//! A dialect holds tables, not logic: rules and the resolver ask these fields and never a dialect's name.

mod datafusion;
mod date_format;
mod errors;
mod feature;
mod functions;
mod hive;
pub(crate) mod meaning;
mod mysql;
pub(crate) mod phrase;
mod postgres;
mod presto;
mod spark;
mod sqlite;
mod sqlite_grammar;
mod trino;
mod unit;
mod words;

use std::sync::LazyLock;

pub use self::datafusion::DATAFUSION;
pub use self::errors::{Classified, EngineError, ErrorRow, ErrorType, classify};
pub use self::feature::Feature;
pub use self::functions::{Danger, Function, FunctionKind, FunctionTable};
pub use self::hive::HIVE;
pub use self::mysql::MYSQL;
pub use self::phrase::Phrase;
pub use self::postgres::POSTGRES;
pub use self::presto::PRESTO;
pub use self::spark::SPARK;
pub use self::sqlite::SQLITE;
pub use self::trino::TRINO;
pub use self::unit::{Part, Unit};
pub use self::words::WordList;

/// All dialects, in the order in which they are listed to users.
pub static DIALECTS: &[&Dialect] = &[&SQLITE, &POSTGRES, &MYSQL, &TRINO, &PRESTO, &HIVE, &SPARK, &DATAFUSION];

/// What a name in quotes, or without, is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameCase {
    /// `Name`, `NAME` and `"name"` are one name.
    Ignored,
    /// Unquoted names are lower case; quoted ones are exact.
    LowerUnlessQuoted,
}

/// What text in double quotes is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoubleQuotes {
    /// Always a name.
    Name,
    /// Always a string.
    Text,
    /// A name if it can be resolved, else a string (SQLite).
    NameElseText,
}

/// Where names of the SELECT list may be used besides as a plain ORDER BY term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AliasUse {
    /// In WHERE and ON.
    pub in_where: bool,
    /// In GROUP BY.
    pub in_group_by: bool,
    /// Inside an expression of GROUP BY.
    pub in_group_by_expression: bool,
    /// In HAVING.
    pub in_having: bool,
    /// Inside an expression of ORDER BY.
    pub in_order_by_expression: bool,
    /// In later items of the same SELECT list.
    pub in_select: bool,
    /// In QUALIFY.
    pub in_qualify: bool,
    /// A plain ORDER BY term also finds the names that unaliased columns have.
    pub order_by_finds_plain_columns: bool,
}

/// What the engine makes of columns that are neither grouped nor aggregated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// It takes any row's value.
    AnyRow,
    /// It refuses, unless the primary key of the column's table is grouped.
    KeyDecides,
    /// It refuses, unless that key is grouped, or WHERE and the joins make the column equal to a grouped one or a constant.
    KeyOrEqualityDecides,
    /// It refuses.
    Refused,
}

/// What happens when something is divided by zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ZeroDivision {
    /// The query fails.
    Error,
    /// The result is NULL.
    Null,
}

/// Which spans of time can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalSyntax {
    /// `INTERVAL '7 days'`
    pub words: bool,
    /// `INTERVAL '7' DAY`
    pub quoted: bool,
    /// `INTERVAL 7 DAY`
    pub bare: bool,
}

/// How many rows are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitSyntax {
    /// `LIMIT offset, count`
    pub comma: bool,
    /// `LIMIT count OFFSET offset` (or only the other way round, see `offset_first`).
    pub offset: bool,
    /// `OFFSET n LIMIT m` is the only order.
    pub offset_first: bool,
    /// `FETCH FIRST n ROWS ONLY`
    pub fetch: bool,
    /// `TOP n`
    pub top: bool,
}

/// How text is put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Concatenation {
    /// `a || b` concatenates.
    pub pipes: bool,
    /// `concat(a, b)` exists.
    pub function: bool,
}

/// Where ORDER BY puts NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullOrder {
    /// Before every value: first with ASC, last with DESC.
    Smallest,
    /// Behind every value: last with ASC, first with DESC.
    Largest,
    /// Last in both directions.
    Last,
}

/// Everything the product knows of one dialect.
pub struct Dialect {
    /// The name on the command line.
    pub name: &'static str,
    /// As people write it.
    pub title: &'static str,
    /// Other names people give it.
    pub other_names: &'static [&'static str],
    /// How it is parsed.
    pub grammar: &'static (dyn sqlparser::dialect::Dialect + Send + Sync),
    /// The quote that a name is written with.
    pub quote: char,
    /// How names are compared.
    pub names: NameCase,
    /// What double quotes mean.
    pub double_quotes: DoubleQuotes,
    /// Where SELECT aliases are seen.
    pub aliases: AliasUse,
    /// ON sees every table of FROM, not only those of its own join.
    pub on_sees_all_tables: bool,
    /// `t.x` looks further out when the nearest `t` has no `x`.
    pub qualified_names_look_outward: bool,
    /// GROUP BY and ORDER BY of a subquery see the columns of the queries around it.
    pub grouping_sees_outer: bool,
    /// ORDER BY behind a set operation takes names of the result only, no expressions.
    pub set_order_by_names_only: bool,
    /// It takes a column with the name of its table there, if one of the parts gives it.
    pub set_order_by_sees_parts: bool,
    /// The name of a table is also the value of its whole row.
    pub rows_are_values: bool,
    /// Two columns of one name in one derived table are told apart silently.
    pub duplicate_columns_allowed: bool,
    /// `column.field` reads a field of a struct.
    pub struct_fields: bool,
    /// A CTE may read itself without the word RECURSIVE.
    pub recursion_needs_no_keyword: bool,
    /// What columns outside GROUP BY do.
    pub grouping: Grouping,
    /// Comparing text with numbers, and the like, is an error.
    pub strict_types: bool,
    /// A date minus a date is the time between them. Others take the year, or all digits, from each other.
    pub subtracts_dates: bool,
    /// A text literal takes the type of the column that it is compared with.
    pub literals_adapt: bool,
    /// ROUND to a number of digits takes decimals, no floats.
    pub rounds_decimals_only: bool,
    /// `1 / 2` is 0.
    pub integer_division: bool,
    /// What dividing by zero does.
    pub zero_division: ZeroDivision,
    /// A scalar subquery that gives several rows is an error (not: its first row).
    pub many_rows_error: bool,
    /// `LIKE` does not tell upper from lower case.
    pub like_ignores_case: bool,
    /// How rows are limited.
    pub limit: LimitSyntax,
    /// How spans of time are written.
    pub interval: IntervalSyntax,
    /// How text is joined.
    pub concat: Concatenation,
    /// Columns each stored table has without saying so.
    pub hidden_columns: &'static [&'static str],
    /// Schemas (or name prefixes) of the system's own tables, known without being listed.
    pub system_schemas: &'static [&'static str],
    /// What may stand before a table that is listed without a schema; whatever there is if this is empty.
    pub only_schemas: &'static [&'static str],
    /// The system's own tables and virtual tables by name.
    pub system_tables: &'static [&'static str],
    /// System tables that hold secrets; never read.
    pub secret_tables: &'static [&'static str],
    /// Schemas under which the engine reads files and other databases: `parquet.`/path``.
    pub file_schemas: &'static [&'static str],
    /// `${…}` is replaced before the query is read.
    pub substitutes_variables: bool,
    /// It can be set to take a name in quotes for a pattern of names.
    pub quoted_names_may_be_patterns: bool,
    /// Names longer than this many bytes are cut off; 0 if they are not.
    pub longest_name: usize,
    /// Where ORDER BY puts NULL.
    pub null_order: NullOrder,
    /// Syntax of other dialects that it does not understand.
    pub lacks: &'static [Feature],
    /// Functions of the vendor.
    pub functions: &'static LazyLock<FunctionTable>,
    /// Functions that came late: a database that is a few years old has none of them.
    pub newer: &'static [&'static str],
    /// How it says what other dialects call by other names.
    pub says: &'static [(Phrase, &'static str)],
    /// Forms that it takes of functions which dialects use differently: name and form, as in the list of all of them.
    pub forms: &'static [(&'static str, &'static str)],
    /// Users can add functions of their own, so an unknown one is only suspicious.
    pub user_functions: bool,
    /// Words that cannot be names without quotes.
    pub reserved: &'static LazyLock<WordList>,
    /// Behind AS, any word is a name.
    pub reserved_behind_as: bool,
    /// What the engine says when it refuses, and what that means.
    pub errors: &'static [ErrorRow],
    /// What a model is told about the dialect.
    pub notes: &'static str,
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
    /// The dialect of that name or nickname.
    pub fn named(name: &str) -> Option<&'static Dialect> {
        let is = |n: &str| n.eq_ignore_ascii_case(name);
        DIALECTS.iter().find(|d| is(d.name) || d.other_names.iter().any(|n| is(n))).copied()
    }

    /// A text as it must be written.
    pub fn text(&self, value: &str) -> String {
        let value = value.replace('\'', "''");
        let escaped =
            if self.grammar.supports_string_literal_backslash_escape() { value.replace('\\', "\\\\") } else { value };
        format!("'{escaped}'")
    }

    /// A name as it must be written: in quotes where it needs them.
    pub fn quoted(&self, name: &str) -> String {
        let plain = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !self.reserved.contains(name)
            && (self.names == NameCase::Ignored || !name.chars().any(|c| c.is_ascii_uppercase()));
        if plain {
            return name.to_string();
        }
        let quote = self.quote;
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_are_found_by_name_and_nickname() {
        for (name, found) in
            [("postgresql", "postgres"), ("SparkSQL", "spark"), ("mariadb", "mysql"), ("sqlite3", "sqlite")]
        {
            assert_eq!(Dialect::named(name).map(|d| d.name), Some(found), "{name}");
        }
        assert!(Dialect::named("cobol").is_none());
    }

    #[test]
    fn names_are_quoted_only_where_they_must_be() {
        for (dialect, name, written) in [
            (&POSTGRES, "mixedCase", "\"mixedCase\""),
            (&SQLITE, "mixedCase", "mixedCase"),
            (&MYSQL, "order", "`order`"),
            (&SQLITE, "free meals (%)", "`free meals (%)`"),
            (&POSTGRES, "a\"b", "\"a\"\"b\""),
        ] {
            assert_eq!(dialect.quoted(name), written);
        }
    }
}
