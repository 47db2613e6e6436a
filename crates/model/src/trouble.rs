//! What a server's refusal means: the shapes of their errors differ, their meanings do not.

use std::time::Duration;

use serde_json::Value;

use crate::error::Error;
use crate::request::Request;
use crate::wire::{Field, Wire, Without};

/// What a server said when it did not reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Trouble {
    /// The HTTP status, where there is one.
    pub status: Option<u16>,
    /// The server's word for the kind of trouble: `type` or `status`.
    pub kind: String,
    /// A finer word, where there is one.
    pub code: String,
    pub message: String,
    /// The part of the request that it is about.
    pub about: String,
    pub retry_after: Option<Duration>,
}

/// The longest that a server's words may be in an error; what is longer is cut.
const LONGEST_MESSAGE: usize = 600;

impl Trouble {
    /// The trouble that a body tells of, if it does. All providers have an `error` somewhere; its insides differ.
    pub(crate) fn in_body(body: &Value) -> Option<Trouble> {
        // Some servers answer with a list of one.
        let body = if body.is_array() { &body[0] } else { body };
        let error = match &body["error"] {
            Value::Null if body["object"] == "error" => body,
            Value::Null => match &body["detail"] {
                Value::Null => return None,
                detail => return Some(Trouble { message: words(detail), ..Trouble::default() }),
            },
            error => error,
        };
        let word = |name: &str| match &error[name] {
            Value::String(text) => text.clone(),
            _ => String::new(),
        };
        let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        Some(Trouble {
            status: status.filter(|status| (400..600).contains(status)),
            kind: if error["type"].is_string() { word("type") } else { word("status") },
            code: word("code"),
            message: if error["message"].is_null() { words(error) } else { words(&error["message"]) },
            about: word("param"),
            retry_after: error["details"].as_array().into_iter().flatten().find_map(|detail| {
                let seconds: f64 = detail["retryDelay"].as_str()?.strip_suffix('s')?.parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            }),
        })
    }

