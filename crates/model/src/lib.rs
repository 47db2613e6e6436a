//! Asks language models for text: one trait, three ways of speaking to servers, and recordings for tests.
//!
//! [`open`] takes a word such as `ollama:qwen2.5-coder` or `openai:gpt-4.1-mini` and gives a [`Model`]. A model streams
//! its text while it writes, can be stopped at any time, tries again where that helps, and says plainly what went wrong.
//! What it knows about providers is data: `providers.toml`, which users extend with a file of the same shape. So are the
//! models that [`pull`] fetches to run them here: `models.toml`. Where no model is named, [`choose`] says which one is asked.
//!
//! ```
//! use querymend_model::{Cancel, Message, Model, Request, Script};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let model = Script::new(["SELECT count(*) FROM orders"]); // or open("ollama:qwen2.5-coder", &Providers::builtin()?)
//! let request = Request::new(vec![Message::user("How many orders are there?")]);
//! let mut heard = String::new();
//! let reply = model.complete(&request, &mut |piece| heard.push_str(piece), &Cancel::new()).await?;
//! assert_eq!(reply.text, "SELECT count(*) FROM orders");
//! assert_eq!(reply.text, heard);
//! # Ok::<(), querymend_model::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapters;
mod cache;
mod cancel;
mod catalogue;
mod choose;
mod embed;
mod error;
#[cfg(test)]
mod fuzz;
mod gguf;
mod http;
mod key;
mod local;
mod open;
mod probe;
mod providers;
mod pull;
mod remote;
mod replay;
mod request;
mod retry;
mod script;
mod sse;
mod trouble;
mod wire;

use std::pin::Pin;

pub use adapters::AdapterSource;
pub use cache::{Cache, Presence, sha256};
pub use cancel::Cancel;
pub use catalogue::{Catalogue, Entry, Hub, Pip, Source};
pub use choose::{Choice, Facts, Leave, Served, choose, key_is_set};
pub use embed::{Embedder, MiniLm, Static, open_embedder, similarity};
pub use error::{Error, Wait};
pub use gguf::Gguf;
pub use key::Key;
pub use local::{Local, LocalFiles, Speed};
pub use open::open;
pub use probe::servers;
pub use providers::{Known, Provider, Providers};
pub use pull::{Progress, PullError, pull};
pub use replay::{Recorder, Replay};
pub use request::{Message, ModelLimits, Names, Reply, Request, Role, Stopped, Usage};
pub use retry::{Clock, Retry};
pub use script::{Line, Script};
pub use wire::Wire;

/// What a model gives back in time. A box rather than a generic, so that models can stand behind `dyn Model`.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// A language model that can be asked for text.
pub trait Model: Send + Sync {
    /// What to call it in messages, such as `openai:gpt-4.1-mini`. Never holds a key.
    fn name(&self) -> &str;

    /// Asks for one reply. `watch` gets each piece of text as it arrives; joined, the pieces are the text of the reply.
    /// Cancelling or dropping the future closes the connection, so that the server stops writing.
    fn complete<'a>(
        &'a self,
        request: &'a Request,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a Cancel,
    ) -> Answer<'a, Reply>;

    /// How much the model can read and write, where that is known.
    fn limits(&self) -> ModelLimits {
        ModelLimits::default()
    }
}
