//! PostgreSQL: strict types, unquoted identifiers are folded to lower case.

use std::sync::LazyLock;

use super::{
    AliasVisibility, CanonicalFunction, Concatenation, DatePart, Dialect, DoubleQuotes, Feature, FunctionTable,
    IdentifierCase, IntervalSyntax, LimitSyntax, NullOrder, ReservedWords, UngroupedColumns, Unit, ZeroDivision,
    errors,
};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/postgres.tsv")));
static RESERVED_WORDS: LazyLock<ReservedWords> =
    LazyLock::new(|| ReservedWords::parse(include_str!("reserved_words/postgres.txt")));

#[rustfmt::skip]
static FUNCTION_TEMPLATES: &[(CanonicalFunction, &str)] = &[
    (CanonicalFunction::DatePart(DatePart::Year), "EXTRACT(YEAR FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::Quarter), "EXTRACT(QUARTER FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::Month), "EXTRACT(MONTH FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::Week), "EXTRACT(WEEK FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::Day), "EXTRACT(DAY FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::Hour), "EXTRACT(HOUR FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::Minute), "EXTRACT(MINUTE FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::Second), "EXTRACT(SECOND FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfYear), "EXTRACT(DOY FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday0), "EXTRACT(DOW FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday1), "(EXTRACT(DOW FROM {0}) + 1)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday0), "(EXTRACT(ISODOW FROM {0}) - 1)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday1), "EXTRACT(ISODOW FROM {0})"),
    (CanonicalFunction::DatePart(DatePart::Epoch), "EXTRACT(EPOCH FROM {0})"),
    (CanonicalFunction::DateTrunc(Unit::Any), "DATE_TRUNC('{unit}', {0})"),
    (CanonicalFunction::DateAdd(Unit::Quarter), "({0} {sign} {count} * INTERVAL '3 months')"),
    (CanonicalFunction::DateAddExpr(Unit::Quarter), "({0} + ({1}) * INTERVAL '3 months')"),
    (CanonicalFunction::DateAdd(Unit::Any), "({0} {sign} INTERVAL '{count} {unit}')"),
    (CanonicalFunction::DateAddExpr(Unit::Any), "({0} + ({1}) * INTERVAL '1 {unit}')"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Second), "(FLOOR(EXTRACT(EPOCH FROM {0})) - FLOOR(EXTRACT(EPOCH FROM {1})))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Minute), "(FLOOR(EXTRACT(EPOCH FROM {0}) / 60) - FLOOR(EXTRACT(EPOCH FROM {1}) / 60))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Hour), "(FLOOR(EXTRACT(EPOCH FROM {0}) / 3600) - FLOOR(EXTRACT(EPOCH FROM {1}) / 3600))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Day), "(CAST({0} AS DATE) - CAST({1} AS DATE))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Month), "((EXTRACT(YEAR FROM {0}) - EXTRACT(YEAR FROM {1})) * 12 + EXTRACT(MONTH FROM {0}) - EXTRACT(MONTH FROM {1}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Year), "(EXTRACT(YEAR FROM {0}) - EXTRACT(YEAR FROM {1}))"),
    (CanonicalFunction::DateDiffElapsed(Unit::Day), "EXTRACT(DAY FROM CAST({0} AS TIMESTAMP) - CAST({1} AS TIMESTAMP))"),
    (CanonicalFunction::DateDiffElapsed(Unit::Hour), "FLOOR(EXTRACT(EPOCH FROM CAST({0} AS TIMESTAMP) - CAST({1} AS TIMESTAMP)) / 3600)"),
    (CanonicalFunction::DateDiffElapsed(Unit::Minute), "FLOOR(EXTRACT(EPOCH FROM CAST({0} AS TIMESTAMP) - CAST({1} AS TIMESTAMP)) / 60)"),
    (CanonicalFunction::DateDiffElapsed(Unit::Second), "FLOOR(EXTRACT(EPOCH FROM CAST({0} AS TIMESTAMP) - CAST({1} AS TIMESTAMP)))"),
    (CanonicalFunction::DateDiffElapsed(Unit::Month), "(EXTRACT(YEAR FROM AGE({0}, {1})) * 12 + EXTRACT(MONTH FROM AGE({0}, {1})))"),
    (CanonicalFunction::DateDiffElapsed(Unit::Year), "EXTRACT(YEAR FROM AGE({0}, {1}))"),
    (CanonicalFunction::FormatDate, "TO_CHAR({0}, {1:template})"),
    (CanonicalFunction::ParseDate, "TO_DATE({0}, {1:template})"),
    (CanonicalFunction::ParseTimestamp, "TO_TIMESTAMP({0}, {1:template})"),
    (CanonicalFunction::FromUnixTime, "TO_TIMESTAMP({0})"),
    (CanonicalFunction::MakeDate, "MAKE_DATE({0}, {1}, {2})"),
    (CanonicalFunction::LastDay, "CAST(DATE_TRUNC('month', {0}) + INTERVAL '1 month - 1 day' AS DATE)"),
    (CanonicalFunction::JulianDay, "(EXTRACT(JULIAN FROM CAST({0} AS TIMESTAMP)) - 0.5)"),
    (CanonicalFunction::Now, "now()"),
    (CanonicalFunction::CurrentDate, "CURRENT_DATE"),
    (CanonicalFunction::Length, "length({0})"),
    (CanonicalFunction::IfNull, "COALESCE({0}, {1})"),
    (CanonicalFunction::If, "CASE WHEN {0} THEN {1} ELSE {2} END"),
    (CanonicalFunction::Position, "POSITION({0} IN {1})"),
    (CanonicalFunction::Substring, "substr({0}, {1}, {2})"),
    (CanonicalFunction::Upper, "upper({0})"),
    (CanonicalFunction::Lower, "lower({0})"),
    (CanonicalFunction::Contains, "(strpos({0}, {1}) > 0)"),
    (CanonicalFunction::EndsWith, "(right({0}, length({1})) = {1})"),
    (CanonicalFunction::SplitFirst, "split_part({0}, {1}, 1)"),
    (CanonicalFunction::Random, "random()"),
    (CanonicalFunction::TruncateNumber, "trunc(CAST({0} AS NUMERIC), {1})"),
    (CanonicalFunction::StringAggDistinct, "STRING_AGG(DISTINCT CAST({0} AS TEXT), {1})"),
    (CanonicalFunction::Divide, "(CAST({0} AS NUMERIC) / ({1}))"),
    (CanonicalFunction::SafeDivide, "(CAST({0} AS NUMERIC) / NULLIF({1}, 0))"),
    (CanonicalFunction::Subtract, "(({0}) - ({1}))"),
    (CanonicalFunction::Multiply, "(({0}) * ({1}))"),
    (CanonicalFunction::Add, "(({0}) + ({1}))"),
    (CanonicalFunction::StringAgg, "STRING_AGG(CAST({0} AS TEXT), {1})"),
    (CanonicalFunction::ToText, "CAST({0} AS TEXT)"),
    (CanonicalFunction::ToNumber, "CAST({0} AS NUMERIC)"),
    (CanonicalFunction::CountIf, "COUNT(*) FILTER (WHERE {0})"),
    (CanonicalFunction::StddevSamp, "stddev_samp({0})"),
];

