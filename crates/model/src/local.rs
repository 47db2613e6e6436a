//! In-process inference on the CPU: no server, no key, no network.
//!
//! A GGUF file contains the weights, the vocabulary and the chat template. One worker thread runs
//! the model; requests are queued. The KV cache of a prompt is kept for the next request: if two
//! prompts share a prefix (the same tables, another question), only the rest is processed.

mod constrained;
mod decode;
mod error;
mod files;
mod forward;
mod lora;
mod repacked;
mod statement_end;
mod tokenizer;
mod weights;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::error::{Error, TimeoutPhase};
use crate::providers::Providers;
use crate::request::{Completion, CompletionRequest, ModelLimits};
use crate::{BoxFuture, CancelSignal, Model};
use decode::Decoder;
use error::LocalModelError;
use tokenizer::ChatTokenizer;
use weights::GgufReader;

pub use files::LocalFiles;

/// Maximum context length, even if the model supports more.
///
/// The KV cache takes memory for each token, and a prompt of this length takes a CPU long enough.
const MAX_CONTEXT_TOKENS: usize = 8_192;

/// Maximum time to load a model.
const LOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Model that runs in this process.
pub struct LocalModel {
    name: String,
    context: usize,
    jobs: mpsc::Sender<GenerationJob>,
}

/// Job for the worker thread.
struct GenerationJob {
    request: CompletionRequest,
    events: UnboundedSender<DecodeEvent>,
    /// `true` once the caller has stopped waiting for the reply.
    is_abandoned: Arc<AtomicBool>,
}

/// Event of the worker thread.
enum DecodeEvent {
    /// The model is loaded, and this request is being processed.
    Started,
    TextDelta(String),
    Done(Box<Result<Completion, Error>>),
}

/// Result of a speed measurement.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Speed {
    /// Time to load the model, in seconds.
    pub load_s: f64,
    /// Prompt processing speed, in tokens per second.
    pub read_per_s: f64,
    /// Generation speed, in tokens per second.
    pub write_per_s: f64,
    /// Total generation speed for a batch of four sequences, in tokens per second.
    pub write_four_per_s: f64,
}

impl LocalModel {
    /// Opens a model file.
    ///
    /// The header is read and validated immediately, the weights on the first request.
    pub fn open(name: impl Into<String>, files: &LocalFiles) -> Result<Self, Error> {
        let name = name.into();
        let (source, tokens) = open_gguf(&files.model).map_err(|error| to_error(&files.model, &error))?;
        let hyperparameters = source.hyperparameters().map_err(|error| to_error(&files.model, &error))?;
        let context = hyperparameters.context.min(MAX_CONTEXT_TOKENS);
        let (work, jobs) = mpsc::channel();
        let (worker_name, files) = (name.clone(), files.clone());
        let worker = std::thread::Builder::new().name("local model".into());
        worker.spawn(move || run_worker(&worker_name, &files, source, tokens, context, &jobs)).map_err(|error| {
            Error::configuration(format!("cannot start a thread for the model: {error}"), "free some memory")
        })?;
        Ok(Self { name, context, jobs: work })
    }

    /// Resolves the part of a spec after `local:`: a pulled model's name, a file, or a file and its
    /// adapter.
    pub fn resolve_files(spec: &str, providers: &Providers) -> Result<LocalFiles, Error> {
        LocalFiles::resolve(spec, providers)
    }

    /// Measures the speed of a model on this machine.
    pub fn measure_speed(files: &LocalFiles) -> Result<Speed, Error> {
        let measure = || -> Result<Speed, LocalModelError> {
            let start = Instant::now();
            let (source, tokens) = open_gguf(&files.model)?;
            let context = source.hyperparameters()?.context.min(MAX_CONTEXT_TOKENS);
            let mut decoder = Decoder::load(files, source, tokens, context)?;
            let load_s = start.elapsed().as_secs_f64();
            let (read_per_s, write_per_s, write_four_per_s) = decoder.measure_speed()?;
            Ok(Speed { load_s, read_per_s, write_per_s, write_four_per_s })
        };
        measure().map_err(|error| to_error(&files.model, &error))
    }
}

