//! Schema, search for values, and sample questions of a database.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use querymend::sql_api::MatchingValue;
use querymend::{Problem, ProblemCode};
use querymend_sql::schema::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::http::extract::ValidQuery;
use crate::http::params::DatabaseParam;
use crate::problem::ApiError;
use crate::service::Service;

/// Tables that the user may read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SchemaResponse {
    /// Tables with their columns and keys.
    tables: Vec<Table>,
}

/// Query parameters of a value search.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueQuery {
    q: String,
    database: Option<String>,
    table: Option<String>,
    column: Option<String>,
}

pub async fn schema(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidQuery(param): ValidQuery<DatabaseParam>,
) -> Result<Json<SchemaResponse>, ApiError> {
    let schema = service.schema(&caller.user, param.database.as_deref()).await?;
    Ok(Json(SchemaResponse { tables: schema.tables().to_vec() }))
}

pub async fn find_values(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidQuery(query): ValidQuery<ValueQuery>,
) -> Result<Json<Vec<MatchingValue>>, ApiError> {
    let target_column = match (&query.table, &query.column) {
        (Some(table), Some(column)) => Some((table.as_str(), column.as_str())),
        (None, None) => None,
        _ => return Err(Problem::new(ProblemCode::BadRequest, "`table` and `column` must be set together").into()),
    };
    Ok(Json(service.find_values(&caller.context(), query.database.as_deref(), &query.q, target_column).await?))
}

pub async fn suggestions(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidQuery(param): ValidQuery<DatabaseParam>,
) -> Result<Json<Vec<String>>, ApiError> {
    Ok(Json(service.suggestions(&caller.user, param.database.as_deref()).await?))
}
