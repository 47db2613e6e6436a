//! MySQL and MariaDB: backticks quote identifiers, double quotes quote strings.

use std::sync::LazyLock;

use super::{
    AliasVisibility, CanonicalFunction, Concatenation, DatePart, Dialect, DoubleQuotes, Feature, FunctionTable,
    IdentifierCase, IntervalSyntax, LimitSyntax, NullOrder, ReservedWords, UngroupedColumns, Unit, ZeroDivision,
    errors,
};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/mysql.tsv")));
static RESERVED_WORDS: LazyLock<ReservedWords> =
    LazyLock::new(|| ReservedWords::parse(include_str!("reserved_words/mysql.txt")));

#[rustfmt::skip]
static FUNCTION_TEMPLATES: &[(CanonicalFunction, &str)] = &[
    (CanonicalFunction::DatePart(DatePart::Year), "YEAR({0})"),
    (CanonicalFunction::DatePart(DatePart::Quarter), "QUARTER({0})"),
    (CanonicalFunction::DatePart(DatePart::Month), "MONTH({0})"),
    (CanonicalFunction::DatePart(DatePart::Week), "WEEK({0}, 3)"),
    (CanonicalFunction::DatePart(DatePart::Day), "DAY({0})"),
    (CanonicalFunction::DatePart(DatePart::Hour), "HOUR({0})"),
    (CanonicalFunction::DatePart(DatePart::Minute), "MINUTE({0})"),
    (CanonicalFunction::DatePart(DatePart::Second), "SECOND({0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfYear), "DAYOFYEAR({0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday0), "(DAYOFWEEK({0}) - 1)"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekSunday1), "DAYOFWEEK({0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday0), "WEEKDAY({0})"),
    (CanonicalFunction::DatePart(DatePart::DayOfWeekMonday1), "(WEEKDAY({0}) + 1)"),
    (CanonicalFunction::DatePart(DatePart::Epoch), "UNIX_TIMESTAMP({0})"),
    (CanonicalFunction::DateTrunc(Unit::Year), "MAKEDATE(YEAR({0}), 1)"),
    (CanonicalFunction::DateTrunc(Unit::Quarter), "(MAKEDATE(YEAR({0}), 1) + INTERVAL QUARTER({0}) - 1 QUARTER)"),
    (CanonicalFunction::DateTrunc(Unit::Month), "CAST(DATE_FORMAT({0}, '%Y-%m-01') AS DATE)"),
    (CanonicalFunction::DateTrunc(Unit::Week), "(DATE({0}) - INTERVAL WEEKDAY({0}) DAY)"),
    (CanonicalFunction::DateTrunc(Unit::Day), "DATE({0})"),
    (CanonicalFunction::DateTrunc(Unit::Hour), "CAST(DATE_FORMAT({0}, '%Y-%m-%d %H:00:00') AS DATETIME)"),
    (CanonicalFunction::DateTrunc(Unit::Minute), "CAST(DATE_FORMAT({0}, '%Y-%m-%d %H:%i:00') AS DATETIME)"),
    (CanonicalFunction::DateAdd(Unit::Any), "({0} {sign} INTERVAL {count} {UNIT})"),
    (CanonicalFunction::DateAddExpr(Unit::Any), "({0} + INTERVAL ({1}) {UNIT})"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Day), "DATEDIFF({0}, {1})"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Month), "PERIOD_DIFF(DATE_FORMAT({0}, '%Y%m'), DATE_FORMAT({1}, '%Y%m'))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Year), "(YEAR({0}) - YEAR({1}))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Hour), "TIMESTAMPDIFF(HOUR, DATE_FORMAT({1}, '%Y-%m-%d %H:00:00'), DATE_FORMAT({0}, '%Y-%m-%d %H:00:00'))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Minute), "TIMESTAMPDIFF(MINUTE, DATE_FORMAT({1}, '%Y-%m-%d %H:%i:00'), DATE_FORMAT({0}, '%Y-%m-%d %H:%i:00'))"),
    (CanonicalFunction::DateDiffBoundaries(Unit::Second), "TIMESTAMPDIFF(SECOND, {1}, {0})"),
    (CanonicalFunction::SecondsBetween, "TIMESTAMPDIFF(SECOND, {1}, {0})"),
    (CanonicalFunction::DateDiffElapsed(Unit::Any), "TIMESTAMPDIFF({UNIT}, {1}, {0})"),
    (CanonicalFunction::FormatDate, "DATE_FORMAT({0}, {1:mysql})"),
    (CanonicalFunction::ParseDate, "STR_TO_DATE({0}, {1:mysql})"),
    (CanonicalFunction::FromUnixTime, "FROM_UNIXTIME({0})"),
    (CanonicalFunction::MakeDate, "STR_TO_DATE(CONCAT_WS('-', {0}, {1}, {2}), '%Y-%m-%d')"),
    (CanonicalFunction::LastDay, "LAST_DAY({0})"),
    (CanonicalFunction::JulianDay, "(TO_DAYS({0}) + TIME_TO_SEC(TIME({0})) / 86400 + 1721059.5)"),
    (CanonicalFunction::Length, "CHAR_LENGTH({0})"),
    (CanonicalFunction::IfNull, "IFNULL({0}, {1})"),
    (CanonicalFunction::If, "IF({0}, {1}, {2})"),
    (CanonicalFunction::Now, "NOW()"),
    (CanonicalFunction::CurrentDate, "CURDATE()"),
    (CanonicalFunction::Position, "LOCATE({0}, {1})"),
    (CanonicalFunction::Contains, "(LOCATE({1}, {0}) > 0)"),
    (CanonicalFunction::StartsWith, "(LEFT({0}, CHAR_LENGTH({1})) = {1})"),
    (CanonicalFunction::EndsWith, "(RIGHT({0}, CHAR_LENGTH({1})) = {1})"),
    (CanonicalFunction::SplitFirst, "SUBSTRING_INDEX({0}, {1}, 1)"),
    (CanonicalFunction::Random, "RAND()"),
    (CanonicalFunction::IntegerDivide, "(({0}) DIV ({1}))"),
    (CanonicalFunction::TruncateNumber, "TRUNCATE({0}, {1})"),
    (CanonicalFunction::StringAggDistinct, "GROUP_CONCAT(DISTINCT {0} SEPARATOR {1})"),
    (CanonicalFunction::Divide, "(({0}) / ({1}))"),
    (CanonicalFunction::SafeDivide, "(({0}) / NULLIF({1}, 0))"),
    (CanonicalFunction::Subtract, "(({0}) - ({1}))"),
    (CanonicalFunction::Multiply, "(({0}) * ({1}))"),
    (CanonicalFunction::Add, "(({0}) + ({1}))"),
    (CanonicalFunction::StringAgg, "GROUP_CONCAT({0} SEPARATOR {1})"),
    (CanonicalFunction::StddevSamp, "STDDEV_SAMP({0})"),
    (CanonicalFunction::ToInteger, "CAST({0} AS SIGNED)"),
    (CanonicalFunction::ToText, "CAST({0} AS CHAR)"),
    (CanonicalFunction::ToTimestamp, "CAST({0} AS DATETIME)"),
];

