//! `/mcp`: MCP over streamable HTTP. Every request is authenticated.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
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

use super::handler::McpHandler;
use super::sessions::McpSessions;
use crate::caller::Caller;
use crate::error::panic_problem;
use crate::listen::Shutdown;
use crate::problem::ApiError;
use crate::request_body::read_body;
use crate::service::Service;

/// Header with the session id.
const SESSION_HEADER: &str = "mcp-session-id";
/// Interval at which shutdown checks for requests in flight.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum size of a protocol error that is passed on, in bytes.
const MAX_ERROR_BYTES: usize = 64 << 10;

type McpHttpService = StreamableHttpService<McpHandler, LocalSessionManager>;

struct McpEndpoint {
    service: Arc<Service>,
    sessions: McpSessions,
    /// Used without authentication. Accepts local hosts and origins only, which prevents CSRF and
    /// DNS rebinding from web pages.
    local: McpHttpService,
    /// Used with authentication. Web pages do not know the credentials, so hosts and origins need
    /// no check.
    authenticated: McpHttpService,
}

/// Returns the router of `/mcp`. Idle event streams stay open until the client disconnects.
pub fn router(service: Arc<Service>) -> Router {
    build_router(service, StreamableHttpServerConfig::default())
}

/// Returns the router of `/mcp` with graceful shutdown.
///
/// At shutdown, idle event streams are closed once no request is in flight. Must be called within a
/// Tokio runtime.
pub fn router_with_shutdown(service: Arc<Service>, shutdown: &Shutdown) -> Router {
    let config = StreamableHttpServerConfig::default();
    let (end, stopping, running) = (config.cancellation_token.clone(), shutdown.clone(), Arc::clone(&service));
    tokio::spawn(async move {
        stopping.stopped().await;
        while running.running_requests() > 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        // Leave time for the last response to be sent.
        tokio::time::sleep(POLL_INTERVAL).await;
        end.cancel();
    });
    build_router(service, config)
}

fn build_router(service: Arc<Service>, config: StreamableHttpServerConfig) -> Router {
    let sessions = McpSessions::default();
    let protocol = |config: StreamableHttpServerConfig| {
        let service = Arc::clone(&service);
        StreamableHttpService::new(
            move || Ok(McpHandler::new(Arc::clone(&service))),
            Arc::clone(&sessions.manager),
            config,
        )
    };
    // The body size is already limited by `read_body`.
    let config = config.with_max_request_body_bytes(usize::MAX);
    let origins = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"];
    let local = protocol(config.clone().with_allowed_origins(origins).enforce_origin_validation());
    let authenticated = protocol(config.disable_allowed_hosts());
    let endpoint = McpEndpoint { service: Arc::clone(&service), sessions, local, authenticated };
    Router::new()
        .route("/mcp", any(handle))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            ApiError::from(panic_problem()).into_response()
        }))
        .with_state(Arc::new(endpoint))
}

async fn handle(State(endpoint): State<Arc<McpEndpoint>>, request: Request) -> Response {
    handle_request(&endpoint, request).await.unwrap_or_else(IntoResponse::into_response)
}

async fn handle_request(endpoint: &McpEndpoint, request: Request) -> Result<Response, ApiError> {
    let service = &endpoint.service;
    let (mut parts, body) = request.into_parts();
    let caller = Caller::from_parts(&parts, service).await?;
    let user = caller.user.id().to_owned();
    let requested = session_id(&parts.headers);
    if requested.as_deref().is_some_and(|id| !endpoint.sessions.is_owned_by(id, &user)) {
        // The response does not reveal whether the session has ended or belongs to another user.
        return Err(Problem::new(ProblemCode::NotFound, "there is no such session").hint("initialize again").into());
    }
    // Not needed from here on, so they cannot leak into logs.
    for secret in [header::AUTHORIZATION.as_str(), "x-api-key"] {
        parts.headers.remove(secret);
    }
    let body = read_body(body, service.max_body_bytes()).await?;
    if parts.method == Method::POST
        && let Err(error) = serde_json::from_slice::<IgnoredAny>(&body)
    {
        return Ok(parse_error(&error));
    }
    // The handler of the request holds the caller until it completes.
    parts.extensions.insert(Arc::new(caller));
    let protocol = if service.requires_credentials() { &endpoint.authenticated } else { &endpoint.local };
    let response = protocol.handle(Request::from_parts(parts, Body::from(body))).await;
    if let (None, Some(opened)) = (requested, session_id(response.headers())) {
        endpoint.sessions.register(&opened, &user, service.config().server.limits.sessions).await;
    }
    to_problem_response(response.map(Body::new)).await
}

/// Returns the JSON-RPC error for a body that is not JSON.
fn parse_error(error: &serde_json::Error) -> Response {
    let message = format!("Parse error: the body is not JSON: {error}");
    let body = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": message}});
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}

/// Converts a plain-text protocol error to problem details, like all other errors of this server.
async fn to_problem_response(response: Response) -> Result<Response, ApiError> {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let status = response.status();
    if !status.is_client_error() || kind.starts_with("application/") || kind.starts_with("text/event-stream") {
        return Ok(response);
    }
    let allow = response.headers().get(header::ALLOW).cloned();
    let text = read_body(response.into_body(), MAX_ERROR_BYTES).await?;
    let text = String::from_utf8_lossy(&text);
    let message = if text.trim().is_empty() { "the request is not a valid MCP request" } else { text.trim() };
    let code = match status {
        StatusCode::NOT_FOUND => ProblemCode::NotFound,
        StatusCode::FORBIDDEN => ProblemCode::Forbidden,
        _ => ProblemCode::BadRequest,
    };
    let problem = Problem::new(code, message).hint("docs/guide/mcp.md shows how MCP clients connect");
    let mut error_response = ApiError::from(problem).with_status(status).into_response();
    allow.and_then(|allow| error_response.headers_mut().insert(header::ALLOW, allow));
    Ok(error_response)
}

fn session_id(headers: &HeaderMap) -> Option<String> {
    headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned)
}
