//! DataFusion: PostgreSQL's manners over files and Arrow.

use std::sync::LazyLock;

use super::{
    AliasUse, Dialect, Feature, FunctionTable, Grouping, IntervalSyntax, POSTGRES, Part, Phrase, Unit, WordList, errors,
};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/datafusion.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/datafusion.txt")));

#[rustfmt::skip]
static SAYS: &[(Phrase, &str)] = &[
    (Phrase::Part(Part::Year), "date_part('year', {0})"),
    (Phrase::Part(Part::Quarter), "date_part('quarter', {0})"),
    (Phrase::Part(Part::Month), "date_part('month', {0})"),
    (Phrase::Part(Part::Week), "date_part('week', {0})"),
    (Phrase::Part(Part::Day), "date_part('day', {0})"),
    (Phrase::Part(Part::Hour), "date_part('hour', {0})"),
    (Phrase::Part(Part::Minute), "date_part('minute', {0})"),
    (Phrase::Part(Part::Second), "date_part('second', {0})"),
    (Phrase::Part(Part::DayOfYear), "date_part('doy', {0})"),
    (Phrase::Part(Part::Sunday0), "date_part('dow', {0})"),
    (Phrase::Part(Part::Sunday1), "(date_part('dow', {0}) + 1)"),
    (Phrase::Part(Part::Monday0), "((date_part('dow', {0}) + 6) % 7)"),
    (Phrase::Part(Part::Monday1), "((date_part('dow', {0}) + 6) % 7 + 1)"),
    (Phrase::Part(Part::Epoch), "date_part('epoch', {0})"),
    (Phrase::Truncate(Unit::Each), "date_trunc('{unit}', {0})"),
    (Phrase::Plus(Unit::Each), "({0} {sign} INTERVAL '{count} {unit}')"),
    (Phrase::Between(Unit::Day), "CAST(date_part('epoch', CAST({0} AS DATE)) / 86400 - date_part('epoch', CAST({1} AS DATE)) / 86400 AS BIGINT)"),
    (Phrase::Between(Unit::Month), "((date_part('year', {0}) - date_part('year', {1})) * 12 + date_part('month', {0}) - date_part('month', {1}))"),
    (Phrase::Between(Unit::Year), "(date_part('year', {0}) - date_part('year', {1}))"),
    (Phrase::Format, "to_char({0}, {1:percent})"),
    (Phrase::ParseDate, "to_date({0}, {1:percent})"),
    (Phrase::FromUnix, "from_unixtime({0})"),
    (Phrase::MakeDate, "make_date({0}, {1}, {2})"),
    (Phrase::Now, "now()"),
    (Phrase::Today, "current_date()"),
    (Phrase::Length, "length({0})"),
    (Phrase::Position, "strpos({1}, {0})"),
    (Phrase::Before, "split_part({0}, {1}, 1)"),
    (Phrase::Random, "random()"),
    (Phrase::Upper, "upper({0})"),
    (Phrase::Lower, "lower({0})"),
    (Phrase::Divide, "(CAST({0} AS DOUBLE) / ({1}))"),
    (Phrase::SafeDivide, "(CAST({0} AS DOUBLE) / NULLIF({1}, 0))"),
    (Phrase::Subtract, "(({0}) - ({1}))"),
    (Phrase::Multiply, "(({0}) * ({1}))"),
    (Phrase::Add, "(({0}) + ({1}))"),
    (Phrase::JoinTexts, "string_agg(CAST({0} AS VARCHAR), {1})"),
    (Phrase::Deviation, "stddev({0})"),
];

/// DataFusion.
pub static DATAFUSION: Dialect = Dialect {
    name: "datafusion",
    title: "DataFusion",
    other_names: &["arrow"],
    grammar: &sqlparser::dialect::GenericDialect {},
    aliases: AliasUse { in_having: true, in_order_by_expression: true, in_qualify: true, ..POSTGRES.aliases },
    struct_fields: true,
    rows_are_values: false,
    set_order_by_names_only: false,
    set_order_by_sees_parts: false,
    grouping: Grouping::Refused,
    // It coerces text and numbers where it can.
    strict_types: false,
    subtracts_dates: true,
    hidden_columns: &[],
    longest_name: 0,
    system_schemas: &["information_schema"],
    lacks: &[
        Feature::Convert,
        Feature::ConvertTypeFirst,
        Feature::FilterInside,
        Feature::RLike,
        Feature::Glob,
        Feature::DivOperator,
        Feature::Pivot,
        Feature::Apply,
        Feature::Separator,
    ],
    interval: IntervalSyntax { words: true, quoted: true, bare: true },
    functions: &FUNCTIONS,
    newer: &[],
    says: SAYS,
    forms: &[("date_format", "0 fm")],
    reserved: &RESERVED,
    errors: errors::DATAFUSION,
    notes: "Names with capitals need double quotes; text is in single quotes. Dates: date_trunc('month', d), \
            date_part('year', d), d - INTERVAL '7 days'. Integer division truncates.",
    ..POSTGRES
};
