//! One request and its answer. Whatever the server says, requests only go to where the address says.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use querymend_net::Secret;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, StatusCode, Url};

use super::refusal;
use super::settings::{Proof, Settings};
use super::wire::Step;
use crate::Error;

/// So long may a connection take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// So long is a server waited for that says it has no time.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it is left alone in between, as the protocol says.
const PAUSE: Duration = Duration::from_millis(75);
/// An answer longer than this is never read to its end. Servers cut theirs at some megabytes, or after the first row.
const LONGEST_ANSWER: usize = 64 << 20;

/// So often a connection is replaced that ended before it took a request.
const MOST_AGAIN: usize = 3;
/// The server's own clock for a statement.
const MOST_TIME: &str = "query_max_run_time";
/// Longer times are none that the server would take.
const LONGEST_TIME: Duration = Duration::from_secs(100 * 24 * 3600);

/// A server that statements are sent to.
pub(super) struct Server {
    pub settings: Settings,
    client: Client,
    headers: HeaderMap,
    /// Whether the server is told how long a statement may run. Some let nobody say so.
    sets_time: AtomicBool,
}

/// One step, and what its headers say.
pub(super) struct Reply {
    pub step: Step,
    /// Where to ask next.
    pub next: Option<Url>,
    /// The transaction that was begun.
    pub started: Option<HeaderValue>,
}

/// What goes with one statement alone.
#[derive(Default)]
pub(super) struct With<'a> {
    pub transaction: Option<&'a HeaderValue>,
    /// How long it may run.
    pub time: Duration,
}

