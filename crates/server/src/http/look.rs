//! Routes for those who look around: who they are, what could be asked, what was asked, what findings mean.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use querymend::{Problem, ProblemCode};
use querymend_sql::{RULES, Rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::{Asked, Given};
use super::caller::Caller;
use super::manage::Of;
use super::problem::Refused;
use crate::service::{Judged, Opinion, Past, Service};

/// Past runs that are listed where nothing is said.
const LISTED: usize = 50;

/// Who asks, as the server sees them.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Me {
    /// By which the server knows them; empty where nobody signs in.
    user: String,
    /// Their role.
    role: Option<String>,
    /// Whether they may see how the server is doing, and change what all share.
    administers: bool,
    /// Whether users are told apart.
    signs_in: bool,
    /// The model that is asked.
    model: String,
}

/// A rule of the critic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RuleTold {
    /// Its name, as findings carry it.
    code: &'static str,
    /// The family it belongs to.
    group: &'static str,
    /// What it is about, in a sentence.
    title: &'static str,
    /// All about it, in Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

/// Which past runs are meant.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    limit: Option<usize>,
    all: Option<bool>,
}

fn told(rule: &Rule) -> RuleTold {
    RuleTold { code: rule.code, group: rule.group, title: rule.summary(), page: None }
}

pub async fn me(State(service): State<Arc<Service>>, caller: Caller) -> Json<Me> {
    let user = &caller.user;
    Json(Me {
        user: user.name().to_owned(),
        role: user.role_name.clone(),
        administers: user.role.administer,
        signs_in: service.signs_in(),
        model: service.model_name(),
    })
}

pub async fn suggestions(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Asked(of): Asked<Of>,
) -> Result<Json<Vec<String>>, Refused> {
    Ok(Json(service.suggestions(&caller.user, of.database.as_deref()).await?))
}

pub async fn rules(_: Caller) -> Json<Vec<RuleTold>> {
    Json(RULES.iter().map(|rule| told(rule)).collect())
}

pub async fn rule(_: Caller, Path(code): Path<String>) -> Result<Json<RuleTold>, Refused> {
    let none = || Problem::new(ProblemCode::NotFound, "there is no such rule").hint("GET /v1/rules lists all");
    let rule = Rule::named(&code).ok_or_else(none)?;
    Ok(Json(RuleTold { page: Some(rule.page), ..told(rule) }))
}

pub async fn past(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Asked(which): Asked<Which>,
) -> Result<Json<Vec<Past>>, Refused> {
    let most = which.limit.unwrap_or(LISTED);
    Ok(Json(service.past(&caller.user, which.all.unwrap_or_default(), most).await?))
}

pub async fn judge(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
    Given(opinion): Given<Opinion>,
) -> Result<Json<Judged>, Refused> {
    Ok(Json(service.judge(&caller.asking(), &id, opinion).await?))
}

pub async fn judge_example(
    State(service): State<Arc<Service>>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(of): Asked<Of>,
    Given(opinion): Given<Opinion>,
) -> Result<axum::http::StatusCode, Refused> {
    service.judge_example(&caller.asking(), of.database.as_deref(), &id, opinion).await?;
    Ok(axum::http::StatusCode::NO_CONTENT)
}
