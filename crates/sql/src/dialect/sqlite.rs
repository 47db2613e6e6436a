//! SQLite: lenient types and quotes, a single file, no users.

use std::sync::LazyLock;

use super::{
    AliasVisibility, CanonicalFunction, Concatenation, DatePart, Dialect, DoubleQuotes, Feature, FunctionTable,
    IdentifierCase, IntervalSyntax, LimitSyntax, NullOrder, ReservedWords, UngroupedColumns, Unit, ZeroDivision,
    errors,
};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/sqlite.tsv")));
static RESERVED_WORDS: LazyLock<ReservedWords> =
    LazyLock::new(|| ReservedWords::parse(include_str!("reserved_words/sqlite.txt")));

/// Functions added in SQLite 3.44 (2023) and 3.48 (2025).
static RECENT_FUNCTIONS: &[&str] = &["concat", "concat_ws", "if", "string_agg"];

#[rustfmt::skip]
static FUNCTION_TEMPLATES: &[(CanonicalFunction, &str)] = &[
    (CanonicalFunction::DatePart(DatePart::Year), "CAST(strftime('%Y', {0}) AS INTEGER)"),
    (CanonicalFunction::DatePart(DatePart::Quarter), "((CAST(strftime('%m', {0}) AS INTEGER) + 2) / 3)"),
    (CanonicalFunction::DatePart(DatePart::Month), "CAST(strftime('%m', {0}) AS INTEGER)"),
    (CanonicalFunction::DatePart(DatePart::Week), "((strftime('%j', date({0}, '-3 days', 'weekday 4')) - 1) / 7 + 1)"),
    (CanonicalFunction::DatePart(DatePart::Day), "CAST(strftime('%d', {0}) AS INTEGER)"),
    (CanonicalFunction::DatePart(DatePart::Hour), "CAST(strftime('%H', {0}) AS INTEGER)"),
    (CanonicalFunction::DatePart(DatePart::Minute), "CAST(strftime('%M', {0}) AS INTEGER)"),
    (CanonicalFunction::DatePart(DatePart::Second), "CAST(strftime('%S', {0}) AS INTEGER)"),
    (CanonicalFunction::DatePart(DatePart::DayOfYear), "CAST(strftime('%j', {0}) AS INTEGER)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday0), "CAST(strftime('%w', {0}) AS INTEGER)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday1), "(CAST(strftime('%w', {0}) AS INTEGER) + 1)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday0), "((CAST(strftime('%w', {0}) AS INTEGER) + 6) % 7)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday1), "((CAST(strftime('%w', {0}) AS INTEGER) + 6) % 7 + 1)"),
    (CanonicalFunction::DatePart(DatePart::Epoch), "(strftime('%s', {0}) * 1.0)"),
    (CanonicalFunction::DateTrunc(Unit::Year), "date({0}, 'start of year')"),
    (CanonicalFunction::DateTrunc(Unit::Quarter), "date({0}, 'start of month', ((1 - strftime('%m', {0})) % 3) || ' months')"),
    (CanonicalFunction::DateTrunc(Unit::Month), "date({0}, 'start of month')"),
    (CanonicalFunction::DateTrunc(Unit::Week), "date({0}, 'weekday 0', '-6 days')"),
    (CanonicalFunction::DateTrunc(Unit::Day), "date({0})"),
    (CanonicalFunction::DateTrunc(Unit::Hour), "strftime('%Y-%m-%d %H:00:00', {0})"),
    (CanonicalFunction::DateTrunc(Unit::Minute), "strftime('%Y-%m-%d %H:%M:00', {0})"),
    (CanonicalFunction::DateAdd(Unit::Second), "datetime({0}, '{sign}{count} seconds')"),
    (CanonicalFunction::DateAdd(Unit::Minute), "datetime({0}, '{sign}{count} minutes')"),
    (CanonicalFunction::DateAdd(Unit::Hour), "datetime({0}, '{sign}{count} hours')"),
    (CanonicalFunction::DateAdd(Unit::Day), "{date}({0}, '{sign}{count} days')"),
    (CanonicalFunction::DateAdd(Unit::Month), "{date}({0}, '{sign}{count} months')"),
    (CanonicalFunction::DateAdd(Unit::Year), "{date}({0}, '{sign}{count} years')"),
    (CanonicalFunction::DateAddExpr(Unit::Second), "datetime({0}, ({1}) || ' seconds')"),
    (CanonicalFunction::DateAddExpr(Unit::Minute), "datetime({0}, ({1}) || ' minutes')"),
    (CanonicalFunction::DateAddExpr(Unit::Hour), "datetime({0}, ({1}) || ' hours')"),
    (CanonicalFunction::DateAddExpr(Unit::Day), "{date}({0}, ({1}) || ' days')"),
    (CanonicalFunction::DateAddExpr(Unit::Month), "{date}({0}, ({1}) || ' months')"),
    (CanonicalFunction::DateAddExpr(Unit::Year), "{date}({0}, ({1}) || ' years')"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Second), "(strftime('%s', {0}) - strftime('%s', {1}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Minute), "(strftime('%s', {0}) / 60 - strftime('%s', {1}) / 60)"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Hour), "(strftime('%s', {0}) / 3600 - strftime('%s', {1}) / 3600)"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Day), "CAST(julianday(date({0})) - julianday(date({1})) AS INTEGER)"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Month), "((strftime('%Y', {0}) - strftime('%Y', {1})) * 12 + strftime('%m', {0}) - strftime('%m', {1}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Year), "(strftime('%Y', {0}) - strftime('%Y', {1}))"),
    (CanonicalFunction::DateDiffElapsed(Unit::Second), "(strftime('%s', {0}) - strftime('%s', {1}))"),
    (CanonicalFunction::DateDiffElapsed(Unit::Minute), "((strftime('%s', {0}) - strftime('%s', {1})) / 60)"),
    (CanonicalFunction::DateDiffElapsed(Unit::Hour), "((strftime('%s', {0}) - strftime('%s', {1})) / 3600)"),
    (CanonicalFunction::DateDiffElapsed(Unit::Day), "CAST(julianday({0}) - julianday({1}) AS INTEGER)"),
    (CanonicalFunction::DateDiffElapsed(Unit::Month), "((strftime('%Y', {0}) - strftime('%Y', {1})) * 12 + strftime('%m', {0}) - strftime('%m', {1}) - (strftime('%d', {0}) < strftime('%d', {1})))"),
    (CanonicalFunction::DateDiffElapsed(Unit::Year), "(strftime('%Y', {0}) - strftime('%Y', {1}) - (strftime('%m-%d', {0}) < strftime('%m-%d', {1})))"),
    (CanonicalFunction::SecondsBetween, "((strftime('%s', {0}) - strftime('%s', {1})) * 1.0)"),
    (CanonicalFunction::FormatDate, "strftime({1:sqlite}, {0})"),
    (CanonicalFunction::DayName, "CASE strftime('%w', {0}) WHEN '0' THEN 'Sunday' WHEN '1' THEN 'Monday' WHEN '2' THEN 'Tuesday' WHEN '3' THEN 'Wednesday' WHEN '4' THEN 'Thursday' WHEN '5' THEN 'Friday' WHEN '6' THEN 'Saturday' END"),
    (CanonicalFunction::MonthName, "CASE strftime('%m', {0}) WHEN '01' THEN 'January' WHEN '02' THEN 'February' WHEN '03' THEN 'March' WHEN '04' THEN 'April' WHEN '05' THEN 'May' WHEN '06' THEN 'June' WHEN '07' THEN 'July' WHEN '08' THEN 'August' WHEN '09' THEN 'September' WHEN '10' THEN 'October' WHEN '11' THEN 'November' WHEN '12' THEN 'December' END"),
    (CanonicalFunction::DayNameShort, "substr('SunMonTueWedThuFriSat', strftime('%w', {0}) * 3 + 1, 3)"),
    (CanonicalFunction::MonthNameShort, "substr('JanFebMarAprMayJunJulAugSepOctNovDec', strftime('%m', {0}) * 3 - 2, 3)"),
    (CanonicalFunction::FromUnixTime, "datetime({0}, 'unixepoch')"),
    (CanonicalFunction::MakeDate, "printf('%04d-%02d-%02d', {0}, {1}, {2})"),
    (CanonicalFunction::LastDay, "date({0}, 'start of month', '+1 month', '-1 day')"),
    (CanonicalFunction::JulianDay, "julianday({0})"),
    (CanonicalFunction::Now, "datetime('now')"),
    (CanonicalFunction::CurrentDate, "date('now')"),
    (CanonicalFunction::Left, "substr({0}, 1, {1})"),
    (CanonicalFunction::Right, "substr({0}, -({1}))"),
    (CanonicalFunction::Length, "length({0})"),
    (CanonicalFunction::IfNull, "ifnull({0}, {1})"),
    (CanonicalFunction::If, "iif({0}, {1}, {2})"),
    (CanonicalFunction::Greatest, "max({*})"),
    (CanonicalFunction::Least, "min({*})"),
    (CanonicalFunction::Position, "instr({1}, {0})"),
    (CanonicalFunction::Substring, "substr({0}, {1}, {2})"),
    (CanonicalFunction::Upper, "upper({0})"),
    (CanonicalFunction::Lower, "lower({0})"),
    (CanonicalFunction::PadLeft, "CASE WHEN length({0}) < ({1}) THEN substr(replace(hex(zeroblob({1})), '00', {2}), 1, ({1}) - length({0})) || ({0}) ELSE substr({0}, 1, {1}) END"),
    (CanonicalFunction::PadRight, "CASE WHEN length({0}) < ({1}) THEN ({0}) || substr(replace(hex(zeroblob({1})), '00', {2}), 1, ({1}) - length({0})) ELSE substr({0}, 1, {1}) END"),
    (CanonicalFunction::Contains, "(instr({0}, {1}) > 0)"),
    (CanonicalFunction::StartsWith, "(substr({0}, 1, length({1})) = {1})"),
    (CanonicalFunction::EndsWith, "(substr({0}, -length({1})) = {1})"),
    (CanonicalFunction::SplitFirst, "substr({0}, 1, instr(({0}) || ({1}), {1}) - 1)"),
    (CanonicalFunction::Random, "(random() / 18446744073709551616.0 + 0.5)"),
    (CanonicalFunction::IntegerDivide, "CAST(({0}) / ({1}) AS INTEGER)"),
    (CanonicalFunction::TruncateNumber, "(CAST(round(({0}) * {2}, 9) AS INTEGER) / {2})"),
    (CanonicalFunction::StringAggDistinct, "group_concat(DISTINCT {0})"),
    (CanonicalFunction::ToDistinctText, "quote({0})"),
    (CanonicalFunction::VarSamp, "((COUNT({0}) * SUM(({0}) * 1.0 * ({0})) - TOTAL({0}) * TOTAL({0})) / COUNT({0}) / (COUNT({0}) - 1))"),
    (CanonicalFunction::VarPop, "((COUNT({0}) * SUM(({0}) * 1.0 * ({0})) - TOTAL({0}) * TOTAL({0})) / COUNT({0}) / COUNT({0}))"),
    (CanonicalFunction::StddevSamp, "sqrt(max(((COUNT({0}) * SUM(({0}) * 1.0 * ({0})) - TOTAL({0}) * TOTAL({0})) / COUNT({0}) / (COUNT({0}) - 1)), 0))"),
    (CanonicalFunction::StddevPop, "sqrt(max(((COUNT({0}) * SUM(({0}) * 1.0 * ({0})) - TOTAL({0}) * TOTAL({0})) / COUNT({0}) / COUNT({0})), 0))"),
    (CanonicalFunction::Divide, "(CAST({0} AS REAL) / ({1}))"),
    (CanonicalFunction::SafeDivide, "(CAST({0} AS REAL) / ({1}))"),
    (CanonicalFunction::Concat, "({|})"),
    (CanonicalFunction::Subtract, "(({0}) - ({1}))"),
    (CanonicalFunction::Multiply, "(({0}) * ({1}))"),
    (CanonicalFunction::Add, "(({0}) + ({1}))"),
    (CanonicalFunction::StringAgg, "group_concat({0}, {1})"),
    (CanonicalFunction::RoundToInteger, "CAST(ROUND({0}) AS INTEGER)"),
    (CanonicalFunction::RoundToScale, "ROUND({0}, {1})"),
    (CanonicalFunction::TruncateText, "substr(CAST({0} AS TEXT), 1, {1})"),
    (CanonicalFunction::ToNumber, "CAST({0} AS REAL)"),
    (CanonicalFunction::ToText, "CAST({0} AS TEXT)"),
    (CanonicalFunction::ToDate, "date({0})"),
    (CanonicalFunction::ToTimestamp, "datetime({0})"),
    (CanonicalFunction::ToTime, "time({0})"),
];

