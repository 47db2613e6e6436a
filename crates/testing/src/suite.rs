//! Size of test suites with many inputs.

use std::env;

/// Returns whether such a suite runs all its inputs (`./test --full`) rather than a representative
/// part.
#[must_use]
pub fn is_full_suite() -> bool {
    env::var_os("QUERYMEND_TEST_FULL").is_some_and(|value| !value.is_empty() && value != "0")
}
