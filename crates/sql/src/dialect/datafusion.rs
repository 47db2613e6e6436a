//! DataFusion: PostgreSQL-like SQL over files and Arrow data.

use std::sync::LazyLock;

use super::{
    AliasVisibility, CanonicalFunction, DatePart, Dialect, Feature, FunctionTable, IntervalSyntax, POSTGRES,
    ReservedWords, UngroupedColumns, Unit, errors,
};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/datafusion.tsv")));
static RESERVED_WORDS: LazyLock<ReservedWords> =
    LazyLock::new(|| ReservedWords::parse(include_str!("reserved_words/datafusion.txt")));

#[rustfmt::skip]
static FUNCTION_TEMPLATES: &[(CanonicalFunction, &str)] = &[
    (CanonicalFunction::DatePart(DatePart::Year), "date_part('year', {0})"),
    (CanonicalFunction::DatePart(DatePart::Quarter), "date_part('quarter', {0})"),
    (CanonicalFunction::DatePart(DatePart::Month), "date_part('month', {0})"),
    (CanonicalFunction::DatePart(DatePart::Week), "date_part('week', {0})"),
    (CanonicalFunction::DatePart(DatePart::Day), "date_part('day', {0})"),
    (CanonicalFunction::DatePart(DatePart::Hour), "date_part('hour', {0})"),
    (CanonicalFunction::DatePart(DatePart::Minute), "date_part('minute', {0})"),
    (CanonicalFunction::DatePart(DatePart::Second), "date_part('second', {0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfYear), "date_part('doy', {0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday0), "date_part('dow', {0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday1), "(date_part('dow', {0}) + 1)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday0), "((date_part('dow', {0}) + 6) % 7)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday1), "((date_part('dow', {0}) + 6) % 7 + 1)"),
    (CanonicalFunction::DatePart(DatePart::Epoch), "date_part('epoch', {0})"),
    (CanonicalFunction::DateTrunc(Unit::Any), "date_trunc('{unit}', {0})"),
    (CanonicalFunction::DateAdd(Unit::Any), "({0} {sign} INTERVAL '{count} {unit}')"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Day), "CAST(date_part('epoch', CAST({0} AS DATE)) / 86400 - date_part('epoch', CAST({1} AS DATE)) / 86400 AS BIGINT)"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Month), "((date_part('year', {0}) - date_part('year', {1})) * 12 + date_part('month', {0}) - date_part('month', {1}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Year), "(date_part('year', {0}) - date_part('year', {1}))"),
    (CanonicalFunction::FormatDate, "to_char({0}, {1:percent})"),
    (CanonicalFunction::ParseDate, "to_date({0}, {1:percent})"),
    (CanonicalFunction::FromUnixTime, "from_unixtime({0})"),
    (CanonicalFunction::MakeDate, "make_date({0}, {1}, {2})"),
    (CanonicalFunction::Now, "now()"),
    (CanonicalFunction::CurrentDate, "current_date()"),
    (CanonicalFunction::Length, "length({0})"),
    (CanonicalFunction::Position, "strpos({1}, {0})"),
    (CanonicalFunction::SplitFirst, "split_part({0}, {1}, 1)"),
    (CanonicalFunction::Random, "random()"),
    (CanonicalFunction::Upper, "upper({0})"),
    (CanonicalFunction::Lower, "lower({0})"),
    (CanonicalFunction::Divide, "(CAST({0} AS DOUBLE) / ({1}))"),
    (CanonicalFunction::SafeDivide, "(CAST({0} AS DOUBLE) / NULLIF({1}, 0))"),
    (CanonicalFunction::Subtract, "(({0}) - ({1}))"),
    (CanonicalFunction::Multiply, "(({0}) * ({1}))"),
    (CanonicalFunction::Add, "(({0}) + ({1}))"),
    (CanonicalFunction::StringAgg, "string_agg(CAST({0} AS VARCHAR), {1})"),
    (CanonicalFunction::StddevSamp, "stddev({0})"),
];

/// The DataFusion dialect.
pub static DATAFUSION: Dialect = Dialect {
    name: "datafusion",
    title: "DataFusion",
    other_names: &["arrow"],
    grammar: &sqlparser::dialect::GenericDialect {},
    alias_visibility: AliasVisibility {
        in_having: true,
        in_order_by_expression: true,
        in_qualify: true,
        ..POSTGRES.alias_visibility
    },
    struct_fields: true,
    rows_are_values: false,
    set_order_by_names_only: false,
    set_order_by_sees_parts: false,
    grouping: UngroupedColumns::Rejected,
    // DataFusion coerces text and numbers where it can.
    strict_types: false,
    subtracts_dates: true,
    system_columns: &[],
    max_identifier_bytes: 0,
    system_schemas: &["information_schema"],
    supports_feature,
    interval: IntervalSyntax { tokens: true, quoted: true, bare: true },
    functions: &FUNCTIONS,
    recent_functions: &[],
    function_templates: FUNCTION_TEMPLATES,
    signatures: &[("date_format", "0 fm")],
    reserved_words: &RESERVED_WORDS,
    errors: errors::DATAFUSION,
    prompt_notes: "Names with capitals need double quotes; text is in single quotes. Dates: date_trunc('month', d), \
            date_part('year', d), d - INTERVAL '7 days'. Integer division truncates.",
    ..POSTGRES
};

fn supports_feature(feature: Feature) -> bool {
    match feature {
        Feature::DoubleColonCast
        | Feature::TryCast
        | Feature::CastToDate
        | Feature::ILike
        | Feature::SimilarTo
        | Feature::RegexTilde
        | Feature::AnyAll
        | Feature::Extract
        | Feature::Interval
        | Feature::KeywordCall
        | Feature::TypedLiteral
        | Feature::AtTimeZone
        | Feature::ArrayLiteral
        | Feature::SubstringFrom
        | Feature::PositionIn
        | Feature::TrimFrom
        | Feature::EscapedLiteral
        | Feature::ModOperator
        | Feature::Qualify
        | Feature::GroupingSets
        | Feature::NullTreatment
        | Feature::Filter
        | Feature::DistinctOn
        | Feature::DistinctMultipleArguments
        | Feature::FullJoin
        | Feature::Lateral
        | Feature::ParenthesizedSetOperand
        | Feature::NationalLiteral
        | Feature::NullSafeEqual
        | Feature::LimitAll
        | Feature::OffsetRows
        | Feature::TableHint
        | Feature::QueryHint
        | Feature::Minus => true,
        Feature::RLike
        | Feature::Glob
        | Feature::Convert
        | Feature::ConvertTypeFirst
        | Feature::DivOperator
        | Feature::FilterInArguments
        | Feature::Separator
        | Feature::Pivot
        | Feature::Apply => false,
    }
}
