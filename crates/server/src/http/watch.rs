//! Around every request: it gets a number, lines of the log know it, and it is counted.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument, Span, debug, info, info_span};

use super::ROUTES;
use super::caller::request_id;
use crate::service::Service;

/// The client hung up before there was a response.
const HUNG_UP: u16 = 499;

/// Lets a request through and watches it.
pub async fn watched(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Response {
    let route = route(request.extensions().get::<MatchedPath>().map(MatchedPath::as_str));
    let method = method(request.method());
    let id = request_id(request.headers());
    let value = HeaderValue::from_str(&id).ok();
    let span = info_span!("request", request_id = id, method, route, user = Empty, trace_id = Empty);
    if let Some(value) = value.clone() {
        request.headers_mut().insert("x-request-id", value);
    }
    let mut watch = Watch { service, route, method, began: Instant::now(), status: HUNG_UP, span: span.clone() };
    let mut response = next.run(request).instrument(span).await;
    watch.status = response.status().as_u16();
    if let Some(value) = value {
        response.headers_mut().insert("x-request-id", value);
    }
    // What one user is told is kept by nobody on the way, and is read as what it is said to be.
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// A request that is being answered. When it is dropped the request is over, however that came.
struct Watch {
    service: Arc<Service>,
    route: &'static str,
    method: &'static str,
    began: Instant,
    status: u16,
    span: Span,
}

impl Drop for Watch {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.service.metrics().request(self.route, self.method, self.status, took);
        let (status, ms) = (self.status, took.as_secs_f64() * 1e3);
        self.span.in_scope(|| match self.route {
            // They are asked every few seconds.
            "/metrics" | "/healthz" | "/readyz" => debug!(status, ms, "request"),
            _ => info!(status, ms, "request"),
        });
    }
}

/// The pattern of a route: what stands in an address is not for labels.
fn route(matched: Option<&str>) -> &'static str {
    ROUTES.iter().map(|route| route.path).find(|path| Some(*path) == matched).unwrap_or("other")
}

fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 6] = ["GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
