//! Google's `streamGenerateContent`.

use serde_json::{Map, Value, json};

use super::{RequestField, StreamAccumulator, UnsupportedFields, token_count};
use crate::provider_error::ProviderError;
use crate::request::{CompletionRequest, FinishReason, MessageRole};

pub(super) fn path(model: &str) -> String {
    // The model name is part of the URL, so everything but unreserved characters is
    // percent-encoded.
    let mut name = String::new();
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("/models/{name}:streamGenerateContent?alt=sse")
}

pub(super) fn body(request: &CompletionRequest, unsupported: UnsupportedFields) -> Value {
    let mut system = Vec::new();
    let mut contents = Vec::new();
    for message in &request.messages {
        let part = json!({"text": message.text});
        match message.role {
            MessageRole::System => system.push(part),
            MessageRole::User => contents.push(json!({"role": "user", "parts": [part]})),
            MessageRole::Assistant => contents.push(json!({"role": "model", "parts": [part]})),
        }
    }
    let mut generation_config = json!({"maxOutputTokens": request.max_tokens});
    if !unsupported.contains(RequestField::Temperature) {
        generation_config["temperature"] = request.rounded_temperature().into();
    }
    // Seeds have 32 bits.
    if let (Some(seed), false) = (request.seed, unsupported.contains(RequestField::Seed)) {
        generation_config["seed"] = (seed & 0x7fff_ffff).into();
    }
    if !request.stop.is_empty() && !unsupported.contains(RequestField::Stop) {
        generation_config["stopSequences"] = json!(request.stop);
    }
    if let (Some(schema), false) = (&request.schema, unsupported.contains(RequestField::Schema)) {
        generation_config["responseMimeType"] = "application/json".into();
        generation_config["responseSchema"] = to_response_schema(schema);
    }
    let mut body = json!({"contents": contents, "generationConfig": generation_config});
    if !system.is_empty() {
        body["systemInstruction"] = json!({"parts": system});
    }
    body
}

/// JSON schema keywords that `responseSchema` supports; it rejects all others, so they are removed.
const SUPPORTED_SCHEMA_KEYWORDS: [&str; 14] = [
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "properties",
    "required",
    "items",
    "anyOf",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
];

/// Converts a JSON schema to the form of `responseSchema`: supported keywords, upper-case types,
/// and `nullable` instead of a second type.
fn to_response_schema(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else { return json!({}) };
    let mut simple = Map::new();
    for (word, value) in schema.iter().filter(|(word, _)| SUPPORTED_SCHEMA_KEYWORDS.contains(&word.as_str())) {
        let value = match word.as_str() {
            "type" => {
                let types: Vec<&str> = match value {
                    Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
                    one => one.as_str().into_iter().collect(),
                };
                if types.len() > 1 && types.contains(&"null") {
                    simple.insert("nullable".to_owned(), true.into());
                }
                match types.iter().find(|one| **one != "null") {
                    Some(one) => one.to_uppercase().into(),
                    None => continue,
                }
            }
            "properties" => {
                let properties = value.as_object().into_iter().flatten();
                Value::Object(properties.map(|(name, property)| (name.clone(), to_response_schema(property))).collect())
            }
            "items" => to_response_schema(value),
            "anyOf" => value.as_array().into_iter().flatten().map(to_response_schema).collect(),
            _ => value.clone(),
        };
        simple.insert(word.clone(), value);
    }
    Value::Object(simple)
}

