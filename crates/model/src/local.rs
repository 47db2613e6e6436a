//! Models that run in this process, on the CPU: no server, no key, no network.
//!
//! A file in the GGUF format holds the numbers, the vocabulary and the way conversations are written down. One thread does the
//! arithmetic; requests wait their turn. What was read for one request is kept for the next: as long as two prompts begin alike
//! (the same tables, another question), only the rest is read.

mod adapter;
mod decode;
mod forward;
mod names;
mod prepared;
mod statement;
mod tokens;
mod trouble;
mod weights;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::adapters::AdapterSource;
use crate::error::{Error, Wait};
use crate::open::local_files;
use crate::providers::Providers;
use crate::request::{ModelLimits, Reply, Request};
use crate::{Answer, Cancel, Model};
use decode::Mind;
use tokens::Tokens;
use trouble::Trouble;
use weights::Source;

/// The longest context that is used, however much more the model was made for: what is kept of each token takes memory, and a
/// prompt of this length takes a CPU long enough.
const LONGEST_CONTEXT: usize = 8_192;

/// The longest that loading a model may take.
const LONGEST_LOAD: Duration = Duration::from_secs(600);

/// A model in this process.
pub struct Local {
    name: String,
    context: usize,
    work: mpsc::Sender<Job>,
}

/// Where a local model's files are.
#[derive(Debug, Clone)]
pub struct LocalFiles {
    /// The model, in the GGUF format.
    pub model: PathBuf,
    /// A change to it that was learned apart.
    pub adapter: Option<AdapterSource>,
    /// Where the numbers are kept in the form that the CPU likes best. Without it they are brought into that form each time.
    pub prepared: Option<PathBuf>,
}

/// What the working thread gets.
struct Job {
    request: Request,
    out: UnboundedSender<Heard>,
    /// Nobody waits for the reply any more.
    dropped: Arc<AtomicBool>,
}

/// What it says.
enum Heard {
    /// The model is loaded, and this request's turn has come.
    Begun,
    Piece(String),
    Done(Box<Result<Reply, Error>>),
}

/// What a speed measurement found.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Speed {
    /// Seconds until the model could be asked.
    pub load_s: f64,
    /// Tokens of a prompt read in a second.
    pub read_per_s: f64,
    /// Tokens written in a second.
    pub write_per_s: f64,
    /// Tokens written in a second when four texts are written at once.
    pub write_four_per_s: f64,
}

impl Local {
    /// Opens a model file. Its head is read and checked at once, its numbers when the model is asked for the first time.
    pub fn open(name: impl Into<String>, files: &LocalFiles) -> Result<Self, Error> {
        let name = name.into();
        let (source, tokens) = head(&files.model).map_err(|trouble| told(&files.model, &trouble))?;
        let measures = source.measures().map_err(|trouble| told(&files.model, &trouble))?;
        let context = measures.context.min(LONGEST_CONTEXT);
        let (work, jobs) = mpsc::channel();
        let (worker_name, files) = (name.clone(), files.clone());
        let worker = std::thread::Builder::new().name("local model".into());
        worker
            .spawn(move || serve(&worker_name, &files, source, tokens, context, &jobs))
            .map_err(|error| Error::configuration(format!("no thread for the model: {error}"), "free some memory"))?;
        Ok(Self { name, context, work })
    }

    /// The files that a word behind `local:` means: the name of a pulled model, a file, or a file and its adapter's.
    pub fn files(given: &str, providers: &Providers) -> Result<LocalFiles, Error> {
        local_files(given, providers)
    }

    /// Measures how fast a model is here.
    pub fn speed(files: &LocalFiles) -> Result<Speed, Error> {
        let measure = || -> Result<Speed, Trouble> {
            let start = Instant::now();
            let (source, tokens) = head(&files.model)?;
            let context = source.measures()?.context.min(LONGEST_CONTEXT);
            let mut mind = Mind::load(files, source, tokens, context)?;
            let load_s = start.elapsed().as_secs_f64();
            let (read_per_s, write_per_s, write_four_per_s) = mind.speed()?;
            Ok(Speed { load_s, read_per_s, write_per_s, write_four_per_s })
        };
        measure().map_err(|trouble| told(&files.model, &trouble))
    }
}