/// Dialect of PostgreSQL 14 to 18.
pub static POSTGRES: Dialect = Dialect {
    name: "postgres",
    title: "PostgreSQL",
    other_names: &["postgresql", "pg", "redshift"],
    grammar: &sqlparser::dialect::PostgreSqlDialect {},
    identifier_quote: '"',
    identifier_case: IdentifierCase::LowerUnlessQuoted,
    double_quotes: DoubleQuotes::Identifier,
    alias_visibility: AliasVisibility {
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
    set_order_by_sees_parts: false,
    rows_are_values: true,
    duplicate_columns_allowed: false,
    struct_fields: false,
    recursion_needs_no_keyword: false,
    grouping: UngroupedColumns::PrimaryKeyGrouped,
    strict_types: true,
    subtracts_dates: true,
    literals_adapt: true,
    rounds_decimals_only: true,
    integer_division: true,
    zero_division: ZeroDivision::Error,
    many_rows_error: true,
    like_ignores_case: false,
    limit: LimitSyntax { comma: false, offset: true, offset_first: false, fetch: true, top: false },
    interval: IntervalSyntax { tokens: true, quoted: true, bare: false },
    concat: Concatenation { pipes: true, function: true },
    system_columns: &["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"],
    system_schemas: &["pg_catalog", "information_schema"],
    allowed_qualifiers: &[],
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
        "pg_foreign_server",
        "pg_stats",
        "pg_statistic",
        "pg_stats_ext",
        "pg_stats_ext_exprs",
        "pg_statistic_ext_data",
        "pg_stat_activity",
        "pg_stat_statements",
        "pg_prepared_statements",
        "pg_cursors",
        "information_schema.user_mapping_options",
        "pg_toast.*",
        // Shows in plain text the secrets that an extension stores encrypted.
        "vault.decrypted_secrets",
    ],
    substitutes_variables: false,
    quoted_names_may_be_patterns: false,
    max_identifier_bytes: 63,
    file_schemas: &[],
    null_order: NullOrder::Largest,
    supports_feature,
    functions: &FUNCTIONS,
    recent_functions: &[],
    function_templates: FUNCTION_TEMPLATES,
    signatures: &[("date_add", "0 i"), ("date_add", "0 1"), ("to_char", "0 ft")],
    user_functions: true,
    reserved_words: &RESERVED_WORDS,
    any_word_after_as: true,
    errors: errors::POSTGRES,
    prompt_notes: "Names with capitals need double quotes; text is in single quotes. Text and numbers are never compared without a \
            CAST. Every selected column is aggregated or in GROUP BY. Dates: date_trunc('month', d), EXTRACT(YEAR FROM d), \
            d - INTERVAL '7 days'. Integer division truncates. SELECT aliases are not seen in WHERE or HAVING.",
};

fn supports_feature(feature: Feature) -> bool {
    match feature {
        Feature::DoubleColonCast
        | Feature::CastToDate
        | Feature::ILike
        | Feature::SimilarTo
        | Feature::RegexTilde
        | Feature::AnyAll
        | Feature::Extract
        | Feature::Interval
        | Feature::TypedLiteral
        | Feature::AtTimeZone
        | Feature::ArrayLiteral
        | Feature::SubstringFrom
        | Feature::PositionIn
        | Feature::TrimFrom
        | Feature::EscapedLiteral
        | Feature::GroupingSets
        | Feature::Filter
        | Feature::DistinctOn
        | Feature::DistinctMultipleArguments
        | Feature::FullJoin
        | Feature::Lateral
        | Feature::ParenthesizedSetOperand
        | Feature::NationalLiteral
        | Feature::NullSafeEqual
        | Feature::LimitAll
        | Feature::OffsetRows => true,
        Feature::TryCast
        | Feature::RLike
        | Feature::Glob
        | Feature::Convert
        | Feature::ConvertTypeFirst
        | Feature::KeywordCall
        | Feature::DivOperator
        | Feature::ModOperator
        | Feature::Qualify
        | Feature::NullTreatment
        | Feature::FilterInArguments
        | Feature::Separator
        | Feature::Pivot
        | Feature::Apply
        | Feature::TableHint
        | Feature::QueryHint
        | Feature::Minus => false,
    }
}
