//! Innermost causes of errors.

use std::error::Error;

/// Returns the innermost cause of an error, or the error itself if it has none.
///
/// The innermost cause is the specific one; the outer ones often only report that a request failed.
pub fn root_cause<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] std::fmt::Error);

    #[test]
    fn returns_innermost_cause_or_error_itself() {
        assert_eq!(root_cause(&Outer(std::fmt::Error)).to_string(), std::fmt::Error.to_string());
        assert_eq!(root_cause(&std::fmt::Error).to_string(), std::fmt::Error.to_string());
    }
}
