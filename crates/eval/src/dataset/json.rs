//! Lists of JSON objects, with the line that each begins on.

use std::path::Path;

use anyhow::Result;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Trouble;

/// One object of a list.
pub struct Record {
    fields: Map<String, Value>,
    /// From 0.
    pub index: usize,
    place: String,
}

/// The objects of a list.
pub fn records(path: &Path, text: &str) -> Result<Vec<Record>> {
    let shown = path.display();
    let broken = |error: serde_json::Error| {
        // The position is said in words of our own, before what is wrong.
        let words = error.to_string();
        let what = words.split(" at line ").next().unwrap_or_default().to_string();
        Trouble::error(
            format!("`{shown}`, line {}, column {}: {what}", error.line(), error.column()),
            "the file must be a JSON list of objects",
        )
    };
    let raw: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
    let (mut line, mut counted) = (1, 0);
    let mut records = Vec::with_capacity(raw.len());
    for (index, value) in raw.into_iter().enumerate() {
        // The pieces lie in the text itself, one after the other.
        let start = (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
        line += text.as_bytes()[counted..start].iter().filter(|byte| **byte == b'\n').count();
        counted = start;
        let place = format!("`{shown}`, line {line} (entry {})", index + 1);
        let Ok(fields) = serde_json::from_str(value.get()) else {
            return Err(Trouble::error(
                format!("{place} is no object"),
                "each entry is {\"db_id\": …, \"question\": …}",
            ));
        };
        records.push(Record { fields, index, place });
    }
    Ok(records)
}

impl Record {
    /// Whether there is such a field.
    pub fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// The text of the first of these fields that is there; empty text is no text.
    pub fn text(&self, names: &[&str]) -> Result<String> {
        match self.maybe(names)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.wrong(&format!("field `{}` is empty", self.named(names)))),
            None => Err(self.wrong(&format!("field `{}` is missing", names.join("` or `")))),
        }
    }

    /// The same, where the field may be absent or null.
    pub fn maybe(&self, names: &[&str]) -> Result<Option<String>> {
        match self.fields.get(self.named(names)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => {
                let kind = match other {
                    Value::Array(_) => "a list",
                    Value::Object(_) => "an object",
                    Value::Bool(_) => "true or false",
                    _ => "a number",
                };
                Err(self.wrong(&format!("field `{}` must be text, not {kind}", self.named(names))))
            }
        }
    }

    /// An id, which may be a number.
    pub fn id(&self, names: &[&str]) -> Option<String> {
        match self.fields.get(self.named(names))? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    fn named<'n>(&self, names: &[&'n str]) -> &'n str {
        let there = names.iter().find(|name| self.has(name));
        there.or(names.first()).copied().unwrap_or_default()
    }

    fn wrong(&self, what: &str) -> anyhow::Error {
        let there: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        Trouble::error(format!("{}: {what}", self.place), format!("the fields that are there: {}", there.join(", ")))
    }
}
