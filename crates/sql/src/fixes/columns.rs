//! Candidates for columns that do not resolve, and the evidence for each.

pub(crate) mod candidates;
pub(crate) mod cte_columns;
pub(crate) mod date_columns;
pub(crate) mod duplicate_alias;
pub(crate) mod evidence;
pub(crate) mod missing_table;
pub(crate) mod name_affinity;
pub(crate) mod scored_fix;
pub(crate) mod self_reference;
pub(crate) mod value_evidence;