fn open_gguf(path: &Path) -> Result<(GgufReader, ChatTokenizer), LocalModelError> {
    let source = GgufReader::open(path)?;
    source.hyperparameters()?;
    let tokens = ChatTokenizer::read(&source)?;
    Ok((source, tokens))
}

fn to_error(path: &Path, error: &LocalModelError) -> Error {
    let hint = match error {
        LocalModelError::Unreadable(_) => "check the path; `querymend model list` shows the models that can be pulled",
        LocalModelError::InvalidGguf(_) => {
            "fetch the file again: `querymend model rm NAME`, then `querymend model pull NAME`"
        }
        LocalModelError::UnsupportedArchitecture(_) => {
            "use a model of the llama, qwen2 or qwen3 family, or serve it with llama.cpp or Ollama"
        }
        LocalModelError::AdapterMismatch(_) => "use the adapter with the model that it was trained for",
        LocalModelError::EmptyPrompt => "ask a question that is not empty",
        LocalModelError::PromptTooLong(_) => "ask a shorter question, or use a model with a longer context window",
        LocalModelError::Compute(_) => "use another model file",
    };
    Error::configuration(format!("the model {} cannot be used: {error}", path.display()), hint)
}

/// Runs the worker thread, which loads the model on the first request and processes requests until
/// the channel closes.
fn run_worker(
    name: &str,
    files: &LocalFiles,
    source: GgufReader,
    tokens: ChatTokenizer,
    context: usize,
    jobs: &mpsc::Receiver<GenerationJob>,
) {
    let mut head = Some((source, tokens));
    let mut decoder: Option<Result<Decoder, Error>> = None;
    while let Ok(job) = jobs.recv() {
        if decoder.is_none()
            && let Some((source, tokens)) = head.take()
        {
            decoder =
                Some(Decoder::load(files, source, tokens, context).map_err(|error| to_error(&files.model, &error)));
        }
        let _ = job.events.send(DecodeEvent::Started);
        let result = match &mut decoder {
            Some(Ok(mind)) => {
                let out = job.events.clone();
                let mut watch = move |piece: &str| {
                    let _ = out.send(DecodeEvent::TextDelta(piece.to_owned()));
                };
                mind.complete(name, &job.request, &mut watch, &job.is_abandoned)
            }
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::configuration("the model is not loaded", "start again")),
        };
        let _ = job.events.send(DecodeEvent::Done(Box::new(result)));
    }
}

/// Notifies the worker thread when the caller stops waiting, for any reason.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(
        &'a self,
        request: &'a CompletionRequest,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a CancelSignal,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (out, mut events) = unbounded_channel();
            let waiting = AbandonOnDrop(Arc::new(AtomicBool::new(false)));
            let job = GenerationJob { request: request.clone(), events: out, is_abandoned: waiting.0.clone() };
            let gone = || Error::configuration("the local model stopped working", "restart, or use a smaller model");
            self.jobs.send(job).map_err(|_| gone())?;
            let timeout =
                || Error::Timeout { model: self.name.clone(), after: request.timeout, waiting_for: TimeoutPhase::End };
            let reply = async {
                // Loading, especially the first time, may take longer than the request's timeout,
                // so it does not count towards it.
                let begun = tokio::time::timeout(request.timeout.max(LOAD_TIMEOUT), events.recv()).await;
                if begun.map_err(|_| timeout())?.is_none() {
                    return Err(gone());
                }
                match tokio::time::timeout(request.timeout, relay_events(&mut events, watch)).await {
                    Ok(done) => done.unwrap_or_else(|| Err(gone())),
                    Err(_) => Err(timeout()),
                }
            };
            tokio::select! {
                () = cancel.cancelled() => Err(Error::Cancelled),
                reply = reply => reply,
            }
        })
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits { context: u32::try_from(self.context).ok(), output: None, candidates: 1 }
    }
}

async fn relay_events(
    events: &mut UnboundedReceiver<DecodeEvent>,
    watch: &mut (dyn FnMut(&str) + Send),
) -> Option<Result<Completion, Error>> {
    while let Some(event) = events.recv().await {
        match event {
            DecodeEvent::Started => {}
            DecodeEvent::TextDelta(piece) => watch(&piece),
            DecodeEvent::Done(result) => return Some(*result),
        }
    }
    None
}
