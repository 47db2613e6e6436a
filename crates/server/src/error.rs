//! Conversion of internal errors to problems.

use querymend::{Problem, ProblemCode};

/// Converts an error of the example store or the PostgreSQL pool to a problem.
pub(crate) fn memory_problem(error: querymend_memory::Error) -> Problem {
    let hint = error.hint().map(str::to_string);
    Problem { hint, ..Problem::new(ProblemCode::DatabaseUnavailable, error.to_string()) }
}

/// Returns the problem for a panic, without details that could leak internals.
pub(crate) fn panic_problem() -> Problem {
    Problem::new(ProblemCode::Internal, "an internal error occurred")
}
