//! What tests of sign-in share: a real server over the demo shop, and tokens for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use querymend::Config;
use querymend::config::{AuthSection, Jwt, JwtAlgorithm, ServerSection};
use querymend::resilience::Breakers;
use querymend_memory::FileStore;
use querymend_model::{ScriptedModel, ScriptedReply, StaticEmbedder};
use querymend_server::audit::log::AuditLog;
use querymend_server::clock::now;
use querymend_server::service::{Database, Service, Setup};
use querymend_server::store::InMemoryStore;
use querymend_server::{ConnectionLimits, Shutdown, build_authenticator, http, serve_with_limits};
use querymend_testing::hang_timeout;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::long_deadline::LongDeadline;
use crate::timing::{self, NEVER};

pub const SECRET: &str = "0123456789abcdef0123456789abcdef-of-a-test";

/// How tokens are believed, with the key in a file.
pub fn jwt(algorithm: JwtAlgorithm, key_file: Option<PathBuf>) -> Jwt {
    Jwt {
        algorithm,
        key_file,
        jwks_file: None,
        jwks_url: None,
        audience: "querymend".into(),
        issuer: Some("https://id.example".into()),
        clock_skew: Duration::from_secs(60),
        role_claim: "role".into(),
    }
}

pub fn section(jwt: Jwt) -> ServerSection {
    ServerSection { auth: Some(AuthSection { jwt: Some(jwt), keys_file: None }), ..ServerSection::default() }
}

/// The claims of a token that is believed.
pub fn claims(user: &str) -> Value {
    json!({"sub": user, "aud": "querymend", "iss": "https://id.example", "exp": now() + 86_400})
}

/// The same with others, or without those that are null.
pub fn with(user: &str, others: Value) -> Value {
    let mut claims = claims(user);
    for (name, value) in others.as_object().unwrap() {
        match value {
            Value::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    claims
}

pub fn signed(claims: &Value) -> String {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap()
}

pub fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// A server that runs until it is dropped.
pub struct Server {
    pub url: String,
    pub client: Client,
    pub folder: TempDir,
    pub service: Arc<Service>,
    stopping: Shutdown,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.stop();
    }
}

/// Databases `shop` and `vault`, which hold the same; a model that says these lines; users who sign in with [`signed`] tokens.
pub async fn start(change: impl FnOnce(&mut Config, &Path), lines: Vec<ScriptedReply>) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let mut config = timing::config();
    std::fs::write(folder.path().join("secret"), format!("{SECRET}\n")).unwrap();
    let limits = config.server.limits.clone();
    let jwt = jwt(JwtAlgorithm::HS256, Some(folder.path().join("secret")));
    config.server = ServerSection { limits, ..section(jwt) };
    let mut databases = Vec::new();
    for name in ["shop", "vault"] {
        let file = folder.path().join(format!("{name}.db"));
        querymend_engine::demo::write(&file).unwrap();
        config.server.databases.insert(name.into(), file.display().to_string());
        let engine = querymend_engine::open(&file.display().to_string()).unwrap();
        let engine = Arc::new(LongDeadline(Arc::from(engine)));
        databases.push(Database { name: name.into(), engine, identity: name.into() });
    }
    change(&mut config, folder.path());
    let embedder = Arc::new(StaticEmbedder::builtin().unwrap());
    let store = FileStore::open(folder.path().join("memory.db"), embedder).await.unwrap();
    let limits = config.server.limits.clone();
    let breakers = Arc::new(Breakers::new(config.circuit_breaker));
    let shelf =
        Arc::new(InMemoryStore::new(limits.sessions, limits.session_age, Some((folder.path().join("runs"), 100))));
    let audit = AuditLog::open(&folder.path().join("audit.jsonl")).unwrap();
    let gate = build_authenticator(&config.server).unwrap();
    let setup = Setup {
        config,
        model: Arc::new(ScriptedModel::new(lines)),
        databases,
        store: Some(Arc::new(store)),
        authenticator: gate,
    };
    let service = Arc::new(Service::new(setup, breakers, shelf, audit));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let stopping = Shutdown::default();
    let (router, stop) = (http::router(Arc::clone(&service)), stopping.clone());
    let bounds = ConnectionLimits::from(&limits);
    tokio::spawn(async move { serve_with_limits(listener, router, &stop, NEVER, &bounds).await });
    let client = querymend_net::http::client_builder("127.0.0.1", None, hang_timeout()).unwrap();
    let client = client.timeout(hang_timeout()).pool_max_idle_per_host(0).build().unwrap();
    Server { url, client, folder, service, stopping }
}

impl Server {
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    /// A user of a role.
    pub fn user<'s>(&'s self, name: &str, role: &str) -> Who<'s> {
        Who { server: self, token: signed(&with(name, json!({"role": role}))) }
    }
}

/// Somebody with a token.
pub struct Who<'s> {
    server: &'s Server,
    pub token: String,
}

impl Who<'_> {
    pub async fn get(&self, path: &str) -> (u16, Value) {
        told(self.server.request(Method::GET, path).bearer_auth(&self.token).send().await.unwrap()).await
    }

    pub async fn delete(&self, path: &str) -> (u16, Value) {
        told(self.server.request(Method::DELETE, path).bearer_auth(&self.token).send().await.unwrap()).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        told(self.posting(path, body).send().await.unwrap()).await
    }

    pub fn posting(&self, path: &str, body: Value) -> RequestBuilder {
        self.server.request(Method::POST, path).bearer_auth(&self.token).json(&body)
    }
}

pub async fn told(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
