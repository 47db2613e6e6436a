//! Settings of circuit breakers.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::duration;
use crate::config::validate;

/// Settings of circuit breakers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerSettings {
    /// Number of consecutive failures that open the breaker: 1 to 1000.
    #[serde(deserialize_with = "validate::failure_threshold")]
    pub failure_threshold: u32,
    /// Number of successes in the half-open state that close the breaker: 1 to 1000.
    #[serde(deserialize_with = "validate::success_threshold")]
    pub success_threshold: u32,
    /// Initial time in the open state. Doubles each time the breaker opens again without closing.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// Maximum time in the open state.
    #[serde(with = "duration")]
    pub max_timeout: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            failure_threshold: 5,
            success_threshold: 2,
            timeout: Duration::from_secs(30),
            max_timeout: Duration::from_secs(60),
        }
    }
}
