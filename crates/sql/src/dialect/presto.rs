//! Presto: ANSI grammar, case-insensitive identifiers, OFFSET before LIMIT.

// `derive_dialect!` also generates a constructor, which a static cannot call.
#![allow(dead_code)]

use std::sync::LazyLock;

use sqlparser::derive_dialect;
use sqlparser::dialect::GenericDialect;

use super::{
    AliasVisibility, CanonicalFunction, Concatenation, DatePart, Dialect, DoubleQuotes, Feature, FunctionTable,
    IdentifierCase, IntervalSyntax, LimitSyntax, NullOrder, ReservedWords, UngroupedColumns, Unit, ZeroDivision,
    errors,
};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/presto.tsv")));
static RESERVED_WORDS: LazyLock<ReservedWords> =
    LazyLock::new(|| ReservedWords::parse(include_str!("reserved_words/presto.txt")));

// The parser has no Presto grammar: the generic one without the syntax that Presto lacks comes
// closest.
derive_dialect!(PrestoGrammar, GenericDialect, overrides = {
    identifier_quote_style = '"',
    supports_match_recognize = true,
    supports_group_by_expr = true,
    supports_limit_comma = false,
    supports_string_literal_backslash_escape = false,
    supports_lambda_functions = true,
    supports_from_first_select = false,
    supports_pipe_operator = false,
});

