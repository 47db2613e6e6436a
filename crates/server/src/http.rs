//! HTTP API: routes, their handlers, the OpenAPI document and the web app.

mod extract;
mod handlers;
mod openapi;
mod params;
mod request_log;
mod route;
mod routes;
mod row_response;
mod static_files;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use querymend::{Problem, ProblemCode};
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;

pub use self::route::{Route, SchemaFn};
pub use self::routes::ROUTES;
pub use self::static_files::has_page;
use crate::error::panic_problem;
use crate::problem::ApiError;
use crate::service::Service;

/// Returns the router of all routes, with panic handling and request logging.
pub fn router(service: Arc<Service>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, (route.handler)());
    }
    router
        .route("/pyodide/{file}", get(static_files::pyodide))
        .fallback(static_files::serve)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            ApiError::from(panic_problem()).into_response()
        }))
        .layer(from_fn_with_state(Arc::clone(&service), request_log::log_request))
        .with_state(service)
}

async fn method_not_allowed() -> Response {
    let problem = Problem::new(ProblemCode::BadRequest, "this path does not support the method")
        .hint("GET /openapi.json lists all paths and methods");
    ApiError::from(problem).with_status(StatusCode::METHOD_NOT_ALLOWED).into_response()
}

/// Returns the OpenAPI 3.1 document of the API.
pub fn openapi_document() -> Value {
    openapi::document(ROUTES)
}
