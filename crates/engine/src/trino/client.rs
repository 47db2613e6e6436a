//! HTTP client. Requests only go to the configured origin, even if the server returns other URLs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use querymend_net::Secret;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, StatusCode, Url};

use super::errors;
use super::protocol::TrinoPage;
use super::settings::{TrinoCredential, TrinoSettings};
use crate::Error;

/// Timeout for establishing a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to wait for a busy server.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum back-off between two attempts, as the protocol recommends.
const RETRY_INTERVAL: Duration = Duration::from_millis(75);
/// Maximum size of a response. Servers end theirs after a few megabytes, or after the first row.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// Maximum number of retries for connections that were closed before a request was sent.
const MAX_RETRIES: usize = 3;
/// Session property for the server-side time limit of a statement.
const RUN_TIME_PROPERTY: &str = "query_max_run_time";
/// Maximum time limit that servers accept.
const MAX_RUN_TIME: Duration = Duration::from_secs(100 * 24 * 3600);

/// Client of a server.
pub(super) struct TrinoClient {
    pub settings: TrinoSettings,
    client: Client,
    headers: HeaderMap,
    /// `true` if the time limit is sent with each statement. Some servers do not allow clients to
    /// set it.
    sets_run_time: AtomicBool,
}

/// One page of a result, and its headers.
pub(super) struct TrinoResponse {
    pub page: TrinoPage,
    /// URL of the next page.
    pub next: Option<Url>,
    /// Id of the transaction that the statement began.
    pub started_transaction: Option<HeaderValue>,
}

/// Options of a single statement.
#[derive(Default)]
pub(super) struct StatementOptions<'a> {
    pub transaction: Option<&'a HeaderValue>,
    /// Time limit.
    pub time: Duration,
}

