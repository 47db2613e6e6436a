//! OpenAPI document, generated from the route table and the request and response types.

use querymend::Event;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::route::Route;
use crate::encode::{arrow, parquet};
use crate::problem::ProblemDetails;

/// Returns the OpenAPI 3.1 document of the routes.
pub fn document(routes: &[Route]) -> Value {
    let settings = |settings: &mut SchemaSettings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    };
    // Separate generators, because required fields differ between serialization and
    // deserialization.
    let mut request_types = SchemaSettings::draft2020_12().with(settings).for_deserialize().into_generator();
    let mut response_types = SchemaSettings::draft2020_12().with(settings).for_serialize().into_generator();
    let problem = response_types.subschema_for::<ProblemDetails>().to_value();
    // Schema of streamed events, for client generators.
    let event = response_types.subschema_for::<Event>().to_value();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let request = route.request.map(|schema| schema(&mut request_types).to_value());
        let response = route.response.1.map(|schema| schema(&mut response_types).to_value());
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route, request, response, &problem, &event);
    }
    let mut schemas = response_types.take_definitions(true);
    schemas.extend(request_types.take_definitions(true));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Querymend",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Answers questions from SQL databases: generates, reviews and repairs queries, and runs them read-only.",
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

fn operation(route: &Route, request: Option<Value>, response: Option<Value>, problem: &Value, event: &Value) -> Value {
    let in_path = route
        .path
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'))
        .map(|(name, _)| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}));
    let in_query = route.query.iter().map(|(name, description)| {
        let kind = match *name {
            "page_size" => json!({"type": "integer", "minimum": 1}),
            "limit" => json!({"type": "integer", "minimum": 0}),
            "all" => json!({"type": "boolean"}),
            _ => json!({"type": "string"}),
        };
        json!({"name": name, "in": "query", "required": *name == "word", "description": description, "schema": kind})
    });
    let parameters: Vec<Value> = in_path.chain(in_query).collect();
    let failure =
        json!({"description": "Problem details", "content": {"application/problem+json": {"schema": problem}}});
    let mut success = json!({"description": "Success"});
    if let Some(schema) = response {
        let mut content = json!({"application/json": {"schema": schema}});
        match route.path {
            "/v1/ask" => {
                content["text/event-stream"] = json!({"schema": event});
                add_row_formats(&mut content);
            }
            "/metrics" => content = json!({"text/plain": {"schema": {"type": "string"}}}),
            "/v1/run" | "/v1/results/{cursor}" => add_row_formats(&mut content),
            _ => {}
        }
        success["content"] = content;
    }
    let mut operation = json!({
        "summary": route.summary,
        "operationId": operation_id(route),
        "parameters": parameters,
        "responses": {route.response.0.as_str(): success, "default": failure},
    });
    if let Some(schema) = request {
        operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
    }
    if route.is_public {
        operation["security"] = json!([]);
    }
    operation
}

/// Adds the media types that contain rows only.
fn add_row_formats(content: &mut Value) {
    content["text/csv"] = json!({"schema": {"type": "string"}});
    for kind in [arrow::MEDIA_TYPE, parquet::MEDIA_TYPE] {
        content[kind] = json!({"schema": {"type": "string", "format": "binary"}});
    }
}

/// Returns the operation id, such as `post_v1_ask`, for client generators.
fn operation_id(route: &Route) -> String {
    let path: String = route.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let path = path.trim_matches('_').split('_').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("_");
    format!("{}_{path}", route.method.as_str().to_lowercase())
}
