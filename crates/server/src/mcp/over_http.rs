//! `/mcp`: the protocol over HTTP. Who calls is found out for every request, as everywhere; the rest is the protocol's.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use querymend::{Problem, ProblemCode};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use serde_json::json;
use tower_http::catch_panic::CatchPanicLayer;

use super::agent::Agent;
use super::sessions::Sessions;
use crate::http::{Caller, Refused, read};
use crate::serve::Stopping;
use crate::service::Service;

/// Where a session is named.
const SESSION: &str = "mcp-session-id";
/// How often it is looked whether requests still run when the server is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The longest refusal of the protocol that is passed on, in bytes.
const MAX_REFUSAL: usize = 64 << 10;

type Protocol = StreamableHttpService<Agent, LocalSessionManager>;

struct Face {
    service: Arc<Service>,
    sessions: Sessions,
    /// For where nobody signs in: only programs of this machine are heard, and no page that a browser has from elsewhere, whatever
    /// it has its own name resolve to.
    local: Protocol,
    /// For where they do: what a page does not know, it cannot send.
    signed: Protocol,
}

/// `/mcp`. Streams on which a client waits for nothing in particular stay open until the client hangs up.
pub fn router(service: Arc<Service>) -> Router {
    face(service, StreamableHttpServerConfig::default())
}

/// `/mcp`, of which such streams end when the server is to stop and no request runs any more. It must be called where tasks can be
/// spawned.
pub fn router_until(service: Arc<Service>, stopping: &Stopping) -> Router {
    let config = StreamableHttpServerConfig::default();
    let (end, stopping, running) = (config.cancellation_token.clone(), stopping.clone(), Arc::clone(&service));
    tokio::spawn(async move {
        stopping.stopped().await;
        while running.running() > 0 {
            tokio::time::sleep(LOOK).await;
        }
        // The last answer is still on its way.
        tokio::time::sleep(LOOK).await;
        end.cancel();
    });
    face(service, config)
}

fn face(service: Arc<Service>, config: StreamableHttpServerConfig) -> Router {
    let sessions = Sessions::default();
    let protocol = |config: StreamableHttpServerConfig| {
        let service = Arc::clone(&service);
        StreamableHttpService::new(move || Ok(Agent::new(Arc::clone(&service))), Arc::clone(&sessions.manager), config)
    };
    // What is too long is refused before it comes here.
    let config = config.with_max_request_body_bytes(usize::MAX);
    let origins = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];
    let local = protocol(config.clone().with_allowed_origins(origins).enforce_origin_validation());
    let signed = protocol(config.disable_allowed_hosts());
    let face = Face { service: Arc::clone(&service), sessions, local, signed };
    Router::new()
        .route("/mcp", any(handle))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            Refused::from(Problem::new(ProblemCode::Internal, "something went wrong here")).into_response()
        }))
        .with_state(Arc::new(face))
}

async fn handle(State(face): State<Arc<Face>>, request: Request) -> Response {
    answer(&face, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(face: &Face, request: Request) -> Result<Response, Refused> {
    let service = &face.service;
    let (mut parts, body) = request.into_parts();
    let caller = Caller::from_request_parts(&mut parts, service).await?;
    let user = caller.user.name().to_owned();
    let named = session(&parts.headers);
    if named.as_deref().is_some_and(|id| !face.sessions.belongs(id, &user)) {
        // The same, whether it is over or somebody else's.
        return Err(Problem::new(ProblemCode::NotFound, "there is no such session").hint("initialize again").into());
    }
    // From here on nobody needs them, and they cannot come to stand in a log.
    for secret in [header::AUTHORIZATION.as_str(), "x-api-key"] {
        parts.headers.remove(secret);
    }
    let body = read(body, service.body_bytes()).await?;
    if parts.method == Method::POST
        && let Err(error) = serde_json::from_slice::<IgnoredAny>(&body)
    {
        return Ok(parse_error(&error));
    }
    // Whatever handles the request holds it, and with it the caller, until it is done.
    parts.extensions.insert(Arc::new(caller));
    let protocol = if service.signs_in() { &face.signed } else { &face.local };
    let response = protocol.handle(Request::from_parts(parts, Body::from(body))).await;
    if let (None, Some(opened)) = (named, session(response.headers())) {
        face.sessions.opened(&opened, &user, service.config().server.limits.sessions).await;
    }
    in_json(response.map(Body::new)).await
}

/// What JSON-RPC answers to a message that is not JSON.
fn parse_error(error: &serde_json::Error) -> Response {
    let message = format!("Parse error: the body is not JSON: {error}");
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": message}});
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// A refusal of the protocol in plain text, as a problem like every other refusal of this server.
async fn in_json(response: Response) -> Result<Response, Refused> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let status = response.status();
    if !status.is_client_error() || kind.starts_with("application/") || kind.starts_with("text/event-stream") {
        return Ok(response);
    }
    let allow = response.headers().get(header::ALLOW).cloned();
    let text = read(response.into_body(), MAX_REFUSAL).await?;
    let text = String::from_utf8_lossy(&text);
    let message = if text.trim().is_empty() { "the request is not one of MCP" } else { text.trim() };
    let code = match status {
        StatusCode::NOT_FOUND => ProblemCode::NotFound,
        StatusCode::FORBIDDEN => ProblemCode::Forbidden,
        _ => ProblemCode::BadRequest,
    };
    let problem = Problem::new(code, message).hint("docs/server.md shows how MCP clients connect");
    let mut refused = Refused::from(problem).with_status(status).into_response();
    allow.and_then(|allow| refused.headers_mut().insert(header::ALLOW, allow));
    Ok(refused)
}

fn session(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned)
}
