//! Models on servers: requests, streaming and retries.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use serde_json::Value;
use tokio::time::Instant;

use crate::api_key::ProviderApiKey;
use crate::error::Error;
use crate::http::{self, IncomingResponse, RequestTimeouts};
use crate::protocol::{ProviderProtocol, RequestField, StreamAccumulator, UnsupportedFields};
use crate::provider_error::{ProviderError, truncate_line};
use crate::providers::{ModelInfo, Provider, Providers};
use crate::request::{Completion, CompletionRequest, FinishReason, ModelLimits, Usage};
use crate::retry::Retry;
use crate::sse::{SseError, SseParser};
use crate::{BoxFuture, CancelSignal, Model};

/// Model on a server.
pub(crate) struct RemoteModel {
    name: String,
    model: String,
    protocol: ProviderProtocol,
    url: Url,
    headers: HeaderMap,
    client: Client,
    key: Option<ProviderApiKey>,
    model_info: ModelInfo,
    is_free: bool,
    connect_timeout: Duration,
    idle_timeout: Option<Duration>,
    retry: Retry,
    max_reply_bytes: usize,
    unsupported_fields: UnsupportedFieldsCache,
}

impl fmt::Debug for RemoteModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("name", &self.name).field("url", &self.url.as_str()).finish_non_exhaustive()
    }
}

/// Failure of one attempt.
enum CompletionFailure {
    /// The server rejects a field of the request.
    UnsupportedField(RequestField),
    Error(Error),
}

impl From<Error> for CompletionFailure {
    fn from(error: Error) -> Self {
        CompletionFailure::Error(error)
    }
}

/// Upper bound on request timeouts, a year.
const MAX_REQUEST_TIMEOUT: Duration = Duration::from_secs(365 * 86_400);
/// Maximum size of an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;
/// Maximum number of stream bytes per byte of text; each token comes with a few hundred bytes of
/// overhead.
const MAX_OVERHEAD_PER_TEXT_BYTE: usize = 512;

impl RemoteModel {
    pub(crate) fn new(
        name: String,
        model: &str,
        provider: &Provider,
        url: Url,
        key: Option<ProviderApiKey>,
        providers: &Providers,
    ) -> Result<Self, Error> {
        Ok(Self {
            model: model.to_owned(),
            protocol: provider.protocol,
            headers: http::headers(provider.protocol.headers(key.as_ref()))?,
            client: http::client(provider, &url)?,
            key,
            model_info: provider.model_info(model),
            is_free: provider.is_free,
            connect_timeout: Duration::from_secs_f64(provider.connect_seconds),
            idle_timeout: provider.first_byte_seconds.map(Duration::from_secs_f64),
            retry: providers.retry.clone(),
            max_reply_bytes: providers.max_reply_bytes,
            unsupported_fields: UnsupportedFieldsCache::shared_for(&url, model),
            name,
            url,
        })
    }

