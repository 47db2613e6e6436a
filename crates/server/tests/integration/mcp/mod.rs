//! MCP, spoken by the protocol's own client: over a pipe, and over HTTP.

mod over_http;
mod tools;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use querymend::config::RoleSection;
use querymend::resilience::Breakers;
use querymend::{Config, Event, Problem, ProblemCode, StopReason};
use querymend_model::{ScriptedModel, ScriptedReply};
use querymend_server::audit::log::AuditLog;
use querymend_server::auth::user::{Credentials, NoAuth};
use querymend_server::observe::observer::{EventOrigin, Observer, RunObserver};
use querymend_server::service::Database;
use querymend_server::store::InMemoryStore;
use querymend_server::{
    Authenticator, BoxFuture, ConnectionLimits, Service, Setup, Shutdown, User, mcp, serve_with_limits,
};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientConfig, ClientRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorCode, ProgressNotificationParam, ProtocolVersion,
    ReadResourceRequestParams, Request, ResourceContents,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, PeerRequestOptions, RequestContext, RunningService,
    ServiceError,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::long_deadline::LongDeadline;
use crate::timing::{self, NEVER, expire, until, within};

/// A shop, who asks it, and what happened.
struct Shop {
    service: Arc<Service>,
    /// How questions ended.
    stops: mpsc::UnboundedReceiver<StopReason>,
    _folder: TempDir,
}

/// A service with the same shop under these names.
fn shop<L: Into<ScriptedReply>>(
    names: &[&str],
    says: impl IntoIterator<Item = L>,
    gate: Arc<dyn Authenticator>,
    config: Config,
) -> Shop {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    querymend_engine::demo::write(&file).unwrap();
    let databases = names.iter().map(|name| Database {
        name: (*name).to_owned(),
        engine: Arc::new(LongDeadline(Arc::from(querymend_engine::open(file.to_str().unwrap()).unwrap()))),
        identity: (*name).to_owned(),
    });
    let breakers = Breakers::new(config.circuit_breaker);
    let shelf = InMemoryStore::new(100, NEVER, None);
    let (tell, stops) = mpsc::unbounded_channel();
    let setup = Setup {
        model: Arc::new(ScriptedModel::new(says)),
        databases: databases.collect(),
        store: None,
        authenticator: gate,
        config,
    };
    let service = Service::new(setup, Arc::new(breakers), Arc::new(shelf), AuditLog::default());
    let service = service.with_observer(Arc::new(Ends(tell)));
    Shop { service: Arc::new(service), stops, _folder: folder }
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

fn open_shop<L: Into<ScriptedReply>>(says: impl IntoIterator<Item = L>) -> Shop {
    shop(&["shop"], says, Arc::new(NoAuth::default()), timing::config())
}

const SILENT: [&str; 0] = [];

/// Fills in a form with this message.
type Fill = fn(&str) -> ElicitResult;

/// A client that keeps what it is told about progress.
#[derive(Clone, Default)]
struct Client {
    heard: Arc<Mutex<Vec<(f64, String)>>>,
    tell: Option<mpsc::UnboundedSender<String>>,
    /// What its user answers to a form, where it can show one.
    user: Option<Fill>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities.elicitation = self.user.map(|_| ElicitationCapability::default());
        info
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        match (self.user, request) {
            (Some(user), ElicitRequestParams::FormElicitationParams { message, .. }) => Ok(user(&message)),
            _ => Ok(ElicitResult::new(ElicitationAction::Decline)),
        }
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let message = told.message.unwrap_or_default();
        self.heard.lock().unwrap().push((told.progress, message.clone()));
        self.tell.as_ref().map(|tell| tell.send(message));
    }
}

type Connected = RunningService<RoleClient, Client>;

async fn over_pipe(shop: &Shop, client: Client) -> Connected {
    let (here, there) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(there);
    tokio::spawn(mcp::serve_pipe(Arc::clone(&shop.service), read, write));
    client.serve(here).await.unwrap()
}

/// A client that goes straight to the address.
fn web() -> reqwest::Client {
    provider();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The one TLS of this workspace, which a client wants to know even where it has no use for it.
fn provider() {
    // It fails only where it was said already.
    rustls::crypto::ring::default_provider().install_default().ok();
}

fn to(url: String, token: Option<&str>) -> StreamableHttpClientTransport<reqwest::Client> {
    let config = StreamableHttpClientTransportConfig::with_uri(url);
    let config = token.map_or(config.clone(), |token| config.auth_header(token));
    StreamableHttpClientTransport::with_client(web(), config)
}

/// A server on a port of its own.
struct Listening {
    address: SocketAddr,
    stopping: Shutdown,
    task: tokio::task::JoinHandle<std::io::Result<bool>>,
}

async fn listening(shop: &Shop) -> Listening {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stopping = Shutdown::default();
    let router = mcp::router_with_shutdown(Arc::clone(&shop.service), &stopping);
    let told = stopping.clone();
    let bounds = ConnectionLimits::from(&shop.service.config().server.limits);
    let task = tokio::spawn(async move { serve_with_limits(listener, router, &told, NEVER, &bounds).await });
    Listening { address, stopping, task }
}

impl Listening {
    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    async fn client(&self, token: Option<&str>) -> Connected {
        Client::default().serve(to(self.url(), token)).await.unwrap()
    }

    /// A request as it is, without a client that knows better.
    fn post(&self, body: &Value) -> reqwest::RequestBuilder {
        let request = web().post(self.url()).header("accept", "application/json, text/event-stream");
        request.header("content-type", "application/json").body(body.to_string())
    }

    /// Opens a session, and gives back its id.
    async fn session(&self, token: &str) -> String {
        let response = self.post(&initialize()).bearer_auth(token).send().await.unwrap();
        assert_eq!(response.status(), 200);
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }
}

fn initialize() -> Value {
    let client = json!({ "name": "test", "version": "1" });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client } })
}

