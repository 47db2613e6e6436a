//! Spark SQL: backtick identifiers, structs, lateral column aliases.

// `derive_dialect!` also generates a constructor, which a static cannot call.
#![allow(dead_code)]

use std::sync::LazyLock;

use sqlparser::derive_dialect;
use sqlparser::dialect::DatabricksDialect;

use super::{
    AliasVisibility, CanonicalFunction, Concatenation, DatePart, Dialect, DoubleQuotes, Feature, FunctionTable,
    IdentifierCase, IntervalSyntax, LimitSyntax, NullOrder, ReservedWords, UngroupedColumns, Unit, ZeroDivision,
    errors,
};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/spark.tsv")));
static RESERVED_WORDS: LazyLock<ReservedWords> =
    LazyLock::new(|| ReservedWords::parse(include_str!("reserved_words/spark.txt")));

// `INTERVAL '7 days'` needs no unit after the literal.
derive_dialect!(
    SparkGrammar,
    DatabricksDialect,
    preserve_type_id = true,
    overrides = { require_interval_qualifier = false }
);

#[rustfmt::skip]
static FUNCTION_TEMPLATES: &[(CanonicalFunction, &str)] = &[
    (CanonicalFunction::DatePart(DatePart::Year), "year({0})"),
    (CanonicalFunction::DatePart(DatePart::Quarter), "quarter({0})"),
    (CanonicalFunction::DatePart(DatePart::Month), "month({0})"),
    (CanonicalFunction::DatePart(DatePart::Week), "weekofyear({0})"),
    (CanonicalFunction::DatePart(DatePart::Day), "day({0})"),
    (CanonicalFunction::DatePart(DatePart::Hour), "hour({0})"),
    (CanonicalFunction::DatePart(DatePart::Minute), "minute({0})"),
    (CanonicalFunction::DatePart(DatePart::Second), "second({0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfYear), "date_format({0}, 'D')"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday0), "(dayofweek({0}) - 1)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday1), "dayofweek({0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday0), "((dayofweek({0}) + 5) % 7)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday1), "((dayofweek({0}) + 5) % 7 + 1)"),
    (CanonicalFunction::DatePart(DatePart::Epoch), "unix_timestamp({0})"),
    (CanonicalFunction::DateTrunc(Unit::Year), "trunc({0}, 'YEAR')"),
    (CanonicalFunction::DateTrunc(Unit::Quarter), "trunc({0}, 'QUARTER')"),
    (CanonicalFunction::DateTrunc(Unit::Month), "trunc({0}, 'MONTH')"),
    (CanonicalFunction::DateTrunc(Unit::Week), "date_sub({0}, (dayofweek({0}) + 5) % 7)"),
    (CanonicalFunction::DateTrunc(Unit::Day), "CAST({0} AS DATE)"),
    (CanonicalFunction::DateAdd(Unit::Day), "({0} {sign} INTERVAL '{count}' DAY)"),
    (CanonicalFunction::DateAddExpr(Unit::Day), "date_add({0}, {1})"),
    (CanonicalFunction::DateAdd(Unit::Month), "({0} {sign} INTERVAL '{count}' MONTH)"),
    (CanonicalFunction::DateAddExpr(Unit::Month), "add_months({0}, {1})"),
    (CanonicalFunction::DateAdd(Unit::Year), "({0} {sign} INTERVAL '{count}' YEAR)"),
    (CanonicalFunction::DateAdd(Unit::Hour), "({0} {sign} INTERVAL '{count}' HOUR)"),
    (CanonicalFunction::DateAdd(Unit::Minute), "({0} {sign} INTERVAL '{count}' MINUTE)"),
    (CanonicalFunction::DateAdd(Unit::Second), "({0} {sign} INTERVAL '{count}' SECOND)"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Day), "datediff({0}, {1})"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Month), "((year({0}) - year({1})) * 12 + month({0}) - month({1}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Year), "(year({0}) - year({1}))"),
    (CanonicalFunction::DateDiffElapsed(Unit::Month), "CAST(months_between({0}, {1}) AS INT)"),
    (CanonicalFunction::DateDiffElapsed(Unit::Year), "CAST(months_between({0}, {1}) / 12 AS INT)"),
    (CanonicalFunction::FormatDate, "date_format({0}, {1:java})"),
    (CanonicalFunction::ParseDate, "to_date({0}, {1:java})"),
    (CanonicalFunction::ParseTimestamp, "to_timestamp({0}, {1:java})"),
    (CanonicalFunction::FromUnixTime, "from_unixtime({0})"),
    (CanonicalFunction::LastDay, "last_day({0})"),
    (CanonicalFunction::JulianDay, "(unix_timestamp({0}) / 86400 + 2440587.5)"),
    (CanonicalFunction::Length, "length({0})"),
    (CanonicalFunction::IfNull, "coalesce({0}, {1})"),
    (CanonicalFunction::If, "if({0}, {1}, {2})"),
    (CanonicalFunction::Now, "current_timestamp()"),
    (CanonicalFunction::CurrentDate, "current_date()"),
    (CanonicalFunction::Position, "locate({0}, {1})"),
    (CanonicalFunction::EndsWith, "(substr({0}, -length({1})) = {1})"),
    (CanonicalFunction::SplitFirst, "substring_index({0}, {1}, 1)"),
    (CanonicalFunction::Random, "rand()"),
    (CanonicalFunction::Substring, "substr({0}, {1}, {2})"),
    (CanonicalFunction::Divide, "(({0}) / ({1}))"),
    (CanonicalFunction::SafeDivide, "(({0}) / NULLIF({1}, 0))"),
    (CanonicalFunction::Subtract, "(({0}) - ({1}))"),
    (CanonicalFunction::Multiply, "(({0}) * ({1}))"),
    (CanonicalFunction::Add, "(({0}) + ({1}))"),
    (CanonicalFunction::StringAgg, "concat_ws({1}, collect_list({0}))"),
    (CanonicalFunction::StddevSamp, "stddev_samp({0})"),
    (CanonicalFunction::ToText, "CAST({0} AS STRING)"),
];

