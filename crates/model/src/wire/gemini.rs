//! Google's `streamGenerateContent`.

use serde_json::{Map, Value, json};

use super::{Field, Heard, Without, count};
use crate::request::{Request, Role, Stopped};
use crate::trouble::Trouble;

pub(super) fn path(model: &str) -> String {
    // A model's name is part of the address here, so only what may stand there is let through as it is.
    let mut name = String::new();
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("/models/{name}:streamGenerateContent?alt=sse")
}

pub(super) fn body(request: &Request, without: Without) -> Value {
    let mut system = Vec::new();
    let mut contents = Vec::new();
    for message in &request.messages {
        let part = json!({"text": message.text});
        match message.role {
            Role::System => system.push(part),
            Role::User => contents.push(json!({"role": "user", "parts": [part]})),
            Role::Assistant => contents.push(json!({"role": "model", "parts": [part]})),
        }
    }
    let mut how = json!({"maxOutputTokens": request.max_tokens});
    if !without.has(Field::Temperature) {
        how["temperature"] = request.temperature_as_written().into();
    }
    // Its seeds have 32 bits.
    if let (Some(seed), false) = (request.seed, without.has(Field::Seed)) {
        how["seed"] = (seed & 0x7fff_ffff).into();
    }
    if !request.stop.is_empty() && !without.has(Field::Stop) {
        how["stopSequences"] = json!(request.stop);
    }
    if let (Some(schema), false) = (&request.schema, without.has(Field::Schema)) {
        how["responseMimeType"] = "application/json".into();
        how["responseSchema"] = simplified(schema);
    }
    let mut body = json!({"contents": contents, "generationConfig": how});
    if !system.is_empty() {
        body["systemInstruction"] = json!({"parts": system});
    }
    body
}

/// What `responseSchema` knows of JSON schema. A keyword that it does not know is an error there, so those are left out.
const KNOWN: [&str; 14] = [
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

/// A JSON schema as `responseSchema` wants it: known keywords, types in capitals, and `nullable` rather than a second type.
fn simplified(schema: &Value) -> Value {
    let Some(schema) = schema.as_object() else { return json!({}) };
    let mut simple = Map::new();
    for (word, value) in schema.iter().filter(|(word, _)| KNOWN.contains(&word.as_str())) {
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
                Value::Object(properties.map(|(name, property)| (name.clone(), simplified(property))).collect())
            }
            "items" => simplified(value),
            "anyOf" => value.as_array().into_iter().flatten().map(simplified).collect(),
            _ => value.clone(),
        };
        simple.insert(word.clone(), value);
    }
    Value::Object(simple)
}

pub(super) fn hear(heard: &mut Heard, event: &Value) -> Result<(), Trouble> {
    // Without streaming the events come as one list.
    if let Some(events) = event.as_array() {
        return events.iter().try_for_each(|event| hear(heard, event));
    }
    if let Some(trouble) = Trouble::in_body(event) {
        return Err(trouble);
    }
    if let Some(model) = event["modelVersion"].as_str() {
        heard.model = Some(model.to_owned());
    }
    if let Some(reason) = event["promptFeedback"]["blockReason"].as_str() {
        heard.blocked = Some(format!("the prompt was blocked ({reason})"));
        heard.stopped = Some(Stopped::Refused);
    }
    let candidate = &event["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        // Parts of thinking are marked; they are not the reply.
        if part["thought"] != true {
            heard.text.push_str(part["text"].as_str().unwrap_or_default());
        }
    }
    match candidate["finishReason"].as_str() {
        None => {}
        Some("STOP") => heard.stopped = Some(Stopped::End),
        Some("MAX_TOKENS") => heard.stopped = Some(Stopped::Length),
        Some("MALFORMED_FUNCTION_CALL" | "OTHER" | "FINISH_REASON_UNSPECIFIED") => heard.stopped = Some(Stopped::End),
        // All others say that something is not to be said: SAFETY, RECITATION, BLOCKLIST and the like.
        Some(reason) => {
            heard.blocked = Some(format!("the reply was blocked ({reason})"));
            heard.stopped = Some(Stopped::Refused);
        }
    }
    let usage = &event["usageMetadata"];
    if usage.is_object() {
        heard.input = count(&usage["promptTokenCount"]);
        heard.output = count(&usage["candidatesTokenCount"]) + count(&usage["thoughtsTokenCount"]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn a_request_says_what_is_asked() {
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
        let request = Request::new(vec![
            Message::system("Be brief."),
            Message::user("Why?"),
            Message::assistant("Because."),
            Message::user("Oh."),
        ])
        .seed(1 << 40 | 5)
        .schema(schema);
        assert_eq!(
            body(&request, Without::default()),
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
    fn a_stream_is_put_together() {
        let events = json!([
            {"candidates": [{"content": {"parts": [{"text": "Hm.", "thought": true}], "role": "model"}}],
                "usageMetadata": {"promptTokenCount": 9}, "modelVersion": "m-2"},
            {"candidates": [{"content": {"parts": [{"text": "SELECT"}, {"text": " 1"}]}}]},
            {"candidates": [{"content": {"parts": [{"text": ""}]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}}
        ]);
        let mut heard = Heard::default();
        hear(&mut heard, &events).unwrap();
        assert_eq!(
            heard,
            Heard {
                text: "SELECT 1".to_owned(),
                input: 9,
                output: 5,
                stopped: Some(Stopped::End),
                model: Some("m-2".to_owned()),
                ..Heard::default()
            }
        );
    }

    #[test]
    fn replies_end_in_several_ways() {
        let check = |event: Value, stopped: Stopped, blocked: Option<&str>| {
            let mut heard = Heard::default();
            hear(&mut heard, &event).unwrap();
            assert_eq!((heard.stopped, heard.blocked.as_deref()), (Some(stopped), blocked));
        };
        check(json!({"candidates": [{"finishReason": "MAX_TOKENS"}]}), Stopped::Length, None);
        let reply = Some("the reply was blocked (SAFETY)");
        check(json!({"candidates": [{"finishReason": "SAFETY"}]}), Stopped::Refused, reply);
        let prompt = Some("the prompt was blocked (PROHIBITED_CONTENT)");
        check(json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), Stopped::Refused, prompt);
    }
}
