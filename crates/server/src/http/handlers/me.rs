//! Current user.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::caller::Caller;
use crate::service::Service;

/// Current user, as seen by the server.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CurrentUser {
    /// User id; empty if authentication is off.
    user: String,
    /// Name of the role; `null` if no roles are configured.
    role: Option<String>,
    /// `true` if the user may read metrics and circuit breakers, and change shared data.
    administers: bool,
    /// `true` if the server requires authentication.
    signs_in: bool,
    /// Name of the configured model.
    model: String,
}

pub async fn me(State(service): State<Arc<Service>>, caller: Caller) -> Json<CurrentUser> {
    let user = &caller.user;
    Json(CurrentUser {
        user: user.id().to_owned(),
        role: user.role_name.clone(),
        administers: user.role.admin,
        signs_in: service.requires_credentials(),
        model: service.model_name(),
    })
}
