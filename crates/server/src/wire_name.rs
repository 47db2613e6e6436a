//! Names of enum variants as they are serialized.

use serde::Serialize;

/// Returns the serialized name of an enum variant, the same in all protocols.
pub(crate) fn wire_name(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
