//! Metrics for Prometheus.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::http::extract::UnmeteredCaller;
use crate::observe::metrics::prometheus::CONTENT_TYPE;
use crate::problem::ApiError;
use crate::service::Service;

/// Returns the metrics. Exempt from rate limits, so that a busy server can be monitored.
pub async fn metrics(
    State(service): State<Arc<Service>>,
    UnmeteredCaller(user): UnmeteredCaller,
) -> Result<Response, ApiError> {
    let text = service.metrics_text(&user)?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}
