//! Fuzz tests: mutated tokens, JWKS documents and key files never authenticate another user.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on must fail")]

use std::fs;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use querymend::config::{Jwt, JwtAlgorithm};
use querymend_testing::{FuzzTarget, mutate_text};
use serde_json::json;

use super::jwks::Jwks;
use super::jwt::JwtVerifier;
use super::{RoleClaim, key_file};

const SECRET: &str = "0123456789abcdef0123456789abcdef-of-a-test";

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn fuzz_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, SECRET).unwrap();
    let jwt = Jwt {
        algorithm: JwtAlgorithm::HS256,
        key_file: Some(file),
        jwks_file: None,
        jwks_url: None,
        audience: "querymend".into(),
        issuer: None,
        clock_skew: Duration::from_secs(60),
        role_claim: "role".into(),
    };
    let tokens = JwtVerifier::new(&jwt).unwrap();
    // Expires long after any test run.
    let claims = json!({"sub": "ann", "aud": "querymend", "exp": 4_000_000_000_u64, "role": "reader"});
    let right =
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &EncodingKey::from_secret(SECRET.as_bytes()))
            .unwrap();
    let coded = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let words: Vec<String> = [
        coded(json!({"alg": "none"})),
        coded(json!({"alg": "HS256", "crit": ["x"]})),
        coded(json!({"alg": "HS256", "b64": false})),
        coded(json!({"sub": "root", "aud": "querymend", "exp": 4_000_000_000_u64, "role": "admin"})),
        coded(json!({"sub": "key:ann", "aud": ["querymend"], "exp": 1e300})),
    ]
    .into_iter()
    .chain([".", "..", "=", "-", "_", "A", "\0"].map(String::from))
    .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let target = FuzzTarget::new("tokens", env!("CARGO_MANIFEST_DIR")).seeds([right]).inputs(2_000);
    target.run(&mut |random, pool| mutate_text(random, pool, &words), &|input| {
        if let Ok(known) = block_on(tokens.verify(&String::from_utf8_lossy(input))) {
            let reader = matches!(&known.role, RoleClaim::Role(role) if role == "reader");
            assert!(known.id == "ann" && reader, "{} was let in", known.id);
        }
    });
}

#[test]
fn fuzz_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": "A".repeat(43)});
    let set =
        json!({"keys": [key, {"kty": "RSA", "n": "AQAB", "e": "AQAB", "use": "sig", "alg": "RS256"}]}).to_string();
    let listed = [
        json!({"id": "0123456789abcdef", "name": "ann", "role": "reader", "hash": "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHQ$aGFzaA", "made": 1}),
        json!({"revoked": "0123456789abcdef", "at": 2}),
    ]
    .map(|line| line.to_string())
    .join("\n");
    let words = [
        "\"keys\":",
        "\"kty\":",
        "\"RSA\"",
        "\"oct\"",
        "\"k\":",
        "\"use\":",
        "\"enc\"",
        "\"alg\":",
        "\"HS256\"",
        "null",
        "[",
        "{",
        "\"id\":",
        "\"revoked\":",
        "\n",
    ];
    let target = FuzzTarget::new("keys", env!("CARGO_MANIFEST_DIR")).seeds([set, listed]).inputs(1_000);
    target.run(&mut |random, pool| mutate_text(random, pool, &words), &|input| {
        fs::write(&file, input).unwrap();
        for algorithm in [Algorithm::EdDSA, Algorithm::RS256] {
            if let Ok(set) = Jwks::from_file(&file, algorithm) {
                drop(block_on(set.key(Some("k"))));
            }
        }
        if let Ok(listing) = key_file::read(&file) {
            let lines = String::from_utf8_lossy(input).lines().count();
            assert!(listing.keys.len() + listing.invalid_lines.len() <= lines, "there are more keys than lines");
        }
    });
}
