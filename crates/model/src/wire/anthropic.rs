//! Anthropic's messages.

use serde_json::{Value, json};

use super::{Field, Heard, Without, count};
use crate::request::{Request, Role, Stopped};
use crate::trouble::Trouble;

pub(super) fn body(model: &str, request: &Request, without: Without) -> Value {
    // What the model is told about its task stands beside the conversation, and turns of one speaker become one turn.
    let mut system = String::new();
    let mut messages: Vec<(Role, String)> = Vec::new();
    for message in &request.messages {
        match (message.role, messages.last_mut()) {
            (Role::System, _) => {
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
        messages.iter().map(|(role, text)| json!({"role": role.word(), "content": text})).collect();
    let mut body = json!({"model": model, "max_tokens": request.max_tokens, "messages": messages, "stream": true});
    if !system.is_empty() {
        body["system"] = system.into();
    }
    if !without.has(Field::Temperature) {
        // Its scale ends at 1.
        body["temperature"] = request.temperature_as_written().clamp(0.0, 1.0).into();
    }
    if !request.stop.is_empty() && !without.has(Field::Stop) {
        body["stop_sequences"] = json!(request.stop);
    }
    if let (Some(schema), false) = (&request.schema, without.has(Field::Schema)) {
        body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    }
    body
}

pub(super) fn hear(heard: &mut Heard, event: &Value) -> Result<(), Trouble> {
    if let Some(trouble) = Trouble::in_body(event) {
        return Err(trouble);
    }
    match event["type"].as_str() {
        Some("message_start") => about(heard, &event["message"]),
        Some("content_block_start") => push(heard, &event["content_block"]["text"]),
        Some("content_block_delta") if event["delta"]["type"] == "text_delta" => push(heard, &event["delta"]["text"]),
        Some("message_delta") => {
            stop(heard, &event["delta"]["stop_reason"]);
            usage(heard, &event["usage"]);
        }
        Some("message_stop") => heard.ended = true,
        // A server that does not stream sends the message whole.
        Some("message") => {
            about(heard, event);
            for block in event["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "text") {
                push(heard, &block["text"]);
            }
            stop(heard, &event["stop_reason"]);
            heard.ended = true;
        }
        _ => {}
    }
    Ok(())
}

fn push(heard: &mut Heard, text: &Value) {
    heard.text.push_str(text.as_str().unwrap_or_default());
}

fn about(heard: &mut Heard, message: &Value) {
    heard.model = message["model"].as_str().map(str::to_owned);
    usage(heard, &message["usage"]);
}

/// Usage comes in parts; a later count replaces an earlier one. What is read from a cache is read too.
fn usage(heard: &mut Heard, usage: &Value) {
    if usage["input_tokens"].is_u64() {
        heard.input = count(&usage["input_tokens"])
            + count(&usage["cache_creation_input_tokens"])
            + count(&usage["cache_read_input_tokens"]);
    }
    if usage["output_tokens"].is_u64() {
        heard.output = count(&usage["output_tokens"]);
    }
}

fn stop(heard: &mut Heard, reason: &Value) {
    heard.stopped = match reason.as_str() {
        None => heard.stopped,
        Some("max_tokens" | "model_context_window_exceeded") => Some(Stopped::Length),
        Some("refusal") => Some(Stopped::Refused),
        Some(_) => Some(Stopped::End),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn a_request_says_what_is_asked() {
        let request = Request::new(vec![
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
            body("m", &request, Without::default()),
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
        let less = Without(Field::Schema as u8 | Field::Temperature as u8);
        assert_eq!(
            body("m", &request, less),
            json!({"model": "m", "max_tokens": 1024, "messages": messages, "stream": true, "system": "Be brief."})
        );
    }

    #[test]
    fn a_stream_is_put_together() {
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
        let mut heard = Heard::default();
        for event in &events {
            assert!(!heard.ended);
            hear(&mut heard, event).unwrap();
        }
        let expected = Heard {
            text: "SELECT 1".to_owned(),
            input: 15,
            output: 4,
            stopped: Some(Stopped::End),
            model: Some("m-2".to_owned()),
            ended: true,
            ..Heard::default()
        };
        assert_eq!(heard, expected);

        let whole = json!({"type": "message", "model": "m-2", "content": [{"type": "text", "text": "SELECT 1"}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 15, "output_tokens": 4}});
        let mut heard = Heard::default();
        hear(&mut heard, &whole).unwrap();
        assert_eq!(heard, expected);
    }

    #[test]
    fn replies_end_in_several_ways() {
        for (reason, stopped) in [
            ("stop_sequence", Stopped::End),
            ("max_tokens", Stopped::Length),
            ("model_context_window_exceeded", Stopped::Length),
            ("refusal", Stopped::Refused),
        ] {
            let mut heard = Heard::default();
            hear(&mut heard, &json!({"type": "message_delta", "delta": {"stop_reason": reason}})).unwrap();
            assert_eq!(heard.stopped, Some(stopped));
        }
        let event = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        let trouble = hear(&mut Heard::default(), &event).unwrap_err();
        assert_eq!((trouble.kind.as_str(), trouble.message.as_str()), ("overloaded_error", "Overloaded"));
    }
}
