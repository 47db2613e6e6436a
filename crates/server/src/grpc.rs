//! gRPC: the same that HTTP has, on the same port. Each method only converts and asks the service.
//!
//! Connections, and how they end, are those of HTTP ([`crate::serve()`]); what holds for every call is in `call.rs`.

mod answer;
mod ask;
mod call;
mod run;
mod sql;
mod status;
mod stream;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use futures_util::FutureExt;
use querymend::{Problem, ProblemCode};
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_reflection::server::Builder;
use tower_http::catch_panic::CatchPanicLayer;

use self::call::Call;
use self::proto::querymend_server::QuerymendServer;
use crate::service::Service;

/// What is made of the description of the service: its messages, the trait that a server fills in, and a client.
#[allow(missing_docs, rustdoc::all, clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/querymend.v1.rs"));
}

/// The description of the service, as the server gives it to whoever asks what it can do.
pub const DESCRIPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/querymend.bin"));

/// The service, with those that say whether it is well and what it can do. Like their counterparts over HTTP, these two ask
/// nobody who they are.
pub fn router(service: Arc<Service>) -> Router {
    let (health, health_server) = tonic_health::server::health_reporter();
    // Nobody else holds the lock yet, so that there is nothing to wait for.
    health.set_service_status(QuerymendServer::<Call>::NAME, ServingStatus::Serving).now_or_never();
    let ask = tower::service_fn(move |request: Request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(call::answer(service, request).await) }
    });
    let mut router = Router::new().route_service(&path(QuerymendServer::<Call>::NAME), ask);
    router = mount(router, health_server);
    let about = || {
        let builder = Builder::configure().register_encoded_file_descriptor_set(DESCRIPTION);
        builder.register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // Both versions: tools still ask for the older one.
    match (about().build_v1(), about().build_v1alpha()) {
        (Ok(newer), Ok(older)) => router = mount(mount(router, newer), older),
        (Err(error), _) | (_, Err(error)) => tracing::error!(%error, "the gRPC service cannot be described"),
    }
    router.layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
        let problem = Problem::new(ProblemCode::Internal, "something went wrong here");
        status::refused(problem).into_http::<Body>()
    }))
}

fn path(name: &str) -> String {
    format!("/{name}/{{*method}}")
}

fn mount<S>(router: Router, server: S) -> Router
where
    S: NamedService + tower::Service<Request, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Response: IntoResponse,
    S::Future: Send + 'static,
{
    router.route_service(&path(S::NAME), server)
}
