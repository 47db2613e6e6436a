//! Retry policy per kind of failure.

use std::fmt;

use querymend_sql::ErrorType;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::validate;
use crate::event::StopReason;

/// Reaction to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryStrategy {
    /// Resolves names against the schema. An unambiguous name is replaced without the model,
    /// otherwise the model is given the existing names.
    AutoRetryWithSchema,
    /// Reports the error to the model, which writes another draft.
    AutoRetryWithLlm,
    /// Ends the run.
    FailImmediately,
    /// Asks the model for a cheaper query.
    RetryWithOptimization,
    /// Asks the model again, once.
    LimitedRetry,
}

/// Reaction to one kind of failure, and its maximum number of attempts.
///
/// In YAML it is either the strategy alone (`syntax_error: auto_retry_with_llm`) or both
/// (`syntax_error: {strategy: auto_retry_with_llm, max_attempts: 2}`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRule {
    /// Reaction to the failure.
    pub strategy: RetryStrategy,
    /// Number of drafts that may fail in this way; the last of them ends the run. The maximum
    /// number of attempts of the question still applies. If absent, only that applies, except that
    /// `limited_retry` ends with the second failure.
    pub max_attempts: Option<u32>,
}

impl From<RetryStrategy> for RetryRule {
    fn from(strategy: RetryStrategy) -> Self {
        Self { strategy, max_attempts: None }
    }
}

impl RetryRule {
    /// Returns the number of drafts that may fail in this way, or `None` if it is unlimited.
    pub fn limit(&self) -> Option<u32> {
        match self.strategy {
            RetryStrategy::FailImmediately => Some(1),
            RetryStrategy::LimitedRetry => Some(self.max_attempts.unwrap_or(2)),
            RetryStrategy::AutoRetryWithSchema
            | RetryStrategy::AutoRetryWithLlm
            | RetryStrategy::RetryWithOptimization => self.max_attempts,
        }
    }
}

/// Retry rules per kind of failure. A policy only names the deviations from the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetryPolicy {
    overrides: Vec<(ErrorType, RetryRule)>,
}

/// Error in a retry policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RetryPolicyError {
    /// Retrying is pointless: another query would be rejected for the same reason.
    #[error("`{}` can only be `fail_immediately`: no other query helps against it", wire_name(*.0))]
    NotRetryable(ErrorType),
    /// The number of attempts is outside [`crate::resilience::Budget::ATTEMPTS_RANGE`].
    #[error("`max_attempts` of `{}` must be 1 to 10, not {}", wire_name(*.0), .1)]
    InvalidAttempts(ErrorType, u32),
}

impl RetryPolicy {
    /// Returns the rule for a kind of failure.
    pub fn rule_for(&self, error_type: ErrorType) -> RetryRule {
        match self.overrides.iter().find(|(changed, _)| *changed == error_type) {
            Some((_, rule)) => *rule,
            None => default_strategy(error_type).into(),
        }
    }

    /// Returns the reaction to a failure, or the reason to stop.
    ///
    /// `failed` drafts have failed in this way, including the current one.
    pub fn decide(&self, error_type: ErrorType, failed: u32) -> Result<RetryStrategy, StopReason> {
        let rule = self.rule_for(error_type);
        match (rule.strategy, rule.limit()) {
            (RetryStrategy::FailImmediately, _) => Err(StopReason::NotRetryable),
            (_, Some(limit)) if failed >= limit => Err(StopReason::RetryPolicy),
            (strategy, _) => Ok(strategy),
        }
    }

