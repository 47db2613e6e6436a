//! Words of the question that the database or the query leaves out.

pub mod missing_group;
pub mod most_without_count;
pub mod uncovered_term;
pub mod unused_name;
