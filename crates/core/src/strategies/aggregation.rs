//! Columns and aggregates do not fit together. Without the constraint models drop an aggregate to please the database, and
//! bring it back the next time.

use querymend_sql::ErrorType;

use super::{Strategy, advice, told};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "aggregation",
    fits: |trouble, _| trouble.error_type == ErrorType::Aggregation,
    tell: |trouble, _| {
        let mut all = vec![told(
            "aggregation",
            "Keep every aggregate (COUNT, SUM, AVG, MIN, MAX); only add the missing columns to GROUP BY.",
        )];
        all.extend(advice(trouble));
        all
    },
    anew: false,
};
