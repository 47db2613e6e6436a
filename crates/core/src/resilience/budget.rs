//! Budget of one question.

use std::time::Duration;

use crate::event::{Cost, StopReason};

/// Budget of one question.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Maximum number of drafts, including the first: 1 to 10.
    pub max_attempts: u32,
    /// Maximum number of tokens, input and output combined. No limit if absent.
    pub max_tokens: Option<u64>,
    /// Maximum cost in US dollars. No limit if absent; does not apply to models with an unknown
    /// price.
    pub max_cost_usd: Option<f64>,
    /// Maximum time from question to answer.
    pub max_time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_attempts: 3, max_tokens: None, max_cost_usd: None, max_time: Duration::from_secs(120) }
    }
}

impl Budget {
    /// Allowed values of `max_attempts`.
    pub const ATTEMPTS_RANGE: std::ops::RangeInclusive<u32> = 1..=10;

    /// Returns the exhausted resource, if any; a limit that is exactly reached is exhausted.
    ///
    /// If several are exhausted, time takes precedence over cost and cost over tokens, the order
    /// that matters to users. Attempts are not checked here, but at the decision to retry.
    pub fn exhausted(&self, cost: &Cost, elapsed: Duration) -> Option<StopReason> {
        let tokens = cost.input_tokens.saturating_add(cost.output_tokens);
        if elapsed >= self.max_time {
            Some(StopReason::TimeBudget)
        } else if self.max_cost_usd.is_some_and(|most| cost.usd.is_some_and(|usd| usd >= most)) {
            Some(StopReason::CostBudget)
        } else if self.max_tokens.is_some_and(|most| tokens >= most) {
            Some(StopReason::TokenBudget)
        } else {
            None
        }
    }

    /// Returns the remaining time, which is the deadline of the next call.
    pub fn time_left(&self, elapsed: Duration) -> Duration {
        self.max_time.saturating_sub(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(input_tokens: u64, output_tokens: u64, usd: Option<f64>) -> Cost {
        Cost { input_tokens, output_tokens, usd }
    }

    #[test]
    fn defaults_to_three_attempts_and_two_minutes() {
        let budget = Budget::default();
        assert_eq!((budget.max_attempts, budget.max_time), (3, Duration::from_secs(120)));
        let much = cost(u64::MAX, u64::MAX, Some(1e9));
        assert_eq!(budget.exhausted(&much, Duration::from_millis(119_999)), None);
        assert_eq!(budget.exhausted(&much, Duration::from_secs(120)), Some(StopReason::TimeBudget));
        assert_eq!(budget.time_left(Duration::from_secs(100)), Duration::from_secs(20));
        assert_eq!(budget.time_left(Duration::from_secs(500)), Duration::ZERO);
    }

    #[test]
    fn stops_when_a_limit_is_reached() {
        let budget = Budget { max_tokens: Some(100), max_cost_usd: Some(0.5), ..Budget::default() };
        let check = |cost: Cost, stop: Option<StopReason>| {
            assert_eq!(budget.exhausted(&cost, Duration::ZERO), stop, "{cost:?}")
        };
        check(cost(60, 39, Some(0.49)), None);
        check(cost(60, 40, Some(0.49)), Some(StopReason::TokenBudget));
        check(cost(1, 1, Some(0.5)), Some(StopReason::CostBudget));
        check(cost(100, 100, Some(0.5)), Some(StopReason::CostBudget));
        check(cost(1, 1, None), None);
    }
}
