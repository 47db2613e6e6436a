//! Description of a route: its handler, and the parts of its OpenAPI operation.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use axum::routing::MethodRouter;
use schemars::{Schema, SchemaGenerator};

use crate::service::Service;

/// A route of the API.
pub struct Route {
    /// HTTP method.
    pub method: Method,
    /// Path pattern.
    pub path: &'static str,
    /// Summary for the OpenAPI document.
    pub summary: &'static str,
    /// Query parameters: name and description.
    pub query: &'static [(&'static str, &'static str)],
    /// Schema of the request body; `None` if the route takes none.
    pub request: Option<SchemaFn>,
    /// Status and body schema of a successful response.
    pub response: (StatusCode, Option<SchemaFn>),
    /// `true` if the route requires no authentication.
    pub is_public: bool,
    /// Returns the method router of the handler.
    pub(super) handler: fn() -> MethodRouter<Arc<Service>>,
}

/// Generates the JSON schema of a type.
pub type SchemaFn = fn(&mut SchemaGenerator) -> Schema;
