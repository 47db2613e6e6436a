//! Extractors of handlers: the caller, JSON bodies, query parameters.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::de::{DeserializeOwned, IgnoredAny};

use crate::auth::user::User;
use crate::caller::{self, Caller};
use crate::problem::ApiError;
use crate::request_body::{invalid_body, read_body};
use crate::service::Service;

impl FromRequestParts<Arc<Service>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, ApiError> {
        Ok(Self::from_parts(parts, service).await?)
    }
}

/// Authenticated caller without rate limiting, for monitoring requests.
pub struct UnmeteredCaller(pub User);

impl FromRequestParts<Arc<Service>> for UnmeteredCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, ApiError> {
        Ok(Self(caller::authenticate(parts, service).await?))
    }
}

/// Extractor of a JSON body.
pub struct ValidJson<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<Service>> for ValidJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, service: &Arc<Service>) -> Result<Self, ApiError> {
        require_json(request.headers())?;
        let bytes = read_body(request.into_body(), service.max_body_bytes()).await?;
        let is_object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if !is_object && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok() {
            return Err(invalid_body("the body must be a JSON object, {…}".into()).into());
        }
        let value =
            serde_json::from_slice(&bytes).map_err(|error| invalid_body(format!("invalid request body: {error}")))?;
        Ok(Self(value))
    }
}

/// Requires a JSON content type, which browsers send across origins only after a CORS preflight.
///
/// This prevents CSRF.
fn require_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || kind.ends_with("+json") {
        return Ok(());
    }
    Err(invalid_body("the body must be JSON (Content-Type: application/json)".into()).into())
}

/// Extractor of query parameters.
///
/// Unknown parameters are errors, so that clients do not rely on ignored ones.
pub struct ValidQuery<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Service>> for ValidQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, service).await;
        query.map(|Query(value)| Self(value)).map_err(|error| invalid_body(error.body_text()).into())
    }
}
