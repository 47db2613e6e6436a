//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use super::secret;

/// What is wrong with a configuration. The message never repeats the file, which might hold what should not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, where it came from one.
    pub file: Option<PathBuf>,
    /// The line and the column, from 1.
    pub place: Option<(u64, u64)>,
    /// The field, with the sections that it is in.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What can be done about it.
    pub hint: String,
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        if let Some(field) = &self.field {
            write!(f, "in `{field}`: ")?;
        }
        f.write_str(&self.message)
    }
}

impl ConfigError {
    /// A value that a program set.
    pub(super) fn value(field: &str, message: String) -> Self {
        let message = without_secret(message);
        let hint = if message.contains("secrets") { secret::WHERE.to_owned() } else { see() };
        Self { file: None, place: None, field: Some(field.to_owned()), message, hint }
    }

    /// A file that cannot be read.
    pub(super) fn file(file: &Path, why: impl fmt::Display) -> Self {
        Self {
            file: Some(file.to_owned()),
            place: None,
            field: None,
            message: format!("it cannot be read: {why}"),
            hint: "check the path, and that you may read the file".to_owned(),
        }
    }

    /// A text that is not a configuration.
    pub(super) fn yaml(error: &serde_saphyr::Error, text: &str) -> Self {
        let error = error.without_snippet();
        let place = error.location().map(|at| (at.line(), at.column()));
        // The place is said in one form for all errors, so it is taken off where the words end with it.
        let words = error.to_string();
        let words = words.strip_prefix("error: ").unwrap_or(&words);
        let tail = place.map(|(line, column)| format!(" at line {line}, column {column}")).unwrap_or_default();
        let mut message = in_our_words(words.strip_suffix(&tail).unwrap_or(words)).to_owned();
        let mut hint = see();
        if let serde_saphyr::Error::SerdeUnknownField { field, .. } = error
            && secret::in_name(field)
        {
            message = format!("`{field}` would be a secret, and secrets do not belong in this file");
        }
        message = without_secret(message);
        if message.contains("secrets") {
            hint = secret::WHERE.to_owned();
        }
        Self { file: None, place, field: place.and_then(|(line, _)| field_at(text, line)), message, hint }
    }

    /// With the place where the text says what is wrong: its field, or else the section that the field is missing from.
    pub(super) fn in_text(mut self, text: &str) -> Self {
        let found = |wanted: &str| {
            text.lines().zip(1..).find_map(|(line, number)| {
                let (_, value) = line.split_once(':')?;
                // Few lines end in the right word, so few are looked at closely.
                let (before, _) = line.split_at(line.len() - value.len() - 1);
                let last = wanted.rsplit('.').next()?;
                let column = line.len() - value.trim_start().len() + 1;
                (before.ends_with(last) && field_at(text, number)? == wanted).then_some((number, column as u64))
            })
        };
        let field = self.field.as_deref().unwrap_or_default();
        self.place = found(field).or_else(|| found(field.split_once('.')?.0));
        self
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }
}

/// The reader speaks to programmers in places.
fn in_our_words(words: &str) -> &str {
    match words {
        "invalid boolean" => "it must be true or false",
        "invalid u32" | "invalid u64" => "it must be a whole number, not below 0",
        "invalid floating point" => "it must be a number",
        "expected string scalar" => "it must be a text",
        "expected mapping start" => "it must hold fields of its own",
        _ => words.split_once(", set DuplicateKeyPolicy").map_or(words, |(words, _)| words),
    }
}

/// A message without the word of the file that it is about, where that word is a secret in the wrong place.
fn without_secret(message: String) -> String {
    let words = message.split(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | ','));
    match words.filter_map(secret::in_value).next() {
        Some(what) => {
            format!("{what} stands where a field or a value is expected, and secrets do not belong in this file")
        }
        None => message,
    }
}

fn see() -> String {
    "docs/config.md lists every field with its default".to_owned()
}

/// The field that a line belongs to, by its indentation: `self_correction.max_attempts`. Only a help for people, so
/// braces are not looked into.
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
        // What is no plain word is no field of ours, and might be part of a text.
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return None;
        }
        names.push(name);
        indent = here;
    }
    names.reverse();
    (!names.is_empty()).then(|| names.join("."))
}
