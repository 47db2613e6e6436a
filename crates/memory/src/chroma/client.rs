//! HTTP client for ChromaDB.

use std::time::Duration;

use querymend_net::address::UrlSpec;
use querymend_net::{Address, EnvLookup, Secret, http, read_secret_file, root_cause};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Method, Url};
use serde_json::Value;

use crate::error::Error;

const URL_SPEC: UrlSpec<'_> = UrlSpec {
    subject: "the store",
    parameters: &["tenant", "database", "ca_file"],
    example: "chroma://HOST:PORT/COLLECTION, or chromas:// with TLS",
    secret_hint: "set CHROMA_TOKEN, or CHROMA_TOKEN_FILE to a file that contains the token",
};
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum size of a response; larger ones are rejected.
const MAX_RESPONSE_BYTES: usize = 256 << 20;

/// HTTP client for one collection.
pub(super) struct ChromaClient {
    client: Client,
    headers: HeaderMap,
    /// URL of the collections endpoint.
    base: Url,
    pub collection: String,
    /// Name of the collection in messages, without secrets.
    pub name: String,
}

impl ChromaClient {
    pub fn new(spec: &str, variables: EnvLookup<'_>) -> Result<Self, Error> {
        let wrong = |message: &str| Error::Unusable {
            message: message.into(),
            hint: format!("write it as {}", URL_SPEC.example),
        };
        let address = Address::parse(spec, &URL_SPEC)?;
        if address.password.is_some() {
            return Err(URL_SPEC.secret_error("a password").into());
        }
        let secure = address.scheme == "chromas";
        let host = address.host.clone().ok_or_else(|| wrong("the address of the store has no host"))?;
        if address.user.is_some() {
            return Err(wrong("the address of the store has a user, but ChromaDB has no users"));
        }
        let collection = address.path.clone();
        if collection.is_empty() || collection.contains('/') {
            return Err(wrong("the address of the store has no collection"));
        }
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !(3..=512).contains(&collection.len())
            || !collection.chars().all(plain)
            || !edge(collection.chars().next())
            || !edge(collection.chars().last())
        {
            return Err(Error::Unusable {
                message: format!("`{collection}` cannot be the name of a collection"),
                hint: "names have 3 to 512 letters, digits, dots, _ and -, and begin and end with a letter or digit"
                    .into(),
            });
        }
        let port = address.port.unwrap_or(if secure { 443 } else { 8000 });
        let scheme = if secure { "https" } else { "http" };
        let parameter =
            |name: &str, other: &str| address.parameters.get(name).map_or(other, String::as_str).to_string();
        let (tenant, database) = (parameter("tenant", "default_tenant"), parameter("database", "default_database"));
        let shown = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let mut base = Url::parse(&format!("{scheme}://{shown}:{port}/api/v2"))
            .map_err(|why| wrong(&format!("the address of the store is not valid: {why}")))?;
        if let Ok(mut path) = base.path_segments_mut() {
            path.extend(["tenants", &tenant, "databases", &database, "collections"]);
        }
        let ca_file = address.parameter("ca_file").map(std::path::Path::new);
        let builder = http::client_builder(&host, ca_file, CONNECT_TIMEOUT).map_err(|why| Error::Unusable {
            message: why.to_string(),
            hint: "check ca_file in the address of the store".into(),
        })?;
        let builder = builder.timeout(REQUEST_TIMEOUT);
        let client = builder.build().map_err(|why| Error::Unusable {
            message: format!("cannot create the HTTP client: {}", why.without_url()),
            hint: "check ca_file in the address of the store, if there is one".into(),
        })?;
        let name = format!("{}://{host}:{port}/{collection}", if secure { "chromas" } else { "chroma" });
        Ok(Self { client, headers: headers(variables)?, base, collection, name })
    }