/// Dialect of Spark SQL 3.5 with ANSI mode off (its default).
pub static SPARK: Dialect = Dialect {
    name: "spark",
    title: "Spark SQL",
    other_names: &["sparksql", "spark_sql", "databricks"],
    grammar: &SparkGrammar { dialect: DatabricksDialect {} },
    identifier_quote: '`',
    identifier_case: IdentifierCase::Ignored,
    double_quotes: DoubleQuotes::StringLiteral,
    alias_visibility: AliasVisibility {
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
    set_order_by_sees_parts: false,
    rows_are_values: false,
    duplicate_columns_allowed: false,
    struct_fields: true,
    recursion_needs_no_keyword: false,
    grouping: UngroupedColumns::Rejected,
    strict_types: false,
    subtracts_dates: true,
    literals_adapt: true,
    rounds_decimals_only: false,
    integer_division: false,
    zero_division: ZeroDivision::Null,
    many_rows_error: true,
    like_ignores_case: false,
    limit: LimitSyntax { comma: false, offset: true, offset_first: false, fetch: false, top: false },
    interval: IntervalSyntax { tokens: true, quoted: true, bare: true },
    concat: Concatenation { pipes: true, function: true },
    system_columns: &["_metadata"],
    system_schemas: &["information_schema", "system", "global_temp"],
    allowed_qualifiers: &[],
    system_tables: &[],
    secret_tables: &[],
    substitutes_variables: true,
    quoted_names_may_be_patterns: true,
    max_identifier_bytes: 0,
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
    null_order: NullOrder::Smallest,
    supports_feature,
    functions: &FUNCTIONS,
    recent_functions: &[],
    function_templates: FUNCTION_TEMPLATES,
    signatures: &[
        ("date_add", "0 1"),
        ("date_add", "_u 1 0"),
        ("date_sub", "0 1"),
        ("datediff", "_u 1 0"),
        ("date_diff", "_u 1 0"),
        ("date_format", "0 fj"),
    ],
    user_functions: true,
    reserved_words: &RESERVED_WORDS,
    any_word_after_as: false,
    errors: errors::SPARK,
    prompt_notes: "Names that need quotes take backticks; text is in single quotes. Dates: year(d), date_trunc('MONTH', d), \
            date_add(d, 7), datediff(end, start), date_format(d, 'yyyy-MM'). `/` divides exactly, `div` truncates.",
};

fn supports_feature(feature: Feature) -> bool {
    match feature {
        Feature::TryCast
        | Feature::CastToDate
        | Feature::ILike
        | Feature::RLike
        | Feature::AnyAll
        | Feature::Extract
        | Feature::Interval
        | Feature::KeywordCall
        | Feature::TypedLiteral
        | Feature::SubstringFrom
        | Feature::PositionIn
        | Feature::TrimFrom
        | Feature::DivOperator
        | Feature::ModOperator
        | Feature::Qualify
        | Feature::GroupingSets
        | Feature::NullTreatment
        | Feature::Filter
        | Feature::DistinctMultipleArguments
        | Feature::FullJoin
        | Feature::Lateral
        | Feature::Pivot
        | Feature::ParenthesizedSetOperand
        | Feature::NationalLiteral
        | Feature::NullSafeEqual
        | Feature::LimitAll
        | Feature::OffsetRows
        | Feature::TableHint
        | Feature::QueryHint
        | Feature::Minus => true,
        Feature::DoubleColonCast
        | Feature::SimilarTo
        | Feature::RegexTilde
        | Feature::Glob
        | Feature::Convert
        | Feature::ConvertTypeFirst
        | Feature::AtTimeZone
        | Feature::ArrayLiteral
        | Feature::EscapedLiteral
        | Feature::FilterInArguments
        | Feature::Separator
        | Feature::DistinctOn
        | Feature::Apply => false,
    }
}