/// Dialect of SQLite 3.
pub static SQLITE: Dialect = Dialect {
    name: "sqlite",
    title: "SQLite",
    other_names: &["sqlite3"],
    grammar: &super::sqlite_grammar::SqliteGrammar,
    identifier_quote: '`',
    identifier_case: IdentifierCase::Ignored,
    double_quotes: DoubleQuotes::IdentifierElseString,
    alias_visibility: AliasVisibility {
        in_where: true,
        in_group_by: true,
        in_group_by_expression: true,
        in_having: true,
        in_order_by_expression: true,
        in_select: false,
        in_qualify: false,
        order_by_finds_plain_columns: false,
    },
    on_sees_all_tables: true,
    qualified_names_look_outward: true,
    grouping_sees_outer: false,
    set_order_by_names_only: true,
    set_order_by_sees_parts: true,
    rows_are_values: false,
    duplicate_columns_allowed: true,
    struct_fields: false,
    recursion_needs_no_keyword: true,
    grouping: UngroupedColumns::AnyRow,
    strict_types: false,
    subtracts_dates: false,
    literals_adapt: true,
    rounds_decimals_only: false,
    integer_division: true,
    zero_division: ZeroDivision::Null,
    many_rows_error: false,
    like_ignores_case: true,
    limit: LimitSyntax { comma: true, offset: true, offset_first: false, fetch: false, top: false },
    interval: IntervalSyntax { tokens: false, quoted: false, bare: false },
    concat: Concatenation { pipes: true, function: true },
    system_columns: &["rowid", "oid", "_rowid_"],
    system_schemas: &["main", "temp"],
    allowed_qualifiers: &["main", "temp"],
    system_tables: &[
        "sqlite_master",
        "sqlite_schema",
        "sqlite_temp_master",
        "sqlite_temp_schema",
        "sqlite_sequence",
        "sqlite_stat1",
        "sqlite_stat4",
        "dbstat",
    ],
    secret_tables: &["sqlite_stat4", "sqlite_stat3", "dbpage", "sqlite_dbpage"],
    substitutes_variables: false,
    quoted_names_may_be_patterns: false,
    max_identifier_bytes: 0,
    file_schemas: &[],
    null_order: NullOrder::Smallest,
    supports_feature,
    functions: &FUNCTIONS,
    recent_functions: RECENT_FUNCTIONS,
    function_templates: FUNCTION_TEMPLATES,
    signatures: &[],
    user_functions: false,
    reserved_words: &RESERVED_WORDS,
    any_word_after_as: false,
    errors: errors::SQLITE,
    prompt_notes: "Dates are text: use date(), strftime('%Y', d), julianday(). Join text with ||. Integer division truncates: \
            multiply by 1.0 or CAST(x AS REAL). There is no YEAR(), no DATEDIFF(), no RIGHT(). Rows are limited with LIMIT n.",
};

