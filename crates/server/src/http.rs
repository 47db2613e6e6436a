//! HTTP: every route with what it takes and gives, in one list.

mod arrow;
mod ask;
mod body;
mod caller;
mod columns;
mod idempotency;
mod look;
mod manage;
mod openapi;
mod page;
mod parquet;
mod problem;
mod rows;
mod sql;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post};
use querymend::correct::{Correct, Corrected};
use querymend::direct::{Checked, Emptiness, Grounded};
use querymend::guard::Stats;
use querymend::records::ErrorRecord;
use querymend::{Answer, Problem, ProblemCode};
use querymend_memory::Example;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;
use tower_http::catch_panic::CatchPanicLayer;

pub(crate) use self::ask::{Gone, answered};
pub use self::body::Given;
pub(crate) use self::body::read;
pub use self::caller::{Caller, request_id};
pub use self::columns::{Kind, kinds};
pub(crate) use self::idempotency::Answers;
use self::manage::{Begin, Reset, SessionTold};
pub use self::page::has_page;
pub use self::problem::Refused;
use self::rows::RanTold;
pub(crate) use self::rows::csv;
use crate::service::{Judged, Listed, NewExample, Opinion, Past, QueryText, Question, Service};

/// A route of the API.
pub struct Route {
    /// How it is asked.
    pub method: Method,
    /// Where.
    pub path: &'static str,
    /// What it is for.
    pub summary: &'static str,
    /// Parameters of the query string, with what they mean.
    pub query: &'static [(&'static str, &'static str)],
    /// The shape of the body that it takes.
    pub takes: Option<Shape>,
    /// The status and shape of what it gives where all is well.
    pub gives: (StatusCode, Option<Shape>),
    /// Whether it asks who sends the request.
    pub open: bool,
    handler: fn() -> MethodRouter<Arc<Service>>,
}

/// Writes down the shape of a type.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

const DATABASE: (&str, &str) = ("database", "the database; it may be left out where there is only one");
const PAGE: (&str, &str) = ("page_size", "rows of a page; with it a cursor comes back where there are more");

