//! What a model is asked, and what it replies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One request: a conversation so far, and how the reply to it should be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The conversation, oldest first.
    pub messages: Vec<Message>,
    /// The longest reply, in tokens.
    pub max_tokens: u32,
    /// How freely words are chosen: 0 always takes the likeliest.
    pub temperature: f32,
    /// Makes chance repeatable, where the server can do that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// A JSON schema that the reply should keep to. Servers that cannot hold a model to it are asked without it, so the
    /// reply must still be read with care. For the strictest servers every object names all its properties as required
    /// and sets `additionalProperties` to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// Texts that end the reply where they occur.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// One SQL statement is asked for: a model that is run here ends with it. Servers are not told, and recordings do not
    /// hold it.
    #[serde(skip)]
    pub sql: bool,
    /// The names that the SQL may use: a model that is run here is held to them. Servers are not told, and recordings do not
    /// hold it.
    #[serde(skip)]
    pub names: Option<Arc<Names>>,
    /// So many further texts are wanted, written more freely; those who cannot write several at once give none. Recordings do not
    /// hold it.
    #[serde(skip)]
    pub more: u32,
    /// The trace that it belongs to, as servers are told it (W3C `traceparent`). Recordings do not hold it.
    #[serde(skip)]
    pub traceparent: Option<String>,
    /// The longest that the whole request may take, tries included.
    pub timeout: Duration,
}

/// The tables and columns that a query may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// In lower case: each table with its columns.
    tables: BTreeMap<String, Vec<String>>,
}

impl Names {
    /// From tables with their columns.
    pub fn new<T: AsRef<str>, C: AsRef<str>>(tables: impl IntoIterator<Item = (T, Vec<C>)>) -> Self {
        let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (table, columns) in tables {
            // Two schemas may have a table of the same name: it has the columns of both.
            let all = known.entry(table.as_ref().to_lowercase()).or_default();
            all.extend(columns.iter().map(|column| column.as_ref().to_lowercase()));
        }
        Self { tables: known }
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

impl Request {
    /// A request with defaults: 1024 tokens, temperature 0, one minute.
    pub fn new(messages: Vec<Message>) -> Self {
        Self {
            messages,
            max_tokens: 1024,
            temperature: 0.0,
            seed: None,
            schema: None,
            stop: Vec::new(),
            sql: false,
            names: None,
            more: 0,
            traceparent: None,
            timeout: Duration::from_secs(60),
        }
    }

    /// With the longest reply, in tokens.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// With how freely words are chosen.
    pub fn temperature(mut self, temperature: f32) -> Self {
        self.temperature = temperature;
        self
    }

    /// With a seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// With a JSON schema for the reply.
    pub fn schema(mut self, schema: serde_json::Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Asking for one SQL statement.
    pub fn sql(mut self) -> Self {
        self.sql = true;
        self
    }

    /// With the longest time that it may take.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// The temperature as it was written: 0.7 and not 0.699999988, which is what widening it would give.
    pub(crate) fn temperature_as_written(&self) -> f64 {
        (f64::from(self.temperature) * 1e4).round() / 1e4
    }
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub text: String,
}

impl Message {
    /// What the model is told about its task.
    pub fn system(text: impl Into<String>) -> Self {
        Self { role: Role::System, text: text.into() }
    }

    /// What it is asked.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, text: text.into() }
    }

    /// What it said itself.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, text: text.into() }
    }
}

/// Who speaks in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sets the task.
    System,
    /// Asks.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The word for it that OpenAI and Anthropic share.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// What a model replied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Its text, whole. It may be empty: some models stop at once.
    pub text: String,
    /// Further texts, where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
    /// What it took.
    pub usage: Usage,
    /// Why it ended.
    pub stopped: Stopped,
    /// The model that replied, in the server's words; it may be more exact than the one that was asked for.
    pub model: String,
}

impl Reply {
    /// A reply for tests: this text, ended by itself.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            more: Vec::new(),
            usage: Usage::default(),
            stopped: Stopped::End,
            model: "script".to_owned(),
        }
    }
}

/// What a reply took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read, as the server counts them; 0 if it does not say.
    pub input: u64,
    /// Tokens written, thinking included.
    pub output: u64,
    /// What that costs at the list price, or what the server says that it cost. Rebates for repeated prompts are not
    /// counted, so the bill may be lower. `None` where no price is known.
    pub cost_usd: Option<f64>,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// The model was done, or came to one of the stop texts.
    End,
    /// The reply came to its longest length, or the context window was full: the text is cut.
    Length,
    /// The model or its provider declined to go on; the text says why, or is cut.
    Refused,
}

/// How much a model can read and write, where that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelLimits {
    /// Its context window in tokens: what is asked and what is replied, together.
    pub context: Option<u32>,
    /// The longest reply in tokens.
    pub output: Option<u32>,
    /// How many texts are best written at once, if the answer that most of them agree on is taken. 0 and 1 mean one.
    pub candidates: u32,
}
