//! Responses with rows: JSON, CSV, Arrow or Parquet.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use querymend::correction::LocatedFinding;
use querymend::{Problem, ProblemCode};
use querymend_sql::Rows;
use schemars::JsonSchema;
use serde::Serialize;

use crate::caller::Caller;
use crate::encode::column_types::{ColumnType, column_types};
use crate::encode::{arrow, csv, parquet};
use crate::problem::ApiError;

/// Encoding of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// JSON object.
    Json,
    /// CSV with a header row. NULL is an empty field, empty text is `""`.
    Csv,
    /// Arrow IPC stream.
    Arrow,
    /// Parquet file.
    Parquet,
}

impl RowFormat {
    /// Selects the format by the `Accept` header; JSON by default.
    pub fn from_accept(accept: &str) -> Self {
        let mut best = (0.0, Self::Json);
        for one in accept.split(',') {
            let mut parts = one.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/json" | "application/*" | "*/*" => Self::Json,
                "text/csv" => Self::Csv,
                arrow::MEDIA_TYPE => Self::Arrow,
                parquet::MEDIA_TYPE => Self::Parquet,
                _ => continue,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse);
            let weight: f32 = weight.unwrap_or(0.0);
            if weight > best.0 {
                best = (weight, format);
            }
        }
        best.1
    }
}

/// Result of an executed query.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunResponse {
    /// Query as sent to the database; absent on later pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// Rows of the result, or of one page.
    pub rows: Rows,
    /// Warnings of the review; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<LocatedFinding>,
    /// Execution time in the database, in milliseconds; absent on later pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Encodes a result, or one page with the column types of the whole result.
pub fn run_response(result: RunResponse, kinds: Option<&[ColumnType]>, format: RowFormat) -> Response {
    if format == RowFormat::Json {
        return json_response(&result);
    }
    let mut response = rows_response(&result.rows, kinds, format);
    if let Some(cursor) = result.cursor.and_then(|cursor| HeaderValue::from_str(&cursor).ok()) {
        response.headers_mut().insert("x-cursor", cursor);
    }
    response
}

/// Keeps the request in flight until the response is sent.
///
/// A client that does not read cannot accumulate responses.
pub fn hold_until_sent(response: Response, caller: Arc<Caller>) -> Response {
    response.map(|body| Body::new(MeteredBody { body, _caller: caller }))
}

struct MeteredBody {
    body: Body,
    _caller: Arc<Caller>,
}

impl HttpBody for MeteredBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Encodes a value as JSON.
pub fn json_response(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => typed_response(StatusCode::OK, body, "application/json"),
        Err(error) => {
            ApiError::from(Problem::new(ProblemCode::Internal, format!("cannot serialize the response: {error}")))
                .into_response()
        }
    }
}

/// Encodes rows only; metadata goes into headers.
pub fn rows_response(rows: &Rows, known: Option<&[ColumnType]>, format: RowFormat) -> Response {
    let kinds = || known.map_or_else(|| column_types(rows), <[ColumnType]>::to_vec);
    let typed = |body: Result<Vec<u8>, String>, kind| match body {
        Ok(body) => typed_response(StatusCode::OK, body, kind),
        Err(error) => ApiError::from(Problem::new(ProblemCode::Internal, format!("cannot encode the rows: {error}")))
            .into_response(),
    };
    let mut response = match format {
        RowFormat::Json => json_response(rows),
        RowFormat::Csv => {
            typed_response(StatusCode::OK, csv::encode(rows).into_bytes(), "text/csv; charset=utf-8; header=present")
        }
        RowFormat::Arrow => typed(arrow::encode(rows, &kinds()).map_err(|error| error.to_string()), arrow::MEDIA_TYPE),
        RowFormat::Parquet => {
            typed(parquet::encode(rows, &kinds()).map_err(|error| error.to_string()), parquet::MEDIA_TYPE)
        }
    };
    let truncated = HeaderValue::from_static(if rows.truncated { "true" } else { "false" });
    response.headers_mut().insert("x-truncated", truncated);
    response
}

fn typed_response(status: StatusCode, body: Vec<u8>, kind: &'static str) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiates_the_row_format() {
        for (accept, format) in [
            ("", RowFormat::Json),
            ("*/*", RowFormat::Json),
            ("text/html", RowFormat::Json),
            ("text/csv", RowFormat::Csv),
            ("application/vnd.apache.arrow.stream", RowFormat::Arrow),
            ("Application/Vnd.Apache.Parquet; q=0.9, text/csv;q=0.5", RowFormat::Parquet),
            ("application/json;q=0.2, application/vnd.apache.arrow.stream", RowFormat::Arrow),
            ("text/csv, */*", RowFormat::Csv),
            ("text/csv;q=0, */*;q=0.1", RowFormat::Json),
            ("text/csv;q=x", RowFormat::Json),
        ] {
            assert_eq!(RowFormat::from_accept(accept), format, "{accept}");
        }
    }
}
