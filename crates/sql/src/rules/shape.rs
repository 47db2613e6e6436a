//! Grouping, joins, set operations and subqueries that do not fit together.

pub mod aggregate_in_where;
pub mod compared_with_null;
pub mod fan_out;
pub mod impossible_condition;
pub mod join_not_on_foreign_key;
pub mod join_without_condition;
pub mod missing_group_by;
pub mod nulls_first;
pub mod set_operation_arity;
pub mod set_operation_order;
pub mod set_operation_types;
pub mod subquery_many_columns;
pub mod subquery_many_rows;
