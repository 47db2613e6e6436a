//! Bodies of requests: bounded in size and time, and read with care.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use querymend::{Problem, ProblemCode};
use serde::de::{DeserializeOwned, IgnoredAny};

use super::problem::Refused;
use crate::service::Service;

/// Who takes longer to send a request does not mean to.
const LONGEST: Duration = Duration::from_secs(20);

/// A body of JSON.
pub struct Given<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<Service>> for Given<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, service: &Arc<Service>) -> Result<Self, Refused> {
        is_json(request.headers())?;
        let bytes = read(request.into_body(), service.body_bytes()).await?;
        let is_object = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        if !is_object && serde_json::from_slice::<IgnoredAny>(&bytes).is_ok() {
            return Err(bad("the body must be a JSON object, {…}, and is another kind of JSON value".into()));
        }
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| bad(format!("the body is not what it should be: {error}")))?;
        Ok(Self(value))
    }
}

fn bad(message: String) -> Refused {
    Problem::new(ProblemCode::BadRequest, message).hint("GET /openapi.json describes every request").into()
}

/// A browser sends other kinds without asking the server first whether it may; JSON it does not.
fn is_json(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if kind == "application/json" || kind.ends_with("+json") {
        return Ok(());
    }
    Err(bad("the body must be JSON, and be said to be (Content-Type: application/json)".into()))
}

/// All of a body, unless it is too long or too slow.
pub async fn read(body: Body, most: usize) -> Result<Bytes, Refused> {
    let too_large = || Problem::new(ProblemCode::TooLarge, format!("the body has more than {most} bytes"));
    let collect = async {
        let mut whole = BytesMut::new();
        let mut pieces = body.into_data_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| bad("the body broke off".into()))?;
            if whole.len() + piece.len() > most {
                return Err(too_large().into());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    };
    let slow = || Refused::from(Problem::new(ProblemCode::BadRequest, "the body did not come in time"));
    tokio::time::timeout(LONGEST, collect).await.unwrap_or_else(|_| Err(slow()))
}

/// Parameters behind the question mark. One that nobody knows is an error, so that nobody relies on what is ignored.
pub struct Asked<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<Service>> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Refused> {
        let query = Query::<T>::from_request_parts(parts, service).await;
        query.map(|Query(value)| Self(value)).map_err(|error| bad(error.body_text()))
    }
}
