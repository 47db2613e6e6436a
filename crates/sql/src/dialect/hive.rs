//! Hive: the predecessor of Spark SQL, with fewer functions.
//!
//! It is parsed with Spark's grammar: the parser's Hive grammar treats double quotes as identifiers
//! and does not support backslash escapes in literals, so Hive would execute a different query than
//! the one reviewed (a parser differential).

// `derive_dialect!` also generates a constructor, which a static cannot call.
#![allow(dead_code)]

use std::sync::LazyLock;

use sqlparser::derive_dialect;
use sqlparser::dialect::DatabricksDialect;

use super::{AliasVisibility, Dialect, Feature, FunctionTable, LimitSyntax, ReservedWords, SPARK, errors};

static FUNCTIONS: LazyLock<FunctionTable> = LazyLock::new(|| FunctionTable::parse(include_str!("functions/hive.tsv")));
static RESERVED_WORDS: LazyLock<ReservedWords> =
    LazyLock::new(|| ReservedWords::parse(include_str!("reserved_words/hive.txt")));

derive_dialect!(HiveGrammar, DatabricksDialect, preserve_type_id = true, overrides = { supports_limit_comma = true, require_interval_qualifier = false });

/// Dialect of Hive 3 and 4.
pub static HIVE: Dialect = Dialect {
    name: "hive",
    title: "Hive",
    other_names: &["hiveql"],
    grammar: &HiveGrammar { dialect: DatabricksDialect {} },
    limit: LimitSyntax { comma: true, ..SPARK.limit },
    alias_visibility: AliasVisibility {
        in_select: false,
        in_group_by: false,
        in_qualify: false,
        ..SPARK.alias_visibility
    },
    supports_feature,
    functions: &FUNCTIONS,
    signatures: &[("date_add", "0 1"), ("date_sub", "0 1"), ("date_format", "0 fj")],
    reserved_words: &RESERVED_WORDS,
    errors: errors::HIVE,
    prompt_notes: "Names that need quotes take backticks; text is in single quotes. GROUP BY takes expressions, not aliases. Dates: \
            year(d), date_add(d, 7), datediff(end, start), date_format(d, 'yyyy-MM'). Every derived table has an alias.",
    ..SPARK
};

fn supports_feature(feature: Feature) -> bool {
    match feature {
        Feature::CastToDate
        | Feature::RLike
        | Feature::AnyAll
        | Feature::Extract
        | Feature::Interval
        | Feature::KeywordCall
        | Feature::TypedLiteral
        | Feature::SubstringFrom
        | Feature::PositionIn
        | Feature::TrimFrom
        | Feature::DivOperator
        | Feature::ModOperator
        | Feature::GroupingSets
        | Feature::DistinctMultipleArguments
        | Feature::FullJoin
        | Feature::ParenthesizedSetOperand
        | Feature::NationalLiteral
        | Feature::NullSafeEqual
        | Feature::LimitAll
        | Feature::OffsetRows
        | Feature::TableHint
        | Feature::QueryHint
        | Feature::Minus => true,
        Feature::DoubleColonCast
        | Feature::TryCast
        | Feature::ILike
        | Feature::SimilarTo
        | Feature::RegexTilde
        | Feature::Glob
        | Feature::Convert
        | Feature::ConvertTypeFirst
        | Feature::AtTimeZone
        | Feature::ArrayLiteral
        | Feature::EscapedLiteral
        | Feature::Qualify
        | Feature::NullTreatment
        | Feature::Filter
        | Feature::FilterInArguments
        | Feature::Separator
        | Feature::DistinctOn
        | Feature::Lateral
        | Feature::Pivot
        | Feature::Apply => false,
    }
}
