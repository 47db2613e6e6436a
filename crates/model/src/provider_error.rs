//! Parsing and classification of server errors, whose formats differ between providers.

mod unsupported_field;

use std::time::Duration;

use serde_json::Value;

use crate::error::Error;

/// Error reported by a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProviderError {
    /// HTTP status, if there is one.
    pub status: Option<u16>,
    /// Error category: `type` or `status`.
    pub kind: String,
    /// Specific error code, if there is one.
    pub code: String,
    pub message: String,
    /// Request parameter that the error refers to.
    pub param: String,
    pub retry_after: Option<Duration>,
}

/// Maximum length of a server message in an error; longer ones are truncated.
const MAX_MESSAGE_CHARS: usize = 600;

impl ProviderError {
    /// Parses an error from a body, if it contains one. All providers have an `error` field, with
    /// different content.
    pub(crate) fn from_body(body: &Value) -> Option<ProviderError> {
        // Some servers respond with an array of one element.
        let body = if body.is_array() { &body[0] } else { body };
        let error = match &body["error"] {
            Value::Null if body["object"] == "error" => body,
            Value::Null => match &body["detail"] {
                Value::Null => return None,
                detail => return Some(ProviderError { message: value_text(detail), ..ProviderError::default() }),
            },
            error => error,
        };
        let text_field = |name: &str| match &error[name] {
            Value::String(text) => text.clone(),
            _ => String::new(),
        };
        let status = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        Some(ProviderError {
            status: status.filter(|status| (400..600).contains(status)),
            kind: if error["type"].is_string() { text_field("type") } else { text_field("status") },
            code: text_field("code"),
            message: if error["message"].is_null() { value_text(error) } else { value_text(&error["message"]) },
            param: text_field("param"),
            retry_after: error["details"].as_array().into_iter().flatten().find_map(|detail| {
                let seconds: f64 = detail["retryDelay"].as_str()?.strip_suffix('s')?.parse().ok()?;
                Duration::try_from_secs_f64(seconds).ok()
            }),
        })
    }

    /// Parses an error from a response with an error status, with any kind of body.
    pub(crate) fn from_response(status: u16, retry_after: Option<Duration>, body: &[u8]) -> ProviderError {
        let text = String::from_utf8_lossy(body);
        let reported = serde_json::from_str::<Value>(&text).ok().and_then(|body| ProviderError::from_body(&body));
        let reported = reported.unwrap_or_else(|| {
            // The content of an HTML page is useless; its status is not.
            let message = if text.trim_start().starts_with('<') { String::new() } else { text.trim().to_owned() };
            ProviderError { message, ..ProviderError::default() }
        });
        ProviderError { status: Some(status), retry_after: retry_after.or(reported.retry_after), ..reported }
    }

    /// Returns all fields as one lower-case text to search in.
    fn search_text(&self) -> String {
        format!("{} {} {} {}", self.kind, self.code, self.param, self.message).to_lowercase()
    }

