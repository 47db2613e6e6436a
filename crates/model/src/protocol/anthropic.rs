//! Anthropic's Messages API.

use serde_json::{Value, json};

use super::{RequestField, StreamAccumulator, UnsupportedFields, token_count};
use crate::provider_error::ProviderError;
use crate::request::{CompletionRequest, FinishReason, MessageRole};

pub(super) fn body(model: &str, request: &CompletionRequest, unsupported: UnsupportedFields) -> Value {
    // The system prompt is separate from the conversation, and consecutive messages of one role are
    // merged.
    let mut system = String::new();
    let mut messages: Vec<(MessageRole, String)> = Vec::new();
    for message in &request.messages {
        match (message.role, messages.last_mut()) {
            (MessageRole::System, _) => {
                if !system.is_empty() {
                    system.push_str("\n\n");
                }
                system.push_str(&message.text);
            }
            (role, Some((last, text))) if *last == role => {
                text.push_str("\n\n");
                text.push_str(&message.text);
            }
            (role, _) => messages.push((role, message.text.clone())),
        }
    }
    let messages: Vec<Value> =
        messages.iter().map(|(role, text)| json!({"role": role.name(), "content": text})).collect();
    let mut body = json!({"model": model, "max_tokens": request.max_tokens, "messages": messages, "stream": true});
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if !unsupported.contains(RequestField::Temperature) {
        // The maximum is 1.
        body["temperature"] = request.rounded_temperature().clamp(0.0, 1.0).into();
    }
    if !request.stop.is_empty() && !unsupported.contains(RequestField::Stop) {
        body["stop_sequences"] = json!(request.stop);
    }
    if let (Some(schema), false) = (&request.schema, unsupported.contains(RequestField::Schema)) {
        body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    }
    body
}

pub(super) fn apply_event(state: &mut StreamAccumulator, event: &Value) -> Result<(), ProviderError> {
    if let Some(provider_error) = ProviderError::from_body(event) {
        return Err(provider_error);
    }
    match event["type"].as_str() {
        Some("message_start") => read_message(state, &event["message"]),
        Some("content_block_start") => push_text(state, &event["content_block"]["text"]),
        Some("content_block_delta") if event["delta"]["type"] == "text_delta" => {
            push_text(state, &event["delta"]["text"])
        }
        Some("message_delta") => {
            read_stop_reason(state, &event["delta"]["stop_reason"]);
            read_usage(state, &event["usage"]);
        }
        Some("message_stop") => state.is_done = true,
        // Servers that do not stream send the complete message.
        Some("message") => {
            read_message(state, event);
            for block in event["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "text") {
                push_text(state, &block["text"]);
            }
            read_stop_reason(state, &event["stop_reason"]);
            state.is_done = true;
        }
        _ => {}
    }
    Ok(())
}

fn push_text(state: &mut StreamAccumulator, text: &Value) {
    state.text.push_str(text.as_str().unwrap_or_default());
}

fn read_message(state: &mut StreamAccumulator, message: &Value) {
    state.model = message["model"].as_str().map(str::to_owned);
    read_usage(state, &message["usage"]);
}

/// Updates the token counts, which arrive in parts; a later count replaces an earlier one, and
/// cache reads count as input.
fn read_usage(state: &mut StreamAccumulator, usage: &Value) {
    if usage["input_tokens"].is_u64() {
        state.input = token_count(&usage["input_tokens"])
            + token_count(&usage["cache_creation_input_tokens"])
            + token_count(&usage["cache_read_input_tokens"]);
    }
    if usage["output_tokens"].is_u64() {
        state.output = token_count(&usage["output_tokens"]);
    }
}

fn read_stop_reason(state: &mut StreamAccumulator, reason: &Value) {
    state.finish_reason = match reason.as_str() {
        None => state.finish_reason,
        Some("max_tokens" | "model_context_window_exceeded") => Some(FinishReason::Length),
        Some("refusal") => Some(FinishReason::Refused),
        Some(_) => Some(FinishReason::End),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn serializes_requests() {
        let request = CompletionRequest::new(vec![
            Message::system("Be brief."),
            Message::user("Why?"),
            Message::user("Really."),
            Message::assistant("Because."),
            Message::user("Oh."),
        ])
        .temperature(1.5)
        .seed(7)
        .schema(json!({"type": "object"}));
        let messages = json!([
            {"role": "user", "content": "Why?\n\nReally."},
            {"role": "assistant", "content": "Because."},
            {"role": "user", "content": "Oh."}
        ]);
        assert_eq!(
            body("m", &request, UnsupportedFields::default()),
            json!({
                "model": "m",
                "max_tokens": 1024,
                "messages": messages,
                "stream": true,
                "system": "Be brief.",
                "temperature": 1.0,
                "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}
            })
        );
        let less = UnsupportedFields(RequestField::Schema as u8 | RequestField::Temperature as u8);
        assert_eq!(
            body("m", &request, less),
            json!({"model": "m", "max_tokens": 1024, "messages": messages, "stream": true, "system": "Be brief."})
        );
    }

    #[test]
    fn accumulates_a_stream() {
        let events = [
            json!({"type": "message_start", "message": {"model": "m-2", "content": [],
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 5, "output_tokens": 1}}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "SELECT"}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": " 1"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}),
            json!({"type": "message_stop"}),
        ];
        let mut heard = StreamAccumulator::default();
        for event in &events {
            assert!(!heard.is_done);
            apply_event(&mut heard, event).unwrap();
        }
        let expected = StreamAccumulator {
            text: "SELECT 1".to_owned(),
            input: 15,
            output: 4,
            finish_reason: Some(FinishReason::End),
            model: Some("m-2".to_owned()),
            is_done: true,
            ..StreamAccumulator::default()
        };
        assert_eq!(heard, expected);

        let whole = json!({"type": "message", "model": "m-2", "content": [{"type": "text", "text": "SELECT 1"}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 15, "output_tokens": 4}});
        let mut heard = StreamAccumulator::default();
        apply_event(&mut heard, &whole).unwrap();
        assert_eq!(heard, expected);
    }

    #[test]
    fn maps_finish_reasons() {
        for (reason, stopped) in [
            ("stop_sequence", FinishReason::End),
            ("max_tokens", FinishReason::Length),
            ("model_context_window_exceeded", FinishReason::Length),
            ("refusal", FinishReason::Refused),
        ] {
            let mut heard = StreamAccumulator::default();
            apply_event(&mut heard, &json!({"type": "message_delta", "delta": {"stop_reason": reason}})).unwrap();
            assert_eq!(heard.finish_reason, Some(stopped));
        }
        let event = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        let error = apply_event(&mut StreamAccumulator::default(), &event).unwrap_err();
        assert_eq!((error.kind.as_str(), error.message.as_str()), ("overloaded_error", "Overloaded"));
    }
}
