//! Middleware that assigns request ids, opens tracing spans, and records request metrics.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use tracing::field::Empty;
use tracing::{Instrument, Span, debug, info, info_span};

use super::routes::ROUTES;
use crate::caller::request_id;
use crate::service::Service;

/// Status recorded if the client disconnects before the response.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Logs a request and sets common response headers.
pub async fn log_request(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Response {
    let route = route_pattern(request.extensions().get::<MatchedPath>().map(MatchedPath::as_str));
    let method = method_label(request.method());
    let id = request_id(request.headers());
    let value = HeaderValue::from_str(&id).ok();
    let span = info_span!("request", request_id = id, method, route, user = Empty, trace_id = Empty);
    if let Some(value) = value.clone() {
        request.headers_mut().insert("x-request-id", value);
    }
    let mut guard = RequestLogGuard {
        service,
        route,
        method,
        began: Instant::now(),
        status: CLIENT_CLOSED_REQUEST,
        span: span.clone(),
    };
    let mut response = next.run(request).instrument(span).await;
    guard.status = response.status().as_u16();
    if let Some(value) = value {
        response.headers_mut().insert("x-request-id", value);
    }
    // Responses are per user and must not be cached by proxies or MIME-sniffed by browsers.
    for (name, value) in [
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Records log line and metrics on drop, however the request ends.
struct RequestLogGuard {
    service: Arc<Service>,
    route: &'static str,
    method: &'static str,
    began: Instant,
    status: u16,
    span: Span,
}

impl Drop for RequestLogGuard {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        self.service.metrics().on_http_request(self.route, self.method, self.status, took);
        let (status, ms) = (self.status, took.as_secs_f64() * 1e3);
        self.span.in_scope(|| match self.route {
            // Monitoring polls these every few seconds.
            "/metrics" | "/healthz" | "/readyz" => debug!(status, ms, "request"),
            _ => info!(status, ms, "request"),
        });
    }
}

/// Returns the pattern of the matched route.
///
/// Raw paths are not used as metric labels, to bound their cardinality.
fn route_pattern(matched: Option<&str>) -> &'static str {
    ROUTES.iter().map(|route| route.path).find(|path| Some(*path) == matched).unwrap_or("other")
}

fn method_label(method: &Method) -> &'static str {
    const KNOWN: [&str; 6] = ["GET", "POST", "DELETE", "PUT", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}
