//! Trino: Presto's sister; what differs is said here.

use std::sync::LazyLock;

use super::{Dialect, Feature, FunctionTable, PRESTO, WordList, errors};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/trino.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/trino.txt")));

/// Trino.
pub static TRINO: Dialect = Dialect {
    name: "trino",
    title: "Trino",
    other_names: &["athena", "prestosql"],
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
        Feature::Minus,
        Feature::DistinctOn,
        Feature::Pivot,
        Feature::Apply,
        Feature::Separator,
    ],
    functions: &FUNCTIONS,
    reserved: &RESERVED,
    errors: errors::TRINO,
    ..PRESTO
};
