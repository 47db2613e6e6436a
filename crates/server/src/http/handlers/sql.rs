//! Handlers for clients that write their own SQL: check, fix, correct, run, explain.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use querymend::correction::{CorrectionRequest, CorrectionResponse};
use querymend::sql_api::{CheckReport, EmptyResultReport};
use querymend::{CancellationToken, Problem, ProblemCode};
use serde::Deserialize;

use crate::caller::Caller;
use crate::http::extract::{ValidJson, ValidQuery};
use crate::http::row_response::{self, RowFormat, RunResponse};
use crate::problem::ApiError;
use crate::request_task::run_to_completion;
use crate::service::{Service, SqlRequest};

/// Query parameters for paging.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageQuery {
    page_size: Option<usize>,
}

pub async fn check(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidJson(query): ValidJson<SqlRequest>,
) -> Result<Json<CheckReport>, ApiError> {
    Ok(Json(service.check(&caller.context(), &query).await?))
}

pub async fn correct(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidJson(mut request): ValidJson<CorrectionRequest>,
) -> Result<Json<CorrectionResponse>, ApiError> {
    let database = request.database.take();
    run_correction(service, caller, database, request, true).await
}

pub async fn fix(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidJson(query): ValidJson<SqlRequest>,
) -> Result<Json<CorrectionResponse>, ApiError> {
    let request = CorrectionRequest { question: query.question, ..CorrectionRequest::new(query.sql) };
    run_correction(service, caller, query.database, request, false).await
}

async fn run_correction(
    service: Arc<Service>,
    caller: Caller,
    database: Option<String>,
    request: CorrectionRequest,
    with_model: bool,
) -> Result<Json<CorrectionResponse>, ApiError> {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let work = async move {
        let corrected = service.correct(&caller.context(), database.as_deref(), request, with_model, &token).await;
        corrected.map_err(ApiError::from)
    };
    run_to_completion(cancel, work).await.map(Json)
}

pub async fn run(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    ValidQuery(paging): ValidQuery<PageQuery>,
    ValidJson(query): ValidJson<SqlRequest>,
) -> Result<Response, ApiError> {
    let format = row_format(&headers);
    let (cancel, caller) = (CancellationToken::new(), Arc::new(caller));
    let work = {
        let (service, caller, cancel) = (Arc::clone(&service), Arc::clone(&caller), cancel.clone());
        async move { service.run(&caller.context(), &query, &cancel).await.map_err(ApiError::from) }
    };
    let ran = run_to_completion(cancel, work).await?;
    let size = paging.page_size.unwrap_or(usize::MAX).max(1);
    let page = service.result_cache.first_page(&caller.user.id_with_role(), caller.config_version, ran.rows, size);
    let result = RunResponse {
        sql: Some(ran.sql),
        rows: page.rows,
        warnings: ran.warnings,
        ms: Some(ran.ms),
        cursor: page.cursor,
    };
    Ok(row_response::hold_until_sent(row_response::run_response(result, page.column_types.as_deref(), format), caller))
}

pub async fn next_page(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    Path(cursor): Path<String>,
    ValidQuery(paging): ValidQuery<PageQuery>,
) -> Result<Response, ApiError> {
    let page = service.result_cache.next_page(&caller.user.id_with_role(), &cursor, paging.page_size.unwrap_or(1_000));
    let expired = || Problem::new(ProblemCode::NotFound, "unknown or expired cursor").hint("run the query again");
    let page = page.ok_or_else(expired)?;
    let result = RunResponse { sql: None, rows: page.rows, warnings: Vec::new(), ms: None, cursor: page.cursor };
    Ok(row_response::hold_until_sent(
        row_response::run_response(result, page.column_types.as_deref(), row_format(&headers)),
        Arc::new(caller),
    ))
}

pub async fn explain_empty(
    State(service): State<Arc<Service>>,
    caller: Caller,
    ValidJson(query): ValidJson<SqlRequest>,
) -> Result<Json<EmptyResultReport>, ApiError> {
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let work = async move { service.explain_empty(&caller.context(), &query, &token).await.map_err(ApiError::from) };
    run_to_completion(cancel, work).await.map(Json)
}

fn row_format(headers: &HeaderMap) -> RowFormat {
    RowFormat::from_accept(headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default())
}