/// Every route.
pub static ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/v1/ask",
        summary: "Answer a question. With `Accept: text/event-stream` every step is told as it happens",
        query: &[],
        takes: Some(|g| g.subschema_for::<Question>()),
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Answer>())),
        open: false,
        handler: || post(ask::ask),
    },
    Route {
        method: Method::POST,
        path: "/v1/correct",
        summary: "Correct a query that failed: by rules, and by the model where they give up",
        query: &[],
        takes: Some(|g| g.subschema_for::<Correct>()),
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Corrected>())),
        open: false,
        handler: || post(sql::correct),
    },
    Route {
        method: Method::POST,
        path: "/v1/check",
        summary: "Say what is wrong with a query, without running it",
        query: &[],
        takes: Some(|g| g.subschema_for::<QueryText>()),
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Checked>())),
        open: false,
        handler: || post(sql::check),
    },
    Route {
        method: Method::POST,
        path: "/v1/fix",
        summary: "Mend a query that may fail, without a model",
        query: &[],
        takes: Some(|g| g.subschema_for::<QueryText>()),
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Corrected>())),
        open: false,
        handler: || post(sql::fix),
    },
    Route {
        method: Method::POST,
        path: "/v1/run",
        summary: "Review a query and run it read-only. Rows come as JSON, CSV, Arrow or Parquet, by `Accept`",
        query: &[PAGE],
        takes: Some(|g| g.subschema_for::<QueryText>()),
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<RanTold>())),
        open: false,
        handler: || post(sql::run),
    },
    Route {
        method: Method::GET,
        path: "/v1/results/{cursor}",
        summary: "The next page of rows",
        query: &[PAGE],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<RanTold>())),
        open: false,
        handler: || get(sql::page),
    },
    Route {
        method: Method::POST,
        path: "/v1/explain-empty",
        summary: "Say why a query finds nothing",
        query: &[],
        takes: Some(|g| g.subschema_for::<QueryText>()),
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Emptiness>())),
        open: false,
        handler: || post(sql::explain_empty),
    },
    Route {
        method: Method::GET,
        path: "/v1/databases",
        summary: "The databases that may be asked",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<Listed>>())),
        open: false,
        handler: || get(manage::databases),
    },
    Route {
        method: Method::GET,
        path: "/v1/schema",
        summary: "The tables that may be read",
        query: &[DATABASE],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<manage::Tables>())),
        open: false,
        handler: || get(manage::schema),
    },
    Route {
        method: Method::GET,
        path: "/v1/values",
        summary: "Values of the database that are like a word",
        query: &[
            ("word", "what is looked for"),
            DATABASE,
            ("table", "only in this table"),
            ("column", "only in this column of it"),
        ],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<Grounded>>())),
        open: false,
        handler: || get(manage::values),
    },
    Route {
        method: Method::GET,
        path: "/v1/examples",
        summary: "The examples of a database: one's own and those that all share",
        query: &[DATABASE],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<Example>>())),
        open: false,
        handler: || get(manage::examples),
    },
    Route {
        method: Method::POST,
        path: "/v1/examples",
        summary: "Add a question with the query that answers it",
        query: &[],
        takes: Some(|g| g.subschema_for::<NewExample>()),
        gives: (StatusCode::CREATED, Some(|g| g.subschema_for::<Example>())),
        open: false,
        handler: || post(manage::add_example),
    },
    Route {
        method: Method::DELETE,
        path: "/v1/examples/{id}",
        summary: "Forget an example",
        query: &[DATABASE],
        takes: None,
        gives: (StatusCode::NO_CONTENT, None),
        open: false,
        handler: || delete(manage::remove_example),
    },
    Route {
        method: Method::POST,
        path: "/v1/examples/{id}/verdict",
        summary: "Say whether an example is right",
        query: &[DATABASE],
        takes: Some(|g| g.subschema_for::<Opinion>()),
        gives: (StatusCode::NO_CONTENT, None),
        open: false,
        handler: || post(look::judge_example),
    },
    Route {
        method: Method::POST,
        path: "/v1/sessions",
        summary: "Begin a conversation",
        query: &[],
        takes: Some(|g| g.subschema_for::<Begin>()),
        gives: (StatusCode::CREATED, Some(|g| g.subschema_for::<SessionTold>())),
        open: false,
        handler: || post(manage::begin),
    },
    Route {
        method: Method::GET,
        path: "/v1/sessions",
        summary: "One's newest conversations",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<SessionTold>>())),
        open: false,
        handler: || get(manage::sessions),
    },
    Route {
        method: Method::GET,
        path: "/v1/sessions/{id}",
        summary: "What was said in a conversation",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<SessionTold>())),
        open: false,
        handler: || get(manage::session),
    },
    Route {
        method: Method::DELETE,
        path: "/v1/sessions/{id}",
        summary: "Forget a conversation",
        query: &[],
        takes: None,
        gives: (StatusCode::NO_CONTENT, None),
        open: false,
        handler: || delete(manage::forget),
    },
    Route {
        method: Method::GET,
        path: "/v1/sessions/{id}/errors",
        summary: "What failed in a session since something last went well, with what it means",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<ErrorRecord>>())),
        open: false,
        handler: || get(manage::session_errors),
    },
    Route {
        method: Method::DELETE,
        path: "/v1/sessions/{id}/errors",
        summary: "Forget what failed in a session",
        query: &[],
        takes: None,
        gives: (StatusCode::NO_CONTENT, None),
        open: false,
        handler: || delete(manage::clear_session_errors),
    },
    Route {
        method: Method::GET,
        path: "/v1/traces/{id}",
        summary: "Every event of a past question",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<Value>>())),
        open: false,
        handler: || get(manage::trace),
    },
    Route {
        method: Method::GET,
        path: "/v1/traces",
        summary: "One's newest questions in short; with `all`, everybody's, for those whose role administers",
        query: &[("limit", "the most that are listed"), ("all", "everybody's")],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<Past>>())),
        open: false,
        handler: || get(look::past),
    },
    Route {
        method: Method::POST,
        path: "/v1/traces/{id}/verdict",
        summary: "Say whether an answer was right: a right one is kept as an example, a wrong one is not answered so again",
        query: &[],
        takes: Some(|g| g.subschema_for::<Opinion>()),
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Judged>())),
        open: false,
        handler: || post(look::judge),
    },
    Route {
        method: Method::GET,
        path: "/v1/rules",
        summary: "What the critic looks for",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<look::RuleTold>>())),
        open: false,
        handler: || get(look::rules),
    },
    Route {
        method: Method::GET,
        path: "/v1/rules/{code}",
        summary: "All about a rule of the critic",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<look::RuleTold>())),
        open: false,
        handler: || get(look::rule),
    },
    Route {
        method: Method::GET,
        path: "/v1/me",
        summary: "Who asks, as the server sees them",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<look::Me>())),
        open: false,
        handler: || get(look::me),
    },
    Route {
        method: Method::GET,
        path: "/v1/suggestions",
        summary: "Questions that a database can be asked",
        query: &[DATABASE],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<String>>())),
        open: false,
        handler: || get(look::suggestions),
    },
    Route {
        method: Method::GET,
        path: "/v1/breakers",
        summary: "How databases and models have been doing",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Vec<Stats>>())),
        open: false,
        handler: || get(manage::breakers),
    },
    Route {
        method: Method::POST,
        path: "/v1/breakers/reset",
        summary: "Close a circuit breaker, or all of them",
        query: &[],
        takes: Some(|g| g.subschema_for::<Reset>()),
        gives: (StatusCode::NO_CONTENT, None),
        open: false,
        handler: || post(manage::reset),
    },
    Route {
        method: Method::GET,
        path: "/metrics",
        summary: "Figures, as Prometheus reads them. Where users sign in, for those whose role administers",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<String>())),
        open: false,
        handler: || get(manage::metrics),
    },
    Route {
        method: Method::GET,
        path: "/healthz",
        summary: "Whether the server runs",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<manage::Health>())),
        open: true,
        handler: || get(manage::healthz),
    },
    Route {
        method: Method::GET,
        path: "/readyz",
        summary: "Whether its databases answer",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<manage::Health>())),
        open: true,
        handler: || get(manage::readyz),
    },
    Route {
        method: Method::GET,
        path: "/openapi.json",
        summary: "This description",
        query: &[],
        takes: None,
        gives: (StatusCode::OK, Some(|g| g.subschema_for::<Value>())),
        open: true,
        handler: || get(openapi::serve),
    },
];

/// All routes, with what holds for each of them.
pub fn router(service: Arc<Service>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, (route.handler)());
    }
    router
        .route("/pyodide/{file}", get(page::pyodide))
        .fallback(page::serve)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            Refused::from(Problem::new(ProblemCode::Internal, "something went wrong here")).into_response()
        }))
        .layer(from_fn_with_state(Arc::clone(&service), watch::watched))
        .with_state(service)
}

async fn method_not_allowed() -> Response {
    let problem = Problem::new(ProblemCode::BadRequest, "this address does not take this method")
        .hint("GET /openapi.json lists the methods of every address");
    Refused::from(problem).with_status(StatusCode::METHOD_NOT_ALLOWED).into_response()
}

/// The description of all routes, as OpenAPI 3.1 has it.
pub fn description() -> Value {
    openapi::description()
}
