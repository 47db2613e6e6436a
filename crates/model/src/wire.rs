//! The three ways of speaking to model servers. Each file holds what a request looks like and how its stream is read:
//! plain functions from data to data.

pub(crate) mod anthropic;
pub(crate) mod gemini;
pub(crate) mod openai;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::key::Key;
use crate::request::{Request, Stopped};
use crate::trouble::Trouble;

/// A way of speaking to model servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wire {
    /// Chat completions, as OpenAI, Ollama, vLLM, llama.cpp, LM Studio, OpenRouter and many others speak.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `streamGenerateContent`.
    Gemini,
}

impl Wire {
    /// Where requests go, below the base address.
    pub(crate) fn path(self, model: &str) -> String {
        match self {
            Wire::OpenAi => "/chat/completions".to_owned(),
            Wire::Anthropic => "/v1/messages".to_owned(),
            Wire::Gemini => gemini::path(model),
        }
    }

    /// The headers beside those that every request has. The key travels in one of them and never in the address.
    pub(crate) fn headers(self, key: Option<&Key>) -> Vec<(&'static str, String)> {
        let key = key.map(Key::reveal);
        match self {
            Wire::OpenAi => key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect(),
            Wire::Anthropic => {
                let version = ("anthropic-version", "2023-06-01".to_owned());
                key.map(|key| ("x-api-key", key.to_owned())).into_iter().chain([version]).collect()
            }
            Wire::Gemini => key.map(|key| ("x-goog-api-key", key.to_owned())).into_iter().collect(),
        }
    }

    /// The body of a request.
    pub(crate) fn body(self, model: &str, request: &Request, without: Without) -> Value {
        match self {
            Wire::OpenAi => openai::body(model, request, without),
            Wire::Anthropic => anthropic::body(model, request, without),
            Wire::Gemini => gemini::body(request, without),
        }
    }

    /// Reads one event of a stream, or a whole reply of a server that does not stream.
    pub(crate) fn hear(self, heard: &mut Heard, event: &Value) -> Result<(), Trouble> {
        match self {
            Wire::OpenAi => openai::hear(heard, event),
            Wire::Anthropic => anthropic::hear(heard, event),
            Wire::Gemini => gemini::hear(heard, event),
        }
    }
}

/// What has been heard of a reply so far.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub text: String,
    pub input: u64,
    pub output: u64,
    /// What the server says that it cost.
    pub cost_usd: Option<f64>,
    pub stopped: Option<Stopped>,
    pub model: Option<String>,
    /// The provider's words where it blocked the conversation.
    pub blocked: Option<String>,
    /// The server has said that there is nothing more.
    pub ended: bool,
}

/// A part of a request that some servers do not take. It is left out for those that say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Schema = 1,
    Temperature = 2,
    Seed = 4,
    Stop = 8,
    /// The wish to be told the usage at the end of a stream.
    Usage = 16,
    /// The old name of the longest reply; the new one is used without it.
    MaxTokens = 32,
}

impl Field {
    /// In the order in which an error is searched for them: the ones whose names can hardly mean anything else first.
    pub(crate) const ALL: [Field; 6] =
        [Field::MaxTokens, Field::Usage, Field::Temperature, Field::Seed, Field::Stop, Field::Schema];

    /// The names that servers have for it.
    pub(crate) fn names(self) -> &'static [&'static str] {
        match self {
            Field::Schema => &[
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
            Field::Temperature => &["temperature"],
            Field::Seed => &["seed"],
            Field::Stop => &["'stop'", "\"stop\"", "`stop`", "stop_sequences", "stopsequences"],
            Field::Usage => &["stream_options", "include_usage"],
            Field::MaxTokens => &["max_completion_tokens"],
        }
    }

    /// Whether the request holds it at all.
    pub(crate) fn is_in(self, request: &Request, wire: Wire) -> bool {
        match self {
            Field::Schema => request.schema.is_some(),
            Field::Temperature => true,
            Field::Seed => request.seed.is_some() && wire != Wire::Anthropic,
            Field::Stop => !request.stop.is_empty(),
            Field::Usage | Field::MaxTokens => wire == Wire::OpenAi,
        }
    }
}

/// The fields that a server does not take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Without(pub u8);

impl Without {
    pub(crate) fn has(self, field: Field) -> bool {
        self.0 & field as u8 != 0
    }
}

/// A number that may be missing.
pub(crate) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}
