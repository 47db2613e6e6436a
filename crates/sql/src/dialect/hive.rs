//! Hive: Spark's elder, with fewer functions.
//!
//! It is parsed with Spark's grammar: the parser's own grammar for Hive takes double quotes for names and knows no backslash
//! in literals, and Hive would read something else than was reviewed.

use std::sync::LazyLock;

use super::{AliasUse, Dialect, Feature, FunctionTable, SPARK, WordList, errors};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/hive.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/hive.txt")));

/// Hive 3.
pub static HIVE: Dialect = Dialect {
    name: "hive",
    other_names: &["hiveql"],
    aliases: AliasUse { in_select: false, in_group_by: false, in_qualify: false, ..SPARK.aliases },
    lacks: &[
        Feature::DoubleColonCast,
        Feature::TryCast,
        Feature::ILike,
        Feature::SimilarTo,
        Feature::EscapedLiteral,
        Feature::RegexTilde,
        Feature::Glob,
        Feature::DistinctOn,
        Feature::Apply,
        Feature::Separator,
        Feature::ArrayLiteral,
        Feature::AtTimeZone,
        Feature::Qualify,
        Feature::NullTreatment,
        Feature::Lateral,
        Feature::Pivot,
        Feature::Filter,
    ],
    functions: &FUNCTIONS,
    reserved: &RESERVED,
    errors: errors::HIVE,
    notes: "Names that need quotes take backticks; text is in single quotes. GROUP BY takes expressions, not aliases. Dates: \
            year(d), date_add(d, 7), datediff(end, start), date_format(d, 'yyyy-MM'). Every derived table has an alias.",
    ..SPARK
};