fn supports_feature(feature: Feature) -> bool {
    match feature {
        Feature::Glob | Feature::Filter | Feature::FullJoin => true,
        Feature::DoubleColonCast
        | Feature::TryCast
        | Feature::CastToDate
        | Feature::ILike
        | Feature::SimilarTo
        | Feature::RLike
        | Feature::RegexTilde
        | Feature::AnyAll
        | Feature::Extract
        | Feature::Interval
        | Feature::Convert
        | Feature::ConvertTypeFirst
        | Feature::KeywordCall
        | Feature::TypedLiteral
        | Feature::AtTimeZone
        | Feature::ArrayLiteral
        | Feature::SubstringFrom
        | Feature::PositionIn
        | Feature::TrimFrom
        | Feature::EscapedLiteral
        | Feature::DivOperator
        | Feature::ModOperator
        | Feature::Qualify
        | Feature::GroupingSets
        | Feature::NullTreatment
        | Feature::FilterInArguments
        | Feature::Separator
        | Feature::DistinctOn
        | Feature::DistinctMultipleArguments
        | Feature::Lateral
        | Feature::Pivot
        | Feature::Apply
        | Feature::ParenthesizedSetOperand
        | Feature::NationalLiteral
        | Feature::NullSafeEqual
        | Feature::LimitAll
        | Feature::OffsetRows
        | Feature::TableHint
        | Feature::QueryHint
        | Feature::Minus => false,
    }
}
