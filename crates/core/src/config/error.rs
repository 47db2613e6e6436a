//! Configuration errors and their location.

use std::fmt;
use std::path::{Path, PathBuf};

use super::secret;

/// Error in a configuration. The message never quotes the file, which might contain a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// File that contains the error; `None` if the configuration did not come from a file.
    pub file: Option<PathBuf>,
    /// Line and column, both starting at 1.
    pub location: Option<(u64, u64)>,
    /// Field, qualified by its sections.
    pub field: Option<String>,
    /// Description of the error.
    pub message: String,
    /// Suggested action.
    pub hint: String,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some((line, column)) = self.location {
            write!(f, "line {line}, column {column}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "in `{field}`: ")?;
        }
        f.write_str(&self.message)
    }
}

impl ConfigError {
    /// Creates an error for a value that a program set.
    pub(super) fn invalid_value(field: &str, message: String) -> Self {
        let message = redact_secret(message);
        let hint = if message.contains("secrets") { secret::SECRETS_HINT.to_owned() } else { docs_hint() };
        Self { file: None, location: None, field: Some(field.to_owned()), message, hint }
    }

    /// Creates an error for a file that cannot be read.
    pub(super) fn file(file: &Path, why: impl fmt::Display) -> Self {
        Self {
            file: Some(file.to_owned()),
            location: None,
            field: None,
            message: format!("it cannot be read: {why}"),
            hint: "check the path and the permissions of the file".to_owned(),
        }
    }

    /// Creates an error for text that is not a valid configuration.
    pub(super) fn yaml(error: &serde_saphyr::Error, text: &str) -> Self {
        let error = error.without_snippet();
        let place = error.location().map(|at| (at.line(), at.column()));
        // `Display` prints the location for all errors, so strip it from the parser's message.
        let words = error.to_string();
        let words = words.strip_prefix("error: ").unwrap_or(&words);
        let tail = place.map(|(line, column)| format!(" at line {line}, column {column}")).unwrap_or_default();
        let mut message = friendly_message(words.strip_suffix(&tail).unwrap_or(words)).to_owned();
        let mut hint = docs_hint();
        if let serde_saphyr::Error::SerdeUnknownField { field, .. } = error
            && secret::is_secret_name(field)
        {
            message = format!("`{field}` would be a secret, and secrets do not belong in this file");
        }
        message = redact_secret(message);
        if message.contains("secrets") {
            hint = secret::SECRETS_HINT.to_owned();
        }
        Self { file: None, location: place, field: place.and_then(|(line, _)| field_at(text, line)), message, hint }
    }

    /// Adds the location of the field, or of its section if the field is missing.
    pub(super) fn locate_in(mut self, text: &str) -> Self {
        let found = |wanted: &str| {
            text.lines().zip(1..).find_map(|(line, number)| {
                let (_, value) = line.split_once(':')?;
                // Cheap suffix test first: `field_at` is only needed for the few lines that match.
                let (before, _) = line.split_at(line.len() - value.len() - 1);
                let last = wanted.rsplit('.').next()?;
                let column = line.len() - value.trim_start().len() + 1;
                (before.ends_with(last) && field_at(text, number)? == wanted).then_some((number, column as u64))
            })
        };
        let field = self.field.as_deref().unwrap_or_default();
        self.location = found(field).or_else(|| found(field.split_once('.')?.0));
        self
    }

    pub(super) fn with_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }
}

/// Replaces parser messages that are addressed to programmers.
fn friendly_message(words: &str) -> &str {
    match words {
        "invalid boolean" => "it must be true or false",
        "invalid u32" | "invalid u64" => "it must be a whole number, not below 0",
        "invalid floating point" => "it must be a number",
        "expected string scalar" => "it must be a text",
        "expected mapping start" => "it must be a mapping with fields",
        _ => words.split_once(", set DuplicateKeyPolicy").map_or(words, |(words, _)| words),
    }
}

/// Replaces a message that quotes a misplaced secret.
fn redact_secret(message: String) -> String {
    let words = message.split(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | ','));
    match words.filter_map(secret::find_secret).next() {
        Some(what) => {
            format!("{what} is used as a field or a value, and secrets do not belong in this file")
        }
        None => message,
    }
}

fn docs_hint() -> String {
    "docs/guide/configuration.md lists every field with its default".to_owned()
}

/// Returns the field that a line belongs to, by its indentation: `self_correction.max_attempts`.
///
/// Only used in messages, so flow mappings in braces are not parsed.
fn field_at(text: &str, line: u64) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut indent = usize::MAX;
    let lines: Vec<&str> = text.lines().take(usize::try_from(line).ok()?).collect();
    for line in lines.iter().rev() {
        let trimmed = line.trim_start();
        let here = line.len() - trimmed.len();
        if here >= indent || trimmed.starts_with(['#', '-']) {
            continue;
        }
        let Some((name, _)) = trimmed.split_once(':') else { continue };
        let name = name.trim_matches(['"', '\'', ' ']);
        // Other keys are not configuration fields, and may be part of a text block.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        names.push(name);
        indent = here;
    }
    names.reverse();
    (!names.is_empty()).then(|| names.join("."))
}
