//! How much one question may take.

use std::time::Duration;

use crate::event::{Cost, Stop};

/// What one question may take in all.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// The most drafts, the first included: 1 to 10.
    pub max_attempts: u32,
    /// The most tokens, read and written together.
    pub max_tokens: Option<u64>,
    /// The most money in US dollars. A model whose price is not known is not held back by it.
    pub max_cost_usd: Option<f64>,
    /// The longest time from the question to the answer.
    pub max_time: Duration,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_attempts: 3, max_tokens: None, max_cost_usd: None, max_time: Duration::from_secs(120) }
    }
}

impl Budget {
    /// How few drafts there may be, and how many.
    pub const ATTEMPTS: std::ops::RangeInclusive<u32> = 1..=10;

    /// What is used up, if anything is: a bound that is just reached is used up. Where several are, time is named before
    /// money and money before tokens, for that is the order in which people mind.
    ///
    /// Attempts are not looked at here: they are counted where a retry is decided.
    pub fn spent(&self, cost: &Cost, elapsed: Duration) -> Option<Stop> {
        let tokens = cost.input_tokens.saturating_add(cost.output_tokens);
        if elapsed >= self.max_time {
            Some(Stop::TimeSpent)
        } else if self.max_cost_usd.is_some_and(|most| cost.usd.is_some_and(|usd| usd >= most)) {
            Some(Stop::CostSpent)
        } else if self.max_tokens.is_some_and(|most| tokens >= most) {
            Some(Stop::TokensSpent)
        } else {
            None
        }
    }

    /// How much time is left: the longest that the next call may take.
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
    fn q04_three_attempts_and_two_minutes_unless_told_otherwise() {
        let budget = Budget::default();
        assert_eq!((budget.max_attempts, budget.max_time), (3, Duration::from_secs(120)));
        let much = cost(u64::MAX, u64::MAX, Some(1e9));
        assert_eq!(budget.spent(&much, Duration::from_millis(119_999)), None);
        assert_eq!(budget.spent(&much, Duration::from_secs(120)), Some(Stop::TimeSpent));
        assert_eq!(budget.time_left(Duration::from_secs(100)), Duration::from_secs(20));
        assert_eq!(budget.time_left(Duration::from_secs(500)), Duration::ZERO);
    }

    #[test]
    fn q04_a_bound_that_is_reached_is_spent() {
        let budget = Budget { max_tokens: Some(100), max_cost_usd: Some(0.5), ..Budget::default() };
        let check = |cost: Cost, stop: Option<Stop>| assert_eq!(budget.spent(&cost, Duration::ZERO), stop, "{cost:?}");
        check(cost(60, 39, Some(0.49)), None);
        check(cost(60, 40, Some(0.49)), Some(Stop::TokensSpent));
        check(cost(1, 1, Some(0.5)), Some(Stop::CostSpent));
        check(cost(100, 100, Some(0.5)), Some(Stop::CostSpent));
        check(cost(1, 1, None), None);
    }
}
