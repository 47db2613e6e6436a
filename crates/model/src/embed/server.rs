//! Embeddings from a server that speaks like OpenAI: `/v1/embeddings`.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, Url};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::{Embedder, to_unit};
use crate::Answer;
use crate::error::Error;
use crate::http::{self, Patience};
use crate::key::Key;
use crate::open::{Place, address};
use crate::providers::Providers;
use crate::retry::Retry;
use crate::trouble::{Trouble, cut};
use crate::wire::Wire;

/// A model behind a server that makes vectors.
pub(super) struct Server {
    name: String,
    model: String,
    url: Url,
    headers: HeaderMap,
    client: Client,
    key: Option<Key>,
    connect: Duration,
    silence: Option<Duration>,
    retry: Retry,
    dimensions: OnceLock<usize>,
}

/// How many texts go into one request. Servers take more, and answer later.
const TOGETHER: usize = 96;
/// The time of one request, with its further tries.
const TIME: Duration = Duration::from_secs(60);
/// An answer holds at most this much: 96 vectors of 4096 numbers at some twenty bytes each are 8 MB.
const LARGEST: usize = 32 << 20;
const ERROR_BODY: usize = 64 << 10;

#[derive(Deserialize)]
struct Reply {
    data: Vec<Datum>,
}

#[derive(Deserialize)]
struct Datum {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

impl Server {
    pub(super) fn open(spec: &str, providers: &Providers) -> Result<Self, Error> {
        let Place { name, model, provider } = Place::named(spec, providers, "static, or minilm:FOLDER")?;
        if provider.wire != Wire::OpenAi {
            return Err(Error::configuration(
                format!("{name} has no embeddings that can be asked for here"),
                "use static, minilm:FOLDER, or a provider that speaks like OpenAI",
            ));
        }
        let url = address(&provider, "/embeddings")?;
        let key = Key::find(&provider, &name, providers.variables())?;
        Ok(Self {
            headers: http::headers(provider.wire.headers(key.as_ref()))?,
            client: http::client(&provider, &url)?,
            key,
            connect: Duration::from_secs_f64(provider.connect_seconds),
            silence: provider.first_byte_seconds.map(Duration::from_secs_f64),
            retry: providers.retry.clone(),
            dimensions: OnceLock::new(),
            name,
            model,
            url,
        })
    }

    /// Asks until there is an answer, or an error that asking again would not mend.
    async fn ask(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Error> {
        let until = Instant::now() + TIME;
        let mut failed = 0;
        loop {
            match self.once(texts, until).await {
                Ok(vectors) => return Ok(vectors),
                Err(error) => {
                    failed += 1;
                    let left = until.saturating_duration_since(Instant::now());
                    match self.retry.pause(failed, &error, left) {
                        Some(pause) => self.retry.clock.sleep(pause).await,
                        None => return Err(error),
                    }
                }
            }
        }
    }

    async fn once(&self, texts: &[&str], until: Instant) -> Result<Vec<Vec<f32>>, Error> {
        let body = json!({"model": self.model, "input": texts, "encoding_format": "float"}).to_string().into_bytes();
        let patience = Patience { model: &self.name, whole: TIME, until, connect: self.connect, silence: self.silence };
        let mut incoming = http::send(&self.client, &self.url, &self.headers, body, patience).await?;
        let status = incoming.status();
        if !(200..300).contains(&status) {
            let retry_after = incoming.retry_after();
            let (body, _) = incoming.all(ERROR_BODY).await?;
            let mut trouble = Trouble::in_answer(status, retry_after, &body);
            trouble.message = self.without_key(&trouble.message);
            return Err(trouble.into_error(&self.name));
        }
        let (body, complete) = incoming.all(LARGEST).await?;
        if !complete {
            return Err(self.bad(format!("it is longer than {LARGEST} bytes")));
        }
        let reply: Reply = serde_json::from_slice(&body).map_err(|why| {
            let shown = cut(&self.without_key(&String::from_utf8_lossy(&body)), 120);
            self.bad(format!("it holds no vectors ({why}): {shown}"))
        })?;
        self.vectors(reply, texts.len())
    }

    /// The vectors of a reply in the order of the texts, each of length one.
    fn vectors(&self, reply: Reply, count: usize) -> Result<Vec<Vec<f32>>, Error> {
        if reply.data.len() != count {
            return Err(self.bad(format!("it has {} vectors for {count} texts", reply.data.len())));
        }
        let mut vectors = vec![Vec::new(); count];
        for (at, datum) in reply.data.into_iter().enumerate() {
            let length = datum.embedding.len();
            if length == 0 || length != *self.dimensions.get_or_init(|| length) {
                return Err(self.bad(format!("a vector in it has {length} numbers, others have another count")));
            }
            match vectors.get_mut(datum.index.unwrap_or(at)) {
                Some(place) if place.is_empty() => *place = datum.embedding,
                _ => return Err(self.bad("its vectors are not numbered as the texts were".to_owned())),
            }
        }
        vectors.iter_mut().for_each(|vector| to_unit(vector));
        Ok(vectors)
    }

    fn without_key(&self, text: &str) -> String {
        self.key.as_ref().map_or_else(|| text.to_owned(), |key| key.strike_out(text))
    }

    fn bad(&self, message: String) -> Error {
        Error::BadResponse { model: self.name.clone(), message }
    }
}

impl Embedder for Server {
    fn name(&self) -> &str {
        &self.name
    }

    fn dimensions(&self) -> Option<usize> {
        self.dimensions.get().copied()
    }

    fn embed<'a>(&'a self, texts: &'a [&'a str]) -> Answer<'a, Vec<Vec<f32>>> {
        Box::pin(async move {
            // Servers refuse a text without any word; its vector is known without them.
            let worded: Vec<&str> = texts.iter().copied().filter(|text| !text.trim().is_empty()).collect();
            let mut vectors = Vec::with_capacity(worded.len());
            for some in worded.chunks(TOGETHER) {
                vectors.extend(self.ask(some).await?);
            }
            let zeros = vec![0.0; self.dimensions().unwrap_or_default()];
            let mut vectors = vectors.into_iter();
            let mut next = |text: &&str| if text.trim().is_empty() { None } else { vectors.next() };
            Ok(texts.iter().map(|text| next(text).unwrap_or_else(|| zeros.clone())).collect())
        })
    }
}
