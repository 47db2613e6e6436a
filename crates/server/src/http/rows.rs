//! Rows as clients want them: JSON, CSV, Arrow or Parquet.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use querymend::correct::Placed;
use querymend::{Problem, ProblemCode};
use querymend_sql::{Cell, Rows};
use schemars::JsonSchema;
use serde::Serialize;

use super::caller::Caller;
use super::columns::{Kind, kinds};
use super::problem::Refused;
use super::{arrow, parquet};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One object.
    Json,
    /// With a header; NULL is an empty field, empty text is `""`.
    Csv,
    /// A stream of Arrow.
    Arrow,
    /// A Parquet file.
    Parquet,
}

impl Format {
    /// What an `Accept` header asks for; JSON, where it does not say.
    pub fn of(accept: &str) -> Self {
        let mut best = (0.0, Self::Json);
        for one in accept.split(',') {
            let mut parts = one.split(';').map(str::trim);
            let format = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                "application/json" | "application/*" | "*/*" => Self::Json,
                "text/csv" => Self::Csv,
                arrow::TYPE => Self::Arrow,
                parquet::TYPE => Self::Parquet,
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

/// What came of a query that was run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RanTold {
    /// The query that was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// The rows, or those of one page.
    pub rows: Rows,
    /// What is odd about the query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Placed>,
    /// How long the database took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// By which the next page is fetched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Writes a result, or a page of one whose columns have these types.
pub fn told(told: RanTold, kinds: Option<&[Kind]>, format: Format) -> Response {
    if format == Format::Json {
        return json(&told);
    }
    let mut response = written(&told.rows, kinds, format);
    if let Some(cursor) = told.cursor.and_then(|cursor| HeaderValue::from_str(&cursor).ok()) {
        response.headers_mut().insert("x-cursor", cursor);
    }
    response
}

/// A reply that counts as running until all of it is sent: whoever does not read it must not have many of them.
pub fn held(response: Response, caller: Arc<Caller>) -> Response {
    response.map(|body| Body::new(Held { body, _caller: caller }))
}

struct Held {
    body: Body,
    _caller: Arc<Caller>,
}

impl HttpBody for Held {
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

/// As JSON.
pub fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => with_type(StatusCode::OK, body, "application/json"),
        Err(error) => {
            Refused::from(Problem::new(ProblemCode::Internal, format!("the answer cannot be written: {error}")))
                .into_response()
        }
    }
}

/// Rows alone; what does not fit into them stands in headers.
pub fn written(rows: &Rows, known: Option<&[Kind]>, format: Format) -> Response {
    let kinds = || known.map_or_else(|| kinds(rows), <[Kind]>::to_vec);
    let typed = |body: Result<Vec<u8>, String>, kind| match body {
        Ok(body) => with_type(StatusCode::OK, body, kind),
        Err(error) => {
            Refused::from(Problem::new(ProblemCode::Internal, format!("the rows cannot be written: {error}")))
                .into_response()
        }
    };
    let mut response = match format {
        Format::Json => json(rows),
        Format::Csv => with_type(StatusCode::OK, csv(rows).into_bytes(), "text/csv; charset=utf-8; header=present"),
        Format::Arrow => typed(arrow::written(rows, &kinds()).map_err(|error| error.to_string()), arrow::TYPE),
        Format::Parquet => typed(parquet::written(rows, &kinds()).map_err(|error| error.to_string()), parquet::TYPE),
    };
    let truncated = HeaderValue::from_static(if rows.truncated { "true" } else { "false" });
    response.headers_mut().insert("x-truncated", truncated);
    response
}

fn with_type(status: StatusCode, body: Vec<u8>, kind: &'static str) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// As CSV.
pub fn csv(rows: &Rows) -> String {
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = String>| {
        out.push_str(&cells.collect::<Vec<_>>().join(","));
        out.push_str("\r\n");
    };
    line(&mut rows.columns.iter().map(|name| quoted(name)));
    for row in &rows.rows {
        line(&mut row.iter().map(|cell| match cell {
            Cell::Null => String::new(),
            Cell::Boolean(value) => value.to_string(),
            Cell::Integer(value) => value.to_string(),
            Cell::Number(value) => value.to_string(),
            Cell::Decimal(value) => value.clone(),
            Cell::Text(value) | Cell::Binary(value) => quoted(value),
        }));
    }
    out
}

fn quoted(text: &str) -> String {
    let plain = !text.is_empty() && !text.contains([',', '"', '\n', '\r']) && text.trim() == text;
    if plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_they_like_best_of_what_there_is() {
        for (accept, format) in [
            ("", Format::Json),
            ("*/*", Format::Json),
            ("text/html", Format::Json),
            ("text/csv", Format::Csv),
            ("application/vnd.apache.arrow.stream", Format::Arrow),
            ("Application/Vnd.Apache.Parquet; q=0.9, text/csv;q=0.5", Format::Parquet),
            ("application/json;q=0.2, application/vnd.apache.arrow.stream", Format::Arrow),
            ("text/csv, */*", Format::Csv),
            ("text/csv;q=0, */*;q=0.1", Format::Json),
            ("text/csv;q=x", Format::Json),
        ] {
            assert_eq!(Format::of(accept), format, "{accept}");
        }
    }

    #[test]
    fn csv_tells_null_from_nothing() {
        let rows = Rows {
            columns: vec!["a".into(), "b,c".into()],
            rows: vec![
                vec![Cell::Null, Cell::Text(String::new())],
                vec![Cell::Integer(1), Cell::Text("x \"y\"".into())],
            ],
            truncated: false,
        };
        assert_eq!(csv(&rows), "a,\"b,c\"\r\n,\"\"\r\n1,\"x \"\"y\"\"\"\r\n");
    }
}
