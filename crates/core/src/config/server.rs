//! What only a server needs: who may ask, what of, and how much.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use querymend_sql::Policy;
use serde::{Deserialize, Serialize};

use super::{ConfigError, duration, range};

/// How `querymend serve` is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerSection {
    /// Where it listens. Anywhere but on this machine it needs `sign_in`.
    pub bind: String,
    /// The databases that may be asked, by the names that clients use.
    pub databases: BTreeMap<String, String>,
    /// Who may ask. Without it everyone who reaches the server is one user who may do everything.
    pub sign_in: Option<SignIn>,
    /// What users of each role may do. Without any, everyone who signs in may ask every database.
    pub roles: BTreeMap<String, Role>,
    /// The role of those whose token or key names none.
    pub default_role: Option<String>,
    /// How much is taken on.
    pub limits: ServerLimits,
    /// A file that gets a line for every query that ran, and for everything that was refused.
    pub audit: Option<PathBuf>,
    /// A collector that gets traces and metrics, such as `http://127.0.0.1:4318`.
    pub otlp: Option<String>,
    /// A folder with the files that the page computes with in the browser (Pyodide).
    pub pyodide: Option<PathBuf>,
}

impl Default for ServerSection {
    fn default() -> Self {
        Self {
            bind: "127.0.0.1:8642".to_owned(),
            databases: BTreeMap::new(),
            sign_in: None,
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
    /// The files that it names.
    pub(super) fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let (jwt, keys) = match &mut self.sign_in {
            Some(sign_in) => (sign_in.jwt.as_mut(), sign_in.keys_file.as_mut()),
            None => (None, None),
        };
        let of_tokens = jwt.into_iter().flat_map(|jwt| [jwt.key_file.as_mut(), jwt.jwks_file.as_mut()]);
        of_tokens.chain([keys, self.audit.as_mut(), self.pyodide.as_mut()]).flatten()
    }

    /// What is wrong only by its meaning, or together with another field.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |field: &'static str, message: String| Err(ConfigError::value(field, message));
        if self.bind.parse::<SocketAddr>().is_err() {
            return wrong("server.bind", format!("`{}` is no address and port, such as 127.0.0.1:8642", self.bind));
        }
        for (name, address) in &self.databases {
            if !is_name(name) {
                return wrong("server.databases", format!("`{name}` is no name: letters, digits, `-` and `_`"));
            }
            if let Err(message) = range::check_secret("server.databases", Some(address.clone())) {
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
                    format!("the role `{name}` names a database `{unknown}` that is not there"),
                );
            }
        }
        match &self.sign_in {
            Some(SignIn { jwt: None, keys_file: None }) => {
                wrong("server.sign_in", "it says neither `jwt` nor `keys_file`, so nobody could sign in".to_owned())
            }
            Some(SignIn { jwt: Some(jwt), .. }) => {
                let sources = [jwt.key_file.is_some(), jwt.jwks_file.is_some(), jwt.jwks_url.is_some()];
                match sources.iter().filter(|given| **given).count() {
                    1 if jwt.algorithm == Algorithm::HS256 && jwt.key_file.is_none() => {
                        wrong("server.sign_in.jwt", "HS256 needs the secret in a `key_file`".to_owned())
                    }
                    1 => Ok(()),
                    _ => {
                        wrong("server.sign_in.jwt", "it needs one of `key_file`, `jwks_file` and `jwks_url`".to_owned())
                    }
                }
            }
            _ => Ok(()),
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

/// How users are known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignIn {
    /// By tokens that somebody else gave them (JWT).
    pub jwt: Option<Jwt>,
    /// By keys that are made here (`querymend key`): a file with a line for each, which holds no key itself.
    pub keys_file: Option<PathBuf>,
}

/// Which tokens are believed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Jwt {
    /// How they are signed: HS256, RS256 or EdDSA. No other way is believed, whatever a token says.
    pub algorithm: Algorithm,
    /// The shared secret (HS256) or the public key (PEM).
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// Public keys as a JSON Web Key Set.
    #[serde(default)]
    pub jwks_file: Option<PathBuf>,
    /// The same from a server; it is asked again when a token names a key that is not known, and once in a while.
    #[serde(default)]
    pub jwks_url: Option<String>,
    /// For whom they must be meant.
    pub audience: String,
    /// Who must have given them.
    #[serde(default)]
    pub issuer: Option<String>,
    /// How far clocks may differ.
    #[serde(default = "minute", with = "duration")]
    pub clock_skew: Duration,
    /// The claim that names the role.
    #[serde(default = "role")]
    pub role_claim: String,
}

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Algorithm {
    /// With a secret that both sides know.
    HS256,
    /// With RSA.
    RS256,
    /// With Ed25519.
    EdDSA,
}

fn minute() -> Duration {
    Duration::from_secs(60)
}

fn role() -> String {
    "role".to_owned()
}

/// What users of a role may do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Role {
    /// The databases that they may ask; all, if none is named.
    pub databases: Option<Vec<String>>,
    /// What they may not read, besides what nobody may.
    pub policy: Policy,
    /// The most rows that they get.
    pub max_rows: Option<usize>,
    /// They may see and reset circuit breakers, and change examples that all users share.
    pub administer: bool,
}

/// How much a server takes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerLimits {
    /// The longest request, in bytes.
    pub body_bytes: usize,
    /// Requests of one user in a minute; 0 is no limit.
    pub per_minute: u32,
    /// Requests of one user at the same time.
    pub concurrent: usize,
    /// Requests of all users at the same time.
    pub concurrent_all: usize,
    /// Conversations that are kept of one user.
    pub sessions: usize,
    /// How long a conversation is kept when nothing is said in it.
    #[serde(with = "duration")]
    pub session_age: Duration,
    /// Connections from one address at the same time (of IPv6, from one network of 64 bits).
    pub connections_per_address: usize,
    /// How long a connection stays open on which nothing is asked.
    #[serde(with = "duration")]
    pub idle: Duration,
    /// How long an answer waits for a client that does not read it.
    #[serde(with = "duration")]
    pub stalled: Duration,
    /// How long requests that run may go on when the server is to stop.
    #[serde(with = "duration")]
    pub shutdown: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            body_bytes: 1 << 20,
            per_minute: 600,
            concurrent: 32,
            concurrent_all: 2_048,
            sessions: 100,
            session_age: Duration::from_secs(24 * 60 * 60),
            connections_per_address: 2_048,
            idle: Duration::from_secs(300),
            stalled: Duration::from_secs(30),
            shutdown: Duration::from_secs(30),
        }
    }
}
