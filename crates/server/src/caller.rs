//! Caller of a request that arrives over HTTP: authentication, rate limiting, request id.

use std::net::IpAddr;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use querymend::{Problem, ProblemCode};

use crate::auth::user::{Credentials, User};
use crate::limits::rate_limit::InFlightGuard;
use crate::request_context::RequestContext;
use crate::service::Service;

/// Length of a `traceparent` header of version 00.
pub(crate) const TRACEPARENT_LENGTH: usize = 55;

/// Authenticated caller of a request. The request counts as in flight until this is dropped.
#[derive(Debug)]
pub struct Caller {
    /// Authenticated user.
    pub user: User,
    /// Id of the request in logs.
    pub request_id: String,
    /// W3C `traceparent` of the request.
    pub traceparent: Option<String>,
    /// Configuration version at the start of the request. Results of a request must not be cached
    /// for requests under a later configuration.
    pub config_version: u64,
    _in_flight: InFlightGuard,
}

impl Caller {
    /// Authenticates a request and admits it within the user's rate limits.
    pub async fn from_parts(parts: &Parts, service: &Service) -> Result<Self, Problem> {
        // Read before authentication, so that a reload in between is detected.
        let config_version = service.config_version();
        let user = authenticate(parts, service).await?;
        let in_flight = service.acquire(&user)?;
        let traceparent = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
        Ok(Self {
            user,
            request_id: request_id(&parts.headers),
            traceparent: traceparent.filter(|text| text.len() == TRACEPARENT_LENGTH).map(str::to_owned),
            config_version,
            _in_flight: in_flight,
        })
    }

    /// Returns the request context for calls to the service.
    pub fn context(&self) -> RequestContext<'_> {
        RequestContext { user: &self.user, request_id: &self.request_id, traceparent: self.traceparent.as_deref() }
    }
}

/// Authenticates a request without counting it towards the rate limits.
pub async fn authenticate(parts: &Parts, service: &Service) -> Result<User, Problem> {
    // Ignore repeated headers: a proxy may have checked another value than the one used here.
    let single = |name: &str| {
        let mut all = parts.headers.get_all(name).iter();
        all.next().filter(|_| all.next().is_none()).and_then(|value| value.to_str().ok())
    };
    let credentials = Credentials { authorization: single("authorization"), api_key: single("x-api-key") };
    if !service.requires_credentials() {
        reject_cross_site_and_rebinding(parts)?;
    }
    let user = service.authenticate(&credentials).await?;
    tracing::Span::current().record("user", user.id());
    Ok(user)
}

/// Rejects cross-site requests and DNS rebinding, for servers without authentication.
///
/// A web page in a local browser could reach the server through a host name that resolves to this
/// machine, so only IP addresses and `localhost` are accepted as hosts.
fn reject_cross_site_and_rebinding(parts: &Parts) -> Result<(), Problem> {
    // `Sec-Fetch-Site` marks requests of other sites. Their pages cannot read the response, but
    // they could cause load.
    let site = parts.headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(Problem::new(ProblemCode::Forbidden, "cross-site requests are not allowed"));
    }
    let host = match parts.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => parts.headers.get("host").and_then(|value| value.to_str().ok()),
    };
    let Some(host) = host else { return Ok(()) };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    if name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost") {
        return Ok(());
    }
    let problem = Problem::new(ProblemCode::Forbidden, "requests to this host name are not allowed");
    Err(problem.hint("use localhost or an IP address, or set `server.auth`"))
}

/// Returns the client's `X-Request-Id` if it is safe to log, otherwise a new id.
pub fn request_id(headers: &HeaderMap) -> String {
    let sent = headers.get("x-request-id").and_then(|value| value.to_str().ok());
    let is_safe = |id: &&str| {
        (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
    };
    sent.filter(is_safe).map_or_else(querymend::trace_id, str::to_owned)
}
