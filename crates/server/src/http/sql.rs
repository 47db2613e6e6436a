//! Routes for those who write SQL themselves.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use querymend::correct::{Correct, Corrected};
use querymend::direct::{Checked, Emptiness};
use querymend::{Cancel, Problem, ProblemCode};
use serde::Deserialize;

use super::ask::to_the_end;
use super::body::{Asked, Given};
use super::caller::Caller;
use super::problem::Refused;
use super::rows::{self, Format, RanTold};
use crate::service::{QueryText, Service};

/// How rows are fetched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paging {
    page_size: Option<usize>,
}

pub async fn check(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Given(query): Given<QueryText>,
) -> Result<Json<Checked>, Refused> {
    Ok(Json(service.check(&caller.asking(), &query).await?))
}

pub async fn correct(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Given(mut asked): Given<Correct>,
) -> Result<Json<Corrected>, Refused> {
    let database = asked.database.take();
    corrected(service, caller, database, asked, true).await
}

pub async fn fix(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Given(query): Given<QueryText>,
) -> Result<Json<Corrected>, Refused> {
    let asked = Correct { question: query.question, ..Correct::new(query.sql) };
    corrected(service, caller, query.database, asked, false).await
}

async fn corrected(
    service: Arc<Service>,
    caller: Caller,
    database: Option<String>,
    asked: Correct,
    with_model: bool,
) -> Result<Json<Corrected>, Refused> {
    let cancel = Cancel::new();
    let stopped = cancel.clone();
    let work = async move {
        let corrected = service.correct(&caller.asking(), database.as_deref(), asked, with_model, &stopped).await;
        corrected.map_err(Refused::from)
    };
    to_the_end(cancel, work).await.map(Json)
}

pub async fn run(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    Asked(paging): Asked<Paging>,
    Given(query): Given<QueryText>,
) -> Result<Response, Refused> {
    let format = format(&headers);
    let (cancel, caller) = (Cancel::new(), Arc::new(caller));
    let (stopped, asking, asked) = (cancel.clone(), Arc::clone(&caller), Arc::clone(&service));
    let work = async move { asked.run(&asking.asking(), &query, &stopped).await.map_err(Refused::from) };
    let ran = to_the_end(cancel, work).await?;
    let size = paging.page_size.unwrap_or(usize::MAX).max(1);
    let page = service.results.first(&caller.user.with_role(), caller.rules, ran.rows, size);
    let told =
        RanTold { sql: Some(ran.sql), rows: page.rows, warnings: ran.warnings, ms: Some(ran.ms), cursor: page.cursor };
    Ok(rows::held(rows::told(told, page.kinds.as_deref(), format), caller))
}

pub async fn page(
    State(service): State<Arc<Service>>,
    caller: Caller,
    headers: HeaderMap,
    Path(cursor): Path<String>,
    Asked(paging): Asked<Paging>,
) -> Result<Response, Refused> {
    let page = service.results.next(&caller.user.with_role(), &cursor, paging.page_size.unwrap_or(1_000));
    let gone = || {
        Problem::new(ProblemCode::NotFound, "there is no such page, or it waited too long").hint("run the query again")
    };
    let page = page.ok_or_else(gone)?;
    let told = RanTold { sql: None, rows: page.rows, warnings: Vec::new(), ms: None, cursor: page.cursor };
    Ok(rows::held(rows::told(told, page.kinds.as_deref(), format(&headers)), Arc::new(caller)))
}

pub async fn explain_empty(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Given(query): Given<QueryText>,
) -> Result<Json<Emptiness>, Refused> {
    let cancel = Cancel::new();
    let stopped = cancel.clone();
    let work = async move { service.explain_empty(&caller.asking(), &query, &stopped).await.map_err(Refused::from) };
    to_the_end(cancel, work).await.map(Json)
}

fn format(headers: &HeaderMap) -> Format {
    Format::of(headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default())
}
