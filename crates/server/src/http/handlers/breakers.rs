//! Circuit breakers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use querymend::resilience::BreakerStats;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::caller::Caller;
use crate::http::extract::ValidJson;
use crate::problem::ApiError;
use crate::service::Service;

/// Request to reset circuit breakers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResetBreakersRequest {
    /// Name of the breaker, as listed by `/v1/breakers`. If absent, all breakers are reset.
    #[serde(default)]
    tool: Option<String>,
}

pub async fn breakers(
    State(service): State<Arc<Service>>,
    caller: Caller,
) -> Result<Json<Vec<BreakerStats>>, ApiError> {
    Ok(Json(service.breakers(&caller.user)?))
}

pub async fn reset_breakers(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidJson(reset): ValidJson<ResetBreakersRequest>,
) -> Result<StatusCode, ApiError> {
    service.reset_breakers(&caller.context(), reset.tool.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
