//! Traces of past questions and feedback on their answers.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::Value;

use crate::caller::Caller;
use crate::http::extract::{ValidJson, ValidQuery};
use crate::problem::ApiError;
use crate::service::{FeedbackRequest, FeedbackResponse, Service};
use crate::store::TraceSummary;

/// Number of traces listed if the request does not specify it.
const DEFAULT_TRACE_LIMIT: usize = 50;

/// Query parameters for listing traces.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceQuery {
    limit: Option<usize>,
    all: Option<bool>,
}

pub async fn get_trace(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<Value>>, ApiError> {
    Ok(Json(service.trace(&caller.user, &id).await?))
}

pub async fn list_traces(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidQuery(query): ValidQuery<TraceQuery>,
) -> Result<Json<Vec<TraceSummary>>, ApiError> {
    let limit = query.limit.unwrap_or(DEFAULT_TRACE_LIMIT);
    Ok(Json(service.list_traces(&caller.user, query.all.unwrap_or_default(), limit).await?))
}

pub async fn trace_feedback(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
    ValidJson(feedback): ValidJson<FeedbackRequest>,
) -> Result<Json<FeedbackResponse>, ApiError> {
    Ok(Json(service.record_feedback(&caller.context(), &id, feedback).await?))
}
