//! Reading of request bodies, bounded in size and time.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use querymend::{Problem, ProblemCode};

/// Timeout for reading a request body (protects against slowloris attacks).
const BODY_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the problem for a body that is not a valid request.
pub fn invalid_body(message: String) -> Problem {
    Problem::new(ProblemCode::BadRequest, message).hint("GET /openapi.json describes every request")
}

/// Reads a body in full, or fails if it is too large or too slow.
pub async fn read_body(body: Body, max_bytes: usize) -> Result<Bytes, Problem> {
    let collect = async {
        let mut whole = BytesMut::new();
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| invalid_body("the body is incomplete".into()))?;
            if whole.len() + chunk.len() > max_bytes {
                let message = format!("the body has more than {max_bytes} bytes");
                return Err(Problem::new(ProblemCode::TooLarge, message));
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    };
    let timed_out = |_| Err(Problem::new(ProblemCode::BadRequest, "timed out while reading the body"));
    tokio::time::timeout(BODY_TIMEOUT, collect).await.unwrap_or_else(timed_out)
}