    /// Overrides the rule for one kind of failure.
    pub fn with(mut self, error_type: ErrorType, rule: impl Into<RetryRule>) -> Result<Self, RetryPolicyError> {
        let rule = rule.into();
        let fails = rule.strategy == RetryStrategy::FailImmediately;
        if default_strategy(error_type) == RetryStrategy::FailImmediately && !fails {
            return Err(RetryPolicyError::NotRetryable(error_type));
        }
        if let Some(n) = rule.max_attempts.filter(|n| !crate::resilience::Budget::ATTEMPTS_RANGE.contains(n)) {
            return Err(RetryPolicyError::InvalidAttempts(error_type, n));
        }
        self.overrides.retain(|(changed, _)| *changed != error_type);
        self.overrides.push((error_type, rule));
        Ok(self)
    }
}

fn default_strategy(error_type: ErrorType) -> RetryStrategy {
    match error_type {
        ErrorType::TableNotFound
        | ErrorType::ColumnNotFound
        | ErrorType::AmbiguousColumn
        | ErrorType::FunctionNotFound => RetryStrategy::AutoRetryWithSchema,
        ErrorType::SyntaxError
        | ErrorType::TypeMismatch
        | ErrorType::Aggregation
        | ErrorType::DivisionByZero
        | ErrorType::Cardinality
        | ErrorType::NotReadOnly => RetryStrategy::AutoRetryWithLlm,
        // Connections are retried where they are made, independent of the query.
        ErrorType::PermissionDenied | ErrorType::ConnectionError => RetryStrategy::FailImmediately,
        ErrorType::Timeout | ErrorType::ResourceLimit => RetryStrategy::RetryWithOptimization,
        ErrorType::Unknown => RetryStrategy::LimitedRetry,
    }
}

/// Returns the serialized name in configurations and APIs.
fn wire_name(error_type: ErrorType) -> String {
    serde_json::to_value(error_type).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Long form of a rule in YAML.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetryRuleFields {
    strategy: RetryStrategy,
    #[serde(default, deserialize_with = "validate::some_attempts", skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
}

impl Serialize for RetryRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.max_attempts {
            None => self.strategy.serialize(serializer),
            max_attempts => RetryRuleFields { strategy: self.strategy, max_attempts }.serialize(serializer),
        }
    }
}

/// Implemented manually, because an untagged enum would only report that no variant matches.
impl<'de> Deserialize<'de> for RetryRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RetryRuleVisitor;
        impl<'de> Visitor<'de> for RetryRuleVisitor {
            type Value = RetryRule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a strategy, or `strategy` and `max_attempts`")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<RetryRule, E> {
                RetryStrategy::deserialize(serde::de::value::StrDeserializer::new(word)).map(RetryRule::from)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RetryRule, A::Error> {
                let long = RetryRuleFields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RetryRule { strategy: long.strategy, max_attempts: long.max_attempts })
            }
        }
        deserializer.deserialize_any(RetryRuleVisitor)
    }
}

