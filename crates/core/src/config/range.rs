//! Numbers that may not be just any number, and texts that may not hold a secret. An error names the field.

use std::fmt::Display;
use std::ops::RangeInclusive;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

use super::secret;
use crate::guard::Budget;

const THRESHOLD: RangeInclusive<u32> = 1..=1000;
const CANDIDATES: RangeInclusive<u32> = 1..=16;
const EXAMPLES: RangeInclusive<usize> = 0..=20;
const TEMPERATURE: RangeInclusive<f32> = 0.0..=2.0;

/// Says the range where the value is out of it.
fn check<T: PartialOrd + Display + Copy>(field: &str, value: T, range: &RangeInclusive<T>) -> Result<T, String> {
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(format!("`{field}` must be {} to {}, not {value}", range.start(), range.end()))
    }
}

/// Says that nothing is not enough.
fn positive<T: PartialOrd + Display + Default + Copy>(field: &str, value: T) -> Result<T, String> {
    if value > T::default() { Ok(value) } else { Err(format!("`{field}` must be more than 0, not {value}")) }
}

pub(super) fn check_attempts(value: u32) -> Result<u32, String> {
    check("max_attempts", value, &Budget::ATTEMPTS)
}

pub(super) fn check_threshold(field: &str, value: u32) -> Result<u32, String> {
    check(field, value, &THRESHOLD)
}

pub(super) fn check_temperature(value: f32) -> Result<f32, String> {
    check("temperature", value, &TEMPERATURE)
}

pub(super) fn check_positive<T: PartialOrd + Display + Default + Copy>(
    field: &str,
    value: Option<T>,
) -> Result<Option<T>, String> {
    value.map(|value| positive(field, value)).transpose()
}

pub(super) fn check_secret(field: &str, value: Option<String>) -> Result<Option<String>, String> {
    match value.as_deref().and_then(secret::in_value) {
        Some(what) => Err(format!("`{field}` holds {what}, and secrets do not belong in this file")),
        None => Ok(value),
    }
}

fn read<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    check: impl FnOnce(T) -> Result<T, String>,
) -> Result<T, D::Error> {
    check(T::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(crate) fn attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    read(deserializer, check_attempts)
}

pub(crate) fn some_attempts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    read(deserializer, |value: Option<u32>| value.map(check_attempts).transpose())
}

pub(crate) fn failure_threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    read(deserializer, |value| check_threshold("failure_threshold", value))
}

pub(crate) fn success_threshold<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    read(deserializer, |value| check_threshold("success_threshold", value))
}

pub(super) fn examples<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    read(deserializer, |value| check("examples", value, &EXAMPLES))
}

pub(super) fn candidates<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    read(deserializer, |value: Option<u32>| value.map(|value| check("candidates", value, &CANDIDATES)).transpose())
}

pub(super) fn temperature<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    read(deserializer, check_temperature)
}

pub(super) fn tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    read(deserializer, |value| check_positive("tokens", value))
}

pub(super) fn cost_usd<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    read(deserializer, |value| check_positive("cost_usd", value))
}

pub(super) fn rows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    read(deserializer, |value| positive("rows", value))
}

pub(super) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    read(deserializer, |value| positive("bytes", value))
}

pub(super) fn memory<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    read(deserializer, |value| positive("memory", value))
}

pub(super) fn store<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    read(deserializer, |value| check_secret("store", value))
}

pub(super) fn model<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    read(deserializer, |value| check_secret("model", value))
}

pub(super) fn database<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    read(deserializer, |value| check_secret("database", value))
}