#[rustfmt::skip]
static FUNCTION_TEMPLATES: &[(CanonicalFunction, &str)] = &[
    (CanonicalFunction::DatePart(DatePart::Year), "year({0})"),
    (CanonicalFunction::DatePart(DatePart::Quarter), "quarter({0})"),
    (CanonicalFunction::DatePart(DatePart::Month), "month({0})"),
    (CanonicalFunction::DatePart(DatePart::Week), "week({0})"),
    (CanonicalFunction::DatePart(DatePart::Day), "day({0})"),
    (CanonicalFunction::DatePart(DatePart::Hour), "hour({0})"),
    (CanonicalFunction::DatePart(DatePart::Minute), "minute({0})"),
    (CanonicalFunction::DatePart(DatePart::Second), "second({0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfYear), "day_of_year({0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday0), "(day_of_week({0}) % 7)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday1), "(day_of_week({0}) % 7 + 1)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday0), "(day_of_week({0}) - 1)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday1), "day_of_week({0})"),
    (CanonicalFunction::DatePart(DatePart::Epoch), "to_unixtime({0})"),
    (CanonicalFunction::DateTrunc(Unit::Any), "date_trunc('{unit}', {0})"),
    (CanonicalFunction::DateAdd(Unit::Any), "date_add('{unit}', {1}, {0})"),
    (CanonicalFunction::DateAddExpr(Unit::Any), "date_add('{unit}', {1}, {0})"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Day), "date_diff('day', CAST({1} AS date), CAST({0} AS date))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Month), "date_diff('month', date_trunc('month', {1}), date_trunc('month', {0}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Year), "(year({0}) - year({1}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Hour), "date_diff('hour', date_trunc('hour', {1}), date_trunc('hour', {0}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Minute), "date_diff('minute', date_trunc('minute', {1}), date_trunc('minute', {0}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Second), "date_diff('second', {1}, {0})"),
    (CanonicalFunction::SecondsBetween, "CAST(date_diff('second', {1}, {0}) AS DOUBLE)"),
    (CanonicalFunction::DateDiffElapsed(Unit::Any), "date_diff('{unit}', {1}, {0})"),
    (CanonicalFunction::FormatDate, "date_format({0}, {1:mysql})"),
    (CanonicalFunction::ParseDate, "CAST(date_parse({0}, {1:mysql}) AS date)"),
    (CanonicalFunction::ParseTimestamp, "date_parse({0}, {1:mysql})"),
    (CanonicalFunction::FromUnixTime, "from_unixtime({0})"),
    (CanonicalFunction::LastDay, "last_day_of_month({0})"),
    (CanonicalFunction::JulianDay, "(to_unixtime(CAST({0} AS timestamp)) / 86400 + 2440587.5)"),
    (CanonicalFunction::Length, "length({0})"),
    (CanonicalFunction::IfNull, "COALESCE({0}, {1})"),
    (CanonicalFunction::If, "IF({0}, {1}, {2})"),
    (CanonicalFunction::Now, "now()"),
    (CanonicalFunction::CurrentDate, "current_date"),
    (CanonicalFunction::Left, "substr({0}, 1, {1})"),
    (CanonicalFunction::Right, "substr({0}, greatest(length({0}) - ({1}) + 1, 1))"),
    (CanonicalFunction::Position, "strpos({1}, {0})"),
    (CanonicalFunction::EndsWith, "(substr({0}, -length({1})) = {1})"),
    (CanonicalFunction::SplitFirst, "split_part({0}, {1}, 1)"),
    (CanonicalFunction::Random, "random()"),
    (CanonicalFunction::Substring, "substr({0}, {1}, {2})"),
    (CanonicalFunction::Upper, "upper({0})"),
    (CanonicalFunction::Lower, "lower({0})"),
    (CanonicalFunction::Divide, "(CAST({0} AS DOUBLE) / ({1}))"),
    (CanonicalFunction::SafeDivide, "(CAST({0} AS DOUBLE) / NULLIF({1}, 0))"),
    (CanonicalFunction::Subtract, "(({0}) - ({1}))"),
    (CanonicalFunction::Multiply, "(({0}) * ({1}))"),
    (CanonicalFunction::Add, "(({0}) + ({1}))"),
    (CanonicalFunction::StringAgg, "array_join(array_agg({0}), {1})"),
    (CanonicalFunction::CountIf, "count_if({0})"),
    (CanonicalFunction::StddevSamp, "stddev({0})"),
    (CanonicalFunction::ToText, "CAST({0} AS VARCHAR)"),
];

/// The Presto dialect.
pub static PRESTO: Dialect = Dialect {
    name: "presto",
    title: "Presto",
    other_names: &["prestodb"],
    grammar: &PrestoGrammar { dialect: GenericDialect {} },
    identifier_quote: '"',
    identifier_case: IdentifierCase::Ignored,
    double_quotes: DoubleQuotes::Identifier,
    alias_visibility: AliasVisibility {
        in_where: false,
        in_group_by: false,
        in_group_by_expression: false,
        in_having: false,
        in_order_by_expression: true,
        in_select: false,
        in_qualify: false,
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
    strict_types: true,
    subtracts_dates: true,
    literals_adapt: false,
    rounds_decimals_only: false,
    integer_division: true,
    zero_division: ZeroDivision::Error,
    many_rows_error: true,
    like_ignores_case: false,
    limit: LimitSyntax { comma: false, offset: true, offset_first: true, fetch: true, top: false },
    interval: IntervalSyntax { tokens: false, quoted: true, bare: false },
    concat: Concatenation { pipes: true, function: true },
    system_columns: &["$path", "$file_size", "$file_modified_time", "$bucket", "$partition"],
    system_schemas: &["information_schema", "system"],
    allowed_qualifiers: &[],
    system_tables: &[],
    secret_tables: &["runtime.queries", "runtime.tasks", "metadata.*"],
    substitutes_variables: false,
    quoted_names_may_be_patterns: false,
    max_identifier_bytes: 0,
    file_schemas: &[],
    null_order: NullOrder::Last,
    supports_feature,
    functions: &FUNCTIONS,
    recent_functions: &[],
    function_templates: FUNCTION_TEMPLATES,
    signatures: &[("date_add", "'u 1 0"), ("date_diff", "'u 1 0"), ("date_format", "0 fm")],
    user_functions: true,
    reserved_words: &RESERVED_WORDS,
    any_word_after_as: false,
    errors: errors::PRESTO,
    prompt_notes: "Names that need quotes take double quotes; text is in single quotes. Types are strict: CAST(x AS VARCHAR). Dates: \
            date_trunc('month', d), date_add('day', 1, d), date_diff('day', a, b), DATE '2024-01-31'. OFFSET n comes before \
            LIMIT m. Integer division truncates.",
};

fn supports_feature(feature: Feature) -> bool {
    match feature {
        Feature::TryCast
        | Feature::CastToDate
        | Feature::AnyAll
        | Feature::Extract
        | Feature::Interval
        | Feature::TypedLiteral
        | Feature::AtTimeZone
        | Feature::ArrayLiteral
        | Feature::SubstringFrom
        | Feature::PositionIn
        | Feature::TrimFrom
        | Feature::ModOperator
        | Feature::GroupingSets
        | Feature::NullTreatment
        | Feature::Filter
        | Feature::DistinctMultipleArguments
        | Feature::FullJoin
        | Feature::ParenthesizedSetOperand
        | Feature::NationalLiteral
        | Feature::NullSafeEqual
        | Feature::LimitAll
        | Feature::OffsetRows
        | Feature::TableHint
        | Feature::QueryHint => true,
        Feature::DoubleColonCast
        | Feature::ILike
        | Feature::SimilarTo
        | Feature::RLike
        | Feature::RegexTilde
        | Feature::Glob
        | Feature::Convert
        | Feature::ConvertTypeFirst
        | Feature::KeywordCall
        | Feature::EscapedLiteral
        | Feature::DivOperator
        | Feature::Qualify
        | Feature::FilterInArguments
        | Feature::Separator
        | Feature::DistinctOn
        | Feature::Lateral
        | Feature::Pivot
        | Feature::Apply
        | Feature::Minus => false,
    }
}
