//! A server to ask, and ways of asking it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request as HttpRequest, Response as HttpResponse};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use querymend::config::RoleSection;
use querymend::resilience::Breakers;
use querymend::{Config, Event, Problem, ProblemCode, StopReason};
use querymend_model::{ScriptedModel, ScriptedReply};
use querymend_server::audit::log::AuditLog;
use querymend_server::auth::user::{Credentials, NoAuth};
use querymend_server::grpc::proto::querymend_client::QuerymendClient;
use querymend_server::grpc::proto::{AskRequest, Problem as ProblemMessage};
use querymend_server::observe::observer::{EventOrigin, Observer, RunObserver};
use querymend_server::service::Database;
use querymend_server::store::InMemoryStore;
use querymend_server::{
    Authenticator, BoxFuture, ConnectionLimits, Service, Setup, Shutdown, User, app_router, serve_with_limits,
};
use querymend_testing::hang_timeout;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::long_deadline::LongDeadline;
use crate::timing::{NEVER, until, within};

pub const QUESTION: &str = "Which electronics are there, at what price?";
/// A draft that runs as it is, and one that is repaired without the model.
pub const GOOD: &str = "SELECT name FROM products";
pub const MENDABLE: &str = "SELECT id, price FROM products WHERE category = 'Electronics'";

/// Time after which the server gives up on a client that reads nothing.
pub const READ_TIMEOUT: Duration = Duration::from_secs(10);

pub struct Server {
    pub address: SocketAddr,
    pub service: Arc<Service>,
    model: Arc<ScriptedModel>,
    /// Why questions ended, in order.
    pub ends: Mutex<mpsc::UnboundedReceiver<StopReason>>,
    stopping: Shutdown,
    _folder: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.stop();
    }
}

/// A server whose model says these lines.
pub async fn server<L: Into<ScriptedReply>>(lines: impl IntoIterator<Item = L>, config: Config) -> Server {
    gated(lines, config, Arc::new(NoAuth::default())).await
}

/// The same with somebody who asks who it is.
pub async fn gated<L: Into<ScriptedReply>>(
    lines: impl IntoIterator<Item = L>,
    config: Config,
    gate: Arc<dyn Authenticator>,
) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    querymend_engine::demo::write(&file).unwrap();
    let engine = querymend_engine::open(&file.to_string_lossy()).unwrap();
    let engine = Arc::new(LongDeadline(Arc::from(engine)));
    let database = Database { name: "shop".into(), engine, identity: "shop".into() };
    let bounds = ConnectionLimits::from(&config.server.limits);
    let breakers = Arc::new(Breakers::new(config.circuit_breaker));
    let model = Arc::new(ScriptedModel::new(lines));
    let shelf = Arc::new(InMemoryStore::new(100, NEVER, None));
    let setup = Setup { config, model: model.clone(), databases: vec![database], store: None, authenticator: gate };
    let (ended, ends) = mpsc::unbounded_channel();
    let listener = Arc::new(Ends(ended));
    let service = Arc::new(Service::new(setup, breakers, shelf, AuditLog::default()).with_observer(listener));

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stopping = Shutdown::default();
    let (router, stop) = (app_router(Arc::clone(&service), &stopping), stopping.clone());
    tokio::spawn(async move { serve_with_limits(listener, router, &stop, NEVER, &bounds).await });
    Server { address, service, model, ends: Mutex::new(ends), stopping, _folder: folder }
}

impl Server {
    pub fn stop(&self) {
        self.stopping.stop();
    }

