//! Databases that a user may query.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use crate::caller::Caller;
use crate::service::{DatabaseInfo, Service};

pub async fn databases(State(service): State<Arc<Service>>, caller: Caller) -> Json<Vec<DatabaseInfo>> {
    Json(service.databases(&caller.user))
}
