//! Terms of the question that the database or the query does not cover.

pub mod missing_group;
pub mod most_without_count;
pub mod uncovered_term;
pub mod unused_name;
