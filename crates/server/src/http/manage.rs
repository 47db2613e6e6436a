//! Routes for everything around questions: tables, values, examples, conversations, past runs, breakers, health.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use querymend::direct::Grounded;
use querymend::guard::Stats;
use querymend::records::ErrorRecord;
use querymend::{Problem, ProblemCode, Turn};
use querymend_memory::Example;
use querymend_sql::schema::Table;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::{Asked, Given};
use super::caller::{Caller, Looker};
use super::problem::Refused;
use crate::metrics;
use crate::service::{Listed, NewExample, Service};
use crate::shelf::Talk;

/// Which database is meant.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Of {
    pub database: Option<String>,
}

/// What is looked for, and where.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sought {
    word: String,
    database: Option<String>,
    table: Option<String>,
    column: Option<String>,
}

/// Tables.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Tables {
    /// Each with its columns and keys.
    tables: Vec<Table>,
}

/// A conversation to begin.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    /// The database; it may be left out where there is only one.
    #[serde(default)]
    database: Option<String>,
}

/// A breaker to close.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reset {
    /// Its name, as `/v1/breakers` says it; all, if it is left out.
    #[serde(default)]
    tool: Option<String>,
}

/// A conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionTold {
    /// By which questions name it.
    session_id: String,
    /// The database that it is about.
    database: String,
    /// When something was last said, in seconds since 1970.
    at: u64,
    /// How many questions there were.
    asked: u32,
    /// The last of them, oldest first.
    turns: Vec<Turn>,
}

impl From<Talk> for SessionTold {
    fn from(talk: Talk) -> Self {
        let conversation = talk.conversation;
        Self {
            session_id: conversation.id,
            database: talk.database,
            at: talk.at,
            asked: conversation.asked,
            turns: conversation.turns,
        }
    }
}

/// Whether all is well.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Health {
    /// `ok`, or `unready`.
    status: &'static str,
    /// Databases that do not answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unready: Vec<String>,
}

pub async fn databases(State(service): State<Arc<Service>>, caller: Caller) -> Json<Vec<Listed>> {
    Json(service.databases(&caller.user))
}

pub async fn schema(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Asked(of): Asked<Of>,
) -> Result<Json<Tables>, Refused> {
    let schema = service.schema(&caller.user, of.database.as_deref()).await?;
    Ok(Json(Tables { tables: schema.tables().to_vec() }))
}

pub async fn values(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Asked(sought): Asked<Sought>,
) -> Result<Json<Vec<Grounded>>, Refused> {
    let place = match (&sought.table, &sought.column) {
        (Some(table), Some(column)) => Some((table.as_str(), column.as_str())),
        (None, None) => None,
        _ => return Err(Problem::new(ProblemCode::BadRequest, "`table` and `column` go together").into()),
    };
    Ok(Json(service.ground(&caller.asking(), sought.database.as_deref(), &sought.word, place).await?))
}

pub async fn examples(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Asked(of): Asked<Of>,
) -> Result<Json<Vec<Example>>, Refused> {
    Ok(Json(service.examples(&caller.user, of.database.as_deref()).await?))
}

pub async fn add_example(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Given(new): Given<NewExample>,
) -> Result<(StatusCode, Json<Example>), Refused> {
    Ok((StatusCode::CREATED, Json(service.add_example(&caller.asking(), &new).await?)))
}

pub async fn remove_example(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(of): Asked<Of>,
) -> Result<StatusCode, Refused> {
    service.remove_example(&caller.asking(), of.database.as_deref(), &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn begin(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Given(begin): Given<Begin>,
) -> Result<(StatusCode, Json<SessionTold>), Refused> {
    let talk = service.begin(&caller.user, begin.database.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(talk.into())))
}

pub async fn sessions(State(service): State<Arc<Service>>, caller: Caller) -> Result<Json<Vec<SessionTold>>, Refused> {
    Ok(Json(service.talks(&caller.user).await?.into_iter().map(SessionTold::from).collect()))
}

pub async fn session(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<SessionTold>, Refused> {
    Ok(Json(service.talk(&caller.user, &id).await?.into()))
}

pub async fn forget(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refused> {
    service.forget(&caller.user, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn session_errors(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<ErrorRecord>>, Refused> {
    Ok(Json(service.session_errors(&caller.user, &id).await?))
}

pub async fn clear_session_errors(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Refused> {
    service.clear_session_errors(&caller.user, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn trace(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Vec<Value>>, Refused> {
    Ok(Json(service.trace(&caller.user, &id).await?))
}

pub async fn breakers(State(service): State<Arc<Service>>, caller: Caller) -> Result<Json<Vec<Stats>>, Refused> {
    Ok(Json(service.breakers(&caller.user)?))
}

pub async fn reset(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Given(reset): Given<Reset>,
) -> Result<StatusCode, Refused> {
    service.reset(&caller.asking(), reset.tool.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Not counted against anybody's limits: a server that is busy is the one to look at.
pub async fn metrics(State(service): State<Arc<Service>>, Looker(user): Looker) -> Result<Response, Refused> {
    let text = service.metrics_text(&user)?;
    Ok(([(header::CONTENT_TYPE, metrics::text::CONTENT_TYPE)], text).into_response())
}

pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", unready: Vec::new() })
}

pub async fn readyz(State(service): State<Arc<Service>>) -> Response {
    let unready = service.unready().await;
    if unready.is_empty() {
        return Json(Health { status: "ok", unready }).into_response();
    }
    // Whoever asks has not signed in, and need not know their names.
    let message = format!("{} of the databases do not answer", unready.len());
    Refused::from(Problem::new(ProblemCode::DatabaseUnavailable, message)).into_response()
}