impl Serialize for RetryPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.overrides.len()))?;
        for (error_type, rule) in &self.overrides {
            map.serialize_entry(error_type, rule)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RetryPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RetryPolicyVisitor;
        impl<'de> Visitor<'de> for RetryPolicyVisitor {
            type Value = RetryPolicy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("error types, each with a strategy")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RetryPolicy, A::Error> {
                let mut policy = RetryPolicy::default();
                while let Some((error_type, rule)) = map.next_entry::<ErrorType, RetryRule>()? {
                    policy = policy.with(error_type, rule).map_err(A::Error::custom)?;
                }
                Ok(policy)
            }
        }
        deserializer.deserialize_map(RetryPolicyVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [(&str, ErrorType, &str); 15] = [
        ("syntax_error", ErrorType::SyntaxError, "auto_retry_with_llm"),
        ("table_not_found", ErrorType::TableNotFound, "auto_retry_with_schema"),
        ("column_not_found", ErrorType::ColumnNotFound, "auto_retry_with_schema"),
        ("ambiguous_column", ErrorType::AmbiguousColumn, "auto_retry_with_schema"),
        ("function_not_found", ErrorType::FunctionNotFound, "auto_retry_with_schema"),
        ("type_mismatch", ErrorType::TypeMismatch, "auto_retry_with_llm"),
        ("aggregation", ErrorType::Aggregation, "auto_retry_with_llm"),
        ("division_by_zero", ErrorType::DivisionByZero, "auto_retry_with_llm"),
        ("cardinality", ErrorType::Cardinality, "auto_retry_with_llm"),
        ("not_read_only", ErrorType::NotReadOnly, "auto_retry_with_llm"),
        ("permission_denied", ErrorType::PermissionDenied, "fail_immediately"),
        ("timeout", ErrorType::Timeout, "retry_with_optimization"),
        ("connection_error", ErrorType::ConnectionError, "fail_immediately"),
        ("resource_limit", ErrorType::ResourceLimit, "retry_with_optimization"),
        ("unknown", ErrorType::Unknown, "limited_retry"),
    ];

    fn read(text: &str) -> Result<RetryPolicy, String> {
        serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())
    }

    #[test]
    fn gives_every_error_type_a_default_and_a_yaml_name() {
        for (word, kind, strategy) in KINDS {
            assert_eq!(serde_json::to_value(RetryPolicy::default().rule_for(kind)).unwrap(), strategy, "{word}");
            assert_eq!(
                read(&format!("{word}: fail_immediately")).unwrap().decide(kind, 1),
                Err(StopReason::NotRetryable)
            );
        }
    }

    #[test]
    fn limits_retries_by_error_type() {
        let policy = read(
            "syntax_error: {strategy: retry_with_optimization, max_attempts: 3}\n\
             timeout:\n  strategy: limited_retry\n  max_attempts: 1\n\
             column_not_found: limited_retry\n",
        )
        .unwrap();
        let check = |kind, wanted: [Result<RetryStrategy, StopReason>; 3]| {
            assert_eq!([1, 2, 3].map(|failed| policy.decide(kind, failed)), wanted, "{kind:?}");
        };
        let spent = Err(StopReason::RetryPolicy);
        let optimize = Ok(RetryStrategy::RetryWithOptimization);
        let limited = Ok(RetryStrategy::LimitedRetry);
        check(ErrorType::SyntaxError, [optimize, optimize, spent]);
        check(ErrorType::Timeout, [spent; 3]);
        check(ErrorType::ColumnNotFound, [limited, spent, spent]);
        check(ErrorType::Unknown, [limited, spent, spent]);
        check(ErrorType::TableNotFound, [Ok(RetryStrategy::AutoRetryWithSchema); 3]);
        check(ErrorType::PermissionDenied, [Err(StopReason::NotRetryable); 3]);
        let again = serde_json::to_string(&policy).unwrap();
        assert_eq!(read(&again).unwrap(), policy, "{again}");
    }

    #[test]
    fn reports_retry_policy_errors() {
        let check = |text: &str, words: &[&str]| {
            let message = read(text).unwrap_err();
            assert!(words.iter().all(|word| message.contains(word)), "{text}: {message}");
        };
        check("syntax_eror: limited_retry", &["syntax_eror", "syntax_error", "line 1"]);
        check("syntax_error: retry", &["retry", "auto_retry_with_llm", "line 1"]);
        check(
            "timeout: limited_retry\nsyntax_error: {strategy: limited_retry, tries: 2}",
            &["tries", "max_attempts", "line 2"],
        );
        check("syntax_error: {max_attempts: 2}", &["strategy", "line 1"]);
        check("syntax_error: {strategy: limited_retry, max_attempts: 11}", &["max_attempts", "1 to 10", "11"]);
        check("permission_denied: auto_retry_with_llm", &["permission_denied", "fail_immediately"]);
        check("connection_error: limited_retry", &["connection_error", "fail_immediately"]);
        let rule = RetryRule { strategy: RetryStrategy::LimitedRetry, max_attempts: Some(0) };
        assert_eq!(
            RetryPolicy::default().with(ErrorType::Timeout, rule),
            Err(RetryPolicyError::InvalidAttempts(ErrorType::Timeout, 0))
        );
    }
}