    pub async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        endpoint.connect_timeout(hang_timeout()).connect().await.unwrap()
    }

    pub async fn client(&self) -> QuerymendClient<Channel> {
        QuerymendClient::new(self.channel().await)
    }

    /// Waits until a question has ended, and says why it did.
    pub async fn ended(&self) -> StopReason {
        let ended = std::future::poll_fn(|context| self.ends.lock().unwrap().poll_recv(context));
        within("a question ends", ended).await.unwrap()
    }

    /// Waits until so many requests are running.
    pub async fn running(&self, count: usize) {
        until(&format!("{count} requests are running"), || self.service.running_requests() == count).await;
    }

    /// Waits until the model has so many lines left to say.
    pub async fn left(&self, lines: usize) {
        until(&format!("the model has {lines} lines left"), || self.model.remaining() == lines).await;
    }

    /// Sends a call byte by byte as it stands, and gives back what came. No client's own ideas of the protocol are in the way.
    pub async fn raw(&self, method: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> HttpResponse<Incoming> {
        let stream = TokioIo::new(TcpStream::connect(self.address).await.unwrap());
        let (mut send, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        let mut request = HttpRequest::post(format!("http://{}/querymend.v1.Querymend/{method}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let called = send.send_request(request.body(body.into()).unwrap());
        within("a response", called).await.unwrap()
    }

    /// Sends a request as HTTP/1.1 has it, without a body, and gives back the status.
    pub async fn plain(&self, method: &str, path: &str) -> u16 {
        let stream = TokioIo::new(TcpStream::connect(self.address).await.unwrap());
        let (mut send, connection) = http1::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let request = HttpRequest::builder().method(method).uri(path).header("host", "localhost");
        let called = send.send_request(request.body(Body::empty()).unwrap());
        within("a response", called).await.unwrap().status().as_u16()
    }
}

pub const GRPC: (&str, &str) = ("content-type", "application/grpc");

/// A message as it is sent: not compressed, with its length.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut framed = vec![0];
    framed.extend((message.len() as u32).to_be_bytes());
    framed.extend(message);
    framed
}

/// The status of a response that is an error from the beginning.
pub fn status<B>(response: &HttpResponse<B>) -> Status {
    Status::from_header_map(response.headers()).unwrap_or_else(|| panic!("no status: {:?}", response.headers()))
}

pub fn question(text: &str) -> AskRequest {
    AskRequest { question: text.into(), ..AskRequest::default() }
}

pub fn with<T>(message: T, key: &'static str, value: &str) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(key, value.parse().unwrap());
    request
}

/// How details are written (`google.rpc.Status`).
#[derive(Clone, PartialEq, Message)]
struct Details {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

/// The problem in the details of a status, which must agree with the rest of it.
pub fn problem(status: &Status) -> ProblemMessage {
    let details = Details::decode(status.details()).unwrap();
    assert_eq!((details.code, details.message.as_str()), (status.code() as i32, status.message()));
    assert_eq!(details.details[0].type_url, "type.googleapis.com/querymend.v1.Problem");
    let problem = ProblemMessage::decode(details.details[0].value.as_slice()).unwrap();
    assert_eq!(status.metadata().get("querymend-code").unwrap().to_str().unwrap(), problem.code);
    let wait = status.metadata().get("retry-after").map(|wait| wait.to_str().unwrap().parse().unwrap());
    assert_eq!(wait, problem.retry_after_s);
    problem
}

/// Tells how questions ended.
struct Ends(mpsc::UnboundedSender<StopReason>);

impl Observer for Ends {
    fn on_question(&self, _: &EventOrigin<'_>, _: &str) -> Box<dyn RunObserver> {
        Box::new(Ends(self.0.clone()))
    }
}

impl RunObserver for Ends {
    fn on_event(&mut self, event: &Event) {
        if let Event::Finished { answer } = event {
            self.0.send(answer.stop).ok();
        }
    }
}

/// Lets in whoever says a name, by a token or by a key; only root may administer. Of one name it panics.
pub struct Names;

impl Authenticator for Names {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, User> {
        Box::pin(async move {
            let token = credentials.authorization.and_then(|text| text.strip_prefix("Bearer "));
            match token.or(credentials.api_key) {
                Some(name @ ("ann" | "bob" | "root")) => {
                    let role = RoleSection { admin: name == "root", ..RoleSection::default() };
                    Ok(User { id: Some(name.into()), role_name: Some(name.into()), role: Arc::new(role) })
                }
                Some("boom") => panic!("as it was told"),
                _ => Err(Problem::new(ProblemCode::Unauthenticated, "nobody is known by this")),
            }
        })
    }

    fn requires_credentials(&self) -> bool {
        true
    }
}