    /// Sends a request and retries transient errors.
    async fn complete_with_retry(
        &self,
        request: &CompletionRequest,
        watch: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Completion, Error> {
        // Clamped, because an effectively unlimited timeout would overflow the clock.
        let deadline = Instant::now() + request.timeout.min(MAX_REQUEST_TIMEOUT);
        let mut failed = 0;
        let mut has_streamed = false;
        loop {
            let unsupported = self.unsupported_fields.get();
            let mut on_text = |piece: &str| {
                has_streamed = true;
                watch(piece);
            };
            match self.attempt(request, unsupported, deadline, &mut on_text).await {
                Ok(reply) => return Ok(reply),
                // Retry without the field, also in all later requests of this process. Each field
                // is dropped at most once, so the loop terminates.
                Err(CompletionFailure::UnsupportedField(field)) => self.unsupported_fields.insert(field),
                Err(CompletionFailure::Error(error)) => {
                    failed += 1;
                    let left = deadline.saturating_duration_since(Instant::now());
                    match self.retry.backoff(failed, &error, left) {
                        // Text that has been streamed to the caller cannot be taken back.
                        Some(pause) if !has_streamed => self.retry.clock.sleep(pause).await,
                        _ => return Err(error),
                    }
                }
            }
        }
    }

    /// Makes a single attempt.
    async fn attempt(
        &self,
        request: &CompletionRequest,
        unsupported: UnsupportedFields,
        deadline: Instant,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<Completion, CompletionFailure> {
        let body = self.protocol.body(&self.model, request, unsupported).to_string().into_bytes();
        let timeouts = RequestTimeouts {
            model: &self.name,
            total: request.timeout,
            deadline,
            connect: self.connect_timeout,
            idle: self.idle_timeout,
        };
        let mut incoming = http::send(
            &self.client,
            &self.url,
            &http::with_traceparent(&self.headers, request.traceparent.as_deref()),
            body,
            timeouts,
        )
        .await?;
        let status = incoming.status();
        if !(200..300).contains(&status) {
            let retry_after = incoming.retry_after();
            let (body, _) = incoming.read_body(MAX_ERROR_BODY_BYTES).await?;
            let provider_error = ProviderError::from_response(status, retry_after, &body);
            return Err(match provider_error.unsupported_field(request, self.protocol, unsupported) {
                Some(field) => CompletionFailure::UnsupportedField(field),
                None => CompletionFailure::Error(self.to_error(provider_error)),
            });
        }
        let kind = incoming.content_type().to_ascii_lowercase();
        let state = if kind.starts_with("text/event-stream") || kind.is_empty() {
            self.read_stream(incoming, on_text).await?
        } else if kind.contains("json") {
            self.read_whole_body(incoming, on_text).await?
        } else {
            return Err(self
                .bad_response(format!("it is {} and not a stream of events", truncate_line(&kind, 60)))
                .into());
        };
        Ok(self.to_completion(state)?)
    }

    /// Reads a stream of server-sent events.
    async fn read_stream(
        &self,
        mut incoming: IncomingResponse<'_>,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<StreamAccumulator, Error> {
        let mut state = StreamAccumulator::default();
        let mut events = SseParser::default();
        // One event may contain the whole text, and JSON escapes take up to six bytes per
        // character.
        let max_event_bytes = self.max_reply_bytes.saturating_mul(6).saturating_add(4096);
        let max_stream_bytes = self.max_reply_bytes.saturating_mul(MAX_OVERHEAD_PER_TEXT_BYTE).saturating_add(1 << 20);
        let mut any = false;
        while let Some(bytes) = incoming.next_chunk().await? {
            let new = events.feed(bytes.as_ref(), max_event_bytes).map_err(|what| self.malformed_stream(&what))?;
            for event in new {
                any = true;
                self.read_event(&mut state, &event, on_text)?;
            }
            if state.is_done {
                incoming.drain().await;
                return Ok(state);
            }
            if incoming.bytes_read > max_stream_bytes {
                return Err(self.bad_response(format!("it continues after {} bytes", incoming.bytes_read)));
            }
        }
        if let Some(event) = events.finish().map_err(|what| self.malformed_stream(&what))? {
            any = true;
            self.read_event(&mut state, &event, on_text)?;
        }
        if state.is_done || state.finish_reason.is_some() {
            return Ok(state);
        }
        if !any && incoming.bytes_read > 0 {
            return Err(self.bad_response(format!("there is no event in its {} bytes", incoming.bytes_read)));
        }
        let message = "the connection was closed in the middle of the reply".to_owned();
        Err(Error::Unreachable { model: self.name.clone(), message, transient: true })
    }

    /// Parses one event and streams its text.
    fn read_event(
        &self,
        state: &mut StreamAccumulator,
        event: &str,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), Error> {
        let event = event.trim();
        if event.is_empty() || state.is_done {
            return Ok(());
        }
        if event == "[DONE]" {
            state.is_done = true;
            return Ok(());
        }
        let value: Value = serde_json::from_str(event)
            .map_err(|why| self.bad_response(format!("an event is not JSON ({why}): {}", self.excerpt(event))))?;
        self.apply_event(state, &value, on_text)
    }

    /// Reads the complete response of a server that does not stream.
    async fn read_whole_body(
        &self,
        mut incoming: IncomingResponse<'_>,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<StreamAccumulator, Error> {
        let (body, complete) =
            incoming.read_body(self.max_reply_bytes.saturating_mul(6).saturating_add(MAX_ERROR_BODY_BYTES)).await?;
        if !complete {
            return Err(self.reply_too_long());
        }
        let value: Value = serde_json::from_slice(&body).map_err(|why| {
            self.bad_response(format!("it is not JSON ({why}): {}", self.excerpt(&String::from_utf8_lossy(&body))))
        })?;
        let mut state = StreamAccumulator::default();
        self.apply_event(&mut state, &value, on_text)?;
        if state.finish_reason.is_none() && !state.is_done {
            return Err(self.bad_response(format!("it contains no reply: {}", self.excerpt(&value.to_string()))));
        }
        Ok(state)
    }

    fn apply_event(
        &self,
        state: &mut StreamAccumulator,
        value: &Value,
        on_text: &mut (dyn FnMut(&str) + Send),
    ) -> Result<(), Error> {
        let from = state.text.len();
        self.protocol.apply_event(state, value).map_err(|error| self.to_error(error))?;
        if state.text.len() > self.max_reply_bytes {
            return Err(self.reply_too_long());
        }
        let piece = &state.text[from..];
        if !piece.is_empty() {
            on_text(piece);
        }
        Ok(())
    }

    fn to_completion(&self, state: StreamAccumulator) -> Result<Completion, Error> {
        let stopped = state.finish_reason.unwrap_or(FinishReason::End);
        if stopped == FinishReason::Refused && state.text.is_empty() {
            let message = state.block_reason.unwrap_or_default();
            return Err(Error::Refused { model: self.name.clone(), message });
        }
        let price = |tokens: u64, price: Option<f64>| price.map(|price| tokens as f64 * price / 1e6);
        let listed =
            price(state.input, self.model_info.input_price).zip(price(state.output, self.model_info.output_price));
        let cost_usd = state.cost_usd.or_else(|| listed.map(|(a, b)| a + b)).or(self.is_free.then_some(0.0));
        Ok(Completion {
            more: Vec::new(),
            text: state.text,
            usage: Usage { input: state.input, output: state.output, cost_usd },
            stopped,
            model: state.model.unwrap_or_else(|| self.model.clone()),
        })
    }

    /// Converts a server error, with any echo of the key redacted.
    fn to_error(&self, mut provider_error: ProviderError) -> Error {
        provider_error.message = self.redact_key(&provider_error.message);
        provider_error.into_error(&self.name)
    }

    fn redact_key(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }

    /// Returns the start of a server's text for messages, with the key redacted.
    fn excerpt(&self, text: &str) -> String {
        truncate_line(&self.redact_key(text), 120)
    }

    fn bad_response(&self, message: String) -> Error {
        Error::BadResponse { model: self.name.clone(), message }
    }

    fn malformed_stream(&self, what: &SseError) -> Error {
        match what {
            SseError::TooLarge => self.reply_too_long(),
            SseError::InvalidUtf8 => self.bad_response("an event is not text".to_owned()),
        }
    }

    fn reply_too_long(&self) -> Error {
        self.bad_response(format!("it is longer than {} bytes", self.max_reply_bytes))
    }
}

impl Model for RemoteModel {
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
            tokio::select! {
                biased;
                () = cancel.cancelled() => Err(Error::Cancelled),
                reply = self.complete_with_retry(request, watch) => reply,
            }
        })
    }

    fn limits(&self) -> ModelLimits {
        ModelLimits { context: self.model_info.context, output: self.model_info.output, candidates: 1 }
    }
}

/// Fields that a server rejects for a model, shared by all clients of that model in this process.
#[derive(Clone)]
struct UnsupportedFieldsCache(Arc<AtomicU8>);

impl UnsupportedFieldsCache {
    fn shared_for(url: &Url, model: &str) -> Self {
        static ALL: OnceLock<Mutex<HashMap<(String, String), UnsupportedFieldsCache>>> = OnceLock::new();
        let mut all = ALL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let none = || UnsupportedFieldsCache(Arc::new(AtomicU8::new(0)));
        all.entry((url.to_string(), model.to_owned())).or_insert_with(none).clone()
    }

    fn get(&self) -> UnsupportedFields {
        UnsupportedFields(self.0.load(Ordering::Relaxed))
    }

    fn insert(&self, field: RequestField) {
        self.0.fetch_or(field as u8, Ordering::Relaxed);
    }
}
