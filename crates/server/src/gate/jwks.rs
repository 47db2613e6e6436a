//! Sets of public keys (JSON Web Key Sets), from a file or a server. They are kept, and asked for again when a token names a key
//! that is not among them, and once in a while. Where that fails, those that are known go on being used.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use querymend::ProblemCode;
use querymend_net::{Error, http, tls};
use reqwest::{Client, Url};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{Mutex as Waiting, OwnedMutexGuard};

use super::Turned;

/// However many tokens name unknown keys, the source is not asked more often than this.
const SOONEST: Duration = Duration::from_secs(10);
/// Keys that are older are asked for again, so that one that was withdrawn is not believed for ever.
const AGE: Duration = Duration::from_secs(3_600);
/// The longest set.
const LONGEST: usize = 1 << 20;
/// Keys of a set.
const MOST: usize = 100;
/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The shortest modulus of an RSA key, in base64: 2,048 bits.
const SHORTEST_RSA: usize = 342;

/// A set of public keys.
pub(super) struct Jwks(Arc<Inner>);

struct Inner {
    source: Source,
    algorithm: Algorithm,
    pace: Pace,
    held: RwLock<Held>,
    /// When the source was last asked. Whoever asks holds it, so that many who wait ask once.
    asked: Arc<Waiting<Option<Instant>>>,
}

#[derive(Clone, Copy)]
struct Pace {
    soonest: Duration,
    age: Duration,
}

enum Source {
    File(PathBuf),
    Server(Client, Url),
}

/// A key with the name that tokens call it by.
type Named = (Option<String>, Arc<DecodingKey>);

#[derive(Default, Clone)]
struct Held {
    keys: Arc<Vec<Named>>,
    read: Option<Instant>,
}

impl Jwks {
    /// The keys in a file, which must be there and hold some.
    pub fn of_file(file: &Path, algorithm: Algorithm) -> Result<Self, Error> {
        let set = Self::new(Source::File(file.to_owned()), algorithm, Pace { soonest: SOONEST, age: AGE });
        let wrong = |why: String| {
            Error::new(format!("the keys in {} cannot be used: {why}", file.display()), "check `jwks_file`")
        };
        let text = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
        let keys = usable(&text, algorithm).map_err(wrong)?;
        set.0.hold(keys);
        Ok(set)
    }

