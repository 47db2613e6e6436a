//! How patient a breaker is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{duration, range};

/// How patient a breaker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BreakerSettings {
    /// So many failures in a row open it.
    #[serde(deserialize_with = "range::failure_threshold")]
    pub failure_threshold: u32,
    /// So many successes close it again.
    #[serde(deserialize_with = "range::success_threshold")]
    pub success_threshold: u32,
    /// How long it stays open at first. Each further time, with no closing between, is twice as long.
    #[serde(with = "duration")]
    pub timeout: Duration,
    /// The longest that it stays open.
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
