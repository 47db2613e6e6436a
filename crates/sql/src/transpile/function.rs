//! Canonical functions and their rendering in each dialect.

use super::unit::{DatePart, Unit};

/// Dialect-independent function that each dialect renders with its own template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CanonicalFunction {
    /// Numeric part of a date.
    DatePart(DatePart),
    /// Date truncated to the start of a unit.
    DateTrunc(Unit),
    /// Date plus a number of units, given as an integer literal.
    DateAdd(Unit),
    /// Date plus a number of units, given as any numeric expression.
    DateAddExpr(Unit),
    /// Date minus a number of units. Only used in signature tables.
    DateSub(Unit),
    /// Number of unit boundaries from the second date to the first.
    DateDiffBoundaries(Unit),
    /// Number of whole units elapsed from the second date to the first.
    DateDiffElapsed(Unit),
    /// Seconds from the second date to the first, with a fraction.
    SecondsBetween,
    /// Date formatted as text.
    FormatDate,
    /// `Monday`.
    DayName,
    /// `January`.
    MonthName,
    /// Abbreviated names `Mon` and `Jan`, for dialects whose formats have no names.
    DayNameShort,
    MonthNameShort,
    /// Date parsed from text in a given format.
    ParseDate,
    /// Timestamp parsed from text in a given format.
    ParseTimestamp,
    /// Date from seconds since 1970.
    FromUnixTime,
    /// Date from year, month and day.
    MakeDate,
    /// Last day of the month of a date.
    LastDay,
    /// Julian day: days since noon of January 1, 4713 BC.
    JulianDay,
    Now,
    CurrentDate,
    Left,
    Right,
    Length,
    IfNull,
    /// Second argument if the first is not NULL, else the third.
    IfNotNull,
    IsNull,
    ZeroIfNull,
    If,
    Greatest,
    Least,
    /// Position of the first argument in the second.
    Position,
    Substring,
    Upper,
    Lower,
    /// Text padded with the third argument, or truncated, to a given length.
    PadLeft,
    PadRight,
    /// Tests if the first argument contains, starts with or ends with the second.
    Contains,
    StartsWith,
    EndsWith,
    /// Text before the first occurrence of the second argument, or the whole text.
    SplitFirst,
    /// Random number from 0 to 1.
    Random,
    Divide,
    /// Quotient; NULL if the divisor is zero.
    SafeDivide,
    Subtract,
    Multiply,
    Add,
    Modulo,
    Power,
    /// Integer quotient, without the remainder.
    IntegerDivide,
    /// Number truncated to a given number of decimals; the third argument is that power of ten.
    TruncateNumber,
    Concat,
    /// Texts of many rows joined with the second argument as separator.
    StringAgg,
    /// Distinct texts of many rows joined with the second argument as separator.
    StringAggDistinct,
    /// Number of rows that satisfy a condition.
    CountIf,
    CountDistinct,
    /// Tests if a condition holds for any row, or for all rows.
    BoolOr,
    BoolAnd,
    AnyValue,
    /// Standard deviation of a sample, or of the population.
    StddevSamp,
    StddevPop,
    /// Variance of a sample, or of the population.
    VarSamp,
    VarPop,
    /// Value as text, distinct for distinct values.
    ToDistinctText,
    /// The argument itself: `CALCULATE(x)`.
    Identity,
    /// SQL that every dialect understands, already parenthesized where needed.
    Verbatim,
    /// Conversion to a type, for dialects where CAST with the usual type name does not work.
    ToInteger,
    /// Nearest integer, for dialects whose CAST truncates.
    RoundToInteger,
    /// Number rounded to a given number of decimals, for dialects whose CAST does not round.
    RoundToScale,
    /// Text truncated to a given length, for dialects whose CAST does not truncate.
    TruncateText,
    ToText,
    ToNumber,
    ToDate,
    ToTimestamp,
    ToTime,
    /// Conversion to the type that the second argument names.
    Cast,
}

