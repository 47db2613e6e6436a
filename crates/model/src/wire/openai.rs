//! Chat completions: OpenAI's own, and the many servers that speak like it.

use serde_json::{Value, json};

use super::{Field, Heard, Without, count};
use crate::request::{Request, Stopped};
use crate::trouble::Trouble;

pub(super) fn body(model: &str, request: &Request, without: Without) -> Value {
    let messages: Vec<Value> =
        request.messages.iter().map(|m| json!({"role": m.role.word(), "content": m.text})).collect();
    let mut body = json!({"model": model, "messages": messages, "stream": true});
    // Newer models of OpenAI take only the new name, most other servers know only the old one.
    let longest = if without.has(Field::MaxTokens) { "max_completion_tokens" } else { "max_tokens" };
    body[longest] = request.max_tokens.into();
    if !without.has(Field::Usage) {
        body["stream_options"] = json!({"include_usage": true});
    }
    if !without.has(Field::Temperature) {
        body["temperature"] = request.temperature_as_written().into();
    }
    if let (Some(seed), false) = (request.seed, without.has(Field::Seed)) {
        body["seed"] = seed.into();
    }
    if !request.stop.is_empty() && !without.has(Field::Stop) {
        body["stop"] = json!(request.stop);
    }
    if let (Some(schema), false) = (&request.schema, without.has(Field::Schema)) {
        let schema = json!({"name": "answer", "strict": true, "schema": schema});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    body
}

pub(super) fn hear(heard: &mut Heard, event: &Value) -> Result<(), Trouble> {
    if let Some(trouble) = Trouble::in_body(event) {
        return Err(trouble);
    }
    if let Some(model) = event["model"].as_str().filter(|model| !model.is_empty()) {
        heard.model = Some(model.to_owned());
    }
    let choice = &event["choices"][0];
    // A server that does not stream has a message where the others have a delta.
    let said = if choice["message"].is_object() { &choice["message"] } else { &choice["delta"] };
    if let Some(text) = said["content"].as_str() {
        heard.text.push_str(text);
    }
    if let Some(text) = said["refusal"].as_str().filter(|text| !text.is_empty()) {
        heard.text.push_str(text);
        heard.stopped = Some(Stopped::Refused);
    }
    match choice["finish_reason"].as_str() {
        None => {}
        Some("length" | "max_tokens") => heard.stopped = Some(Stopped::Length),
        Some("content_filter") => heard.stopped = Some(Stopped::Refused),
        Some(_) => {
            heard.stopped.get_or_insert(Stopped::End);
        }
    }
    let usage = &event["usage"];
    if usage.is_object() {
        heard.input = count(&usage["prompt_tokens"]);
        heard.output = count(&usage["completion_tokens"]);
        heard.cost_usd = usage["cost"].as_f64();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Message;

    #[test]
    fn a_request_says_what_is_asked() {
        let request = Request::new(vec![Message::system("Be brief."), Message::user("Why?")])
            .temperature(0.7)
            .seed(7)
            .schema(json!({"type": "object"}));
        let request = Request { stop: vec!["\n\n".to_owned()], ..request };
        assert_eq!(
            body("m", &request, Without::default()),
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
        let all = Field::ALL.iter().fold(0, |bits, field| bits | *field as u8);
        assert_eq!(
            body("m", &request, Without(all)),
            json!({
                "model": "m",
                "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
                "stream": true,
                "max_completion_tokens": 1024
            })
        );
    }

    fn hear_all(events: &[Value]) -> Result<Heard, Trouble> {
        let mut heard = Heard::default();
        for event in events {
            hear(&mut heard, event)?;
        }
        Ok(heard)
    }

    #[test]
    fn a_stream_is_put_together() {
        let heard = hear_all(&[
            json!({"model": "m-2", "choices": [{"index": 0, "delta": {"role": "assistant", "content": null}}], "usage": null}),
            json!({"model": "m-2", "choices": [{"index": 0, "delta": {"content": "SELECT"}, "finish_reason": null}]}),
            json!({"model": "m-2", "choices": [{"index": 0, "delta": {"content": " 1"}}]}),
            json!({"model": "m-2", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            json!({"model": "m-2", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3, "cost": 0.5}}),
        ]);
        assert_eq!(
            heard,
            Ok(Heard {
                text: "SELECT 1".to_owned(),
                input: 12,
                output: 3,
                cost_usd: Some(0.5),
                stopped: Some(Stopped::End),
                model: Some("m-2".to_owned()),
                ..Heard::default()
            })
        );
    }

    #[test]
    fn replies_end_in_several_ways() {
        let check = |event: Value, text: &str, stopped: Option<Stopped>| {
            let heard = hear_all(&[event]).unwrap();
            assert_eq!((heard.text.as_str(), heard.stopped), (text, stopped));
        };
        check(json!({"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}), "a", Some(Stopped::Length));
        check(json!({"choices": [{"delta": {"refusal": "No."}}]}), "No.", Some(Stopped::Refused));
        check(json!({"choices": [{"delta": {}, "finish_reason": "content_filter"}]}), "", Some(Stopped::Refused));
        check(
            json!({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]}),
            "whole",
            Some(Stopped::End),
        );
        check(json!({"choices": null, "usage": {"prompt_tokens": 1}}), "", None);
        check(json!("odd"), "", None);
    }

    #[test]
    fn an_error_in_the_stream_is_an_error() {
        let trouble = hear_all(&[json!({"error": {"message": "out of memory", "code": 500}})]).unwrap_err();
        assert_eq!((trouble.status, trouble.message.as_str()), (Some(500), "out of memory"));
    }
}
