//! Queries whose parts do not fit together.

pub(crate) mod aggregate_fixes;
pub mod aggregate_in_where;
pub mod compared_with_null;
pub mod fan_out;
pub mod impossible_condition;
pub mod join_without_condition;
pub mod missing_group_by;
mod nested_aggregates;
pub mod nulls_first;
pub mod off_key_join;
pub mod set_operation_arity;
pub mod set_operation_order;
pub mod set_operation_types;
pub mod subquery_many_columns;
pub mod subquery_many_rows;
pub(crate) mod window_fixes;