pub(super) fn apply_event(state: &mut StreamAccumulator, event: &Value) -> Result<(), ProviderError> {
    // Without streaming, the events arrive as one array.
    if let Some(events) = event.as_array() {
        return events.iter().try_for_each(|event| apply_event(state, event));
    }
    if let Some(provider_error) = ProviderError::from_body(event) {
        return Err(provider_error);
    }
    if let Some(model) = event["modelVersion"].as_str() {
        state.model = Some(model.to_owned());
    }
    if let Some(reason) = event["promptFeedback"]["blockReason"].as_str() {
        state.block_reason = Some(format!("the prompt was blocked ({reason})"));
        state.finish_reason = Some(FinishReason::Refused);
    }
    let candidate = &event["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        // Thoughts are marked and are not part of the reply.
        if part["thought"] != true {
            state.text.push_str(part["text"].as_str().unwrap_or_default());
        }
    }
    match candidate["finishReason"].as_str() {
        None => {}
        Some("STOP") => state.finish_reason = Some(FinishReason::End),
        Some("MAX_TOKENS") => state.finish_reason = Some(FinishReason::Length),
        Some("MALFORMED_FUNCTION_CALL" | "OTHER" | "FINISH_REASON_UNSPECIFIED") => {
            state.finish_reason = Some(FinishReason::End)
        }
        // All other reasons are content blocks: SAFETY, RECITATION, BLOCKLIST and the like.
        Some(reason) => {
            state.block_reason = Some(format!("the reply was blocked ({reason})"));
            state.finish_reason = Some(FinishReason::Refused);
        }
    }
    let usage = &event["usageMetadata"];
    if usage.is_object() {
        state.input = token_count(&usage["promptTokenCount"]);
        state.output = token_count(&usage["candidatesTokenCount"]) + token_count(&usage["thoughtsTokenCount"]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn serializes_requests() {
        let schema = json!({
            "$schema": "x",
            "type": "object",
            "additionalProperties": false,
            "required": ["sql"],
            "properties": {
                "sql": {"type": ["string", "null"]},
                "type": {"type": "array", "items": {"type": "integer", "$comment": "x"}}
            }
        });
        let request = CompletionRequest::new(vec![
            Message::system("Be brief."),
            Message::user("Why?"),
            Message::assistant("Because."),
            Message::user("Oh."),
        ])
        .seed(1 << 40 | 5)
        .schema(schema);
        assert_eq!(
            body(&request, UnsupportedFields::default()),
            json!({
                "contents": [
                    {"role": "user", "parts": [{"text": "Why?"}]},
                    {"role": "model", "parts": [{"text": "Because."}]},
                    {"role": "user", "parts": [{"text": "Oh."}]}
                ],
                "generationConfig": {
                    "maxOutputTokens": 1024,
                    "temperature": 0.0,
                    "seed": 5,
                    "responseMimeType": "application/json",
                    "responseSchema": {
                        "type": "OBJECT",
                        "required": ["sql"],
                        "properties": {
                            "sql": {"nullable": true, "type": "STRING"},
                            "type": {"type": "ARRAY", "items": {"type": "INTEGER"}}
                        }
                    }
                },
                "systemInstruction": {"parts": [{"text": "Be brief."}]}
            })
        );
        assert_eq!(path("gemini-2.5-flash"), "/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
        assert_eq!(path("../a?b"), "/models/..%2Fa%3Fb:streamGenerateContent?alt=sse");
    }

    #[test]
    fn accumulates_a_stream() {
        let events = json!([
            {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}], "role": "model"}}],
                "usageMetadata": {"promptTokenCount": 9}, "modelVersion": "m-2"},
            {"candidates": [{"content": {"parts": [{"text": "SELECT"}, {"text": " 1"}]}}]},
            {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}}
        ]);
        let mut heard = StreamAccumulator::default();
        apply_event(&mut heard, &events).unwrap();
        assert_eq!(
            heard,
            StreamAccumulator {
                text: "SELECT 1".to_owned(),
                input: 9,
                output: 5,
                finish_reason: Some(FinishReason::End),
                model: Some("m-2".to_owned()),
                ..StreamAccumulator::default()
            }
        );
    }

    #[test]
    fn maps_finish_reasons() {
        let check = |event: Value, stopped: FinishReason, blocked: Option<&str>| {
            let mut heard = StreamAccumulator::default();
            apply_event(&mut heard, &event).unwrap();
            assert_eq!((heard.finish_reason, heard.block_reason.as_deref()), (Some(stopped), blocked));
        };
        check(json!({"candidates": [{"finishReason": "MAX_TOKENS"}]}), FinishReason::Length, None);
        let reply = Some("the reply was blocked (SAFETY)");
        check(json!({"candidates": [{"finishReason": "SAFETY"}]}), FinishReason::Refused, reply);
        let prompt = Some("the prompt was blocked (PROHIBITED_CONTENT)");
        check(json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), FinishReason::Refused, prompt);
    }
}
