//! Syntax that only some dialects support.

/// Syntax feature. Each dialect's `supports_feature` decides every feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Feature {
    DoubleColonCast,
    TryCast,
    /// `CAST(x AS DATE)`, and casts to time types.
    CastToDate,
    ILike,
    SimilarTo,
    RLike,
    RegexTilde,
    Glob,
    AnyAll,
    Extract,
    Interval,
    Convert,
    ConvertTypeFirst,
    /// `CURRENT_DATE()`.
    KeywordCall,
    TypedLiteral,
    AtTimeZone,
    ArrayLiteral,
    SubstringFrom,
    PositionIn,
    TrimFrom,
    EscapedLiteral,
    DivOperator,
    ModOperator,
    Qualify,
    GroupingSets,
    NullTreatment,
    Filter,
    FilterInArguments,
    Separator,
    DistinctOn,
    /// `COUNT(DISTINCT a, b)`.
    DistinctMultipleArguments,
    FullJoin,
    Lateral,
    Pivot,
    Apply,
    ParenthesizedSetOperand,
    /// `N'…'`.
    NationalLiteral,
    /// `<=>`.
    NullSafeEqual,
    LimitAll,
    /// `LIMIT 3 OFFSET 2 ROWS`.
    OffsetRows,
    /// `WITH (NOLOCK)`.
    TableHint,
    /// `OPTION (RECOMPILE)`.
    QueryHint,
    Minus,
}

impl Feature {
    /// Returns the syntax as it appears in SQL.
    pub fn syntax(self) -> &'static str {
        self.syntax_and_alternative().0
    }

    /// Returns the syntax that most dialects support instead.
    pub fn alternative(self) -> &'static str {
        self.syntax_and_alternative().1
    }

    fn syntax_and_alternative(self) -> (&'static str, &'static str) {
        match self {
            Feature::DoubleColonCast => ("x::type", "CAST(x AS type)"),
            Feature::TryCast => ("TRY_CAST", "CAST(x AS type)"),
            Feature::CastToDate => {
                ("CAST to a date or time", "date(x), datetime(x) or time(x): CAST makes a number of it")
            }
            Feature::ILike => ("ILIKE", "LOWER(x) LIKE LOWER(pattern)"),
            Feature::SimilarTo => ("SIMILAR TO", "LIKE"),
            Feature::RLike => ("RLIKE", "LIKE"),
            Feature::RegexTilde => ("x ~ pattern", "LIKE, or the dialect's own regular-expression function"),
            Feature::Glob => ("GLOB", "LIKE"),
            Feature::AnyAll => ("ANY (…) / ALL (…)", "IN (…), or compare with MIN or MAX"),
            Feature::Extract => ("EXTRACT(part FROM x)", "the dialect's own date functions"),
            Feature::Interval => ("INTERVAL", "the dialect's own date functions"),
            Feature::ConvertTypeFirst => ("CONVERT(type, x)", "CAST(x AS type)"),
            Feature::Convert => ("CONVERT(x, type)", "CAST(x AS type)"),
            Feature::KeywordCall => ("parentheses after CURRENT_DATE", "CURRENT_DATE alone"),
            Feature::TypedLiteral => ("DATE '…'", "a plain literal"),
            Feature::AtTimeZone => ("AT TIME ZONE", "the dialect's own date functions"),
            Feature::ArrayLiteral => ("ARRAY[…]", "a list, or the dialect's own array function"),
            Feature::SubstringFrom => ("SUBSTRING(x FROM n FOR m)", "SUBSTR(x, n, m)"),
            Feature::PositionIn => ("POSITION(x IN y)", "INSTR(y, x)"),
            Feature::TrimFrom => ("TRIM(BOTH x FROM y)", "TRIM(y, x)"),
            Feature::EscapedLiteral => ("E'…'", "a plain literal"),
            Feature::DivOperator => ("DIV", "/"),
            Feature::ModOperator => ("MOD between two values", "%"),
            Feature::Qualify => ("QUALIFY", "a subquery with WHERE"),
            Feature::GroupingSets => ("GROUPING SETS, ROLLUP or CUBE", "UNION ALL of several GROUP BY queries"),
            Feature::NullTreatment => ("IGNORE NULLS", "a subquery that leaves NULLs out"),
            Feature::Filter => ("FILTER (WHERE …)", "an aggregate over CASE WHEN … END"),
            Feature::FilterInArguments => ("COUNT(x WHERE …)", "an aggregate over CASE WHEN … END"),
            Feature::Separator => {
                ("GROUP_CONCAT(… SEPARATOR …)", "the aggregate with the separator as second argument")
            }
            Feature::DistinctOn => ("DISTINCT ON", "ROW_NUMBER() in a subquery"),
            Feature::DistinctMultipleArguments => ("DISTINCT of several values", "DISTINCT of one"),
            Feature::FullJoin => ("FULL JOIN", "a LEFT JOIN and a RIGHT JOIN with UNION"),
            Feature::Lateral => ("LATERAL", "a join with a grouped subquery"),
            Feature::Pivot => ("PIVOT", "aggregates over CASE WHEN … END"),
            Feature::Apply => ("APPLY", "a join"),
            Feature::NationalLiteral => ("N'…'", "a plain literal"),
            Feature::NullSafeEqual => ("<=>", "IS NOT DISTINCT FROM"),
            Feature::LimitAll => ("LIMIT ALL", "no LIMIT"),
            Feature::OffsetRows => ("ROWS after LIMIT and OFFSET", "OFFSET n alone"),
            Feature::TableHint => ("a hint beside a table", "the table alone"),
            Feature::QueryHint => ("OPTION (…)", "the query alone"),
            Feature::Minus => ("MINUS", "EXCEPT"),
            Feature::ParenthesizedSetOperand => {
                ("a query in parentheses beside UNION", "a plain SELECT, or SELECT * FROM (…)")
            }
        }
    }
}
