//! DataFusion: PostgreSQL's manners over files and Arrow.

use std::sync::LazyLock;

use super::{AliasUse, Dialect, Feature, FunctionTable, Grouping, POSTGRES, WordList, errors};

static FUNCTIONS: LazyLock<FunctionTable> =
    LazyLock::new(|| FunctionTable::parse(include_str!("functions/datafusion.tsv")));
static RESERVED: LazyLock<WordList> = LazyLock::new(|| WordList::parse(include_str!("words/datafusion.txt")));

/// DataFusion.
pub static DATAFUSION: Dialect = Dialect {
    name: "datafusion",
    title: "DataFusion",
    other_names: &["arrow"],
    grammar: &sqlparser::dialect::GenericDialect {},
    aliases: AliasUse { in_having: true, in_order_by_expression: true, in_qualify: true, ..POSTGRES.aliases },
    struct_fields: true,
    rows_are_values: false,
    set_order_by_names_only: false,
    grouping: Grouping::Refused,
    // It coerces text and numbers where it can.
    strict_types: false,
    hidden_columns: &[],
    longest_name: 0,
    system_schemas: &["information_schema"],
    lacks: &[
        Feature::FilterInside,
        Feature::RLike,
        Feature::Glob,
        Feature::DivOperator,
        Feature::Pivot,
        Feature::Apply,
        Feature::Separator,
    ],
    functions: &FUNCTIONS,
    reserved: &RESERVED,
    errors: errors::DATAFUSION,
    notes: "Names with capitals need double quotes; text is in single quotes. Dates: date_trunc('month', d), \
            date_part('year', d), d - INTERVAL '7 days'. Integer division truncates.",
    ..POSTGRES
};
