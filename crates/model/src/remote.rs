//! A model behind a server: asks, listens, and tries again where that helps.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use serde_json::Value;
use tokio::time::Instant;

use crate::error::Error;
use crate::http::{self, Incoming, Patience};
use crate::key::Key;
use crate::providers::{Known, Provider, Providers};
use crate::request::{ModelLimits, Reply, Request, Stopped, Usage};
use crate::retry::Retry;
use crate::sse::{Events, Malformed};
use crate::trouble::{Trouble, cut};
use crate::wire::{Field, Heard, Wire, Without};
use crate::{Answer, Cancel, Model};

/// A model behind a server.
pub(crate) struct Remote {
    name: String,
    model: String,
    wire: Wire,
    url: Url,
    headers: HeaderMap,
    client: Client,
    key: Option<Key>,
    known: Known,
    free: bool,
    connect: Duration,
    silence: Option<Duration>,
    retry: Retry,
    reply_bytes: usize,
    refused: Refused,
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("name", &self.name).field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// Why a try came to nothing.
enum Failure {
    /// The server does not take a part of the request.
    Field(Field),
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Error(error)
    }
}

/// No request takes longer than a year.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);
/// An error's body is read no further than this.
const ERROR_BODY: usize = 64 << 10;
/// What events may weigh for each byte of text that they carry; each token comes with a few hundred bytes around it.
const BYTES_AROUND_TEXT: usize = 512;

impl Remote {
    pub(crate) fn new(
        name: String,
        model: &str,
        provider: &Provider,
        url: Url,
        key: Option<Key>,
        providers: &Providers,
    ) -> Result<Self, Error> {
        Ok(Self {
            model: model.to_owned(),
            wire: provider.wire,
            headers: http::headers(provider.wire.headers(key.as_ref()))?,
            client: http::client(provider, &url)?,
            key,
            known: provider.known(model),
            free: provider.free,
            connect: Duration::from_secs_f64(provider.connect_seconds),
            silence: provider.first_byte_seconds.map(Duration::from_secs_f64),
            retry: providers.retry.clone(),
            reply_bytes: providers.reply_bytes,
            refused: Refused::of(&url, model),
            name,
            url,
        })
    }

    /// Tries until there is a reply, or an error that trying again would not mend.
    async fn ask(&self, request: &Request, watch: &mut (dyn FnMut(&str) + Send)) -> Result<Reply, Error> {
        // A limit that is as good as none must not carry the clock beyond what it can say.
        let until = Instant::now() + request.timeout.min(LONGEST);
        let mut failed = 0;
        let mut spoken = false;
        loop {
            let without = self.refused.fields();
            let mut listen = |piece: &str| {
                spoken = true;
                watch(piece);
            };
            match self.once(request, without, until, &mut listen).await {
                Ok(reply) => return Ok(reply),
                // The next try is without the field, and so are all later requests of this process. Each field can go
                // only once, so this ends.
                Err(Failure::Field(field)) => self.refused.remember(field),
                Err(Failure::Error(error)) => {
                    failed += 1;
                    let left = until.saturating_duration_since(Instant::now());
                    match self.retry.pause(failed, &error, left) {
                        // Text that was handed on cannot be taken back.
                        Some(pause) if !spoken => self.retry.clock.sleep(pause).await,
                        _ => return Err(error),
                    }
                }
            }
        }
    }