impl CanonicalFunction {
    /// Returns the number of leading arguments that are dates.
    pub(crate) fn date_argument_count(self) -> usize {
        match self {
            CanonicalFunction::DateDiffBoundaries(_)
            | CanonicalFunction::DateDiffElapsed(_)
            | CanonicalFunction::SecondsBetween => 2,
            CanonicalFunction::DatePart(_)
            | CanonicalFunction::DateTrunc(_)
            | CanonicalFunction::DateAdd(_)
            | CanonicalFunction::DateAddExpr(_)
            | CanonicalFunction::FormatDate
            | CanonicalFunction::DayName
            | CanonicalFunction::MonthName
            | CanonicalFunction::DayNameShort
            | CanonicalFunction::MonthNameShort
            | CanonicalFunction::LastDay
            | CanonicalFunction::JulianDay => 1,
            _ => 0,
        }
    }

    /// Returns whether the function returns a date rather than a number or text derived from one.
    pub(crate) fn returns_date(self) -> bool {
        matches!(
            self,
            CanonicalFunction::DateTrunc(_)
                | CanonicalFunction::DateAdd(_)
                | CanonicalFunction::DateAddExpr(_)
                | CanonicalFunction::FromUnixTime
                | CanonicalFunction::ParseDate
                | CanonicalFunction::MakeDate
                | CanonicalFunction::LastDay
                | CanonicalFunction::Now
                | CanonicalFunction::CurrentDate
                | CanonicalFunction::ToDate
                | CanonicalFunction::ToTimestamp
        )
    }
}

/// Templates that every dialect understands, for dialects without one of their own.
#[rustfmt::skip]
pub(crate) const STANDARD_TEMPLATES: &[(CanonicalFunction, &str)] = &[
    (CanonicalFunction::If, "CASE WHEN {0} THEN {1} ELSE {2} END"),
    (CanonicalFunction::IfNotNull, "CASE WHEN ({0}) IS NOT NULL THEN {1} ELSE {2} END"),
    (CanonicalFunction::IfNull, "COALESCE({0}, {1})"),
    (CanonicalFunction::IsNull, "(({0}) IS NULL)"),
    (CanonicalFunction::ZeroIfNull, "COALESCE({0}, 0)"),
    (CanonicalFunction::BoolOr, "(MAX(CASE WHEN {0} THEN 1 ELSE 0 END) = 1)"),
    (CanonicalFunction::BoolAnd, "(MIN(CASE WHEN {0} THEN 1 ELSE 0 END) = 1)"),
    (CanonicalFunction::ToText, "CAST({0} AS VARCHAR)"),
    (CanonicalFunction::ToNumber, "CAST({0} AS DECIMAL(38, 10))"),
    (CanonicalFunction::Concat, "({|})"),
    (CanonicalFunction::Identity, "({0})"),
    (CanonicalFunction::Verbatim, "{0}"),
    (CanonicalFunction::Length, "LENGTH({0})"),
    (CanonicalFunction::Substring, "SUBSTR({0}, {1}, {2})"),
    (CanonicalFunction::CountIf, "COUNT(CASE WHEN {0} THEN 1 END)"),
    (CanonicalFunction::CountDistinct, "COUNT(DISTINCT {0})"),
    (CanonicalFunction::AnyValue, "MIN({0})"),
    (CanonicalFunction::Modulo, "(({0}) % ({1}))"),
    (CanonicalFunction::StartsWith, "(SUBSTR({0}, 1, LENGTH({1})) = {1})"),
    (CanonicalFunction::VarSamp, "VAR_SAMP({0})"),
    (CanonicalFunction::VarPop, "VAR_POP({0})"),
    (CanonicalFunction::StddevPop, "STDDEV_POP({0})"),
    (CanonicalFunction::ToDate, "CAST({0} AS DATE)"),
    (CanonicalFunction::ToTimestamp, "CAST({0} AS TIMESTAMP)"),
    (CanonicalFunction::ToTime, "CAST({0} AS TIME)"),
    (CanonicalFunction::Cast, "CAST({0} AS {1})"),
];
