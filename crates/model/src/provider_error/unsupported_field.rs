//! Detection of request fields that a server rejects.

use super::ProviderError;
use crate::protocol::{ProviderProtocol, RequestField, UnsupportedFields};
use crate::request::CompletionRequest;

impl ProviderError {
    /// Returns the request field that the server rejects, if that is what the error is about.
    pub(crate) fn unsupported_field(
        &self,
        request: &CompletionRequest,
        protocol: ProviderProtocol,
        unsupported: UnsupportedFields,
    ) -> Option<RequestField> {
        if !matches!(self.status, Some(400 | 404 | 405 | 415 | 422 | 500 | 501)) || self.is_context_too_long() {
            return None;
        }
        let reported = self.search_text();
        // An internal error may mention any field; only a message about missing support identifies
        // one.
        let cannot =
            ["support", "unknown", "unrecogni", "not permitted", "not allowed", "not implemented", "deprecated"];
        if self.status.is_some_and(|status| status >= 500) && !cannot.iter().any(|word| reported.contains(word)) {
            return None;
        }
        let named = |field: &RequestField| field.error_names().iter().any(|name| reported.contains(name));
        let sent = |field: &RequestField| field.is_sent(request, protocol) && !unsupported.contains(*field);
        RequestField::ALL.into_iter().filter(sent).find(named)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::request::Message;

    #[test]
    fn recognizes_unsupported_request_fields() {
        let mut request = CompletionRequest::new(vec![Message::user("x")]).schema(json!({})).seed(1);
        request.stop = vec!["x".to_owned()];
        let check = |status: u16, wire: ProviderProtocol, message: &str, field: Option<RequestField>| {
            let body = json!({"error": {"message": message}}).to_string();
            let error = ProviderError::from_response(status, None, body.as_bytes());
            assert_eq!(error.unsupported_field(&request, wire, UnsupportedFields::default()), field, "{message}");
        };
        use ProviderProtocol::{Anthropic, Gemini, OpenAi};
        check(400, OpenAi, "'response_format' of type 'json_schema' is not supported", Some(RequestField::Schema));
        check(
            400,
            OpenAi,
            "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead.",
            Some(RequestField::MaxTokens),
        );
        check(
            400,
            OpenAi,
            "Unsupported value: 'temperature' does not support 0 with this model.",
            Some(RequestField::Temperature),
        );
        check(422, OpenAi, "body.stream_options: Extra inputs are not permitted", Some(RequestField::Usage));
        check(400, Anthropic, "output_config: Extra inputs are not permitted", Some(RequestField::Schema));
        check(400, Anthropic, "`temperature` is deprecated for this model.", Some(RequestField::Temperature));
        check(
            400,
            Gemini,
            "Invalid JSON payload received. Unknown name \"responseSchema\"",
            Some(RequestField::Schema),
        );
        // llama.cpp: a schema that the server cannot handle is an unsupported field.
        check(
            400,
            OpenAi,
            "Automatic parser generation failed: JSON schema conversion failed",
            Some(RequestField::Schema),
        );
        check(501, OpenAi, "structured output is not supported", Some(RequestField::Schema));
        check(500, OpenAi, "grammar worker crashed", None);
        check(400, OpenAi, "messages must not be empty", None);
        check(401, OpenAi, "response_format", None);
        check(400, OpenAi, "maximum context length is 10; reduce max_completion_tokens", None);
        // A field that was already omitted cannot be the cause.
        let body = json!({"error": {"message": "response_format"}}).to_string();
        let error = ProviderError::from_response(400, None, body.as_bytes());
        assert_eq!(error.unsupported_field(&request, OpenAi, UnsupportedFields(RequestField::Schema as u8)), None);
    }
}