    fn is_context_too_long(&self) -> bool {
        const CONTEXT_TOO_LONG_MARKERS: [&str; 13] = [
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
        let reported = self.search_text();
        self.status == Some(413)
            || (self.status != Some(429) && CONTEXT_TOO_LONG_MARKERS.iter().any(|sign| reported.contains(sign)))
    }

    /// Converts to the error for the caller.
    pub(crate) fn into_error(self, model: &str) -> Error {
        let model = model.to_owned();
        let reported = self.search_text();
        let mentions = |words: &[&str]| words.iter().any(|word| reported.contains(word));
        let too_long = self.is_context_too_long();
        let ProviderError { status, retry_after, .. } = self;
        let message = truncate_line(&self.message, MAX_MESSAGE_CHARS);
        if too_long {
            return Error::ContextTooLong { model, message };
        }
        let credit = "check the account's credit and plan with the provider";
        match status {
            Some(429) if mentions(&["insufficient_quota", "billing", "credit balance"]) => {
                Error::Auth { model, message, hint: credit.to_owned() }
            }
            Some(429) => Error::RateLimited { model, message, retry_after },
            Some(402) => Error::Auth { model, message, hint: credit.to_owned() },
            Some(400 | 403)
                if mentions(&["content_filter", "content management policy", "content_policy", "moderation"]) =>
            {
                Error::Refused { model, message }
            }
            Some(400) if mentions(&["credit balance", "billing"]) => {
                Error::Auth { model, message, hint: credit.to_owned() }
            }
            // Google reports an invalid key with status 400.
            Some(400) if mentions(&["api_key_invalid", "api key not valid"]) => invalid_key_error(model, message),
            Some(401 | 403) => invalid_key_error(model, message),
            Some(404) => Error::configuration(
                format!("{model} was not found (404){}", message_suffix(&message)),
                "check the name of the model, and the address of the server down to its /v1",
            ),
            Some(status @ (408 | 409 | 425 | 500..)) => Error::Overloaded { model, status, message, retry_after },
            Some(status) => Error::configuration(
                format!("{model} rejected the request ({status}){}", message_suffix(&message)),
                "check what the model can do, and the address of the server",
            ),
            // An error in the middle of a stream has no HTTP status.
            None if mentions(&["rate_limit", "resource_exhausted"]) => {
                Error::RateLimited { model, message, retry_after }
            }
            None if mentions(&["authentication_error", "permission_error"]) => invalid_key_error(model, message),
            None if mentions(&["overloaded"]) => Error::Overloaded { model, status: 529, message, retry_after },
            None if mentions(&["invalid_request"]) => Error::BadResponse { model, message },
            None => Error::Overloaded { model, status: 500, message, retry_after },
        }
    }
}

fn invalid_key_error(model: String, message: String) -> Error {
    Error::Auth { model, message, hint: "check the key, and what its account may use".to_owned() }
}

fn message_suffix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// Returns the text of a JSON string, or any other value as JSON.
fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Truncates a text to one line, with an ellipsis if it is longer.
pub(crate) fn truncate_line(text: &str, max_chars: usize) -> String {
    let line: Vec<&str> = text.split_whitespace().collect();
    let line = line.join(" ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(status: u16, body: &Value) -> Error {
        ProviderError::from_response(status, None, body.to_string().as_bytes()).into_error("x:m")
    }

    #[test]
    fn classifies_provider_errors() {
        let kind = |status: u16, body: Value| {
            let error = serde_json::to_value(error(status, &body)).unwrap();
            error["kind"].as_str().unwrap().to_owned()
        };
        let check =
            |status: u16, body: Value, expected: &str| assert_eq!(kind(status, body.clone()), expected, "{body}");
        // Context window errors of seven servers.
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
        // All other errors.
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
    fn classifies_stream_errors_without_a_status() {
        let transient = |body: Value| ProviderError::from_body(&body).unwrap().into_error("x:m").is_transient();
        assert!(transient(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})));
        assert!(transient(json!({"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}})));
        assert!(transient(json!({"error": "something broke"})));
        assert!(!transient(json!({"error": {"type": "authentication_error", "message": "who?"}})));
        assert_eq!(ProviderError::from_body(&json!({"choices": []})), None);
    }

    #[test]
    fn reads_retry_delay_from_the_body() {
        let body =
            json!({"error": {"code": 429, "message": "x", "details": [{"@type": "Help"}, {"retryDelay": "17.5s"}]}});
        assert_eq!(error(429, &body).retry_after(), Some(Duration::from_millis(17_500)));
        let body = json!({"error": {"code": 429, "message": "x", "details": [{"retryDelay": "-1s"}]}});
        assert_eq!(error(429, &body).retry_after(), None);
    }

    #[test]
    fn omits_html_pages_and_truncates_long_messages() {
        let page = ProviderError::from_response(502, None, b"<html><body>Bad gateway</body></html>").into_error("x:m");
        assert_eq!(page.to_string(), "x:m is unavailable (502)");
        let long = ProviderError::from_response(500, None, "é\n".repeat(5000).as_bytes()).into_error("x:m");
        assert!(long.to_string().chars().count() < 700 && long.to_string().ends_with('…'));
    }
}