    /// Sends a request below the collections endpoint; returns `None` if the collection does not
    /// exist.
    pub async fn request(&self, method: Method, path: &[&str], body: Option<&Value>) -> Result<Option<Value>, Error> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.extend(path);
        }
        let mut request = self.client.request(method, url).headers(self.headers.clone());
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let mut response = request.send().await.map_err(|why| self.network_error(why))?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|why| self.network_error(why))? {
            bytes.extend_from_slice(&part);
            if bytes.len() > MAX_RESPONSE_BYTES {
                return Err(self.unexpected_response("its response is too long"));
            }
        }
        let answer: Result<Value, _> = serde_json::from_slice(&bytes);
        match (status, answer) {
            (200..=299, Ok(answer)) => Ok(Some(answer)),
            (200..=299, Err(_)) => Err(self.unexpected_response("its response is not JSON")),
            (404, Ok(answer)) if answer.get("error").is_some() => Ok(None),
            (status, answer) => Err(self.status_error(status, answer.ok())),
        }
    }

    /// Creates the error for a response that a ChromaDB server would not send.
    pub fn unexpected_response(&self, why: &str) -> Error {
        Error::Unusable {
            message: format!("{} does not respond like ChromaDB: {why}", self.name),
            hint: "is it a ChromaDB server with version 2 of its API, 0.6 or later?".into(),
        }
    }

    fn status_error(&self, status: u16, answer: Option<Value>) -> Error {
        let reason = answer.as_ref().and_then(|answer| answer.get("message")).and_then(Value::as_str);
        let reason: String = reason.unwrap_or("it gave no reason").chars().take(300).collect();
        let message = format!("{} rejected the request ({status}): {reason}", self.name);
        match status {
            401 | 403 => Error::Unusable { message, hint: URL_SPEC.secret_hint.into() },
            404 | 405 | 410 => self.unexpected_response(&format!("there is nothing at this address ({status})")),
            408 | 429 | 500.. => {
                Error::Unavailable { message, hint: "try again in a moment; is the server busy?".into() }
            }
            300..=399 => Error::Unusable { message, hint: "use the address that it redirects to".into() },
            _ => Error::Unusable { message, hint: "check the log of the server".into() },
        }
    }

    fn network_error(&self, why: reqwest::Error) -> Error {
        let slow = why.is_timeout() && !why.is_connect();
        let certificate = http::is_tls_error(&why);
        let message = root_cause(&why.without_url()).to_string();
        let name = &self.name;
        if certificate {
            let hint = "add ca_file=FILE with the certificate of its CA, or check the address".into();
            return Error::Unusable {
                message: format!("the certificate of {name} cannot be verified: {message}"),
                hint,
            };
        }
        if slow {
            let hint = "try again; is the server busy?".into();
            return Error::Unavailable { message: format!("{name} does not answer"), hint };
        }
        Error::Unavailable {
            message: format!("{name} cannot be reached: {message}"),
            hint: "is the server running, and are host and port right?".into(),
        }
    }
}

/// Builds headers with the token, in both forms that servers expect.
///
/// They are marked as sensitive, so that they are not printed.
fn headers(variables: EnvLookup<'_>) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let token = match (variables("CHROMA_TOKEN"), variables("CHROMA_TOKEN_FILE")) {
        (Some(token), _) => Some(token),
        (None, Some(file)) => Some(read_secret_file("CHROMA_TOKEN_FILE", &file)?),
        (None, None) => None,
    };
    let Some(Secret(token)) = token.map(|token| Secret(token.trim().to_string())) else { return Ok(headers) };
    for (name, value) in [("x-chroma-token", token.clone()), ("authorization", format!("Bearer {token}"))] {
        let mut value = HeaderValue::from_str(&value).map_err(|_| Error::Unusable {
            message: "the token cannot be sent".into(),
            hint: "a token has printable characters and no spaces; check CHROMA_TOKEN or CHROMA_TOKEN_FILE".into(),
        })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// Starts a server that sends the same response to every request.
    fn server(answer: &'static str) -> u16 {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        port
    }

    #[tokio::test]
    async fn reports_invalid_responses() {
        const HEAD: &str = "\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
        for (status, body, transient, says) in [
            ("200 OK", "hello", false, "not JSON"),
            (
                "401 Unauthorized",
                "{\"error\":\"AuthError\",\"message\":\"Forbidden\"}",
                false,
                "rejected the request (401): Forbidden",
            ),
            ("404 Not Found", "<html>", false, "nothing at this address"),
            ("302 Found", "{}", false, "rejected the request (302)"),
            ("400 Bad Request", "{\"message\":\"no such thing\"}", false, "no such thing"),
            ("429 Too Many Requests", "", true, "429"),
            ("503 Service Unavailable", "{}", true, "503"),
        ] {
            let port = server(format!("HTTP/1.1 {status}{HEAD}{body}").leak());
            let wire =
                ChromaClient::new(&format!("chroma://127.0.0.1:{port}/examples"), &|_| Some("hunter2".into())).unwrap();
            let error = wire.request(Method::GET, &["examples"], None).await.unwrap_err();
            assert!(error.to_string().contains(says), "{status}: {error}");
            assert_eq!(error.is_transient(), transient, "{status}: {error}");
            assert!(error.hint().is_some() && !format!("{error:?}").contains("hunter2"));
        }
        // Only a closed connection.
        let port = server("");
        let wire = ChromaClient::new(&format!("chroma://127.0.0.1:{port}/examples"), &|_| None).unwrap();
        let error = wire.request(Method::GET, &[], None).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }

    #[test]
    fn sends_the_token_without_printing_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "hunter2\n").unwrap();
        let file = file.to_str().unwrap().to_string();
        let headers = headers(&|name| (name == "CHROMA_TOKEN_FILE").then(|| file.clone())).unwrap();
        assert_eq!(headers["x-chroma-token"], "hunter2");
        assert_eq!(headers["authorization"], "Bearer hunter2");
        assert!(!format!("{headers:?}").contains("hunter2"));
        assert!(super::headers(&|_| Some("two\nlines".into())).is_err());
        let wire = ChromaClient::new("chromas://db.example/shop?tenant=a b&database=c/d", &|_| None).unwrap();
        assert_eq!(wire.base.as_str(), "https://db.example/api/v2/tenants/a%20b/databases/c%2Fd/collections");
        assert_eq!(wire.name, "chromas://db.example:443/shop");
    }
}
