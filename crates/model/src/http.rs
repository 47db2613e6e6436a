//! HTTP transport to model servers: TLS, timeouts and size limits, independent of the protocol.

use std::borrow::Cow;
use std::time::Duration;

use querymend_net::http::is_tls_error;
use querymend_net::{http, root_cause, tls};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Response, Url};
use tokio::time::{Instant, timeout_at};

use crate::error::{Error, TimeoutPhase};
use crate::providers::Provider;

/// Creates the HTTP client for a provider.
pub(crate) fn client(provider: &Provider, url: &Url) -> Result<Client, Error> {
    let connect = Duration::from_secs_f64(provider.connect_seconds);
    build_client(http::client_builder(host(url), provider.ca_file.as_deref(), connect)?)
}

/// Creates the HTTP client for a public file. It follows redirects, because hosts of large files
/// redirect to their storage.
pub(crate) fn download_client(url: &Url, connect: Duration) -> Result<Client, Error> {
    build_client(http::client_builder(host(url), None, connect)?.redirect(reqwest::redirect::Policy::limited(5)))
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

fn build_client(builder: ClientBuilder) -> Result<Client, Error> {
    Ok(builder.build().map_err(|why| tls::tls_error(&why.without_url()))?)
}

/// Builds headers from names and values, marked as sensitive so that they are not printed.
pub(crate) fn headers(pairs: Vec<(&'static str, String)>) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    for (name, value) in pairs {
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            Error::configuration("the key cannot be sent", "a key has printable characters and no spaces")
        })?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

/// Adds the `traceparent` header. An invalid value is dropped, because it must not fail the
/// request.
pub(crate) fn with_traceparent<'h>(headers: &'h HeaderMap, traceparent: Option<&str>) -> Cow<'h, HeaderMap> {
    let Some(value) = traceparent.and_then(|text| HeaderValue::from_str(text).ok()) else {
        return Cow::Borrowed(headers);
    };
    let mut headers = headers.clone();
    headers.insert(HeaderName::from_static("traceparent"), value);
    Cow::Owned(headers)
}

/// Time limits of a request in progress.
pub(crate) struct RequestTimeouts<'a> {
    pub model: &'a str,
    /// Time limit of the whole request, and the resulting deadline.
    pub total: Duration,
    pub deadline: Instant,
    /// Connect timeout; the client enforces it, and errors report it.
    pub connect: Duration,
    /// Maximum time without any data.
    pub idle: Option<Duration>,
}

impl RequestTimeouts<'_> {
    /// Awaits a future of the server until the idle timeout or the deadline expires.
    async fn wait<T>(&self, future: impl Future<Output = reqwest::Result<T>>, wait: TimeoutPhase) -> Result<T, Error> {
        let quiet = self.idle.map(|silence| (Instant::now() + silence, silence));
        let (until, after, waiting_for) = match quiet {
            Some((until, silence)) if until < self.deadline => (until, silence, TimeoutPhase::FirstByte),
            _ => (self.deadline, self.total, wait),
        };
        match timeout_at(until, future).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(why)) => Err(self.network_error(why)),
            Err(_) => Err(Error::Timeout { model: self.model.to_owned(), after, waiting_for }),
        }
    }

    /// Converts a network error.
    fn network_error(&self, why: reqwest::Error) -> Error {
        let model = self.model.to_owned();
        if why.is_timeout() {
            return Error::Timeout { model, after: self.connect, waiting_for: TimeoutPhase::Connection };
        }
        // Certificate errors are permanent; all other network errors may be temporary.
        let transient = !is_tls_error(&why);
        let message = root_cause(&why.without_url()).to_string();
        Error::Unreachable { model, message, transient }
    }
}

/// Response whose headers have arrived and whose body is being received.
pub(crate) struct IncomingResponse<'a> {
    response: Response,
    timeouts: RequestTimeouts<'a>,
    /// Number of body bytes received so far.
    pub bytes_read: usize,
}

/// Sends a request and waits for the response headers.
pub(crate) async fn send<'a>(
    client: &Client,
    url: &Url,
    headers: &HeaderMap,
    body: Vec<u8>,
    timeouts: RequestTimeouts<'a>,
) -> Result<IncomingResponse<'a>, Error> {
    let request = client.post(url.clone()).headers(headers.clone()).body(body);
    let response = timeouts.wait(request.send(), TimeoutPhase::FirstByte).await?;
    Ok(IncomingResponse { response, timeouts, bytes_read: 0 })
}

impl IncomingResponse<'_> {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn content_type(&self) -> &str {
        let value = self.response.headers().get(reqwest::header::CONTENT_TYPE);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Returns the requested delay: milliseconds from OpenAI's header, else seconds. Dates are not
    /// supported.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let number = |name: &str| self.response.headers().get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
        let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns the next chunk of the body; `None` at the end.
    pub(crate) async fn next_chunk(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        let wait = if self.bytes_read == 0 { TimeoutPhase::FirstByte } else { TimeoutPhase::End };
        let bytes = self.timeouts.wait(self.response.chunk(), wait).await?;
        self.bytes_read += bytes.as_ref().map_or(0, |bytes| bytes.len());
        Ok(bytes)
    }

    /// Reads the body up to a maximum size; returns whether it is complete.
    pub(crate) async fn read_body(&mut self, max_bytes: usize) -> Result<(Vec<u8>, bool), Error> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next_chunk().await? {
            all.extend_from_slice(bytes.as_ref());
            if all.len() > max_bytes {
                all.truncate(max_bytes);
                return Ok((all, false));
            }
        }
        Ok((all, true))
    }

    /// Reads the rest after the last event, so that the connection can be reused.
    pub(crate) async fn drain(mut self) {
        let soon = Instant::now() + Duration::from_millis(50);
        while let Ok(Ok(Some(_))) = timeout_at(soon, self.response.chunk()).await {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn does_not_print_headers_with_keys() {
        let headers = headers(vec![("authorization", "Bearer sk-secret".to_owned())]).unwrap();
        assert!(!format!("{headers:?}").contains("secret"));
    }

    #[test]
    fn sends_the_trace_context_of_a_request() {
        let key = headers(vec![("authorization", "Bearer sk-secret".to_owned())]).unwrap();
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let sent = with_traceparent(&key, Some(parent));
        assert_eq!(sent.get("traceparent").and_then(|value| value.to_str().ok()), Some(parent));
        assert!(sent.contains_key("authorization") && !format!("{sent:?}").contains("secret"));
        assert_eq!(*with_traceparent(&key, None), key);
        assert_eq!(*with_traceparent(&key, Some("line\nbreak")), key);
    }

    #[test]
    fn rejects_ca_files_without_certificates() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let url = Url::parse("https://models.example/").unwrap();
        let provider = Provider { ca_file: Some(file.clone()), ..Provider::for_tests() };
        assert!(client(&provider, &url).is_err(), "the file is not there");
        std::fs::write(&file, "no certificate").unwrap();
        assert!(client(&provider, &url).is_err());
        assert!(client(&Provider::for_tests(), &url).is_ok());
    }
}
