//! The query took too long, or asked for too much: it must ask for less.

use querymend_sql::ErrorType;

use super::{Strategy, told};

pub(super) static STRATEGY: Strategy = Strategy {
    name: "timeout",
    fits: |trouble, _| matches!(trouble.error_type, ErrorType::Timeout | ErrorType::ResourceLimit),
    tell: |_, _| {
        let text = "Ask for less: filter earlier, join fewer tables, aggregate before joining, and limit the rows.";
        vec![told("timed-out", text)]
    },
    anew: false,
};
