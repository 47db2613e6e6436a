//! Fixes for an unknown junction table: other paths between the tables that it was to join.

pub(crate) mod missing_junction;
pub(crate) mod missing_junction_subquery;
