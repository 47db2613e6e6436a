//! The description of the API, made from the list of routes and from the types themselves.

use std::sync::OnceLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use querymend::Event;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::problem::Told;
use super::{ROUTES, Route, arrow, parquet};

/// Serves it.
pub async fn serve() -> Response {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| description().to_string());
    ([(header::CONTENT_TYPE, "application/json")], text.as_str()).into_response()
}

/// All routes, as OpenAPI 3.1 has it.
pub fn description() -> Value {
    let settings = |settings: &mut SchemaSettings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    };
    // What is taken and what is given may differ in which fields must be there.
    let mut taken = SchemaSettings::draft2020_12().with(settings).for_deserialize().into_generator();
    let mut given = SchemaSettings::draft2020_12().with(settings).for_serialize().into_generator();
    let problem = given.subschema_for::<Told>().to_value();
    // What a stream is made of, for those who make types of this.
    let event = given.subschema_for::<Event>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let takes = route.takes.map(|shape| shape(&mut taken).to_value());
        let gives = route.gives.1.map(|shape| shape(&mut given).to_value());
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route, takes, gives, &problem, &event);
    }
    let mut schemas = given.take_definitions(true);
    schemas.extend(taken.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Querymend",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Answers questions from databases and mends the SQL on the way.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            },
        },
        "security": [{}, {"bearer": []}, {"key": []}],
    })
}

fn operation(route: &Route, takes: Option<Value>, gives: Option<Value>, problem: &Value, event: &Value) -> Value {
    let in_path = route
        .path
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(name, _)| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let in_query = route.query.iter().map(|(name, about)| {
        let kind = match *name {
            "page_size" => json!({"type": "integer", "minimum": 1}),
            "limit" => json!({"type": "integer", "minimum": 0}),
            "all" => json!({"type": "boolean"}),
            _ => json!({"type": "string"}),
        };
        json!({"name": name, "in": "query", "required": *name == "word", "description": about, "schema": kind})
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let wrong = json!({"description": "a problem", "content": {"application/problem+json": {"schema": problem}}});
    let mut well = json!({"description": "as asked"});
    if let Some(shape) = gives {
        let mut content = json!({"application/json": {"schema": shape}});
        match route.path {
            "/v1/ask" => {
                content["text/event-stream"] = json!({"schema": event});
                rows_alone(&mut content);
            }
            "/metrics" => content = json!({"text/plain": {"schema": {"type": "string"}}}),
            "/v1/run" | "/v1/results/{cursor}" => rows_alone(&mut content),
            _ => {}
        }
        well["content"] = content;
    }
    let mut operation = json!({
        "summary": route.summary,
        "operationId": name_of(route),
        "parameters": parameters,
        "responses": {route.gives.0.as_str(): well, "default": wrong},
    });
    if let Some(shape) = takes {
        operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": shape}}});
    }
    if route.open {
        operation["security"] = json!([]);
    }
    operation
}

/// The formats in which rows come without what was said about them.
fn rows_alone(content: &mut Value) {
    content["text/csv"] = json!({"schema": {"type": "string"}});
    for kind in [arrow::TYPE, parquet::TYPE] {
        content[kind] = json!({"schema": {"type": "string", "format": "binary"}});
    }
}

/// `post_v1_ask`, for programs that make clients of this.
fn name_of(route: &Route) -> String {
    let path: String = route.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = path.trim_matches('_').split('_').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_");
    format!("{}_{path}", route.method.as_str().to_lowercase())
}
