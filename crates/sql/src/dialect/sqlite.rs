//! SQLite: forgiving in types and quotes, one file, no users.

use std::sync::LazyLock;

use super::{
    AliasUse, Concatenation, Dialect, DoubleQuotes, Feature, FunctionTable, Grouping, LimitSyntax, NameCase, WordList,
    ZeroDivision, errors,
};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/sqlite.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/sqlite.txt")));

/// SQLite 3.
pub static SQLITE: Dialect = Dialect {
    name: "sqlite",
    other_names: &["sqlite3"],
    grammar: &super::sqlite_grammar::SqliteGrammar,
    quote: '`',
    names: NameCase::Ignored,
    double_quotes: DoubleQuotes::NameElseText,
    aliases: AliasUse {
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
    rows_are_values: false,
    duplicate_columns_allowed: true,
    struct_fields: false,
    recursion_needs_no_keyword: true,
    grouping: Grouping::AnyRow,
    strict_types: false,
    integer_division: true,
    zero_division: ZeroDivision::Null,
    many_rows_error: false,
    limit: LimitSyntax { comma: true, offset: true, offset_first: false, fetch: false, top: false },
    concat: Concatenation { pipes: true, function: true },
    hidden_columns: &["rowid", "oid", "_rowid_"],
    system_schemas: &["main", "temp"],
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
    secret_tables: &[],
    lacks: &[
        Feature::DoubleColonCast,
        Feature::TryCast,
        Feature::ILike,
        Feature::SimilarTo,
        Feature::RLike,
        Feature::AnyAll,
        Feature::Extract,
        Feature::Interval,
        Feature::TypedLiteral,
        Feature::AtTimeZone,
        Feature::ArrayLiteral,
        Feature::SubstringFrom,
        Feature::PositionIn,
        Feature::TrimFrom,
        Feature::EscapedLiteral,
        Feature::RegexTilde,
        Feature::DivOperator,
        Feature::Qualify,
        Feature::GroupingSets,
        Feature::NullTreatment,
        Feature::DistinctOn,
        Feature::Lateral,
        Feature::Pivot,
        Feature::Apply,
        Feature::Separator,
    ],
    functions: &FUNCTIONS,
    user_functions: false,
    reserved: &RESERVED,
    reserved_behind_as: false,
    errors: errors::SQLITE,
    notes: "Dates are text: use date(), strftime('%Y', d), julianday(). Join text with ||. Integer division truncates: \
            multiply by 1.0 or CAST(x AS REAL). There is no YEAR(), no DATEDIFF(), no RIGHT(). Rows are limited with LIMIT n.",
};
