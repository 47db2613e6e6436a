//! Spark SQL: backticks, structs, lateral aliases.

use std::sync::LazyLock;

use super::{
    AliasUse, Concatenation, Dialect, DoubleQuotes, Feature, FunctionTable, Grouping, LimitSyntax, NameCase, Phrase,
    WordList, ZeroDivision, errors,
};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/spark.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/spark.txt")));

#[rustfmt::skip]
static SAYS: &[(Phrase, &str)] = &[
    (Phrase::DaysBetween, "datediff({0}, {1})"),
    (Phrase::Length, "length({0})"),
    (Phrase::IfNull, "coalesce({0}, {1})"),
    (Phrase::If, "if({0}, {1}, {2})"),
    (Phrase::Now, "current_timestamp()"),
    (Phrase::Today, "current_date()"),
    (Phrase::Position, "locate({0}, {1})"),
    (Phrase::Substring, "substr({0}, {1}, {2})"),
    (Phrase::Divide, "(({0}) / ({1}))"),
    (Phrase::Subtract, "(({0}) - ({1}))"),
    (Phrase::Multiply, "(({0}) * ({1}))"),
    (Phrase::Add, "(({0}) + ({1}))"),
    (Phrase::ToText, "CAST({0} AS STRING)"),
];

/// Spark SQL 3.5, ANSI mode off (its default).
pub static SPARK: Dialect = Dialect {
    name: "spark",
    other_names: &["sparksql", "spark_sql", "databricks"],
    grammar: &sqlparser::dialect::DatabricksDialect {},
    quote: '`',
    names: NameCase::Ignored,
    double_quotes: DoubleQuotes::Text,
    aliases: AliasUse {
        in_where: false,
        in_group_by: true,
        in_group_by_expression: true,
        in_having: true,
        in_order_by_expression: true,
        in_select: true,
        in_qualify: true,
        order_by_finds_plain_columns: true,
    },
    on_sees_all_tables: false,
    qualified_names_look_outward: false,
    grouping_sees_outer: true,
    set_order_by_names_only: false,
    rows_are_values: false,
    duplicate_columns_allowed: false,
    struct_fields: true,
    recursion_needs_no_keyword: false,
    grouping: Grouping::Refused,
    strict_types: false,
    literals_adapt: true,
    integer_division: false,
    zero_division: ZeroDivision::Null,
    many_rows_error: true,
    like_ignores_case: false,
    limit: LimitSyntax { comma: false, offset: true, offset_first: false, fetch: false, top: false },
    concat: Concatenation { pipes: true, function: true },
    hidden_columns: &["_metadata"],
    system_schemas: &["information_schema", "system", "global_temp"],
    system_tables: &[],
    secret_tables: &[],
    substitutes_variables: true,
    longest_name: 0,
    file_schemas: &[
        "text",
        "csv",
        "json",
        "parquet",
        "orc",
        "avro",
        "delta",
        "iceberg",
        "hudi",
        "binaryfile",
        "image",
        "libsvm",
        "jdbc",
        "kafka",
        "xml",
    ],
    lacks: &[
        Feature::FilterInside,
        Feature::DoubleColonCast,
        Feature::SimilarTo,
        Feature::EscapedLiteral,
        Feature::RegexTilde,
        Feature::Glob,
        Feature::DistinctOn,
        Feature::Apply,
        Feature::Separator,
        Feature::ArrayLiteral,
        Feature::AtTimeZone,
    ],
    functions: &FUNCTIONS,
    says: SAYS,
    user_functions: true,
    reserved: &RESERVED,
    reserved_behind_as: false,
    errors: errors::SPARK,
    notes: "Names that need quotes take backticks; text is in single quotes. Dates: year(d), date_trunc('MONTH', d), \
            date_add(d, 7), datediff(end, start), date_format(d, 'yyyy-MM'). `/` divides exactly, `div` truncates.",
};
