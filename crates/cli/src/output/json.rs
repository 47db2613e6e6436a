//! JSON output.

use serde::Serialize;

use crate::error::CliError;
use crate::output::text::is_control_char;

/// Serializes a result as indented JSON.
pub fn to_pretty_json(value: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string_pretty(value)
        .map_err(|error| CliError::new(format!("the result cannot be written as JSON: {error}")))
}

/// Escapes control characters in JSON, for output to a terminal, without changing its value.
pub fn sanitize_json_for_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_control_char(c) && !matches!(c, '\n' | '\t' | '\r') {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}