impl Server {
    /// Prepares requests; none is sent.
    pub fn new(settings: Settings) -> Result<Self, Error> {
        let host = settings.base.host_str().unwrap_or_default().to_string();
        let client = querymend_net::http::client(&host, settings.ca_file.as_deref(), CONNECT)?
            .build()
            .map_err(|why| Error::Internal(format!("no requests can be made: {why}")))?;
        let mut server = Self { headers: HeaderMap::new(), client, settings, sets_time: AtomicBool::new(true) };
        let settings = &server.settings;
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("user", settings.user.as_deref()),
            ("catalog", Some(settings.catalog.as_str())),
            ("schema", settings.schema.as_deref()),
            ("source", Some("querymend")),
            ("client-info", Some("querymend")),
            ("time-zone", Some("UTC")),
            // Without it, moments are cut to milliseconds.
            ("client-capabilities", Some("PARAMETRIC_DATETIME")),
        ] {
            if let Some(value) = value {
                headers.insert(server.header(name)?, server.value(value)?);
            }
        }
        server.headers = headers;
        Ok(server)
    }

    /// The same server over connections of its own. Those that one runtime opens end with it, and nobody else is to be handed them.
    pub fn apart(&self) -> Result<Self, Error> {
        let sets_time = AtomicBool::new(self.sets_time.load(Ordering::Relaxed));
        Ok(Self { sets_time, ..Self::new(self.settings.clone())? })
    }

    /// Sends a statement. It is not begun before it is followed.
    pub async fn begin(&self, sql: &str, with: &With<'_>) -> Result<Reply, Error> {
        let mut headers = self.headers.clone();
        let none = HeaderValue::from_static("NONE");
        headers.insert(self.header("transaction-id")?, with.transaction.cloned().unwrap_or(none));
        if self.sets_time.load(Ordering::Relaxed) {
            let time = format!("{MOST_TIME}={}ms", with.time.min(LONGEST_TIME).as_millis());
            headers.insert(self.header("session")?, self.value(&time)?);
        }
        let url = self.at("v1/statement")?;
        self.step(|| self.client.post(url.clone()).headers(headers.clone()).body(sql.to_string())).await
    }

    /// Whether a statement was only refused because it was to have an end, and may be sent again without one. Our own clock
    /// still ends it.
    pub fn gives_in(&self, error: &Error) -> bool {
        let refused = matches!(error, Error::Rejected(said) if said.code == "PERMISSION_DENIED" && said.message.contains(MOST_TIME));
        refused && self.sets_time.swap(false, Ordering::Relaxed)
    }

    /// Asks for the next step.
    pub async fn follow(&self, next: &Url) -> Result<Reply, Error> {
        self.step(|| self.client.get(next.clone()).headers(self.headers.clone())).await
    }

    /// Ends a statement. Whether that works is no concern of whoever gave it up.
    pub async fn cancel(&self, next: &Url) {
        let request = self.client.delete(next.clone()).headers(self.headers.clone());
        drop(self.prove(request).send().await);
    }

    /// What the server says of itself, to anybody.
    pub async fn info(&self) -> Result<serde_json::Value, Error> {
        let url = self.at("v1/info")?;
        let (_, body) = self.send(|| self.client.get(url.clone())).await?;
        serde_json::from_slice(&body).map_err(|why| refusal::nonsense(why, &self.settings))
    }

    async fn step(&self, request: impl Fn() -> RequestBuilder) -> Result<Reply, Error> {
        let (headers, body) = self.send(request).await?;
        let step: Step = serde_json::from_slice(&body).map_err(|why| refusal::nonsense(why, &self.settings))?;
        let next = step.next_uri.as_deref().map(|next| self.ours(next)).transpose()?;
        let started = headers.get(self.header("started-transaction-id")?).cloned();
        Ok(Reply { step, next, started })
    }

    /// Sends a request until it is answered: servers that are busy are waited for, and a kept connection that turns out to be
    /// dead is replaced once, or more often where it had not even taken the request: many share one. Each request of the protocol
    /// may be sent twice.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<(HeaderMap, Vec<u8>), Error> {
        let begun = Instant::now();
        let mut again = MOST_AGAIN;
        loop {
            let response = match self.prove(request()).send().await {
                Ok(response) => response,
                Err(error) if again > 0 && !error.is_connect() => {
                    again = if refusal::was_not_taken(&error) { again - 1 } else { 0 };
                    continue;
                }
                Err(error) => return Err(refusal::unreachable(&error, &self.settings)),
            };
            let (status, headers) = (response.status(), response.headers().clone());
            match status {
                StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => {
                    let pause = pause(&headers);
                    if begun.elapsed().saturating_add(pause) > PATIENCE {
                        return Err(refusal::busy(status, &self.settings));
                    }
                    tokio::time::sleep(pause).await;
                }
                _ => match self.body(response).await {
                    Ok(body) if status == StatusCode::OK => return Ok((headers, body)),
                    Ok(body) => return Err(refusal::status(status, &String::from_utf8_lossy(&body), &self.settings)),
                    Err(Error::Unavailable { transient: true, .. }) if again > 0 => again = 0,
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// The whole answer, if it is not too long.
    async fn body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| refusal::unreachable(&error, &self.settings))? {
            if body.len() + chunk.len() > LONGEST_ANSWER {
                let what =
                    format!("{} sends an answer of more than {} MB at once", self.settings.name, LONGEST_ANSWER >> 20);
                return Err(Error::unavailable(what, "ask for fewer or shorter columns"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Shows who asks.
    fn prove(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.settings.proof {
            None => request,
            Some(Proof::Password(Secret(password))) => {
                request.basic_auth(self.settings.user.as_deref().unwrap_or_default(), Some(password))
            }
            Some(Proof::Token(Secret(token))) => request.bearer_auth(token),
        }
    }

    /// An address that the server gave, if it is on this very server: it would get our secrets.
    fn ours(&self, next: &str) -> Result<Url, Error> {
        let base = &self.settings.base;
        let place =
            |url: &Url| (url.scheme().to_string(), url.host_str().map(str::to_string), url.port_or_known_default());
        match Url::parse(next) {
            Ok(url) if place(&url) == place(base) && url.username().is_empty() && url.password().is_none() => Ok(url),
            Ok(url) => Err(Error::unavailable(
                format!(
                    "{} wants to be asked at {}://{}, which is not its address",
                    self.settings.name,
                    url.scheme(),
                    url.host_str().unwrap_or_default()
                ),
                "behind a proxy, the server needs http-server.process-forwarded=true, so that it knows its own address",
            )),
            Err(why) => Err(refusal::nonsense(why, &self.settings)),
        }
    }

    fn at(&self, path: &str) -> Result<Url, Error> {
        self.settings.base.join(path).map_err(|why| Error::Internal(format!("`{path}` is no path: {why}")))
    }

    fn header(&self, name: &str) -> Result<HeaderName, Error> {
        let name = format!("{}-{name}", self.settings.family.header);
        HeaderName::from_bytes(name.as_bytes()).map_err(|why| Error::Internal(format!("`{name}` is no header: {why}")))
    }

    fn value(&self, text: &str) -> Result<HeaderValue, Error> {
        HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
            Error::unavailable("the address of the database holds characters that cannot be sent", "check the address")
        })
    }
}

/// How long to leave the server alone: as long as it says, if it says so.
fn pause(headers: &HeaderMap) -> Duration {
    let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    asked.map_or(PAUSE, Duration::from_secs).max(PAUSE)
}

#[cfg(test)]
mod tests;
