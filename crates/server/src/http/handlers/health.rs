//! Liveness and readiness.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use querymend::{Problem, ProblemCode};
use schemars::JsonSchema;
use serde::Serialize;

use crate::problem::ApiError;
use crate::service::Service;

/// Health of the server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    /// `ok` or `unready`.
    status: &'static str,
    /// Names of databases that do not respond; absent if all do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unready: Vec<String>,
}

pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", unready: Vec::new() })
}

pub async fn readyz(State(service): State<Arc<Service>>) -> Response {
    let unready = service.unavailable_databases().await;
    if unready.is_empty() {
        return Json(Health { status: "ok", unready }).into_response();
    }
    // The endpoint is public, so database names are not revealed.
    let message = format!("{} of the databases do not respond", unready.len());
    ApiError::from(Problem::new(ProblemCode::DatabaseUnavailable, message)).into_response()
}
