//! JSON Web Key Sets (JWKS) from a file or an HTTP server.
//!
//! Keys are cached and refreshed when a token names an unknown key id or the TTL has passed. If a
//! refresh fails, the cached keys stay in use.

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
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::AuthError;

/// Minimum time between two refreshes, regardless of the number of tokens with unknown key ids.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// Age at which cached keys are refreshed, so that a withdrawn key is not trusted forever.
const KEYS_TTL: Duration = Duration::from_secs(3_600);
/// Maximum size of a JWKS document, in bytes.
const MAX_SET_BYTES: usize = 1 << 20;
/// Maximum number of keys in a set.
const MAX_KEYS: usize = 100;
/// Timeout for fetching the set from a server.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Minimum length of an RSA modulus in base64 characters: 2,048 bits.
const MIN_RSA_MODULUS_LENGTH: usize = 342;

/// Cached JSON Web Key Set.
pub(super) struct Jwks(Arc<JwksInner>);

struct JwksInner {
    source: JwksSource,
    algorithm: Algorithm,
    refresh_policy: RefreshPolicy,
    cached: RwLock<CachedKeys>,
    /// Time of the last refresh. The lock is held during a refresh, which makes refreshes
    /// single-flight.
    last_fetch: Arc<AsyncMutex<Option<Instant>>>,
}

#[derive(Clone, Copy)]
struct RefreshPolicy {
    min_interval: Duration,
    ttl: Duration,
}

enum JwksSource {
    File(PathBuf),
    Server(Client, Url),
}

/// Key id (`kid`), if any, and the key.
type NamedKey = (Option<String>, Arc<DecodingKey>);

#[derive(Default, Clone)]
struct CachedKeys {
    keys: Arc<Vec<NamedKey>>,
    fetched_at: Option<Instant>,
}

impl Jwks {
    /// Loads the keys of a file, which must exist and contain at least one usable key.
    pub fn from_file(file: &Path, algorithm: Algorithm) -> Result<Self, Error> {
        let set = Self::new(
            JwksSource::File(file.to_owned()),
            algorithm,
            RefreshPolicy { min_interval: MIN_REFRESH_INTERVAL, ttl: KEYS_TTL },
        );
        let wrong =
            |why: String| Error::new(format!("cannot use the keys in {}: {why}", file.display()), "check `jwks_file`");
        let text = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
        let keys = usable_keys(&text, algorithm).map_err(wrong)?;
        set.0.replace_keys(keys);
        Ok(set)
    }

    /// Creates a set that is fetched from a URL when the first token arrives.
    pub fn from_url(url: &str, algorithm: Algorithm) -> Result<Self, Error> {
        let wrong = |why: &str| Error::new(format!("`jwks_url` {why}"), "write it as https://HOST/PATH");
        let url = Url::parse(url).map_err(|_| wrong("is not a valid URL"))?;
        let host = url.host_str().ok_or_else(|| wrong("has no host"))?;
        let safe = url.scheme() == "https" || (url.scheme() == "http" && tls::is_loopback(host));
        if !safe {
            return Err(wrong(
                "must use https: an attacker who replaces the keys in transit could authenticate as any user",
            ));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("must not contain credentials"));
        }
        let client = http::client_builder(host, None, FETCH_TIMEOUT)?.timeout(FETCH_TIMEOUT).build();
        let client = client.map_err(|error| tls::tls_error(&error))?;
        Ok(Self::new(
            JwksSource::Server(client, url),
            algorithm,
            RefreshPolicy { min_interval: MIN_REFRESH_INTERVAL, ttl: KEYS_TTL },
        ))
    }

    fn new(source: JwksSource, algorithm: Algorithm, refresh_policy: RefreshPolicy) -> Self {
        Self(Arc::new(JwksInner {
            source,
            algorithm,
            refresh_policy,
            cached: RwLock::default(),
            last_fetch: Arc::default(),
        }))
    }

    /// Returns the key with a key id; without an id, the only key of the set.
    pub async fn key(&self, name: Option<&str>) -> Result<Arc<DecodingKey>, AuthError> {
        if self.0.is_expired() {
            // If another request is refreshing, continue with the cached keys.
            if let Ok(guard) = Arc::clone(&self.0.last_fetch).try_lock_owned() {
                self.refresh(guard).await;
            }
        }
        if let Some(key) = self.0.find(name) {
            return Ok(key);
        }
        if name.is_some() || self.0.is_empty() {
            let guard = Arc::clone(&self.0.last_fetch).lock_owned().await;
            self.refresh(guard).await;
        }
        self.0.find(name).ok_or_else(|| {
            if self.0.is_empty() {
                let message = "tokens cannot be verified at the moment";
                return AuthError::Unavailable(
                    ProblemCode::Unavailable,
                    message,
                    self.0.refresh_policy.min_interval.as_secs().max(1),
                );
            }
            AuthError::Rejected("unknown signing key")
        })
    }

    /// Refreshes the keys in a separate task.
    ///
    /// A client that disconnects does not abort the refresh for others.
    async fn refresh(&self, guard: OwnedMutexGuard<Option<Instant>>) {
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move { inner.refresh_if_due(guard).await }).await.ok();
    }
}

