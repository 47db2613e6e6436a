//! Requests and completions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Completion request: a conversation with sampling parameters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompletionRequest {
    /// Conversation, oldest message first.
    pub messages: Vec<Message>,
    /// Maximum reply length, in tokens.
    pub max_tokens: u32,
    /// Sampling temperature; 0 always takes the most likely token.
    pub temperature: f32,
    /// Seed for reproducible sampling, on servers that support it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// JSON schema for the reply.
    ///
    /// Servers without support are sent the request without it, so the reply must still be
    /// validated. For the strictest servers, every object lists all its properties as required and
    /// sets `additionalProperties` to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// Sequences that end the reply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// `true` if one SQL statement is expected: a local model stops after it. Neither sent to
    /// servers nor recorded.
    #[serde(skip)]
    pub expects_sql: bool,
    /// Names that the SQL may use, enforced by local models with constrained decoding. Neither sent
    /// to servers nor recorded.
    #[serde(skip)]
    pub allowed_names: Option<Arc<AllowedNames>>,
    /// Number of additional samples at a higher temperature; models that cannot generate several at
    /// once return none. Not recorded.
    #[serde(skip)]
    pub extra_samples: u32,
    /// W3C `traceparent` of the trace that the request belongs to, sent to servers. Not recorded.
    #[serde(skip)]
    pub traceparent: Option<String>,
    /// Maximum time of the whole request, including retries.
    pub timeout: Duration,
}

/// Tables and columns that a query may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedNames {
    /// Columns of each table, in lower case.
    tables: BTreeMap<String, Vec<String>>,
}

impl AllowedNames {
    /// Creates the set from tables with their columns.
    pub fn new<T: AsRef<str>, C: AsRef<str>>(tables: impl IntoIterator<Item = (T, Vec<C>)>) -> Self {
        let mut by_table: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (table, columns) in tables {
            // Tables with the same name in two schemas are merged.
            let all = by_table.entry(table.as_ref().to_lowercase()).or_default();
            all.extend(columns.iter().map(|column| column.as_ref().to_lowercase()));
        }
        Self { tables: by_table }
    }

    pub(crate) fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    pub(crate) fn columns(&self, table: &str) -> Option<&Vec<String>> {
        self.tables.get(table)
    }

    pub(crate) fn all_columns(&self) -> impl Iterator<Item = &str> {
        self.tables.values().flatten().map(String::as_str)
    }
}

impl CompletionRequest {
    /// Creates a request with defaults: 1024 tokens, temperature 0, one minute.
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            max_tokens: 1024,
            temperature: 0.0,
            seed: None,
            schema: None,
            stop: Vec::new(),
            expects_sql: false,
            allowed_names: None,
            extra_samples: 0,
            traceparent: None,
            timeout: Duration::from_secs(60),
        }
    }

    /// Sets the maximum reply length, in tokens.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Sets the sampling temperature.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// Sets the seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Sets the JSON schema for the reply.
    pub fn schema(mut self, schema: serde_json::Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Declares that one SQL statement is expected.
    pub fn sql(mut self) -> Self {
        self.expects_sql = true;
        self
    }

    /// Sets the maximum time of the whole request.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Returns the temperature as it was written: 0.7 instead of 0.699999988, the result of
    /// widening it.
    pub(crate) fn rounded_temperature(&self) -> f64 {
        (f64::from(self.temperature) * 1e4).round() / 1e4
    }
}

/// Message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Role of the author.
    pub role: MessageRole,
    /// Content of the message.
    pub text: String,
}

impl Message {
    /// Creates a system message, which sets the task.
    pub fn system(text: impl Into<String>) -> Self {
        Self { role: MessageRole::System, text: text.into() }
    }

    /// Creates a user message.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: MessageRole::User, text: text.into() }
    }

    /// Creates an assistant message, a reply of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: MessageRole::Assistant, text: text.into() }
    }
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageRole {
    /// Instructions that set the task.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl MessageRole {
    /// Returns the name used by OpenAI and Anthropic.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MessageRole::System => "system",
            MessageRole::User => "user",
            MessageRole::Assistant => "assistant",
        }
    }
}

/// Reply of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Completion {
    /// Complete text. It may be empty, since some models stop immediately.
    pub text: String,
    /// Additional samples, if they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// Tokens and cost of the reply.
    pub usage: Usage,
    /// Reason for the end of the reply.
    pub stopped: FinishReason,
    /// Model that replied, as reported by the server; it may be more specific than the requested
    /// name.
    pub model: String,
}

impl Completion {
    /// Creates a completion with this text that ended normally, for tests.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            more: Vec::new(),
            usage: Usage::default(),
            stopped: FinishReason::End,
            model: "script".to_owned(),
        }
    }
}

/// Tokens and cost of a completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Number of input tokens, as reported by the server; 0 if it is not.
    pub input: u64,
    /// Number of output tokens, including reasoning.
    pub output: u64,
    /// Cost in US dollars, at the list price or as reported by the server.
    ///
    /// Discounts for cached prompts are not considered, so the bill may be lower. `None` if no
    /// price is known.
    pub cost_usd: Option<f64>,
}

/// Reason for the end of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FinishReason {
    /// The model finished, or generated a stop sequence.
    End,
    /// The maximum length was reached or the context window is full: the text is truncated.
    Length,
    /// The model or its provider refused to continue; the text contains the reason, or is
    /// truncated.
    Refused,
}

/// Limits of a model, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelLimits {
    /// Context window in tokens, for prompt and reply together.
    pub context: Option<u32>,
    /// Maximum reply length, in tokens.
    pub output: Option<u32>,
    /// Recommended number of samples per request for self-consistency voting. 0 and 1 mean one.
    pub candidates: u32,
}
