//! Strategy for errors in aggregation. Without the explicit constraint, models drop an aggregate to
//! satisfy the database, and add it back in the next attempt.

use querymend_sql::ErrorType;

use super::{Strategy, advice, feedback};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "aggregation",
    applies: |failure, _| failure.error_type == ErrorType::Aggregation,
    feedback: |failure, _| {
        let mut all = vec![feedback(
            "aggregation",
            "Keep every aggregate (COUNT, SUM, AVG, MIN, MAX); only add the missing columns to GROUP BY.",
        )];
        all.extend(advice(failure));
        all
    },
    restart_conversation: false,
};