    /// The trouble that an answer with an error status tells of. Its body may be anything.
    pub(crate) fn in_answer(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Trouble {
        let text = String::from_utf8_lossy(body);
        let said = serde_json::from_str::<Value>(&text).ok().and_then(|body| Trouble::in_body(&body));
        let said = said.unwrap_or_else(|| {
            // A page for people says nothing that helps; its status does.
            let message = if text.trim_start().starts_with('<') { String::new() } else { text.trim().to_owned() };
            Trouble { message, ..Trouble::default() }
        });
        Trouble { status: Some(status), retry_after: retry_after.or(said.retry_after), ..said }
    }

    /// Everything that was said, for a search in it.
    fn said(&self) -> String {
        format!("{} {} {} {}", self.kind, self.code, self.about, self.message).to_lowercase()
    }

    fn is_context_too_long(&self) -> bool {
        const SIGNS: [&str; 13] = [
            "context_length_exceeded",
            "exceed_context_size",
            "maximum context length",
            "context length of only",
            "context size",
            "context window",
            "context limit",
            "prompt is too long",
            "input is too long",
            "input token count",
            "too many tokens in the prompt",
            "request_too_large",
            "number of tokens to keep",
        ];
        let said = self.said();
        self.status == Some(413) || (self.status != Some(429) && SIGNS.iter().any(|sign| said.contains(sign)))
    }

    /// The part of the request that the server does not take, if that is what it says.
    pub(crate) fn refused_field(&self, request: &Request, wire: Wire, without: Without) -> Option<Field> {
        if !matches!(self.status, Some(400 | 404 | 405 | 415 | 422 | 500 | 501)) || self.is_context_too_long() {
            return None;
        }
        let said = self.said();
        // A server at fault names no field; only one that says it cannot do something does.
        let cannot =
            ["support", "unknown", "unrecogni", "not permitted", "not allowed", "not implemented", "deprecated"];
        if self.status.is_some_and(|status| status >= 500) && !cannot.iter().any(|word| said.contains(word)) {
            return None;
        }
        let named = |field: &Field| field.names().iter().any(|name| said.contains(name));
        let sent = |field: &Field| field.is_in(request, wire) && !without.has(*field);
        Field::ALL.into_iter().filter(sent).find(named)
    }

    /// What it means for the caller.
    pub(crate) fn into_error(self, model: &str) -> Error {
        let model = model.to_owned();
        let said = self.said();
        let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
        let too_long = self.is_context_too_long();
        let Trouble { status, retry_after, .. } = self;
        let message = cut(&self.message, LONGEST_MESSAGE);
        if too_long {
            return Error::ContextTooLong { model, message };
        }
        let credit = "check the account's credit and plan with the provider";
        match status {
            Some(429) if says(&["insufficient_quota", "billing", "credit balance"]) => {
                Error::Auth { model, message, hint: credit.to_owned() }
            }
            Some(429) => Error::RateLimited { model, message, retry_after },
            Some(402) => Error::Auth { model, message, hint: credit.to_owned() },
            Some(400 | 403)
                if says(&["content_filter", "content management policy", "content_policy", "moderation"]) =>
            {
                Error::Refused { model, message }
            }
            Some(400) if says(&["credit balance", "billing"]) => {
                Error::Auth { model, message, hint: credit.to_owned() }
            }
            // Google answers a wrong key with 400.
            Some(400) if says(&["api_key_invalid", "api key not valid"]) => bad_key(model, message),
            Some(401 | 403) => bad_key(model, message),
            Some(404) => Error::configuration(
                format!("{model} is not there (404){}", after_colon(&message)),
                "check the name of the model, and the address of the server down to its /v1",
            ),
            Some(status @ (408 | 409 | 425 | 500..)) => Error::Overloaded { model, status, message, retry_after },
            Some(status) => Error::configuration(
                format!("{model} does not take the request ({status}){}", after_colon(&message)),
                "check what the model can do, and the address of the server",
            ),
            // An error in the middle of a stream has no status of its own.
            None if says(&["rate_limit", "resource_exhausted"]) => Error::RateLimited { model, message, retry_after },
            None if says(&["authentication_error", "permission_error"]) => bad_key(model, message),
            None if says(&["overloaded"]) => Error::Overloaded { model, status: 529, message, retry_after },
            None if says(&["invalid_request"]) => Error::BadResponse { model, message },
            None => Error::Overloaded { model, status: 500, message, retry_after },
        }
    }
}

fn bad_key(model: String, message: String) -> Error {
    Error::Auth { model, message, hint: "check the key, and what its account may use".to_owned() }
}

fn after_colon(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// A value in words: its text if it is one, else as it is written.
fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The beginning of a text, on one line, with a sign that there is more.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::Message;

    fn error(status: u16, body: &Value) -> Error {
        Trouble::in_answer(status, None, body.to_string().as_bytes()).into_error("x:m")
    }

    #[test]
    fn what_providers_say_is_understood() {
        let kind = |status: u16, body: Value| {
            let error = serde_json::to_value(error(status, &body)).unwrap();
            error["kind"].as_str().unwrap().to_owned()
        };
        let check =
            |status: u16, body: Value, expected: &str| assert_eq!(kind(status, body.clone()), expected, "{body}");
        // The context window, in the words of seven servers.
        for message in [
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "request (5021 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "Trying to keep the first 9000 tokens when context the overflows: number of tokens to keep is greater",
        ] {
            check(400, json!({"error": {"message": message}}), "context_too_long");
        }
        check(400, json!({"error": {"code": "context_length_exceeded", "message": "x"}}), "context_too_long");
        check(413, json!({"error": {"type": "request_too_large", "message": "x"}}), "context_too_long");
        // Keys and accounts.
        check(
            401,
            json!({"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}}),
            "auth",
        );
        check(
            400,
            json!([{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}]),
            "auth",
        );
        check(
            429,
            json!({"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}),
            "auth",
        );
        check(402, json!({"error": {"message": "Insufficient credits"}}), "auth");
        // The rest.
        check(429, json!({"error": {"type": "rate_limit_error", "message": "slow down"}}), "rate_limited");
        check(529, json!({"type": "error", "error": {"type": "overloaded_error"}}), "overloaded");
        check(
            503,
            json!({"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}),
            "overloaded",
        );
        check(400, json!({"error": {"code": "content_filter", "message": "x"}}), "refused");
        check(404, json!({"error": {"message": "model 'x' not found"}}), "configuration");
        check(400, json!({"object": "error", "message": "odd"}), "configuration");
        check(422, json!({"detail": [{"loc": ["body"], "msg": "field required"}]}), "configuration");
        check(302, json!({}), "configuration");
    }

    #[test]
    fn errors_in_a_stream_are_understood_without_a_status() {
        let transient = |body: Value| Trouble::in_body(&body).unwrap().into_error("x:m").is_transient();
        assert!(transient(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})));
        assert!(transient(json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}})));
        assert!(transient(json!({"error": "something broke"})));
        assert!(!transient(json!({"error": {"type": "authentication_error", "message": "who?"}})));
        assert_eq!(Trouble::in_body(&json!({"choices": []})), None);
    }

    #[test]
    fn a_server_may_say_how_long_to_wait_in_the_body() {
        let body =
            json!({"error": {"code": 429, "message": "x", "details": [{"@type": "Help"}, {"retryDelay": "17.5s"}]}});
        assert_eq!(error(429, &body).retry_after(), Some(Duration::from_millis(17_500)));
        let body = json!({"error": {"code": 429, "message": "x", "details": [{"retryDelay": "-1s"}]}});
        assert_eq!(error(429, &body).retry_after(), None);
    }

    #[test]
    fn pages_for_people_and_long_messages_are_kept_short() {
        let page = Trouble::in_answer(502, None, b"<html><body>Bad gateway</body></html>").into_error("x:m");
        assert_eq!(page.to_string(), "x:m cannot answer now (502)");
        let long = Trouble::in_answer(500, None, "é\n".repeat(5000).as_bytes()).into_error("x:m");
        assert!(long.to_string().chars().count() < 700 && long.to_string().ends_with('…'));
    }

    #[test]
    fn a06_a_field_that_a_server_does_not_take_is_recognised() {
        let mut request = Request::new(vec![Message::user("x")]).schema(json!({})).seed(1);
        request.stop = vec!["x".to_owned()];
        let check = |status: u16, wire: Wire, message: &str, field: Option<Field>| {
            let body = json!({"error": {"message": message}}).to_string();
            let trouble = Trouble::in_answer(status, None, body.as_bytes());
            assert_eq!(trouble.refused_field(&request, wire, Without::default()), field, "{message}");
        };
        use Wire::{Anthropic, Gemini, OpenAi};
        check(400, OpenAi, "'response_format' of type 'json_schema' is not supported", Some(Field::Schema));
        check(
            400,
            OpenAi,
            "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead.",
            Some(Field::MaxTokens),
        );
        check(
            400,
            OpenAi,
            "Unsupported value: 'temperature' does not support 0 with this model.",
            Some(Field::Temperature),
        );
        check(422, OpenAi, "body.stream_options: Extra inputs are not permitted", Some(Field::Usage));
        check(400, Anthropic, "output_config: Extra inputs are not permitted", Some(Field::Schema));
        check(400, Anthropic, "`temperature` is deprecated for this model.", Some(Field::Temperature));
        check(400, Gemini, "Invalid JSON payload received. Unknown name \"responseSchema\"", Some(Field::Schema));
        // A schema that a server cannot follow is no better than none: llama.cpp's words.
        check(400, OpenAi, "Automatic parser generation failed: JSON schema conversion failed", Some(Field::Schema));
        check(501, OpenAi, "structured output is not supported", Some(Field::Schema));
        check(500, OpenAi, "grammar worker crashed", None);
        check(400, OpenAi, "messages must not be empty", None);
        check(401, OpenAi, "response_format", None);
        check(400, OpenAi, "maximum context length is 10; reduce max_completion_tokens", None);
        // What was left out already cannot be the reason.
        let body = json!({"error": {"message": "response_format"}}).to_string();
        let trouble = Trouble::in_answer(400, None, body.as_bytes());
        assert_eq!(trouble.refused_field(&request, OpenAi, Without(Field::Schema as u8)), None);
    }
}
