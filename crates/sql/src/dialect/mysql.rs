//! MySQL and MariaDB: backticks for names, double quotes for text.

use std::sync::LazyLock;

use super::{
    AliasUse, Concatenation, Dialect, DoubleQuotes, Feature, FunctionTable, Grouping, LimitSyntax, NameCase, Phrase,
    WordList, ZeroDivision, errors,
};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/mysql.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/mysql.txt")));

#[rustfmt::skip]
static SAYS: &[(Phrase, &str)] = &[
    (Phrase::DaysBetween, "DATEDIFF({0}, {1})"),
    (Phrase::Length, "CHAR_LENGTH({0})"),
    (Phrase::IfNull, "IFNULL({0}, {1})"),
    (Phrase::If, "IF({0}, {1}, {2})"),
    (Phrase::Now, "NOW()"),
    (Phrase::Today, "CURDATE()"),
    (Phrase::Position, "LOCATE({0}, {1})"),
    (Phrase::Divide, "(({0}) / ({1}))"),
    (Phrase::Subtract, "(({0}) - ({1}))"),
    (Phrase::Multiply, "(({0}) * ({1}))"),
    (Phrase::Add, "(({0}) + ({1}))"),
    (Phrase::ToInteger, "CAST({0} AS SIGNED)"),
    (Phrase::ToText, "CAST({0} AS CHAR)"),
    (Phrase::ToTimestamp, "CAST({0} AS DATETIME)"),
];

/// MySQL 8 and MariaDB.
pub static MYSQL: Dialect = Dialect {
    name: "mysql",
    title: "MySQL",
    other_names: &["mariadb"],
    grammar: &sqlparser::dialect::MySqlDialect {},
    quote: '`',
    names: NameCase::Ignored,
    double_quotes: DoubleQuotes::Text,
    aliases: AliasUse {
        in_where: false,
        in_group_by: true,
        in_group_by_expression: true,
        in_having: true,
        in_order_by_expression: true,
        in_select: false,
        in_qualify: false,
        order_by_finds_plain_columns: true,
    },
    on_sees_all_tables: false,
    qualified_names_look_outward: false,
    grouping_sees_outer: true,
    set_order_by_names_only: false,
    rows_are_values: false,
    duplicate_columns_allowed: false,
    struct_fields: false,
    recursion_needs_no_keyword: false,
    grouping: Grouping::KeyOrEqualityDecides,
    strict_types: false,
    literals_adapt: true,
    rounds_decimals_only: false,
    integer_division: false,
    zero_division: ZeroDivision::Null,
    many_rows_error: true,
    like_ignores_case: true,
    limit: LimitSyntax { comma: true, offset: true, offset_first: false, fetch: false, top: false },
    concat: Concatenation { pipes: false, function: true },
    hidden_columns: &["_rowid"],
    system_schemas: &["information_schema", "performance_schema", "mysql", "sys"],
    system_tables: &["dual"],
    secret_tables: &[
        "mysql.*",
        "performance_schema.*",
        "information_schema.processlist",
        // They show the statements of others, as the list of processes does.
        "information_schema.innodb_trx",
        "sys.*",
        "information_schema.column_statistics",
    ],
    substitutes_variables: false,
    longest_name: 0,
    file_schemas: &[],
    lacks: &[
        Feature::FilterInside,
        Feature::DoubleColonCast,
        Feature::TryCast,
        Feature::ILike,
        Feature::SimilarTo,
        Feature::AtTimeZone,
        Feature::ArrayLiteral,
        Feature::EscapedLiteral,
        Feature::RegexTilde,
        Feature::Glob,
        Feature::Qualify,
        Feature::GroupingSets,
        Feature::NullTreatment,
        Feature::DistinctOn,
        Feature::FullJoin,
        Feature::Pivot,
        Feature::Apply,
        Feature::Filter,
    ],
    functions: &FUNCTIONS,
    says: SAYS,
    user_functions: true,
    reserved: &RESERVED,
    reserved_behind_as: false,
    errors: errors::MYSQL,
    notes: "Names that need quotes take backticks; text is in single quotes. Join text with CONCAT(a, b), never ||. Dates: \
            YEAR(d), DATE_FORMAT(d, '%Y-%m'), DATE_SUB(d, INTERVAL 7 DAY), DATEDIFF(a, b). LIMIT n OFFSET m. \
            There is no FULL OUTER JOIN.",
};
