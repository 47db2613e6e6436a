//! Presto: ANSI grammar, names without case, OFFSET before LIMIT.

// The macro that derives the grammar also writes a constructor, which a static cannot call.
#![allow(dead_code)]

use std::sync::LazyLock;

use sqlparser::derive_dialect;
use sqlparser::dialect::GenericDialect;

use super::{
    AliasUse, Concatenation, Dialect, DoubleQuotes, Feature, FunctionTable, Grouping, IntervalSyntax, LimitSyntax,
    NameCase, Part, Phrase, Unit, WordList, ZeroDivision, errors,
};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/presto.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/presto.txt")));

// The parser has no grammar for Presto: the generic one with what Presto has not taken away comes closest.
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
static SAYS: &[(Phrase, &str)] = &[
    (Phrase::Part(Part::Year), "year({0})"),
    (Phrase::Part(Part::Quarter), "quarter({0})"),
    (Phrase::Part(Part::Month), "month({0})"),
    (Phrase::Part(Part::Week), "week({0})"),
    (Phrase::Part(Part::Day), "day({0})"),
    (Phrase::Part(Part::Hour), "hour({0})"),
    (Phrase::Part(Part::Minute), "minute({0})"),
    (Phrase::Part(Part::Second), "second({0})"),
    (Phrase::Part(Part::DayOfYear), "day_of_year({0})"),
    (Phrase::Part(Part::Sunday0), "(day_of_week({0}) % 7)"),
    (Phrase::Part(Part::Sunday1), "(day_of_week({0}) % 7 + 1)"),
    (Phrase::Part(Part::Monday0), "(day_of_week({0}) - 1)"),
    (Phrase::Part(Part::Monday1), "day_of_week({0})"),
    (Phrase::Part(Part::Epoch), "to_unixtime({0})"),
    (Phrase::Truncate(Unit::Each), "date_trunc('{unit}', {0})"),
    (Phrase::Plus(Unit::Each), "date_add('{unit}', {1}, {0})"),
    (Phrase::PlusSome(Unit::Each), "date_add('{unit}', {1}, {0})"),
    (Phrase::Between(Unit::Day), "date_diff('day', CAST({1} AS date), CAST({0} AS date))"),
    (Phrase::Between(Unit::Month), "date_diff('month', date_trunc('month', {1}), date_trunc('month', {0}))"),
    (Phrase::Between(Unit::Year), "(year({0}) - year({1}))"),
    (Phrase::Between(Unit::Hour), "date_diff('hour', date_trunc('hour', {1}), date_trunc('hour', {0}))"),
    (Phrase::Between(Unit::Minute), "date_diff('minute', date_trunc('minute', {1}), date_trunc('minute', {0}))"),
    (Phrase::Between(Unit::Second), "date_diff('second', {1}, {0})"),
    (Phrase::Elapsed, "CAST(date_diff('second', {1}, {0}) AS DOUBLE)"),
    (Phrase::Full(Unit::Each), "date_diff('{unit}', {1}, {0})"),
    (Phrase::Format, "date_format({0}, {1:mysql})"),
    (Phrase::ParseDate, "CAST(date_parse({0}, {1:mysql}) AS date)"),
    (Phrase::ParseMoment, "date_parse({0}, {1:mysql})"),
    (Phrase::FromUnix, "from_unixtime({0})"),
    (Phrase::LastDay, "last_day_of_month({0})"),
    (Phrase::Julian, "(to_unixtime(CAST({0} AS timestamp)) / 86400 + 2440587.5)"),
    (Phrase::Length, "length({0})"),
    (Phrase::IfNull, "COALESCE({0}, {1})"),
    (Phrase::If, "IF({0}, {1}, {2})"),
    (Phrase::Now, "now()"),
    (Phrase::Today, "current_date"),
    (Phrase::Left, "substr({0}, 1, {1})"),
    (Phrase::Right, "substr({0}, greatest(length({0}) - ({1}) + 1, 1))"),
    (Phrase::Position, "strpos({1}, {0})"),
    (Phrase::Substring, "substr({0}, {1}, {2})"),
    (Phrase::Upper, "upper({0})"),
    (Phrase::Lower, "lower({0})"),
    (Phrase::Divide, "(CAST({0} AS DOUBLE) / ({1}))"),
    (Phrase::SafeDivide, "(CAST({0} AS DOUBLE) / NULLIF({1}, 0))"),
    (Phrase::Subtract, "(({0}) - ({1}))"),
    (Phrase::Multiply, "(({0}) * ({1}))"),
    (Phrase::Add, "(({0}) + ({1}))"),
    (Phrase::JoinTexts, "array_join(array_agg({0}), {1})"),
    (Phrase::CountIf, "count_if({0})"),
    (Phrase::Deviation, "stddev({0})"),
    (Phrase::ToText, "CAST({0} AS VARCHAR)"),
];

/// Presto.
pub static PRESTO: Dialect = Dialect {
    name: "presto",
    title: "Presto",
    other_names: &["prestodb"],
    grammar: &PrestoGrammar { dialect: GenericDialect {} },
    quote: '"',
    names: NameCase::Ignored,
    double_quotes: DoubleQuotes::Name,
    aliases: AliasUse {
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
    rows_are_values: false,
    duplicate_columns_allowed: false,
    struct_fields: true,
    recursion_needs_no_keyword: false,
    grouping: Grouping::Refused,
    strict_types: true,
    subtracts_dates: true,
    literals_adapt: false,
    rounds_decimals_only: false,
    integer_division: true,
    zero_division: ZeroDivision::Error,
    many_rows_error: true,
    like_ignores_case: false,
    limit: LimitSyntax { comma: false, offset: true, offset_first: true, fetch: true, top: false },
    interval: IntervalSyntax { words: false, quoted: true, bare: false },
    concat: Concatenation { pipes: true, function: true },
    hidden_columns: &["$path", "$file_size", "$file_modified_time", "$bucket", "$partition"],
    system_schemas: &["information_schema", "system"],
    only_schemas: &[],
    system_tables: &[],
    secret_tables: &["runtime.queries", "runtime.tasks", "metadata.*"],
    substitutes_variables: false,
    longest_name: 0,
    file_schemas: &[],
    lacks: &[
        Feature::Convert,
        Feature::ConvertTypeFirst,
        Feature::FilterInside,
        Feature::CalledKeyword,
        Feature::DoubleColonCast,
        Feature::ILike,
        Feature::SimilarTo,
        Feature::RLike,
        Feature::EscapedLiteral,
        Feature::RegexTilde,
        Feature::Glob,
        Feature::DivOperator,
        Feature::Qualify,
        Feature::DistinctOn,
        Feature::Lateral,
        Feature::Pivot,
        Feature::Apply,
        Feature::Separator,
    ],
    functions: &FUNCTIONS,
    says: SAYS,
    forms: &[("date_add", "'u 1 0"), ("date_diff", "'u 1 0"), ("date_format", "0 fm")],
    user_functions: true,
    reserved: &RESERVED,
    reserved_behind_as: false,
    errors: errors::PRESTO,
    notes: "Names that need quotes take double quotes; text is in single quotes. Types are strict: CAST(x AS VARCHAR). Dates: \
            date_trunc('month', d), date_add('day', 1, d), date_diff('day', a, b), DATE '2024-01-31'. OFFSET n comes before \
            LIMIT m. Integer division truncates.",
};
