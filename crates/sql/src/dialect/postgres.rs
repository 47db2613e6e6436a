//! PostgreSQL: strict in types, lower-cases unquoted names.

use std::sync::LazyLock;

use super::{
    AliasUse, Concatenation, Dialect, DoubleQuotes, Feature, FunctionTable, Grouping, LimitSyntax, NameCase, Phrase,
    WordList, ZeroDivision, errors,
};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/postgres.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/postgres.txt")));

#[rustfmt::skip]
static SAYS: &[(Phrase, &str)] = &[
    (Phrase::Year, "EXTRACT(YEAR FROM {0})"),
    (Phrase::Month, "EXTRACT(MONTH FROM {0})"),
    (Phrase::Day, "EXTRACT(DAY FROM {0})"),
    (Phrase::Hour, "EXTRACT(HOUR FROM {0})"),
    (Phrase::DaysBetween, "(CAST({0} AS DATE) - CAST({1} AS DATE))"),
    (Phrase::Now, "now()"),
    (Phrase::Today, "CURRENT_DATE"),
    (Phrase::Length, "length({0})"),
    (Phrase::IfNull, "COALESCE({0}, {1})"),
    (Phrase::If, "CASE WHEN {0} THEN {1} ELSE {2} END"),
    (Phrase::Position, "POSITION({0} IN {1})"),
    (Phrase::Substring, "substr({0}, {1}, {2})"),
    (Phrase::Upper, "upper({0})"),
    (Phrase::Lower, "lower({0})"),
    (Phrase::Divide, "(CAST({0} AS NUMERIC) / ({1}))"),
    (Phrase::Subtract, "(({0}) - ({1}))"),
    (Phrase::Multiply, "(({0}) * ({1}))"),
    (Phrase::Add, "(({0}) + ({1}))"),
];

/// PostgreSQL 14 to 18.
pub static POSTGRES: Dialect = Dialect {
    name: "postgres",
    other_names: &["postgresql", "pg", "redshift"],
    grammar: &sqlparser::dialect::PostgreSqlDialect {},
    quote: '"',
    names: NameCase::LowerUnlessQuoted,
    double_quotes: DoubleQuotes::Name,
    aliases: AliasUse {
        in_where: false,
        in_group_by: true,
        in_group_by_expression: false,
        in_having: false,
        in_order_by_expression: false,
        in_select: false,
        in_qualify: false,
        order_by_finds_plain_columns: true,
    },
    on_sees_all_tables: false,
    qualified_names_look_outward: false,
    grouping_sees_outer: true,
    set_order_by_names_only: true,
    rows_are_values: true,
    duplicate_columns_allowed: false,
    struct_fields: false,
    recursion_needs_no_keyword: false,
    grouping: Grouping::KeyDecides,
    strict_types: true,
    literals_adapt: true,
    integer_division: true,
    zero_division: ZeroDivision::Error,
    many_rows_error: true,
    limit: LimitSyntax { comma: false, offset: true, offset_first: false, fetch: true, top: false },
    concat: Concatenation { pipes: true, function: true },
    hidden_columns: &["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"],
    system_schemas: &["pg_catalog", "information_schema"],
    system_tables: &[],
    secret_tables: &[
        "pg_authid",
        "pg_shadow",
        "pg_user_mapping",
        "pg_user_mappings",
        "pg_hba_file_rules",
        "pg_ident_file_mappings",
        "pg_file_settings",
        "pg_largeobject",
        "pg_subscription",
        "information_schema.user_mapping_options",
    ],
    file_schemas: &[],
    lacks: &[
        Feature::TryCast,
        Feature::RLike,
        Feature::Glob,
        Feature::DivOperator,
        Feature::Qualify,
        Feature::NullTreatment,
        Feature::Pivot,
        Feature::Apply,
        Feature::Separator,
    ],
    functions: &FUNCTIONS,
    says: SAYS,
    user_functions: true,
    reserved: &RESERVED,
    reserved_behind_as: true,
    errors: errors::POSTGRES,
    notes: "Names with capitals need double quotes; text is in single quotes. Text and numbers are never compared without a \
            CAST. Every selected column is aggregated or in GROUP BY. Dates: date_trunc('month', d), EXTRACT(YEAR FROM d), \
            d - INTERVAL '7 days'. Integer division truncates. SELECT aliases are not seen in WHERE or HAVING.",
};
