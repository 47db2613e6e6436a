//! Few-shot examples and feedback on them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use querymend_memory::Example;

use crate::caller::Caller;
use crate::http::extract::{ValidJson, ValidQuery};
use crate::http::params::DatabaseParam;
use crate::problem::ApiError;
use crate::service::{CreateExampleRequest, FeedbackRequest, Service};

pub async fn examples(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidQuery(param): ValidQuery<DatabaseParam>,
) -> Result<Json<Vec<Example>>, ApiError> {
    Ok(Json(service.examples(&caller.user, param.database.as_deref()).await?))
}

pub async fn add_example(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidJson(new): ValidJson<CreateExampleRequest>,
) -> Result<(StatusCode, Json<Example>), ApiError> {
    Ok((StatusCode::CREATED, Json(service.add_example(&caller.context(), &new).await?)))
}

pub async fn remove_example(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
    ValidQuery(param): ValidQuery<DatabaseParam>,
) -> Result<StatusCode, ApiError> {
    service.remove_example(&caller.context(), param.database.as_deref(), &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn example_feedback(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
    ValidQuery(param): ValidQuery<DatabaseParam>,
    ValidJson(feedback): ValidJson<FeedbackRequest>,
) -> Result<StatusCode, ApiError> {
    service.record_example_feedback(&caller.context(), param.database.as_deref(), &id, feedback).await?;
    Ok(StatusCode::NO_CONTENT)
}
