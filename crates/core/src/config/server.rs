//! Server settings: authentication, authorization and limits.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use querymend_sql::Policy;
use serde::{Deserialize, Serialize};

use super::{ConfigError, duration};
use crate::config::validate;

/// Settings of `querymend serve`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSection {
    /// Address to listen on. A non-loopback address requires `auth`.
    pub bind: String,
    /// Databases that clients may query, by the names that clients use.
    pub databases: BTreeMap<String, String>,
    /// Authentication. Without it, everyone who reaches the server is one user with all
    /// permissions.
    pub auth: Option<AuthSection>,
    /// Permissions per role. Without any, every authenticated user may query every database.
    pub roles: BTreeMap<String, RoleSection>,
    /// Role of users whose token or key names none.
    pub default_role: Option<String>,
    /// Request, session and connection limits.
    pub limits: ServerLimits,
    /// Audit log file: one line per executed query and per rejected request.
    pub audit: Option<PathBuf>,
    /// OTLP collector for traces and metrics, such as `http://127.0.0.1:4318`.
    pub otlp: Option<String>,
    /// Directory with the Pyodide files that the web page uses to compute in the browser.
    pub pyodide: Option<PathBuf>,
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            bind: "127.0.0.1:8642".to_owned(),
            databases: BTreeMap::new(),
            auth: None,
            roles: BTreeMap::new(),
            default_role: None,
            limits: ServerLimits::default(),
            audit: None,
            otlp: None,
            pyodide: None,
        }
    }
}

impl ServerSection {
    /// Returns the paths in this section.
    pub(super) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let (jwt, keys) = match &mut self.auth {
            Some(auth) => (auth.jwt.as_mut(), auth.keys_file.as_mut()),
            None => (None, None),
        };
        let of_tokens = jwt.into_iter().flat_map(|jwt| [jwt.key_file.as_mut(), jwt.jwks_file.as_mut()]);
        of_tokens.chain([keys, self.audit.as_mut(), self.pyodide.as_mut()]).flatten()
    }

    /// Validates semantic constraints and constraints across fields.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field: &'static str, message: String| Err(ConfigError::invalid_value(field, message));
        if self.bind.parse::<SocketAddr>().is_err() {
            return wrong("server.bind", format!("`{}` is not an address and port, such as 127.0.0.1:8642", self.bind));
        }
        for (name, address) in &self.databases {
            if !is_name(name) {
                return wrong(
                    "server.databases",
                    format!("`{name}` is not a valid name: use letters, digits, `-` and `_`"),
                );
            }
            if let Err(message) = validate::check_secret("server.databases", Some(address.clone())) {
                return wrong("server.databases", message);
            }
        }
        if let Some(name) = self.default_role.as_ref().filter(|name| !self.roles.contains_key(*name)) {
            return wrong("server.default_role", format!("there is no role `{name}`"));
        }
        for (name, role) in &self.roles {
            let unknown = role.databases.iter().flatten().find(|database| !self.databases.contains_key(*database));
            if let Some(unknown) = unknown.filter(|_| !self.databases.is_empty()) {
                return wrong(
                    "server.roles",
                    format!("the role `{name}` names a database `{unknown}` that is not configured"),
                );
            }
        }
        match &self.auth {
            Some(AuthSection { jwt: None, keys_file: None }) => wrong(
                "server.auth",
                "neither `jwt` nor `keys_file` is set, so no request could be authenticated".to_owned(),
            ),
            Some(AuthSection { jwt: Some(jwt), .. }) => {
                let sources = [jwt.key_file.is_some(), jwt.jwks_file.is_some(), jwt.jwks_url.is_some()];
                match sources.iter().filter(|given| **given).count() {
                    1 if jwt.algorithm == JwtAlgorithm::HS256 && jwt.key_file.is_none() => {
                        wrong("server.auth.jwt", "HS256 needs the secret in a `key_file`".to_owned())
                    }
                    1 => Ok(()),
                    _ => wrong("server.auth.jwt", "it needs one of `key_file`, `jwks_file` and `jwks_url`".to_owned()),
                }
            }
            _ => Ok(()),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// Authentication of users.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSection {
    /// Tokens issued by an external identity provider (JWT).
    pub jwt: Option<Jwt>,
    /// File with API keys created by `querymend key`, one line each. It does not contain the keys
    /// themselves.
    pub keys_file: Option<PathBuf>,
}

/// Accepted JSON Web Tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jwt {
    /// Signature algorithm: HS256, RS256 or EdDSA. Any other `alg` in a token header is rejected,
    /// which prevents algorithm confusion attacks.
    pub algorithm: JwtAlgorithm,
    /// File with the shared secret (HS256) or the public key (PEM).
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// File with public keys as a JSON Web Key Set.
    #[serde(default)]
    pub jwks_file: Option<PathBuf>,
    /// URL of a JSON Web Key Set. It is fetched again periodically, and when a token names an
    /// unknown key.
    #[serde(default)]
    pub jwks_url: Option<String>,
    /// Required `aud` claim.
    pub audience: String,
    /// Required `iss` claim. Not checked if absent.
    #[serde(default)]
    pub issuer: Option<String>,
    /// Maximum tolerated clock difference.
    #[serde(default = "minute", with = "duration")]
    pub clock_skew: Duration,
    /// Claim that contains the role.
    #[serde(default = "role")]
    pub role_claim: String,
}

/// Signature algorithm of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JwtAlgorithm {
    /// HMAC with a shared secret.
    HS256,
    /// RSA.
    RS256,
    /// Ed25519.
    EdDSA,
}

fn minute() -> Duration {
    Duration::from_secs(60)
}

fn role() -> String {
    "role".to_owned()
}

/// Permissions of a role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RoleSection {
    /// Databases that the role may query; all if absent.
    pub databases: Option<Vec<String>>,
    /// Access policy in addition to the global one.
    pub policy: Policy,
    /// Maximum number of rows returned. No additional limit if absent.
    pub max_rows: Option<usize>,
    /// `true` if the role may reset circuit breakers and edit shared examples. It may also inspect
    /// the breakers.
    pub admin: bool,
}

/// Request, session and connection limits of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Rate limit: requests per user and minute; 0 is no limit.
    pub requests_per_minute: u32,
    /// Maximum number of concurrent requests per user.
    pub max_concurrent_per_user: usize,
    /// Maximum number of concurrent requests of all users.
    pub max_concurrent: usize,
    /// Maximum number of sessions kept per user.
    pub sessions: usize,
    /// Time after which an idle session expires.
    #[serde(with = "duration")]
    pub session_age: Duration,
    /// Maximum number of concurrent connections per client address (per /64 network for IPv6).
    pub connections_per_address: usize,
    /// Time after which an idle connection is closed.
    #[serde(with = "duration")]
    pub idle: Duration,
    /// Time that a response waits for a client that does not read it (slow-read attack).
    #[serde(with = "duration")]
    pub stalled: Duration,
    /// Grace period of running requests at shutdown.
    #[serde(with = "duration")]
    pub shutdown: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            requests_per_minute: 600,
            max_concurrent_per_user: 32,
            max_concurrent: 2_048,
            sessions: 100,
            session_age: Duration::from_secs(24 * 60 * 60),
            connections_per_address: 2_048,
            idle: Duration::from_secs(300),
            stalled: Duration::from_secs(30),
            shutdown: Duration::from_secs(30),
        }
    }
}
