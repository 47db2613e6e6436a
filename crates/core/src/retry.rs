//! What is done about each kind of failure.

use std::fmt;

use querymend_sql::ErrorType;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::config::range;
use crate::event::Stop;

/// What is done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryStrategy {
    /// The schema is looked at again: where one name is clearly meant it is put in without the model, else the model is
    /// shown the names that there are.
    AutoRetryWithSchema,
    /// The model is told what is wrong and writes again.
    AutoRetryWithLlm,
    /// Nothing: the run ends.
    FailImmediately,
    /// The model is asked for a query that takes less.
    RetryWithOptimization,
    /// The model is asked again, once.
    LimitedRetry,
}

/// What is done about one kind of failure, and how often.
///
/// In YAML it is either the strategy alone (`syntax_error: auto_retry_with_llm`) or both
/// (`syntax_error: {strategy: auto_retry_with_llm, max_attempts: 2}`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryRule {
    /// What is done.
    pub strategy: RetryStrategy,
    /// So many drafts may fail in this way; the last of them ends the run. The attempts of the whole question bound it
    /// still. Without it those alone do, except that `limited_retry` ends with the second failure.
    pub max_attempts: Option<u32>,
}

impl From<RetryStrategy> for RetryRule {
    fn from(strategy: RetryStrategy) -> Self {
        Self { strategy, max_attempts: None }
    }
}

impl RetryRule {
    /// How many drafts may fail in this way, if that is bounded.
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

/// What is done about each kind of failure. The default is sensible; a policy names only what differs from it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetryPolicy {
    changed: Vec<(ErrorType, RetryRule)>,
}

/// Why a rule cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Another query is refused for the same reason.
    #[error("`{}` can only be `fail_immediately`: no other query helps against it", word(*.0))]
    NotRetryable(ErrorType),
    /// As [`crate::guard::Budget::ATTEMPTS`].
    #[error("`max_attempts` of `{}` must be 1 to 10, not {}", word(*.0), .1)]
    Attempts(ErrorType, u32),
}

impl RetryPolicy {
    /// What is done about a failure of this kind.
    pub fn of(&self, error_type: ErrorType) -> RetryRule {
        match self.changed.iter().find(|(changed, _)| *changed == error_type) {
            Some((_, rule)) => *rule,
            None => default_strategy(error_type).into(),
        }
    }

    /// What is to be done now that so many drafts of this question have failed in this way, this one included; or why
    /// nothing is.
    pub fn decide(&self, error_type: ErrorType, failed: u32) -> Result<RetryStrategy, Stop> {
        let rule = self.of(error_type);
        match (rule.strategy, rule.limit()) {
            (RetryStrategy::FailImmediately, _) => Err(Stop::NotRetryable),
            (_, Some(limit)) if failed >= limit => Err(Stop::PolicySpent),
            (strategy, _) => Ok(strategy),
        }
    }

    /// With another rule for one kind of failure.
    pub fn with(mut self, error_type: ErrorType, rule: impl Into<RetryRule>) -> Result<Self, PolicyError> {
        let rule = rule.into();
        let fails = rule.strategy == RetryStrategy::FailImmediately;
        if default_strategy(error_type) == RetryStrategy::FailImmediately && !fails {
            return Err(PolicyError::NotRetryable(error_type));
        }
        if let Some(n) = rule.max_attempts.filter(|n| !crate::guard::Budget::ATTEMPTS.contains(n)) {
            return Err(PolicyError::Attempts(error_type, n));
        }
        self.changed.retain(|(changed, _)| *changed != error_type);
        self.changed.push((error_type, rule));
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
        // The connection is retried where it is made; the query has no part in it.
        ErrorType::PermissionDenied | ErrorType::ConnectionError => RetryStrategy::FailImmediately,
        ErrorType::Timeout | ErrorType::ResourceLimit => RetryStrategy::RetryWithOptimization,
        ErrorType::Unknown => RetryStrategy::LimitedRetry,
    }
}

/// The word for it that configurations and clients use.
fn word(error_type: ErrorType) -> String {
    serde_json::to_value(error_type).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A rule as it stands in YAML, written out.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Long {
    strategy: RetryStrategy,
    #[serde(default, deserialize_with = "range::some_attempts", skip_serializing_if = "Option::is_none")]
    max_attempts: Option<u32>,
}

impl Serialize for RetryRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.max_attempts {
            None => self.strategy.serialize(serializer),
            max_attempts => Long { strategy: self.strategy, max_attempts }.serialize(serializer),
        }
    }
}

/// By hand, since an untagged enum would only say that nothing fits.
impl<'de> Deserialize<'de> for RetryRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RetryRule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a strategy, or `strategy` and `max_attempts`")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<RetryRule, E> {
                RetryStrategy::deserialize(serde::de::value::StrDeserializer::new(word)).map(RetryRule::from)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RetryRule, A::Error> {
                let long = Long::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RetryRule { strategy: long.strategy, max_attempts: long.max_attempts })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Serialize for RetryPolicy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.changed.len()))?;
        for (error_type, rule) in &self.changed {
            map.serialize_entry(error_type, rule)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RetryPolicy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = RetryPolicy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("kinds of failure, each with what is done about it")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RetryPolicy, A::Error> {
                let mut policy = RetryPolicy::default();
                while let Some((error_type, rule)) = map.next_entry::<ErrorType, RetryRule>()? {
                    policy = policy.with(error_type, rule).map_err(A::Error::custom)?;
                }
                Ok(policy)
            }
        }
        deserializer.deserialize_map(Map)
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
    fn l06_every_kind_has_a_default_and_a_word_in_yaml() {
        for (word, kind, strategy) in KINDS {
            assert_eq!(serde_json::to_value(RetryPolicy::default().of(kind)).unwrap(), strategy, "{word}");
            assert_eq!(read(&format!("{word}: fail_immediately")).unwrap().decide(kind, 1), Err(Stop::NotRetryable));
        }
    }

    #[test]
    fn l06_q15_limits_go_by_kind() {
        let policy = read(
            "syntax_error: {strategy: retry_with_optimization, max_attempts: 3}\n\
             timeout:\n  strategy: limited_retry\n  max_attempts: 1\n\
             column_not_found: limited_retry\n",
        )
        .unwrap();
        let check = |kind, wanted: [Result<RetryStrategy, Stop>; 3]| {
            assert_eq!([1, 2, 3].map(|failed| policy.decide(kind, failed)), wanted, "{kind:?}");
        };
        let spent = Err(Stop::PolicySpent);
        let optimize = Ok(RetryStrategy::RetryWithOptimization);
        let limited = Ok(RetryStrategy::LimitedRetry);
        check(ErrorType::SyntaxError, [optimize, optimize, spent]);
        check(ErrorType::Timeout, [spent; 3]);
        check(ErrorType::ColumnNotFound, [limited, spent, spent]);
        check(ErrorType::Unknown, [limited, spent, spent]);
        check(ErrorType::TableNotFound, [Ok(RetryStrategy::AutoRetryWithSchema); 3]);
        check(ErrorType::PermissionDenied, [Err(Stop::NotRetryable); 3]);
        let again = serde_json::to_string(&policy).unwrap();
        assert_eq!(read(&again).unwrap(), policy, "{again}");
    }

    #[test]
    fn l06_q06_mistakes_are_said() {
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
            Err(PolicyError::Attempts(ErrorType::Timeout, 0))
        );
    }
}
