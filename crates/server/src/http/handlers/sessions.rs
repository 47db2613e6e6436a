//! Sessions and their error history.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use querymend::Turn;
use querymend::error_history::ErrorRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::http::extract::ValidJson;
use crate::problem::ApiError;
use crate::service::Service;
use crate::store::StoredSession;

/// Request to create a session.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateSessionRequest {
    /// Name of the database. Optional if there is only one.
    #[serde(default)]
    database: Option<String>,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Session {
    /// Id of the session, for use in questions.
    session_id: String,
    /// Name of the session's database.
    database: String,
    /// Time of the last question, in seconds since the Unix epoch.
    at: u64,
    /// Number of questions asked so far.
    asked: u32,
    /// Most recent turns, oldest first.
    turns: Vec<Turn>,
}

impl From<StoredSession> for Session {
    fn from(stored: StoredSession) -> Self {
        let conversation = stored.conversation;
        Self {
            session_id: conversation.id,
            database: stored.database,
            at: stored.at,
            asked: conversation.asked,
            turns: conversation.turns,
        }
    }
}

pub async fn create_session(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidJson(begin): ValidJson<CreateSessionRequest>,
) -> Result<(StatusCode, Json<Session>), ApiError> {
    let session = service.create_session(&caller.user, begin.database.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(session.into())))
}

pub async fn list_sessions(
    State(service): State<Arc<Service>>,
    caller: Caller,
) -> Result<Json<Vec<Session>>, ApiError> {
    Ok(Json(service.list_sessions(&caller.user).await?.into_iter().map(Session::from).collect()))
}

pub async fn get_session(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Session>, ApiError> {
    Ok(Json(service.session(&caller.user, &id).await?.into()))
}

pub async fn delete_session(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    service.delete_session(&caller.user, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn session_errors(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<ErrorRecord>>, ApiError> {
    Ok(Json(service.session_errors(&caller.user, &id).await?))
}

pub async fn clear_session_errors(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    service.clear_session_errors(&caller.user, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}
