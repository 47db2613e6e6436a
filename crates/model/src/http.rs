//! The connection to a model server: TLS, time limits, size limits. It moves bytes and knows nothing of what they mean.

use std::borrow::Cow;
use std::time::Duration;

use querymend_net::http::is_tls;
use querymend_net::{http, tls};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, ClientBuilder, Response, Url};
use tokio::time::{Instant, timeout_at};

use crate::error::{Error, Wait};
use crate::providers::Provider;

/// Makes the client for one provider.
pub(crate) fn client(provider: &Provider, url: &Url) -> Result<Client, Error> {
    let connect = Duration::from_secs_f64(provider.connect_seconds);
    built(http::client(host(url), provider.ca_file.as_deref(), connect)?)
}

/// Makes the client for a file that everybody may have. The places that keep large files send on to where they are kept.
pub(crate) fn download_client(url: &Url, connect: Duration) -> Result<Client, Error> {
    built(http::client(host(url), None, connect)?.redirect(reqwest::redirect::Policy::limited(5)))
}

fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default()
}

fn built(builder: ClientBuilder) -> Result<Client, Error> {
    Ok(builder.build().map_err(|why| tls::broken(&why.without_url()))?)
}

/// Headers from names and values. They are marked as secret, so that nothing prints them.
pub(crate) fn headers(pairs: Vec<(&'static str, String)>) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(reqwest::header::ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    for (name, value) in pairs {
        let mut value = HeaderValue::from_str(&value)
            .map_err(|_| Error::configuration("the key cannot be sent", "a key is one word of printable characters"))?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    Ok(headers)
}

/// The same headers with the trace that a request belongs to. One that cannot be sent is left out: it is no part of the question.
pub(crate) fn traced<'h>(headers: &'h HeaderMap, traceparent: Option<&str>) -> Cow<'h, HeaderMap> {
    let Some(value) = traceparent.and_then(|text| HeaderValue::from_str(text).ok()) else {
        return Cow::Borrowed(headers);
    };
    let mut headers = headers.clone();
    headers.insert(HeaderName::from_static("traceparent"), value);
    Cow::Owned(headers)
}

/// One request under way: who is asked, and how long may be waited.
pub(crate) struct Patience<'a> {
    pub model: &'a str,
    /// The time of the whole request, and when it is up.
    pub whole: Duration,
    pub until: Instant,
    /// The longest wait for a connection; the client keeps it, and errors name it.
    pub connect: Duration,
    /// The longest silence.
    pub silence: Option<Duration>,
}

impl Patience<'_> {
    /// Waits for something from the server, no longer than may be waited.
    async fn wait<T>(&self, future: impl Future<Output = reqwest::Result<T>>, wait: Wait) -> Result<T, Error> {
        let quiet = self.silence.map(|silence| (Instant::now() + silence, silence));
        let (until, after, waiting_for) = match quiet {
            Some((until, silence)) if until < self.until => (until, silence, Wait::FirstByte),
            _ => (self.until, self.whole, wait),
        };
        match timeout_at(until, future).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(why)) => Err(self.broken(why)),
            Err(_) => Err(Error::Timeout { model: self.model.to_owned(), after, waiting_for }),
        }
    }

    /// What a failure of the network means.
    fn broken(&self, why: reqwest::Error) -> Error {
        let model = self.model.to_owned();
        if why.is_timeout() {
            return Error::Timeout { model, after: self.connect, waiting_for: Wait::Connection };
        }
        // A certificate does not mend itself; all else on a network may.
        let transient = !is_tls(&why);
        let mut message = String::new();
        let why = why.without_url();
        let mut cause: Option<&dyn std::error::Error> = Some(&why);
        while let Some(error) = cause {
            // The last cause says what it is; those above it say only that something happened.
            message = error.to_string();
            cause = error.source();
        }
        Error::Unreachable { model, message, transient }
    }
}

/// An answer whose head is there and whose body is still to come.
pub(crate) struct Incoming<'a> {
    response: Response,
    patience: Patience<'a>,
    /// How many bytes have come.
    pub read: usize,
}

/// Sends a request and waits for the head of the answer.
pub(crate) async fn send<'a>(
    client: &Client,
    url: &Url,
    headers: &HeaderMap,
    body: Vec<u8>,
    patience: Patience<'a>,
) -> Result<Incoming<'a>, Error> {
    let request = client.post(url.clone()).headers(headers.clone()).body(body);
    let response = patience.wait(request.send(), Wait::FirstByte).await?;
    Ok(Incoming { response, patience, read: 0 })
}

impl Incoming<'_> {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn content_type(&self) -> &str {
        let value = self.response.headers().get(reqwest::header::CONTENT_TYPE);
        value.and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// How long the server wants to be left alone: milliseconds in OpenAI's header, else seconds. A date is not read.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let number = |name: &str| self.response.headers().get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
        let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        let wait = if self.read == 0 { Wait::FirstByte } else { Wait::End };
        let bytes = self.patience.wait(self.response.chunk(), wait).await?;
        self.read += bytes.as_ref().map_or(0, |bytes| bytes.len());
        Ok(bytes)
    }

    /// The whole body, or as much of it as is allowed and whether that was all.
    pub(crate) async fn all(&mut self, most: usize) -> Result<(Vec<u8>, bool), Error> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(bytes.as_ref());
            if all.len() > most {
                all.truncate(most);
                return Ok((all, false));
            }
        }
        Ok((all, true))
    }

    /// Reads the little that follows the last event, so that the connection can be used again.
    pub(crate) async fn drain(mut self) {
        let soon = Instant::now() + Duration::from_millis(50);
        while let Ok(Ok(Some(_))) = timeout_at(soon, self.response.chunk()).await {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a05_a_header_with_a_key_is_not_printed() {
        let headers = headers(vec![("authorization", "Bearer sk-secret".to_owned())]).unwrap();
        assert!(!format!("{headers:?}").contains("secret"));
    }

    #[test]
    fn l11_a_server_is_told_the_trace_that_a_request_belongs_to() {
        let key = headers(vec![("authorization", "Bearer sk-secret".to_owned())]).unwrap();
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let sent = traced(&key, Some(parent));
        assert_eq!(sent.get("traceparent").and_then(|value| value.to_str().ok()), Some(parent));
        assert!(sent.contains_key("authorization") && !format!("{sent:?}").contains("secret"));
        assert_eq!(*traced(&key, None), key);
        assert_eq!(*traced(&key, Some("line\nbreak")), key);
    }

    #[test]
    fn certificates_of_ones_own_must_be_certificates() {
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
