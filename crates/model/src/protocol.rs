//! Server protocols: request bodies and stream parsing, as pure functions.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod openai;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api_key::ProviderApiKey;
use crate::provider_error::ProviderError;
use crate::request::{CompletionRequest, FinishReason};

/// Protocol of a model server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderProtocol {
    /// Chat completions, as implemented by OpenAI, Ollama, vLLM, llama.cpp, LM Studio, OpenRouter
    /// and many others.
    OpenAi,
    /// Anthropic's Messages API.
    Anthropic,
    /// Google's `streamGenerateContent`.
    Gemini,
}

impl ProviderProtocol {
    /// Returns the path of the endpoint, relative to the base URL.
    pub(crate) fn path(self, model: &str) -> String {
        match self {
            ProviderProtocol::OpenAi => "/chat/completions".to_owned(),
            ProviderProtocol::Anthropic => "/v1/messages".to_owned(),
            ProviderProtocol::Gemini => gemini::path(model),
        }
    }

    /// Returns the protocol-specific headers. The key is sent in one of them, never in the URL.
    pub(crate) fn headers(self, key: Option<&ProviderApiKey>) -> Vec<(&'static str, String)> {
        let key = key.map(ProviderApiKey::reveal);
        match self {
            ProviderProtocol::OpenAi => key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect(),
            ProviderProtocol::Anthropic => {
                let version = ("anthropic-version", "2023-06-01".to_owned());
                key.map(|key| ("x-api-key", key.to_owned())).into_iter().chain([version]).collect()
            }
            ProviderProtocol::Gemini => key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect(),
        }
    }

    /// Builds the request body.
    pub(crate) fn body(self, model: &str, request: &CompletionRequest, unsupported: UnsupportedFields) -> Value {
        match self {
            ProviderProtocol::OpenAi => openai::body(model, request, unsupported),
            ProviderProtocol::Anthropic => anthropic::body(model, request, unsupported),
            ProviderProtocol::Gemini => gemini::body(request, unsupported),
        }
    }

    /// Applies an event of a stream, or the complete response of a server that does not stream.
    pub(crate) fn apply_event(self, state: &mut StreamAccumulator, event: &Value) -> Result<(), ProviderError> {
        match self {
            ProviderProtocol::OpenAi => openai::apply_event(state, event),
            ProviderProtocol::Anthropic => anthropic::apply_event(state, event),
            ProviderProtocol::Gemini => gemini::apply_event(state, event),
        }
    }
}

/// Part of a reply that has been received so far.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct StreamAccumulator {
    pub text: String,
    pub input: u64,
    pub output: u64,
    /// Cost reported by the server, in US dollars.
    pub cost_usd: Option<f64>,
    pub finish_reason: Option<FinishReason>,
    pub model: Option<String>,
    /// Reason given by the provider for blocking the conversation.
    pub block_reason: Option<String>,
    /// `true` if the server has signalled the end of the stream.
    pub is_done: bool,
}

/// Request field that some servers reject, and that is omitted for those that do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestField {
    Schema = 1,
    Temperature = 2,
    Seed = 4,
    Stop = 8,
    /// Request for usage data at the end of a stream.
    Usage = 16,
    /// Old name of the maximum reply length; without it, the new name is sent.
    MaxTokens = 32,
}

impl RequestField {
    /// All fields, in the order in which an error message is searched for them: the least ambiguous
    /// names first.
    pub(crate) const ALL: [RequestField; 6] = [
        RequestField::MaxTokens,
        RequestField::Usage,
        RequestField::Temperature,
        RequestField::Seed,
        RequestField::Stop,
        RequestField::Schema,
    ];

    /// Returns the names of the field in error messages.
    pub(crate) fn error_names(self) -> &'static [&'static str] {
        match self {
            RequestField::Schema => &[
                "response_format",
                "json_schema",
                "json schema",
                "output_config",
                "output_format",
                "responseschema",
                "response_schema",
                "responsemimetype",
                "response_mime_type",
                "structured output",
                "json mode",
                "grammar",
            ],
            RequestField::Temperature => &["temperature"],
            RequestField::Seed => &["seed"],
            RequestField::Stop => &["'stop'", "\"stop\"", "`stop`", "stop_sequences", "stopsequences"],
            RequestField::Usage => &["stream_options", "include_usage"],
            RequestField::MaxTokens => &["max_completion_tokens"],
        }
    }

    /// Returns whether the request contains the field.
    pub(crate) fn is_sent(self, request: &CompletionRequest, protocol: ProviderProtocol) -> bool {
        match self {
            RequestField::Schema => request.schema.is_some(),
            RequestField::Temperature => true,
            RequestField::Seed => request.seed.is_some() && protocol != ProviderProtocol::Anthropic,
            RequestField::Stop => !request.stop.is_empty(),
            RequestField::Usage | RequestField::MaxTokens => protocol == ProviderProtocol::OpenAi,
        }
    }
}

/// Bit set of fields that a server rejects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UnsupportedFields(pub u8);

impl UnsupportedFields {
    pub(crate) fn contains(self, field: RequestField) -> bool {
        self.0 & field as u8 != 0
    }
}

/// Reads a number; 0 if it is missing.
pub(crate) fn token_count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
