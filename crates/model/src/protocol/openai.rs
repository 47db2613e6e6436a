//! Chat completions of OpenAI and compatible servers.

use serde_json::{Value, json};

use super::{RequestField, StreamAccumulator, UnsupportedFields, token_count};
use crate::provider_error::ProviderError;
use crate::request::{CompletionRequest, FinishReason};

pub(super) fn body(model: &str, request: &CompletionRequest, unsupported: UnsupportedFields) -> Value {
    let messages: Vec<Value> =
        request.messages.iter().map(|m| json!({"role": m.role.name(), "content": m.text})).collect();
    let mut body = json!({"model": model, "messages": messages, "stream": true});
    // Newer OpenAI models accept only the new name, most other servers only the old one.
    let max_tokens_key =
        if unsupported.contains(RequestField::MaxTokens) { "max_completion_tokens" } else { "max_tokens" };
    body[max_tokens_key] = request.max_tokens.into();
    if !unsupported.contains(RequestField::Usage) {
        body["stream_options"] = json!({"include_usage": true});
    }
    if !unsupported.contains(RequestField::Temperature) {
        body["temperature"] = request.rounded_temperature().into();
    }
    if let (Some(seed), false) = (request.seed, unsupported.contains(RequestField::Seed)) {
        body["seed"] = seed.into();
    }
    if !request.stop.is_empty() && !unsupported.contains(RequestField::Stop) {
        body["stop"] = json!(request.stop);
    }
    if let (Some(schema), false) = (&request.schema, unsupported.contains(RequestField::Schema)) {
        let schema = json!({"name": "answer", "strict": true, "schema": schema});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    body
}

pub(super) fn apply_event(state: &mut StreamAccumulator, event: &Value) -> Result<(), ProviderError> {
    if let Some(error) = ProviderError::from_body(event) {
        return Err(error);
    }
    if let Some(model) = event["model"].as_str().filter(|model| !model.is_empty()) {
        state.model = Some(model.to_owned());
    }
    let choice = &event["choices"][0];
    // Servers that do not stream send a message instead of a delta.
    let message = if choice["message"].is_object() { &choice["message"] } else { &choice["delta"] };
    if let Some(text) = message["content"].as_str() {
        state.text.push_str(text);
    }
    if let Some(text) = message["refusal"].as_str().filter(|text| !text.is_empty()) {
        state.text.push_str(text);
        state.finish_reason = Some(FinishReason::Refused);
    }
    match choice["finish_reason"].as_str() {
        None => {}
        Some("length" | "max_tokens") => state.finish_reason = Some(FinishReason::Length),
        Some("content_filter") => state.finish_reason = Some(FinishReason::Refused),
        Some(_) => {
            state.finish_reason.get_or_insert(FinishReason::End);
        }
    }
    let usage = &event["usage"];
    if usage.is_object() {
        state.input = token_count(&usage["prompt_tokens"]);
        state.output = token_count(&usage["completion_tokens"]);
        state.cost_usd = usage["cost"].as_f64();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn serializes_requests() {
        let request = CompletionRequest::new(vec![Message::system("Be brief."), Message::user("Why?")])
            .temperature(0.7)
            .seed(7)
            .schema(json!({"type": "object"}));
        let request = CompletionRequest { stop: vec!["\n\n".to_owned()], ..request };
        assert_eq!(
            body("m", &request, UnsupportedFields::default()),
            json!({
                "model": "m",
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
                "stream": true,
                "max_tokens": 1024,
                "stream_options": {"include_usage": true},
                "temperature": 0.7,
                "seed": 7,
                "stop": ["\n\n"],
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "strict": true, "schema": {"type": "object"}}
                }
            })
        );
        let all = RequestField::ALL.iter().fold(0, |bits, field| bits | *field as u8);
        assert_eq!(
            body("m", &request, UnsupportedFields(all)),
            json!({
                "model": "m",
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
                "stream": true,
                "max_completion_tokens": 1024
            })
        );
    }

    fn hear_all(events: &[Value]) -> Result<StreamAccumulator, ProviderError> {
        let mut heard = StreamAccumulator::default();
        for event in events {
            apply_event(&mut heard, event)?;
        }
        Ok(heard)
    }

    #[test]
    fn accumulates_a_stream() {
        let heard = hear_all(&[
            json!({"model": "m-2", "choices": [{"index": 0, "delta": {"role": "assistant", "content": null}}], "usage": null}),
            json!({"model": "m-2", "choices": [{"index": 0, "delta": {"content": "SELECT"}, "finish_reason": null}]}),
            json!({"model": "m-2", "choices": [{"index": 0, "delta": {"content": " 1"}}]}),
            json!({"model": "m-2", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            json!({"model": "m-2", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "cost": 0.5}}),
        ]);
        assert_eq!(
            heard,
            Ok(StreamAccumulator {
                text: "SELECT 1".to_owned(),
                input: 12,
                output: 3,
                cost_usd: Some(0.5),
                finish_reason: Some(FinishReason::End),
                model: Some("m-2".to_owned()),
                ..StreamAccumulator::default()
            })
        );
    }

    #[test]
    fn maps_finish_reasons() {
        let check = |event: Value, text: &str, stopped: Option<FinishReason>| {
            let heard = hear_all(&[event]).unwrap();
            assert_eq!((heard.text.as_str(), heard.finish_reason), (text, stopped));
        };
        check(
            json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}),
            "a",
            Some(FinishReason::Length),
        );
        check(json!({"choices": [{"delta": {"refusal": "No."}}]}), "No.", Some(FinishReason::Refused));
        check(json!({"choices": [{"delta": {}, "finish_reason": "content_filter"}]}), "", Some(FinishReason::Refused));
        check(
            json!({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}),
            "whole",
            Some(FinishReason::End),
        );
        check(json!({"choices": null, "usage": {"prompt_tokens": 1}}), "", None);
        check(json!("odd"), "", None);
    }

    #[test]
    fn reports_an_error_in_the_stream() {
        let error = hear_all(&[json!({"error": {"message": "out of memory", "code": 500}})]).unwrap_err();
        assert_eq!((error.status, error.message.as_str()), (Some(500), "out of memory"));
    }
}
