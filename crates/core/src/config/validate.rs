//! Validates configuration values: numeric ranges, and text that must not contain a secret.
//!
//! Errors name the field.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::config::secret;
use crate::resilience::Budget;

const THRESHOLD_RANGE: RangeInclusive<u32> = 1..=1000;
const CANDIDATES_RANGE: RangeInclusive<u32> = 1..=16;
const EXAMPLES_RANGE: RangeInclusive<usize> = 0..=20;
const TEMPERATURE_RANGE: RangeInclusive<f32> = 0.0..=2.0;

/// Returns an error that names the allowed range if the value is outside it.
fn check_range<T: PartialOrd + Display + Copy>(field: &str, value: T, range: &RangeInclusive<T>) -> Result<T, String> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(format!("`{field}` must be {} to {}, not {value}", range.start(), range.end()))
    }
}

/// Returns an error unless the value is greater than zero.
fn positive<T: PartialOrd + Display + Default + Copy>(field: &str, value: T) -> Result<T, String> {
    if value > T::default() { Ok(value) } else { Err(format!("`{field}` must be more than 0, not {value}")) }
}

pub(crate) fn check_attempts(value: u32) -> Result<u32, String> {
    check_range("max_attempts", value, &Budget::ATTEMPTS_RANGE)
}

pub(crate) fn check_threshold(field: &str, value: u32) -> Result<u32, String> {
    check_range(field, value, &THRESHOLD_RANGE)
}

pub(crate) fn check_temperature(value: f32) -> Result<f32, String> {
    check_range("temperature", value, &TEMPERATURE_RANGE)
}

pub(crate) fn check_positive<T: PartialOrd + Display + Default + Copy>(
    field: &str,
    value: Option<T>,
) -> Result<Option<T>, String> {
    value.map(|value| positive(field, value)).transpose()
}

pub(crate) fn check_secret(field: &str, value: Option<String>) -> Result<Option<String>, String> {
    match value.as_deref().and_then(secret::find_secret) {
        Some(what) => Err(format!("`{field}` contains {what}, and secrets do not belong in this file")),
        None => Ok(value),
    }
}

fn deserialize_checked<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    check: impl FnOnce(T) -> Result<T, String>,
) -> Result<T, D::Error> {
    check(T::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(crate) fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserialize_checked(deserializer, check_attempts)
}

pub(crate) fn some_attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    deserialize_checked(deserializer, |value: Option<u32>| value.map(check_attempts).transpose())
}

pub(crate) fn failure_threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserialize_checked(deserializer, |value| check_threshold("failure_threshold", value))
}

pub(crate) fn success_threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    deserialize_checked(deserializer, |value| check_threshold("success_threshold", value))
}

pub(crate) fn examples<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    deserialize_checked(deserializer, |value| check_range("examples", value, &EXAMPLES_RANGE))
}

pub(crate) fn candidates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    deserialize_checked(deserializer, |value: Option<u32>| {
        value.map(|value| check_range("candidates", value, &CANDIDATES_RANGE)).transpose()
    })
}

pub(crate) fn temperature<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    deserialize_checked(deserializer, check_temperature)
}

pub(crate) fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    deserialize_checked(deserializer, |value| check_positive("tokens", value))
}

pub(crate) fn cost_usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    deserialize_checked(deserializer, |value| check_positive("cost_usd", value))
}

pub(crate) fn rows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    deserialize_checked(deserializer, |value| positive("rows", value))
}

pub(crate) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    deserialize_checked(deserializer, |value| positive("bytes", value))
}

pub(crate) fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    deserialize_checked(deserializer, |value| positive("memory", value))
}

pub(crate) fn store<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserialize_checked(deserializer, |value| check_secret("store", value))
}

pub(crate) fn model<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserialize_checked(deserializer, |value| check_secret("model", value))
}

pub(crate) fn database<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserialize_checked(deserializer, |value| check_secret("database", value))
}
