//! Client for language models: one trait, three server protocols, an in-process runtime, and
//! recordings for tests.
//!
//! [`open`] takes a spec such as `ollama:qwen2.5-coder` or `openai:gpt-4.1-mini` and returns a
//! [`Model`]. A model streams its text, can be cancelled at any time, retries transient errors, and
//! reports failures precisely. Providers are configured as data, in `providers.toml` and in user
//! files of the same format, and so are the models that [`pull`] downloads to run locally, in
//! `models.toml`. If no model is configured, [`choose_model`] selects one.
//!
//! ```
//! use querymend_model::{CancelSignal, Message, Model, CompletionRequest, ScriptedModel};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let model = ScriptedModel::new(["SELECT count(*) FROM orders"]); // or open("ollama:qwen2.5-coder", &Providers::builtin()?)
//! let request = CompletionRequest::new(vec![Message::user("How many orders are there?")]);
//! let mut streamed = String::new();
//! let reply = model.complete(&request, &mut |piece| streamed.push_str(piece), &CancelSignal::new()).await?;
//! assert_eq!(reply.text, "SELECT count(*) FROM orders");
//! assert_eq!(reply.text, streamed);
//! # Ok::<(), querymend_model::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapters;
mod api_key;
mod cancel;
mod cassette;
mod choose;
mod discover;
mod embed;
mod error;
#[cfg(test)]
mod fuzz;
mod gguf;
mod http;
mod limited_file;
mod local;
mod model_cache;
mod open;
mod protocol;
mod provider_error;
mod providers;
mod pull;
mod registry;
mod remote;
mod request;
mod retry;
mod scripted;
mod sse;

use std::pin::Pin;

pub use adapters::AdapterSource;
pub use api_key::ProviderApiKey;
pub use cancel::CancelSignal;
pub use cassette::{RecordingModel, ReplayModel};
pub use choose::{Consent, LocalServer, ModelChoice, ModelEnvironment, choose_model, has_key};
pub use discover::discover_servers;
pub use embed::{Embedder, MiniLm, StaticEmbedder, open_embedder, similarity};
pub use error::{Error, TimeoutPhase};
pub use gguf::Gguf;
pub use local::{LocalFiles, LocalModel, Speed};
pub use model_cache::{ModelCache, Presence, sha256};
pub use open::open;
pub use protocol::ProviderProtocol;
pub use providers::{ModelInfo, Provider, Providers};
pub use pull::{PullError, PullProgress, pull};
pub use registry::{Hub, ModelEntry, ModelRegistry, ModelSource, Pip};
pub use request::{
    AllowedNames, Completion, CompletionRequest, FinishReason, Message, MessageRole, ModelLimits, Usage,
};
pub use retry::{Retry, RetryClock};
pub use scripted::{ScriptedModel, ScriptedReply};

/// Future returned by a model, boxed so that [`Model`] is dyn-compatible.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Language model that completes conversations.
pub trait Model: Send + Sync {
    /// Returns the name for messages, such as `openai:gpt-4.1-mini`. It never contains a key.
    fn name(&self) -> &str;

    /// Requests one completion, and calls `watch` with each chunk of text as it arrives.
    ///
    /// The chunks concatenate to the text of the completion. Cancelling or dropping the future
    /// closes the connection, so that the server stops generating.
    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion>;

    /// Returns the token limits of the model, as far as they are known.
    fn limits(&self) -> ModelLimits {
        ModelLimits::default()
    }
}
