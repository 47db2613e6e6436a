//! Embeddings from an OpenAI-compatible server: `/v1/embeddings`.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::{Embedder, normalize};
use crate::BoxFuture;
use crate::api_key::ProviderApiKey;
use crate::error::Error;
use crate::http::{self, RequestTimeouts};
use crate::open::{ModelSpec, endpoint_url};
use crate::protocol::ProviderProtocol;
use crate::provider_error::{ProviderError, truncate_line};
use crate::providers::Providers;
use crate::retry::Retry;

/// Embedding model on a server.
pub(super) struct RemoteEmbedder {
    name: String,
    model: String,
    url: Url,
    headers: HeaderMap,
    client: Client,
    key: Option<ProviderApiKey>,
    connect_timeout: Duration,
    idle_timeout: Option<Duration>,
    retry: Retry,
    dimensions: OnceLock<usize>,
}

/// Number of texts per request. Servers accept more, but respond later.
const BATCH_SIZE: usize = 96;
/// Timeout of a request, including retries.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum size of a response: 96 vectors of 4096 numbers at some twenty bytes each are 8 MB.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingDatum>,
}

#[derive(Deserialize)]
struct EmbeddingDatum {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl RemoteEmbedder {
    pub(super) fn open(spec: &str, providers: &Providers) -> Result<Self, Error> {
        let ModelSpec { name, model, provider } = ModelSpec::parse(spec, providers, "static, or minilm:FOLDER")?;
        if provider.protocol != ProviderProtocol::OpenAi {
            return Err(Error::configuration(
                format!("{name} has no supported embeddings API"),
                "use static, minilm:FOLDER, or an OpenAI-compatible provider",
            ));
        }
        let url = endpoint_url(&provider, "/embeddings")?;
        let key = ProviderApiKey::find(&provider, &name, providers.variables())?;
        Ok(Self {
            headers: http::headers(provider.protocol.headers(key.as_ref()))?,
            client: http::client(&provider, &url)?,
            key,
            connect_timeout: Duration::from_secs_f64(provider.connect_seconds),
            idle_timeout: provider.first_byte_seconds.map(Duration::from_secs_f64),
            retry: providers.retry.clone(),
            dimensions: OnceLock::new(),
            name,
            model,
            url,
        })
    }

    /// Sends a request and retries transient errors.
    async fn embed_with_retry(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let mut failed = 0;
        loop {
            match self.attempt(texts, deadline).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => {
                    failed += 1;
                    let left = deadline.saturating_duration_since(Instant::now());
                    match self.retry.backoff(failed, &error, left) {
                        Some(pause) => self.retry.clock.sleep(pause).await,
                        None => return Err(error),
                    }
                }
            }
        }
    }

    async fn attempt(&self, texts: &[&str], deadline: Instant) -> Result<Vec<Vec<f32>>, Error> {
        let body = json!({"model": self.model, "input": texts, "encoding_format": "float"}).to_string().into_bytes();
        let timeouts = RequestTimeouts {
            model: &self.name,
            total: REQUEST_TIMEOUT,
            deadline,
            connect: self.connect_timeout,
            idle: self.idle_timeout,
        };
        let mut incoming = http::send(&self.client, &self.url, &self.headers, body, timeouts).await?;
        let status = incoming.status();
        if !(200..300).contains(&status) {
            let retry_after = incoming.retry_after();
            let (body, _) = incoming.read_body(MAX_ERROR_BODY_BYTES).await?;
            let mut provider_error = ProviderError::from_response(status, retry_after, &body);
            provider_error.message = self.redact_key(&provider_error.message);
            return Err(provider_error.into_error(&self.name));
        }
        let (body, complete) = incoming.read_body(MAX_RESPONSE_BYTES).await?;
        if !complete {
            return Err(self.bad_response(format!("it is longer than {MAX_RESPONSE_BYTES} bytes")));
        }
        let reply: EmbeddingResponse = serde_json::from_slice(&body).map_err(|why| {
            let shown = truncate_line(&self.redact_key(&String::from_utf8_lossy(&body)), 120);
            self.bad_response(format!("it contains no vectors ({why}): {shown}"))
        })?;
        self.order_vectors(reply, texts.len())
    }

    /// Returns the unit vectors of a response in the order of the texts.
    fn order_vectors(&self, reply: EmbeddingResponse, count: usize) -> Result<Vec<Vec<f32>>, Error> {
        if reply.data.len() != count {
            return Err(self.bad_response(format!("it has {} vectors for {count} texts", reply.data.len())));
        }
        let mut vectors = vec![Vec::new(); count];
        for (at, datum) in reply.data.into_iter().enumerate() {
            let length = datum.embedding.len();
            if length == 0 || length != *self.dimensions.get_or_init(|| length) {
                return Err(
                    self.bad_response(format!("a vector has {length} dimensions, others have a different number"))
                );
            }
            match vectors.get_mut(datum.index.unwrap_or(at)) {
                Some(place) if place.is_empty() => *place = datum.embedding,
                _ => return Err(self.bad_response("its vectors are not numbered like the texts".to_owned())),
            }
        }
        vectors.iter_mut().for_each(|vector| normalize(vector));
        Ok(vectors)
    }

    fn redact_key(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.redact(text))
    }

    fn bad_response(&self, message: String) -> Error {
        Error::BadResponse { model: self.name.clone(), message }
    }
}

impl Embedder for RemoteEmbedder {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> Option<usize> {
        self.dimensions.get().copied()
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> BoxFuture<'a, Vec<Vec<f32>>> {
        Box::pin(async move {
            // Servers reject blank texts; their vector is zero anyway.
            let worded: Vec<&str> = texts.iter().copied().filter(|text| !text.trim().is_empty()).collect();
            let mut vectors = Vec::with_capacity(worded.len());
            for some in worded.chunks(BATCH_SIZE) {
                vectors.extend(self.embed_with_retry(some).await?);
            }
            let zeros = vec![0.0; self.dimensions().unwrap_or_default()];
            let mut vectors = vectors.into_iter();
            let mut next = |text: &&str| if text.trim().is_empty() { None } else { vectors.next() };
            Ok(texts.iter().map(|text| next(text).unwrap_or_else(|| zeros.clone())).collect())
        })
    }
}
