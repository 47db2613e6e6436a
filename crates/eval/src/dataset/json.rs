//! Lists of JSON objects, with the line number of each object.

use std::path::Path;

use anyhow::Result;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::EvalError;

/// Object of a list.
pub struct JsonRecord {
    fields: Map<String, Value>,
    /// 0-based index in the list.
    pub index: usize,
    location: String,
}

/// Parses a JSON list of objects.
pub fn parse_records(path: &Path, text: &str) -> Result<Vec<JsonRecord>> {
    let shown = path.display();
    let broken = |error: serde_json::Error| {
        // The message states the position first, so remove it from the text of the error.
        let words = error.to_string();
        let what = words.split(" at line ").next().unwrap_or_default().to_string();
        EvalError::anyhow(
            format!("`{shown}`, line {}, column {}: {what}", error.line(), error.column()),
            "the file must be a JSON list of objects",
        )
    };
    let raw: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
    let (mut line, mut counted) = (1, 0);
    let mut records = Vec::with_capacity(raw.len());
    for (index, value) in raw.into_iter().enumerate() {
        // The raw values are slices of `text`, in order.
        let start = (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize).min(text.len());
        line += text.as_bytes()[counted..start].iter().filter(|byte| **byte == b'\n').count();
        counted = start;
        let place = format!("`{shown}`, line {line} (entry {})", index + 1);
        let Ok(fields) = serde_json::from_str(value.get()) else {
            return Err(EvalError::anyhow(
                format!("{place} is not an object"),
                "each entry is {\"db_id\": …, \"question\": …}",
            ));
        };
        records.push(JsonRecord { fields, index, location: place });
    }
    Ok(records)
}

impl JsonRecord {
    /// Returns whether the object has this field.
    pub fn has_field(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    /// Returns the text of the first of these fields that is present. Empty text is an error.
    pub fn required_text(&self, names: &[&str]) -> Result<String> {
        match self.optional_text(names)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.error(&format!("field `{}` is empty", self.field_name(names)))),
            None => Err(self.error(&format!("field `{}` is missing", names.join("` or `")))),
        }
    }

    /// Returns the text of the first of these fields that is present; `None` if it is missing or
    /// null.
    pub fn optional_text(&self, names: &[&str]) -> Result<Option<String>> {
        match self.fields.get(self.field_name(names)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => {
                let kind = match other {
                    Value::Array(_) => "a list",
                    Value::Object(_) => "an object",
                    Value::Bool(_) => "true or false",
                    _ => "a number",
                };
                Err(self.error(&format!("field `{}` must be text, not {kind}", self.field_name(names))))
            }
        }
    }

    /// Returns the id, which may be a string or a number.
    pub fn id(&self, names: &[&str]) -> Option<String> {
        match self.fields.get(self.field_name(names))? {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    fn field_name<'n>(&self, names: &[&'n str]) -> &'n str {
        let there = names.iter().find(|name| self.has_field(name));
        there.or(names.first()).copied().unwrap_or_default()
    }

    fn error(&self, what: &str) -> anyhow::Error {
        let there: Vec<&str> = self.fields.keys().map(String::as_str).collect();
        EvalError::anyhow(format!("{}: {what}", self.location), format!("the fields are: {}", there.join(", ")))
    }
}