fn list_tools() -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })
}

fn asked(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(arguments.as_object().unwrap().clone())
}

async fn call(client: &Connected, tool: &'static str, arguments: Value) -> CallToolResult {
    within("the tool answers", client.call_tool(asked(tool, arguments))).await.unwrap()
}

/// What a tool answered where all is well: its text and its data.
async fn told(client: &Connected, tool: &'static str, arguments: Value) -> (String, Value) {
    let result = call(client, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{result:?}");
    parts(result)
}

/// What a tool answered where something is wrong.
async fn refused(client: &Connected, tool: &'static str, arguments: Value) -> (String, Value) {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{result:?}");
    parts(result)
}

fn parts(result: CallToolResult) -> (String, Value) {
    let text = result.content[0].as_text().unwrap().text.clone();
    assert!(text.len() <= mcp::MAX_TEXT_BYTES);
    (text, result.structured_content.unwrap())
}

/// What is answered counts as running no more.
async fn idle(shop: &Shop) {
    until("nothing runs", || shop.service.running_requests() == 0).await;
}

async fn text_at(client: &Connected, address: &str) -> Result<String, ServiceError> {
    let read = client.read_resource(ReadResourceRequestParams::new(address)).await?;
    match &read.contents[0] {
        ResourceContents::TextResourceContents { text, .. } => Ok(text.clone()),
        other => panic!("{other:?}"),
    }
}

const BROKEN: &str = "SELECT id, price FROM products";
const DEAR: &str = "SELECT name, price FROM products WHERE price > 100 ORDER BY price DESC LIMIT 2";

/// What every tool does, however it is reached.
async fn every_tool(client: &Connected) {
    let (text, data) = told(client, "schema", json!({})).await;
    assert!(text.contains("CREATE TABLE products") && data["truncated"] == false, "{text}");
    let (text, data) = told(client, "schema", json!({ "tables": ["orders"] })).await;
    assert!(text.contains("CREATE TABLE orders") && !text.contains("CREATE TABLE products"));
    assert_eq!((&data["table_count"], &data["dialect"]), (&json!(1), &json!("sqlite")));

    let (text, data) = told(client, "check_sql", json!({ "sql": BROKEN })).await;
    assert!(text.contains("error[unknown-column] 1:8"), "{text}");
    assert_eq!((&data["clean"], &data["findings"][0]["code"]), (&json!(false), &json!("unknown-column")));
    assert_eq!(told(client, "check_sql", json!({ "sql": DEAR })).await.1["clean"], true);

    let (text, data) = told(client, "fix_sql", json!({ "sql": BROKEN })).await;
    assert!(text.starts_with("mended: ") && text.contains("SELECT product_id, price FROM products"), "{text}");
    assert_eq!(data["corrected_sql"], "SELECT product_id, price FROM products");
    assert_eq!(data["success"], true);

    let (text, data) = told(client, "run_sql", json!({ "sql": DEAR })).await;
    assert!(text.starts_with("name,price\n") && text.ends_with("2 rows\n"), "{text}");
    assert_eq!((&data["row_count"], data["rows"]["rows"].as_array().unwrap().len()), (&json!(2), 2));

    let city = &told(client, "run_sql", json!({ "sql": "SELECT city FROM customers LIMIT 1" })).await.1;
    let city = city["rows"]["rows"][0][0].as_str().unwrap().to_owned();
    let near = json!({ "word": city.to_lowercase(), "column": "customers.city" });
    let (text, data) = told(client, "find_values", near).await;
    assert!(text.contains(&format!("customers.city = '{city}' (exact match)")), "{text}");
    assert_eq!(data["values"][0]["value"], city);

    let nowhere = format!("SELECT name FROM customers WHERE city = '{city}x' AND customer_id > 0");
    let (text, data) = told(client, "explain_empty", json!({ "sql": nowhere })).await;
    assert!(text.contains(&format!("customers.city has no value '{city}x'")), "{text}");
    assert_eq!(data["finds_rows"], false);

    let (text, data) = told(client, "ask", json!({ "question": "Which two products cost most?" })).await;
    assert!(text.starts_with("answered, confidence ") && text.contains("name,price\n"), "{text}");
    assert_eq!((&data["status"], &data["sql"], &data["row_count"]), (&json!("answered"), &json!(DEAR), &json!(2)));
    for field in ["corrections", "metadata", "cost", "trace_id"] {
        assert!(data.get(field).is_some(), "{field}");
    }
}