fn head(path: &Path) -> Result<(Source, Tokens), Trouble> {
    let source = Source::open(path)?;
    source.measures()?;
    let tokens = Tokens::read(&source)?;
    Ok((source, tokens))
}

fn told(path: &Path, trouble: &Trouble) -> Error {
    let hint = match trouble {
        Trouble::Unreadable(_) => "check the path; `querymend model list` shows the models that can be pulled",
        Trouble::NotGguf(_) => "fetch the file again: `querymend model rm NAME`, then `querymend model pull NAME`",
        Trouble::OtherFamily(_) => {
            "use a model of the llama, qwen2 or qwen3 family, or serve it with llama.cpp or Ollama"
        }
        Trouble::Misfit(_) => "use the adapter with the model that it was trained for",
        Trouble::TooLong(_) => "ask a shorter question, or use a model that reads more",
        Trouble::Arithmetic(_) => "use another model file",
    };
    Error::configuration(format!("the model {} cannot be used: {trouble}", path.display()), hint)
}

/// The working thread: loads at the first request, then answers one after the other until nobody can ask any more.
fn serve(name: &str, files: &LocalFiles, source: Source, tokens: Tokens, context: usize, jobs: &mpsc::Receiver<Job>) {
    let mut head = Some((source, tokens));
    let mut loaded: Option<Result<Mind, Error>> = None;
    while let Ok(job) = jobs.recv() {
        if loaded.is_none()
            && let Some((source, tokens)) = head.take()
        {
            loaded = Some(Mind::load(files, source, tokens, context).map_err(|trouble| told(&files.model, &trouble)));
        }
        let _ = job.out.send(Heard::Begun);
        let result = match &mut loaded {
            Some(Ok(mind)) => {
                let out = job.out.clone();
                let mut watch = move |piece: &str| {
                    let _ = out.send(Heard::Piece(piece.to_owned()));
                };
                mind.reply(name, &job.request, &mut watch, &job.dropped)
            }
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::configuration("the model is not loaded", "start again")),
        };
        let _ = job.out.send(Heard::Done(Box::new(result)));
    }
}

/// Tells the working thread that nobody waits any more, however the waiting ended.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Model for Local {
    fn name(&self) -> &str {
        &self.name
    }

    fn complete<'a>(
        &'a self,
        request: &'a Request,
        watch: &'a mut (dyn FnMut(&str) + Send),
        cancel: &'a Cancel,
    ) -> Answer<'a, Reply> {
        Box::pin(async move {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let (out, mut heard) = unbounded_channel();
            let waiting = Waiting(Arc::new(AtomicBool::new(false)));
            let job = Job { request: request.clone(), out, dropped: waiting.0.clone() };
            let gone =
                || Error::configuration("the local model stopped working", "start again, or use a smaller model");
            self.work.send(job).map_err(|_| gone())?;
            let timeout =
                || Error::Timeout { model: self.name.clone(), after: request.timeout, waiting_for: Wait::End };
            let reply = async {
                // Loading a model, the first time even more so, takes longer than a reply may; it is no part of the reply.
                let begun = tokio::time::timeout(request.timeout.max(LONGEST_LOAD), heard.recv()).await;
                if begun.map_err(|_| timeout())?.is_none() {
                    return Err(gone());
                }
                match tokio::time::timeout(request.timeout, listen(&mut heard, watch)).await {
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

async fn listen(
    heard: &mut UnboundedReceiver<Heard>,
    watch: &mut (dyn FnMut(&str) + Send),
) -> Option<Result<Reply, Error>> {
    while let Some(said) = heard.recv().await {
        match said {
            Heard::Begun => {}
            Heard::Piece(piece) => watch(&piece),
            Heard::Done(result) => return Some(*result),
        }
    }
    None
}
