//! gRPC API, with the operations of the HTTP API and on the same port.
//!
//! Methods only convert messages and call the service.
//!
//! Connection handling and shutdown are shared with HTTP ([`crate::serve()`]); `call.rs` implements
//! the parts common to all calls.

mod answer;
mod ask;
mod call;
mod fields;
mod messages;
mod run;
mod status;
mod stream;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::IntoResponse;
use futures_util::FutureExt;
use tonic::server::NamedService;
use tonic_health::ServingStatus;
use tonic_reflection::server::Builder;
use tower_http::catch_panic::CatchPanicLayer;

use self::call::GrpcCall;
use self::proto::querymend_server::QuerymendServer;
use crate::error::panic_problem;
use crate::service::Service;

/// Code generated from the protobuf definitions: messages, server trait and client.
#[allow(missing_docs, rustdoc::all, clippy::all, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/querymend.v1.rs"));
}

/// Encoded file descriptor set, served by gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/querymend.bin"));

/// Returns the router of the service, with the health and reflection services.
///
/// Like their HTTP counterparts, health and reflection require no authentication.
pub fn router(service: Arc<Service>) -> Router {
    let (health, health_server) = tonic_health::server::health_reporter();
    // The future is ready at once, because there is no contention for the lock yet.
    health.set_service_status(QuerymendServer::<GrpcCall>::NAME, ServingStatus::Serving).now_or_never();
    let calls = tower::service_fn(move |request: Request| {
        let service = Arc::clone(&service);
        async move { Ok::<_, Infallible>(call::handle(service, request).await) }
    });
    let mut router = Router::new().route_service(&path(QuerymendServer::<GrpcCall>::NAME), calls);
    router = mount(router, health_server);
    let reflection = || {
        let builder = Builder::configure().register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET);
        builder.register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // Some tools still request the v1alpha reflection service.
    match (reflection().build_v1(), reflection().build_v1alpha()) {
        (Ok(newer), Ok(older)) => router = mount(mount(router, newer), older),
        (Err(error), _) | (_, Err(error)) => tracing::error!(%error, "gRPC reflection is unavailable"),
    }
    router.layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
        status::problem_status(panic_problem()).into_http::<Body>()
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