impl JwksInner {
    fn cached(&self) -> CachedKeys {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace_keys(&self, keys: Vec<NamedKey>) {
        let cached = CachedKeys { keys: Arc::new(keys), fetched_at: Some(Instant::now()) };
        *self.cached.write().unwrap_or_else(PoisonError::into_inner) = cached;
    }

    fn is_expired(&self) -> bool {
        self.cached().fetched_at.is_none_or(|read| read.elapsed() >= self.refresh_policy.ttl)
    }

    fn is_empty(&self) -> bool {
        self.cached().keys.is_empty()
    }

    fn find(&self, name: Option<&str>) -> Option<Arc<DecodingKey>> {
        let keys = self.cached().keys;
        match (name, keys.as_slice()) {
            (None, [(_, only)]) => Some(Arc::clone(only)),
            (None, _) => None,
            (Some(name), keys) => {
                keys.iter().find(|(known, _)| known.as_deref() == Some(name)).map(|(_, key)| Arc::clone(key))
            }
        }
    }

    async fn refresh_if_due(&self, mut last_fetch: OwnedMutexGuard<Option<Instant>>) {
        if last_fetch.is_some_and(|at| at.elapsed() < self.refresh_policy.min_interval) {
            return;
        }
        let read = self.fetch().await.and_then(|text| usable_keys(&text, self.algorithm));
        *last_fetch = Some(Instant::now());
        match read {
            Ok(keys) => self.replace_keys(keys),
            Err(why) => tracing::warn!(why, "JWKS refresh failed"),
        }
    }

    async fn fetch(&self) -> Result<Vec<u8>, String> {
        let (client, url) = match &self.source {
            JwksSource::File(file) => return std::fs::read(file).map_err(|error| error.to_string()),
            JwksSource::Server(client, url) => (client, url),
        };
        let sent = client.get(url.clone()).header("accept", "application/json").send().await;
        let mut response = sent.map_err(|error| error.without_url().to_string())?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(format!("the server responded with {}", response.status()));
        }
        let mut text = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
            if text.len() + piece.len() > MAX_SET_BYTES {
                return Err(format!("the response has more than {MAX_SET_BYTES} bytes"));
            }
            text.extend_from_slice(&piece);
        }
        Ok(text)
    }
}

#[derive(Deserialize)]
struct JwksDocument {
    keys: Vec<Value>,
}

/// Returns the keys of a set that can verify signatures of the configured algorithm.
///
/// Sets may contain others.
fn usable_keys(text: &[u8], algorithm: Algorithm) -> Result<Vec<NamedKey>, String> {
    let set: JwksDocument = serde_json::from_slice(text)
        .map_err(|_| "it is not a JSON Web Key Set (a JSON object with `keys`)".to_owned())?;
    let read = set.keys.into_iter().take(MAX_KEYS).filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
    let fitting = read.filter(|key| is_usable(key, algorithm));
    let keys: Vec<_> = fitting
        .filter_map(|key| Some((key.common.key_id.clone(), Arc::new(DecodingKey::from_jwk(&key).ok()?))))
        .collect();
    if keys.is_empty() { Err(format!("it has no usable key for {algorithm:?}")) } else { Ok(keys) }
}

fn is_usable(key: &Jwk, algorithm: Algorithm) -> bool {
    let common = &key.common;
    let signs = common.public_key_use.as_ref().is_none_or(|use_of| *use_of == PublicKeyUse::Signature);
    let verifies = common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
    let named = common.key_algorithm.is_none_or(|named| named == KeyAlgorithm::from(algorithm));
    let kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(rsa), Algorithm::RS256) => rsa.n.len() >= MIN_RSA_MODULUS_LENGTH,
        (AlgorithmParameters::OctetKeyPair(pair), Algorithm::EdDSA) => {
            pair.curve == EllipticCurve::Ed25519 && pair.x.len() == 43
        }
        _ => false,
    };
    signs && verifies && named && kind
}

#[cfg(test)]
mod tests;
