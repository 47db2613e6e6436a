//! Who sends a request: let in, counted, and given a number.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use querymend::{Problem, ProblemCode};

use super::problem::Refused;
use crate::rates::Ticket;
use crate::service::{Asking, Service};
use crate::user::{Credentials, User};

/// Who sends a request. As long as it is held, the request counts as running.
#[derive(Debug)]
pub struct Caller {
    /// Who.
    pub user: User,
    /// By which the request is found in logs.
    pub request_id: String,
    /// The trace that it belongs to.
    pub traceparent: Option<String>,
    /// How often the rules had changed when the request came: what it is given must not be given again under other rules.
    pub rules: u64,
    _ticket: Ticket,
}

impl Caller {
    /// The same, as the service wants it.
    pub fn asking(&self) -> Asking<'_> {
        Asking { user: &self.user, request_id: &self.request_id, traceparent: self.traceparent.as_deref() }
    }
}

impl FromRequestParts<Arc<Service>> for Caller {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Refused> {
        // Before it is known who asks, and so what they may do.
        let rules = service.rules();
        let Looker(user) = Looker::from_request_parts(parts, service).await?;
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let ticket = service.admit(&user)?;
        let traceparent = text("traceparent").filter(|text| text.len() == 55).map(str::to_owned);
        Ok(Self { user, request_id: request_id(&parts.headers), traceparent, rules, _ticket: ticket })
    }
}

/// Who sends a request, for what is not counted: looking at a server must not make it busy.
pub struct Looker(pub User);

impl FromRequestParts<Arc<Service>> for Looker {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Refused> {
        // What is said twice is not said: somebody on the way may have looked at the other one.
        let text = |name: &str| {
            let mut all = parts.headers.get_all(name).iter();
            all.next().filter(|_| all.next().is_none()).and_then(|value| value.to_str().ok())
        };
        let credentials = Credentials { authorization: text("authorization"), api_key: text("x-api-key") };
        if !service.signs_in() {
            is_here(parts)?;
        }
        let user = service.user(&credentials).await?;
        tracing::Span::current().record("user", user.name());
        Ok(Self(user))
    }
}

/// Where nobody signs in, a page in a browser on this machine must not reach the server under a name of its own that leads here:
/// only addresses and `localhost` are answered.
fn is_here(parts: &Parts) -> Result<(), Refused> {
    // A browser says so when another site's page asks; such a page could not read the reply, but it could keep the server busy.
    let site = parts.headers.get("sec-fetch-site").and_then(|value| value.to_str().ok());
    if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
        return Err(Problem::new(ProblemCode::Forbidden, "pages of other sites may not ask this server").into());
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
    let problem = Problem::new(ProblemCode::Forbidden, "this server is not asked by that name");
    Err(problem.hint("ask it as localhost or by its address, or set `server.sign_in`").into())
}

/// The id that the sender gave the request, if it is one that can stand in a log; else a new one.
pub fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get("x-request-id").and_then(|value| value.to_str().ok());
    let fine = |id: &&str| {
        (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
    };
    given.filter(fine).map_or_else(querymend::trace_id, str::to_owned)
}