impl TrinoClient {
    /// Creates a client. Does not connect.
    pub fn new(settings: TrinoSettings) -> Result<Self, Error> {
        let host = settings.base_url.host_str().unwrap_or_default().to_string();
        let client = querymend_net::http::client_builder(&host, settings.ca_file.as_deref(), CONNECT_TIMEOUT)?
            .build()
            .map_err(|why| Error::Internal(format!("cannot create the HTTP client: {why}")))?;
        let mut server = Self { headers: HeaderMap::new(), client, settings, sets_run_time: AtomicBool::new(true) };
        let settings = &server.settings;
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("user", settings.user.as_deref()),
            ("catalog", Some(settings.catalog.as_str())),
            ("schema", settings.schema.as_deref()),
            ("source", Some("querymend")),
            ("client-info", Some("querymend")),
            ("time-zone", Some("UTC")),
            // Without it, timestamps are truncated to milliseconds.
            ("client-capabilities", Some("PARAMETRIC_DATETIME")),
        ] {
            if let Some(value) = value {
                headers.insert(server.header_name(name)?, server.header_value(value)?);
            }
        }
        server.headers = headers;
        Ok(server)
    }

    /// Returns a client with its own connection pool, for use on another runtime.
    ///
    /// Connections end with the runtime that opened them.
    pub fn with_own_connections(&self) -> Result<Self, Error> {
        let sets_time = AtomicBool::new(self.sets_run_time.load(Ordering::Relaxed));
        Ok(Self { sets_run_time: sets_time, ..Self::new(self.settings.clone())? })
    }

    /// Submits a statement. The server does not start it before the next page is requested.
    pub async fn submit(&self, sql: &str, options: &StatementOptions<'_>) -> Result<TrinoResponse, Error> {
        let mut headers = self.headers.clone();
        let none = HeaderValue::from_static("NONE");
        headers.insert(self.header_name("transaction-id")?, options.transaction.cloned().unwrap_or(none));
        if self.sets_run_time.load(Ordering::Relaxed) {
            let time = format!("{RUN_TIME_PROPERTY}={}ms", options.time.min(MAX_RUN_TIME).as_millis());
            headers.insert(self.header_name("session")?, self.header_value(&time)?);
        }
        let url = self.endpoint("v1/statement")?;
        self.request_page(|| self.client.post(url.clone()).headers(headers.clone()).body(sql.to_string())).await
    }

    /// Returns whether a statement was only rejected for its time limit and can be retried without.
    ///
    /// The limit is still enforced on this side.
    pub fn drops_run_time_limit(&self, error: &Error) -> bool {
        let refused = matches!(error, Error::Rejected(engine_error) if engine_error.code == "PERMISSION_DENIED" && engine_error.message.contains(RUN_TIME_PROPERTY));
        refused && self.sets_run_time.swap(false, Ordering::Relaxed)
    }

    /// Fetches the next page.
    pub async fn fetch_next(&self, next: &Url) -> Result<TrinoResponse, Error> {
        self.request_page(|| self.client.get(next.clone()).headers(self.headers.clone())).await
    }

    /// Cancels a statement, ignoring errors.
    pub async fn cancel(&self, next: &Url) {
        let request = self.client.delete(next.clone()).headers(self.headers.clone());
        drop(self.authenticate(request).send().await);
    }

    /// Returns the server's public information.
    pub async fn info(&self) -> Result<serde_json::Value, Error> {
        let url = self.endpoint("v1/info")?;
        let (_, body) = self.send(|| self.client.get(url.clone())).await?;
        serde_json::from_slice(&body).map_err(|why| errors::protocol_error(why, &self.settings))
    }

    async fn request_page(&self, request: impl Fn() -> RequestBuilder) -> Result<TrinoResponse, Error> {
        let (headers, body) = self.send(request).await?;
        let step: TrinoPage =
            serde_json::from_slice(&body).map_err(|why| errors::protocol_error(why, &self.settings))?;
        let next = step.next_uri.as_deref().map(|next| self.require_same_origin(next)).transpose()?;
        let started = headers.get(self.header_name("started-transaction-id")?).cloned();
        Ok(TrinoResponse { page: step, next, started_transaction: started })
    }

    /// Sends a request, and retries while the server is busy.
    ///
    /// A dead pooled connection is replaced once, or up to [`MAX_RETRIES`] times if the request was
    /// not sent at all, because many requests share a connection. Every request of the protocol is
    /// idempotent.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<(HeaderMap, Vec<u8>), Error> {
        let begun = Instant::now();
        let mut again = MAX_RETRIES;
        loop {
            let response = match self.authenticate(request()).send().await {
                Ok(response) => response,
                Err(error) if again > 0 && !error.is_connect() => {
                    again = if errors::is_unsent_request(&error) { again - 1 } else { 0 };
                    continue;
                }
                Err(error) => return Err(errors::unreachable_error(&error, &self.settings)),
            };
            let (status, headers) = (response.status(), response.headers().clone());
            match status {
                StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT => {
                    let pause = retry_after(&headers);
                    if begun.elapsed().saturating_add(pause) > BUSY_TIMEOUT {
                        return Err(errors::busy_error(status, &self.settings));
                    }
                    tokio::time::sleep(pause).await;
                }
                _ => match self.read_body(response).await {
                    Ok(body) if status == StatusCode::OK => return Ok((headers, body)),
                    Ok(body) => {
                        return Err(errors::http_status_error(status, &String::from_utf8_lossy(&body), &self.settings));
                    }
                    Err(Error::Unavailable { transient: true, .. }) if again > 0 => again = 0,
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// Reads the response body, up to the size limit.
    async fn read_body(&self, mut response: reqwest::Response) -> Result<Vec<u8>, Error> {
        let mut body = Vec::new();
        while let Some(chunk) =
            response.chunk().await.map_err(|error| errors::unreachable_error(&error, &self.settings))?
        {
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                let what =
                    format!("{} sent a response of more than {} MB", self.settings.name, MAX_RESPONSE_BYTES >> 20);
                return Err(Error::unavailable(what, "select fewer or shorter columns"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Adds the credentials.
    fn authenticate(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.settings.credential {
            None => request,
            Some(TrinoCredential::Password(Secret(password))) => {
                request.basic_auth(self.settings.user.as_deref().unwrap_or_default(), Some(password))
            }
            Some(TrinoCredential::Token(Secret(token))) => request.bearer_auth(token),
        }
    }

    /// Parses a URL from the server and requires the server's own origin.
    ///
    /// The request would send the credentials to any other host as well.
    fn require_same_origin(&self, next: &str) -> Result<Url, Error> {
        let base = &self.settings.base_url;
        let place =
            |url: &Url| (url.scheme().to_string(), url.host_str().map(str::to_string), url.port_or_known_default());
        match Url::parse(next) {
            Ok(url) if place(&url) == place(base) && url.username().is_empty() && url.password().is_none() => Ok(url),
            Ok(url) => Err(Error::unavailable(
                format!(
                    "{} returned a URI at {}://{}, which is not its address",
                    self.settings.name,
                    url.scheme(),
                    url.host_str().unwrap_or_default()
                ),
                "behind a proxy, the server needs http-server.process-forwarded=true, so that it knows its own address",
            )),
            Err(why) => Err(errors::protocol_error(why, &self.settings)),
        }
    }

    fn endpoint(&self, path: &str) -> Result<Url, Error> {
        self.settings.base_url.join(path).map_err(|why| Error::Internal(format!("`{path}` is not a valid path: {why}")))
    }

    fn header_name(&self, name: &str) -> Result<HeaderName, Error> {
        let name = format!("{}-{name}", self.settings.flavor.header_prefix);
        HeaderName::from_bytes(name.as_bytes())
            .map_err(|why| Error::Internal(format!("`{name}` is not a valid header: {why}")))
    }

    fn header_value(&self, text: &str) -> Result<HeaderValue, Error> {
        HeaderValue::from_bytes(text.as_bytes()).map_err(|_| {
            Error::unavailable(
                "the address of the database contains characters that cannot be sent",
                "check the address",
            )
        })
    }
}

/// Returns the back-off before a retry, from the `Retry-After` header if there is one.
fn retry_after(headers: &HeaderMap) -> Duration {
    let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    asked.map_or(RETRY_INTERVAL, Duration::from_secs).max(RETRY_INTERVAL)
}

#[cfg(test)]
mod tests;
