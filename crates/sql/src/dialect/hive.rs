//! Hive: Spark's elder, with fewer functions.
//!
//! It is parsed with Spark's grammar: the parser's own grammar for Hive takes double quotes for names and knows no backslash
//! in literals, and Hive would read something else than was reviewed.

// The macro that derives the grammar also writes a constructor, which a static cannot call.
#![allow(dead_code)]

use std::sync::LazyLock;

use sqlparser::derive_dialect;
use sqlparser::dialect::DatabricksDialect;

use super::{AliasUse, Dialect, Feature, FunctionTable, LimitSyntax, SPARK, WordList, errors};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/hive.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/hive.txt")));

derive_dialect!(HiveGrammar, DatabricksDialect, preserve_type_id = true, overrides = { supports_limit_comma = true, require_interval_qualifier = false });

/// Hive 3 and 4.
pub static HIVE: Dialect = Dialect {
    name: "hive",
    title: "Hive",
    other_names: &["hiveql"],
    grammar: &HiveGrammar { dialect: DatabricksDialect {} },
    limit: LimitSyntax { comma: true, ..SPARK.limit },
    aliases: AliasUse { in_select: false, in_group_by: false, in_qualify: false, ..SPARK.aliases },
    lacks: &[
        Feature::Convert,
        Feature::ConvertTypeFirst,
        Feature::FilterInside,
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
    forms: &[("date_add", "0 1"), ("date_sub", "0 1"), ("date_format", "0 fj")],
    reserved: &RESERVED,
    errors: errors::HIVE,
    notes: "Names that need quotes take backticks; text is in single quotes. GROUP BY takes expressions, not aliases. Dates: \
            year(d), date_add(d, 7), datediff(end, start), date_format(d, 'yyyy-MM'). Every derived table has an alias.",
    ..SPARK
};
