//! Rules of the static analyzer and their documentation.

use axum::Json;
use axum::extract::Path;
use querymend::{Problem, ProblemCode};
use querymend_sql::{RULES, Rule};
use schemars::JsonSchema;
use serde::Serialize;

use crate::caller::Caller;
use crate::problem::ApiError;

/// A review rule.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rule")]
pub struct RuleInfo {
    /// Rule code, as used in findings.
    code: &'static str,
    /// Group of the rule.
    group: &'static str,
    /// One-sentence summary.
    title: &'static str,
    /// Full documentation in Markdown; absent in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

fn rule_info(rule: &Rule) -> RuleInfo {
    RuleInfo { code: rule.code, group: rule.group.as_str(), title: rule.summary(), page: None }
}

pub async fn rules(_: Caller) -> Json<Vec<RuleInfo>> {
    Json(RULES.iter().map(|rule| rule_info(rule)).collect())
}

pub async fn rule(_: Caller, Path(code): Path<String>) -> Result<Json<RuleInfo>, ApiError> {
    let none = || Problem::new(ProblemCode::NotFound, "there is no such rule").hint("GET /v1/rules lists all rules");
    let rule = Rule::from_code(&code).ok_or_else(none)?;
    Ok(Json(RuleInfo { page: Some(rule.page), ..rule_info(rule) }))
}