    /// One try.
    async fn once(
        &self,
        request: &Request,
        without: Without,
        until: Instant,
        listen: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Reply, Failure> {
        let body = self.wire.body(&self.model, request, without).to_string().into_bytes();
        let patience =
            Patience { model: &self.name, whole: request.timeout, until, connect: self.connect, silence: self.silence };
        let mut incoming = http::send(
            &self.client,
            &self.url,
            &http::traced(&self.headers, request.traceparent.as_deref()),
            body,
            patience,
        )
        .await?;
        let status = incoming.status();
        if !(200..300).contains(&status) {
            let retry_after = incoming.retry_after();
            let (body, _) = incoming.all(ERROR_BODY).await?;
            let trouble = Trouble::in_answer(status, retry_after, &body);
            return Err(match trouble.refused_field(request, self.wire, without) {
                Some(field) => Failure::Field(field),
                None => Failure::Error(self.error(trouble)),
            });
        }
        let kind = incoming.content_type().to_ascii_lowercase();
        let heard = if kind.starts_with("text/event-stream") || kind.is_empty() {
            self.stream(incoming, listen).await?
        } else if kind.contains("json") {
            self.whole(incoming, listen).await?
        } else {
            return Err(self.bad(format!("it is {} and not a stream of events", cut(&kind, 60))).into());
        };
        Ok(self.reply(heard)?)
    }

    /// Listens to a stream of events.
    async fn stream(&self, mut incoming: Incoming<'_>, listen: &mut (dyn FnMut(&str) + Send)) -> Result<Heard, Error> {
        let mut heard = Heard::default();
        let mut events = Events::default();
        // An event may carry the whole text, and JSON may write a character in up to six bytes.
        let largest = self.reply_bytes.saturating_mul(6).saturating_add(4096);
        let most = self.reply_bytes.saturating_mul(BYTES_AROUND_TEXT).saturating_add(1 << 20);
        let mut any = false;
        while let Some(bytes) = incoming.next().await? {
            let new = events.feed(bytes.as_ref(), largest).map_err(|what| self.malformed(&what))?;
            for event in new {
                any = true;
                self.event(&mut heard, &event, listen)?;
            }
            if heard.ended {
                incoming.drain().await;
                return Ok(heard);
            }
            if incoming.read > most {
                return Err(self.bad(format!("it goes on after {} bytes", incoming.read)));
            }
        }
        if let Some(event) = events.rest().map_err(|what| self.malformed(&what))? {
            any = true;
            self.event(&mut heard, &event, listen)?;
        }
        if heard.ended || heard.stopped.is_some() {
            return Ok(heard);
        }
        if !any && incoming.read > 0 {
            return Err(self.bad(format!("there is no event in its {} bytes", incoming.read)));
        }
        let message = "the connection was closed in the middle of the reply".to_owned();
        Err(Error::Unreachable { model: self.name.clone(), message, transient: true })
    }

    /// Reads one event and hands its text on.
    fn event(&self, heard: &mut Heard, event: &str, listen: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
        let event = event.trim();
        if event.is_empty() || heard.ended {
            return Ok(());
        }
        if event == "[DONE]" {
            heard.ended = true;
            return Ok(());
        }
        let value: Value = serde_json::from_str(event)
            .map_err(|why| self.bad(format!("an event is not JSON ({why}): {}", self.shown(event))))?;
        self.take(heard, &value, listen)
    }

    /// Reads a reply that comes whole, from servers that do not stream.
    async fn whole(&self, mut incoming: Incoming<'_>, listen: &mut (dyn FnMut(&str) + Send)) -> Result<Heard, Error> {
        let (body, complete) = incoming.all(self.reply_bytes.saturating_mul(6).saturating_add(ERROR_BODY)).await?;
        if !complete {
            return Err(self.too_long());
        }
        let value: Value = serde_json::from_slice(&body).map_err(|why| {
            self.bad(format!("it is not JSON ({why}): {}", self.shown(&String::from_utf8_lossy(&body))))
        })?;
        let mut heard = Heard::default();
        self.take(&mut heard, &value, listen)?;
        if heard.stopped.is_none() && !heard.ended {
            return Err(self.bad(format!("it holds no reply: {}", self.shown(&value.to_string()))));
        }
        Ok(heard)
    }

    fn take(&self, heard: &mut Heard, value: &Value, listen: &mut (dyn FnMut(&str) + Send)) -> Result<(), Error> {
        let from = heard.text.len();
        self.wire.hear(heard, value).map_err(|trouble| self.error(trouble))?;
        if heard.text.len() > self.reply_bytes {
            return Err(self.too_long());
        }
        let piece = &heard.text[from..];
        if !piece.is_empty() {
            listen(piece);
        }
        Ok(())
    }

    fn reply(&self, heard: Heard) -> Result<Reply, Error> {
        let stopped = heard.stopped.unwrap_or(Stopped::End);
        if stopped == Stopped::Refused && heard.text.is_empty() {
            let message = heard.blocked.unwrap_or_default();
            return Err(Error::Refused { model: self.name.clone(), message });
        }
        let price = |tokens: u64, price: Option<f64>| price.map(|price| tokens as f64 * price / 1e6);
        let listed = price(heard.input, self.known.input_price).zip(price(heard.output, self.known.output_price));
        let cost_usd = heard.cost_usd.or_else(|| listed.map(|(a, b)| a + b)).or(self.free.then_some(0.0));
        Ok(Reply {
            more: Vec::new(),
            text: heard.text,
            usage: Usage { input: heard.input, output: heard.output, cost_usd },
            stopped,
            model: heard.model.unwrap_or_else(|| self.model.clone()),
        })
    }

    /// What a server's trouble means, without the key that it may have echoed.
    fn error(&self, mut trouble: Trouble) -> Error {
        trouble.message = self.without_key(&trouble.message);
        trouble.into_error(&self.name)
    }

    fn without_key(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.strike_out(text))
    }

    /// The beginning of what a server sent, to be shown.
    fn shown(&self, text: &str) -> String {
        cut(&self.without_key(text), 120)
    }

    fn bad(&self, message: String) -> Error {
        Error::BadResponse { model: self.name.clone(), message }
    }

    fn malformed(&self, what: &Malformed) -> Error {
        match what {
            Malformed::TooLarge => self.too_long(),
            Malformed::NotText => self.bad("an event is not text".to_owned()),
        }
    }

    fn too_long(&self) -> Error {
        self.bad(format!("it is longer than {} bytes", self.reply_bytes))
    }
}

impl Model for Remote {
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
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Error::Cancelled),
                reply = self.ask(request, watch) => reply,
            }
        })
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits { context: self.known.context, output: self.known.output, candidates: 1 }
    }
}

/// The fields that a server has said it does not take for a model. All who ask the same model there share it, for as
/// long as the process lives.
#[derive(Clone)]
struct Refused(Arc<AtomicU8>);

impl Refused {
    fn of(url: &Url, model: &str) -> Self {
        static ALL: OnceLock<Mutex<HashMap<(String, String), Refused>>> = OnceLock::new();
        let mut all = ALL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let none = || Refused(Arc::new(AtomicU8::new(0)));
        all.entry((url.to_string(), model.to_owned())).or_insert_with(none).clone()
    }

    fn fields(&self) -> Without {
        Without(self.0.load(Ordering::Relaxed))
    }

    fn remember(&self, field: Field) {
        self.0.fetch_or(field as u8, Ordering::Relaxed);
    }
}
