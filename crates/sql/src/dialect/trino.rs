//! Trino: a fork of Presto; only the differences are defined here.

use std::sync::LazyLock;

use super::{Dialect, Feature, FunctionTable, PRESTO, ReservedWords, errors};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/trino.tsv")));
static RESERVED_WORDS: LazyLock<ReservedWords> =
    LazyLock::new(|| ReservedWords::parse(include_str!("reserved_words/trino.txt")));

/// The Trino dialect.
pub static TRINO: Dialect = Dialect {
    name: "trino",
    title: "Trino",
    other_names: &["athena", "prestosql"],
    supports_feature,
    functions: &FUNCTIONS,
    reserved_words: &RESERVED_WORDS,
    errors: errors::TRINO,
    ..PRESTO
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
        | Feature::Lateral
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
        | Feature::Pivot
        | Feature::Apply
        | Feature::Minus => false,
    }
}