/// Dialect of MySQL 8 and MariaDB.
pub static MYSQL: Dialect = Dialect {
    name: "mysql",
    title: "MySQL",
    other_names: &["mariadb"],
    grammar: &sqlparser::dialect::MySqlDialect {},
    identifier_quote: '`',
    identifier_case: IdentifierCase::Ignored,
    double_quotes: DoubleQuotes::StringLiteral,
    alias_visibility: AliasVisibility {
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
    set_order_by_sees_parts: false,
    rows_are_values: false,
    duplicate_columns_allowed: false,
    struct_fields: false,
    recursion_needs_no_keyword: false,
    grouping: UngroupedColumns::FunctionallyDependent,
    strict_types: false,
    subtracts_dates: false,
    literals_adapt: true,
    rounds_decimals_only: false,
    integer_division: false,
    zero_division: ZeroDivision::Null,
    many_rows_error: true,
    like_ignores_case: true,
    limit: LimitSyntax { comma: true, offset: true, offset_first: false, fetch: false, top: false },
    interval: IntervalSyntax { tokens: false, quoted: true, bare: true },
    concat: Concatenation { pipes: false, function: true },
    system_columns: &["_rowid"],
    system_schemas: &["information_schema", "performance_schema", "mysql", "sys"],
    allowed_qualifiers: &[],
    system_tables: &["dual"],
    secret_tables: &[
        "mysql.*",
        "performance_schema.*",
        "information_schema.processlist",
        // Shows statements of other sessions, like the process list.
        "information_schema.innodb_trx",
        "sys.*",
        "information_schema.column_statistics",
    ],
    substitutes_variables: false,
    quoted_names_may_be_patterns: false,
    max_identifier_bytes: 0,
    file_schemas: &[],
    null_order: NullOrder::Smallest,
    supports_feature,
    functions: &FUNCTIONS,
    recent_functions: &[],
    function_templates: FUNCTION_TEMPLATES,
    signatures: &[("date_add", "0 i"), ("date_sub", "0 i"), ("date_format", "0 fm"), ("to_char", "0 ft")],
    user_functions: true,
    reserved_words: &RESERVED_WORDS,
    any_word_after_as: false,
    errors: errors::MYSQL,
    prompt_notes: "Names that need quotes take backticks; text is in single quotes. Join text with CONCAT(a, b), never ||. Dates: \
            YEAR(d), DATE_FORMAT(d, '%Y-%m'), DATE_SUB(d, INTERVAL 7 DAY), DATEDIFF(a, b). LIMIT n OFFSET m. \
            There is no FULL OUTER JOIN.",
};

fn supports_feature(feature: Feature) -> bool {
    match feature {
        Feature::CastToDate
        | Feature::RLike
        | Feature::AnyAll
        | Feature::Extract
        | Feature::Interval
        | Feature::Convert
        | Feature::KeywordCall
        | Feature::TypedLiteral
        | Feature::SubstringFrom
        | Feature::PositionIn
        | Feature::TrimFrom
        | Feature::DivOperator
        | Feature::ModOperator
        | Feature::Separator
        | Feature::DistinctMultipleArguments
        | Feature::Lateral
        | Feature::ParenthesizedSetOperand
        | Feature::NationalLiteral
        | Feature::NullSafeEqual
        | Feature::OffsetRows => true,
        Feature::DoubleColonCast
        | Feature::TryCast
        | Feature::ILike
        | Feature::SimilarTo
        | Feature::RegexTilde
        | Feature::Glob
        | Feature::ConvertTypeFirst
        | Feature::AtTimeZone
        | Feature::ArrayLiteral
        | Feature::EscapedLiteral
        | Feature::Qualify
        | Feature::GroupingSets
        | Feature::NullTreatment
        | Feature::Filter
        | Feature::FilterInArguments
        | Feature::DistinctOn
        | Feature::FullJoin
        | Feature::Pivot
        | Feature::Apply
        | Feature::LimitAll
        | Feature::TableHint
        | Feature::QueryHint
        | Feature::Minus => false,
    }
}