    /// The keys that a server tells. It is asked when the first token comes.
    pub fn of_url(url: &str, algorithm: Algorithm) -> Result<Self, Error> {
        let wrong = |why: &str| Error::new(format!("`jwks_url` {why}"), "write it as https://HOST/PATH");
        let url = Url::parse(url).map_err(|_| wrong("is no address"))?;
        let host = url.host_str().ok_or_else(|| wrong("names no server"))?;
        let safe = url.scheme() == "https" || (url.scheme() == "http" && tls::is_loopback(host));
        if !safe {
            return Err(wrong("must begin with https: whoever can change the keys on their way can sign in as anyone"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must hold no password"));
        }
        let client = http::client(host, None, PATIENCE)?.timeout(PATIENCE).build();
        let client = client.map_err(|error| tls::broken(&error))?;
        Ok(Self::new(Source::Server(client, url), algorithm, Pace { soonest: SOONEST, age: AGE }))
    }

    fn new(source: Source, algorithm: Algorithm, pace: Pace) -> Self {
        Self(Arc::new(Inner { source, algorithm, pace, held: RwLock::default(), asked: Arc::default() }))
    }

    /// The key that a token names; the only one there is, where it names none.
    pub async fn key(&self, name: Option<&str>) -> Result<Arc<DecodingKey>, Turned> {
        if self.0.is_old() {
            // Whoever comes while somebody else asks goes on with the keys that are known.
            if let Ok(turn) = Arc::clone(&self.0.asked).try_lock_owned() {
                self.ask(turn).await;
            }
        }
        if let Some(key) = self.0.find(name) {
            return Ok(key);
        }
        if name.is_some() || self.0.is_empty() {
            let turn = Arc::clone(&self.0.asked).lock_owned().await;
            self.ask(turn).await;
        }
        self.0.find(name).ok_or_else(|| {
            if self.0.is_empty() {
                let message = "tokens cannot be checked at the moment";
                return Turned::Later(ProblemCode::Unavailable, message, self.0.pace.soonest.as_secs().max(1));
            }
            Turned::Away("signed with a key that is not known")
        })
    }

    /// In a task of its own: a client that hangs up must not keep others from new keys.
    async fn ask(&self, turn: OwnedMutexGuard<Option<Instant>>) {
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move { inner.renew(turn).await }).await.ok();
    }
}

impl Inner {
    fn held(&self) -> Held {
        self.held.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hold(&self, keys: Vec<Named>) {
        let held = Held { keys: Arc::new(keys), read: Some(Instant::now()) };
        *self.held.write().unwrap_or_else(PoisonError::into_inner) = held;
    }

    fn is_old(&self) -> bool {
        self.held().read.is_none_or(|read| read.elapsed() >= self.pace.age)
    }

    fn is_empty(&self) -> bool {
        self.held().keys.is_empty()
    }

    fn find(&self, name: Option<&str>) -> Option<Arc<DecodingKey>> {
        let keys = self.held().keys;
        match (name, keys.as_slice()) {
            (None, [(_, only)]) => Some(Arc::clone(only)),
            (None, _) => None,
            (Some(name), keys) => {
                keys.iter().find(|(known, _)| known.as_deref() == Some(name)).map(|(_, key)| Arc::clone(key))
            }
        }
    }

    async fn renew(&self, mut asked: OwnedMutexGuard<Option<Instant>>) {
        if asked.is_some_and(|at| at.elapsed() < self.pace.soonest) {
            return;
        }
        let read = self.read().await.and_then(|text| usable(&text, self.algorithm));
        *asked = Some(Instant::now());
        match read {
            Ok(keys) => self.hold(keys),
            Err(why) => tracing::warn!(why, "public keys of tokens are not renewed"),
        }
    }

    async fn read(&self) -> Result<Vec<u8>, String> {
        let (client, url) = match &self.source {
            Source::File(file) => return std::fs::read(file).map_err(|error| error.to_string()),
            Source::Server(client, url) => (client, url),
        };
        let sent = client.get(url.clone()).header("accept", "application/json").send().await;
        let mut response = sent.map_err(|error| error.without_url().to_string())?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(format!("the server says {}", response.status()));
        }
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
            if text.len() + piece.len() > LONGEST {
                return Err(format!("the server sends more than {LONGEST} bytes"));
            }
            text.extend_from_slice(&piece);
        }
        Ok(text)
    }
}

#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

/// The keys of a set that tokens can be signed with in the one way that is believed. Sets hold others too.
fn usable(text: &[u8], algorithm: Algorithm) -> Result<Vec<Named>, String> {
    let set: Set = serde_json::from_slice(text).map_err(|_| "it is no set of keys (JSON with `keys`)".to_owned())?;
    let read = set.keys.into_iter().take(MOST).filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
    let fitting = read.filter(|key| fits(key, algorithm));
    let keys: Vec<_> = fitting
        .filter_map(|key| Some((key.common.key_id.clone(), Arc::new(DecodingKey::from_jwk(&key).ok()?))))
        .collect();
    if keys.is_empty() { Err(format!("none of its keys is for {algorithm:?}")) } else { Ok(keys) }
}

fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let common = &key.common;
    let signs = common.public_key_use.as_ref().is_none_or(|use_of| *use_of == PublicKeyUse::Signature);
    let verifies = common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
    let named = common.key_algorithm.is_none_or(|named| named == KeyAlgorithm::from(algorithm));
    let kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(rsa), Algorithm::RS256) => rsa.n.len() >= SHORTEST_RSA,
        (AlgorithmParameters::OctetKeyPair(pair), Algorithm::EdDSA) => {
            pair.curve == EllipticCurve::Ed25519 && pair.x.len() == 43
        }
        _ => false,
    };
    signs && verifies && named && kind
}

#[cfg(test)]
mod tests;
