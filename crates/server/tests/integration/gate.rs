//! Attacks on sign-in: what is not the right token or key is refused, and nobody learns why.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures_util::FutureExt;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use querymend::config::{AuthSection, JwtAlgorithm, RoleSection, ServerSection};
use querymend::{Problem, ProblemCode};
use querymend_server::auth::key_file;
use querymend_server::auth::user::{Authenticator, Credentials, User};
use querymend_server::clock::now;
use querymend_server::{build_authenticator, check_bind_address};
use ring::signature::KeyPair;
use rsa::pkcs1::{EncodeRsaPrivateKey, EncodeRsaPublicKey};
use rsa::pkcs8::EncodePublicKey;
use rsa::traits::PublicKeyParts;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::signing::{SECRET, claims, encoded, jwt, section, signed, with};
use crate::timing::within;

async fn by_token(gate: &Arc<dyn Authenticator>, token: &str) -> Result<User, Problem> {
    let authorization = format!("Bearer {token}");
    gate.authenticate(&Credentials { authorization: Some(&authorization), api_key: None }).await
}

async fn by_key(gate: &Arc<dyn Authenticator>, key: &str) -> Result<User, Problem> {
    gate.authenticate(&Credentials { authorization: None, api_key: Some(key) }).await
}

/// Everyone who is turned away is told the same.
fn is_turned_away(told: Result<User, Problem>, what: &str) {
    let problem = told.expect_err(what);
    assert_eq!(problem.code, ProblemCode::Unauthenticated, "{what}");
    assert_eq!(problem.message, "authentication failed: a valid token or API key is required", "{what}");
}

fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> std::path::PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn with_secret(folder: &Path) -> ServerSection {
    section(jwt(JwtAlgorithm::HS256, Some(file(folder, "secret", format!("{SECRET}\n")))))
}

/// Claims that depend on the time.
type ClaimsAt = fn(u64) -> Value;

/// What becomes of a token with claims of this moment. They mean something else after half a minute, so that a machine that stops
/// for that long tries again.
async fn by_claims_of_now(gate: &Arc<dyn Authenticator>, others: ClaimsAt) -> Result<User, Problem> {
    loop {
        let begun = now();
        let told = by_token(gate, &signed(&with("ann", others(begun)))).await;
        if now() < begun + 20 {
            return told;
        }
    }
}

#[tokio::test]
async fn accepts_only_tokens_with_valid_claims() {
    let folder = tempfile::tempdir().unwrap();
    let gate = build_authenticator(&with_secret(folder.path())).unwrap();
    let good = signed(&claims("ann"));
    let user = by_token(&gate, &good).await.unwrap();
    assert_eq!((user.id.as_deref(), user.role_name, user.role.admin), (Some("ann"), None, false));
    // Clocks differ: within a minute a token is not yet, or still, valid.
    let near: [ClaimsAt; 3] =
        [|now| json!({"exp": now - 30}), |now| json!({"nbf": now + 30}), |_| json!({"aud": ["other", "querymend"]})];
    for others in near {
        assert!(by_claims_of_now(&gate, others).await.is_ok(), "{}", others(now()));
    }
    let far: [ClaimsAt; 2] = [|now| json!({"exp": now - 90}), |now| json!({"nbf": now + 90})];
    for others in far {
        is_turned_away(by_claims_of_now(&gate, others).await, &others(now()).to_string());
    }
    let wrong = [
        json!({"exp": null}),
        json!({"exp": (now() + 300).to_string()}),
        json!({"exp": -1}),
        json!({"exp": true}),
        json!({"exp": [now() + 300]}),
        json!({"nbf": "tomorrow"}),
        json!({"aud": null}),
        json!({"aud": "Querymend"}),
        json!({"aud": ["other"]}),
        json!({"aud": []}),
        json!({"aud": {"querymend": 1}}),
        json!({"iss": null}),
        json!({"iss": "https://id.example/"}),
        json!({"sub": null}),
        json!({"sub": ""}),
        json!({"sub": 7}),
        json!({"sub": ["ann"]}),
        json!({"sub": "a\nb"}),
        json!({"sub": "ann\u{200b}"}),
        json!({"sub": "x".repeat(129)}),
        json!({"sub": "key:ann"}),
    ];
    for others in wrong {
        is_turned_away(by_token(&gate, &signed(&with("ann", others.clone()))).await, &others.to_string());
    }
}

#[tokio::test]
async fn rejects_tokens_that_choose_their_algorithm_or_key() {
    let folder = tempfile::tempdir().unwrap();
    let gate = build_authenticator(&with_secret(folder.path())).unwrap();
    let body = encoded(&claims("ann"));
    let good = signed(&claims("ann"));
    let (head_and_body, signature) = good.rsplit_once('.').unwrap();
    let mut wrong: Vec<(String, &str)> = Vec::new();
    for none in ["none", "None", "NONE", "nOnE", "", "HS257"] {
        let head = encoded(&json!({"alg": none, "typ": "JWT"}));
        wrong.push((format!("{head}.{body}."), "no algorithm and no signature"));
        wrong.push((format!("{head}.{body}.{signature}"), "no algorithm"));
    }
    wrong.push((format!("{}.{body}.", encoded(&json!({"typ": "JWT"}))), "nothing about the algorithm"));
    wrong.push((format!("{}.{body}.", encoded(&json!({"alg": ["HS256"]}))), "a list of algorithms"));
    wrong.push((format!("{head_and_body}."), "no signature"));
    wrong.push((head_and_body.to_owned(), "two parts"));
    wrong.push((format!("{good}.{signature}"), "four parts"));
    wrong.push((format!("{head_and_body}.{}", &signature[1..]), "a shorter signature"));
    wrong.push((format!("{good}A"), "a longer signature"));
    wrong.push((format!("{good}="), "padding"));
    let other = signed(&claims("bob"));
    let others = other.rsplit_once('.').unwrap().1;
    wrong.push((format!("{head_and_body}.{others}"), "the signature of another token"));
    for secret in ["", "secret", "0123456789abcdef0123456789abcdef-of-a-tesT", &format!("{SECRET}\n")] {
        let key = EncodingKey::from_secret(secret.as_bytes());
        let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims("ann"), &key).unwrap();
        wrong.push((token, "another secret"));
    }
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    for algorithm in [Algorithm::HS384, Algorithm::HS512] {
        let token = jsonwebtoken::encode(&Header::new(algorithm), &claims("ann"), &key).unwrap();
        wrong.push((token, "another algorithm with the same secret"));
    }
    let demanding = Header { crit: Some(vec!["exp".into()]), ..Header::new(Algorithm::HS256) };
    wrong.push((jsonwebtoken::encode(&demanding, &claims("ann"), &key).unwrap(), "an extension is demanded"));
    for (token, what) in wrong {
        is_turned_away(by_token(&gate, &token).await, what);
    }
    // A key that comes with the token is not asked; the right signature still counts.
    let own = URL_SAFE_NO_PAD.encode([7u8; 32]);
    let bringing =
        json!({"alg": "HS256", "jwk": {"kty": "oct", "k": own}, "jku": "http://127.0.0.1:1/", "kid": "../x"});
    let unsigned = format!("{}.{body}", encoded(&bringing));
    let forged = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &[7; 32]), unsigned.as_bytes());
    let forged = format!("{unsigned}.{}", URL_SAFE_NO_PAD.encode(forged.as_ref()));
    is_turned_away(by_token(&gate, &forged).await, "a key in the token");
}

#[tokio::test]
async fn rejects_malformed_tokens_quickly() {
    let folder = tempfile::tempdir().unwrap();
    let gate = build_authenticator(&with_secret(folder.path())).unwrap();
    let head = encoded(&json!({"alg": "HS256"}));
    let deep = URL_SAFE_NO_PAD.encode(format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000)));
    let twice = URL_SAFE_NO_PAD.encode(claims("ann").to_string().replacen('{', "{\"sub\":\"bob\",", 1));
    let signed_text = |text: &str| {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(ring::hmac::sign(&key, text.as_bytes()).as_ref()))
    };
    let long = signed(&with("ann", json!({"more": "x".repeat(20_000)})));
    within("garbage is refused", async {
        for token in [
            String::new(),
            ".".into(),
            "..".into(),
            "...".into(),
            "a.b.c".into(),
            "\u{0}".into(),
            "ünï.cö.dé".into(),
            "x".repeat(60_000),
            ".".repeat(10_000),
            long,
            signed_text(&format!("{head}.{deep}")),
            signed_text(&format!("{head}.{twice}")),
            signed_text(&format!("{head}.{}", URL_SAFE_NO_PAD.encode("null"))),
            signed_text(&format!("{head}.{}", URL_SAFE_NO_PAD.encode([0xff, 0xfe]))),
            "qm_".into(),
            format!("qm_0123456789abcdef_{}", "0".repeat(64)),
        ] {
            is_turned_away(by_token(&gate, &token).await, &token.chars().take(40).collect::<String>());
        }
        for (authorization, api_key) in [
            (None, None),
            (Some(""), None),
            (Some("Bearer"), None),
            (Some("Bearer "), None),
            (Some("Basic YW5uOmFubg=="), None),
            (None, Some("")),
            (None, Some("hello")),
        ] {
            let told = gate.authenticate(&Credentials { authorization, api_key }).await;
            is_turned_away(told, &format!("{authorization:?} {api_key:?}"));
        }
    })
    .await;
    let (token, scheme) = (signed(&claims("ann")), |scheme: &str| format!("{scheme} {}", signed(&claims("ann"))));
    let lower = scheme("bearer");
    assert!(gate.authenticate(&Credentials { authorization: Some(&lower), api_key: None }).await.is_ok());
    let both = Credentials { authorization: Some(&lower), api_key: Some(&token) };
    is_turned_away(gate.authenticate(&both).await, "a token and a key");
}

#[tokio::test]
async fn rejects_a_public_key_used_as_hmac_secret() {
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = [(), ()].map(|()| rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).unwrap());
    let pem = ours.to_public_key().to_public_key_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    let gate_of = |content: &str| {
        build_authenticator(&section(jwt(JwtAlgorithm::RS256, Some(file(folder.path(), "key.pem", content)))))
    };
    let pkcs1 = ours.to_public_key().to_pkcs1_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    let sign = |key: &rsa::RsaPrivateKey, algorithm: Algorithm, kid: Option<&str>| {
        let key = EncodingKey::from_rsa_der(key.to_pkcs1_der().unwrap().as_bytes());
        let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
        jsonwebtoken::encode(&header, &claims("ann"), &key).unwrap()
    };
    for form in [&pem, &pkcs1] {
        let gate = gate_of(form).unwrap();
        assert!(by_token(&gate, &sign(&ours, Algorithm::RS256, None)).await.is_ok());
        for (key, algorithm) in [(&theirs, Algorithm::RS256), (&ours, Algorithm::PS256), (&ours, Algorithm::RS512)] {
            is_turned_away(by_token(&gate, &sign(key, algorithm, None)).await, &format!("{algorithm:?}"));
        }
        // The old trick: the public key, which everyone has, as the secret of another algorithm.
        let der = ours.to_public_key().to_pkcs1_der().unwrap();
        for secret in [pem.as_bytes(), pem.trim().as_bytes(), pkcs1.as_bytes(), der.as_bytes()] {
            let key = EncodingKey::from_secret(secret);
            let token = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims("ann"), &key).unwrap();
            is_turned_away(by_token(&gate, &token).await, "the public key as a secret");
        }
        is_turned_away(by_token(&gate, &signed(&claims("ann"))).await, "a secret of somebody's own");
    }
    // The same as a set of keys in a file, beside keys that are for something else.
    let number = |n: &rsa::BigUint| URL_SAFE_NO_PAD.encode(n.to_bytes_be());
    let jwk = |key: &rsa::RsaPrivateKey, kid: &str, more: Value| {
        let mut jwk = json!({"kty": "RSA", "kid": kid, "n": number(key.n()), "e": number(key.e())});
        more.as_object().unwrap().iter().for_each(|(name, value)| jwk[name] = value.clone());
        jwk
    };
    let secret = URL_SAFE_NO_PAD.encode(SECRET);
    let set = json!({"keys": [
        {"kty": "oct", "kid": "secret", "k": secret, "alg": "HS256"},
        {"kty": "odd"}, 7,
        jwk(&theirs, "theirs", json!({"use": "enc"})),
        jwk(&theirs, "other", json!({"alg": "PS256"})),
        jwk(&ours, "ours", json!({"use": "sig", "alg": "RS256"})),
    ]});
    let mut of_set = jwt(JwtAlgorithm::RS256, None);
    of_set.jwks_file = Some(file(folder.path(), "set.json", set.to_string()));
    let gate = build_authenticator(&section(of_set)).unwrap();
    assert!(by_token(&gate, &sign(&ours, Algorithm::RS256, Some("ours"))).await.is_ok());
    assert!(by_token(&gate, &sign(&ours, Algorithm::RS256, None)).await.is_ok(), "there is only one");
    for (key, kid) in [(&theirs, "theirs"), (&theirs, "other"), (&theirs, "ours"), (&ours, "nobody"), (&ours, "secret")]
    {
        is_turned_away(by_token(&gate, &sign(key, Algorithm::RS256, Some(kid))).await, kid);
    }
    let header = Header { kid: Some("secret".into()), ..Header::new(Algorithm::HS256) };
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    is_turned_away(
        by_token(&gate, &jsonwebtoken::encode(&header, &claims("ann"), &key).unwrap()).await,
        "a secret in a set",
    );
    // What cannot be used keeps the server from starting.
    let short = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1024).unwrap();
    let short = short.to_public_key().to_public_key_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    let private = ours.to_pkcs1_pem(rsa::pkcs8::LineEnding::LF).unwrap();
    for (content, said) in
        [(short.as_str(), "2048"), (private.as_str(), "private"), ("hello", "not an RSA key"), ("", "not an RSA key")]
    {
        assert!(gate_of(content).err().expect(said).message.contains(said), "{said}");
    }
}

#[tokio::test]
async fn verifies_ed25519_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let random = ring::rand::SystemRandom::new();
    let pair = || {
        let document = ring::signature::Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let public =
            ring::signature::Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap().public_key().as_ref().to_vec();
        (EncodingKey::from_ed_der(document.as_ref()), public)
    };
    let ((ours, public), (theirs, _)) = (pair(), pair());
    let der = [&[0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00], public.as_slice()].concat();
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(&der));
    let token = |key: &EncodingKey| jsonwebtoken::encode(&Header::new(Algorithm::EdDSA), &claims("ann"), key).unwrap();
    let of_file = section(jwt(JwtAlgorithm::EdDSA, Some(file(folder.path(), "key.pem", &pem))));
    let set = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": URL_SAFE_NO_PAD.encode(&public)}]});
    let mut of_set = jwt(JwtAlgorithm::EdDSA, None);
    of_set.jwks_file = Some(file(folder.path(), "set.json", set.to_string()));
    for gate in [build_authenticator(&of_file).unwrap(), build_authenticator(&section(of_set)).unwrap()] {
        assert!(by_token(&gate, &token(&ours)).await.is_ok());
        is_turned_away(by_token(&gate, &token(&theirs)).await, "another key");
        for secret in [pem.as_bytes(), &public, &der] {
            let key = EncodingKey::from_secret(secret);
            let forged = jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims("ann"), &key).unwrap();
            is_turned_away(by_token(&gate, &forged).await, "the public key as a secret");
        }
    }
}

#[tokio::test]
async fn takes_roles_from_tokens_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = with_secret(folder.path());
    config.roles.insert("analyst".into(), RoleSection::default());
    config.roles.insert("admin".into(), RoleSection { admin: true, ..RoleSection::default() });
    let strict = build_authenticator(&config).unwrap();
    config.default_role = Some("analyst".into());
    let lenient = build_authenticator(&config).unwrap();
    let token = |role: Value| signed(&with("ann", json!({"role": role})));
    for (role, expected) in [
        (json!("admin"), Some("admin")),
        (json!(["analyst", "admin"]), Some("analyst")),
        (json!("root"), None),
        (json!("Admin"), None),
        (json!(""), None),
        (json!(["root", "admin"]), None),
        (json!(1), None),
        (json!({"admin": true}), None),
        (json!([["admin"]]), None),
    ] {
        for gate in [&strict, &lenient] {
            match (by_token(gate, &token(role.clone())).await, expected) {
                (Ok(user), Some(name)) => assert_eq!(user.role_name.as_deref(), Some(name)),
                (Err(problem), None) => {
                    assert_eq!(problem.code, ProblemCode::Forbidden, "{role}");
                    assert!(problem.hint.is_some() && !format!("{problem:?}").contains("admin"), "{problem:?}");
                }
                (told, _) => panic!("{role}: {told:?}"),
            }
        }
    }
    for none in [json!(null), json!([])] {
        let token = if none.is_null() { signed(&claims("ann")) } else { token(none) };
        assert_eq!(by_token(&strict, &token).await.unwrap_err().code, ProblemCode::Forbidden);
        assert_eq!(by_token(&lenient, &token).await.unwrap().role_name.as_deref(), Some("analyst"));
    }
}

#[test]
fn refuses_to_start_with_an_unsafe_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let number = std::cell::Cell::new(0);
    let written = |content: &[u8]| {
        number.set(number.get() + 1);
        file(folder.path(), &format!("file-{}", number.get()), content)
    };
    let secret = |content: &[u8]| section(jwt(JwtAlgorithm::HS256, Some(written(content))));
    let url = |url: &str| {
        let mut jwt = jwt(JwtAlgorithm::RS256, None);
        jwt.jwks_url = Some(url.into());
        section(jwt)
    };
    let missing = section(jwt(JwtAlgorithm::HS256, Some(folder.path().join("missing"))));
    let mut skewed = jwt(JwtAlgorithm::HS256, Some(file(folder.path(), "fine", SECRET)));
    skewed.clock_skew = Duration::from_secs(86_400);
    let keys = |content: &str| {
        let auth = AuthSection { jwt: None, keys_file: Some(written(content.as_bytes())) };
        ServerSection { auth: Some(auth), ..ServerSection::default() }
    };
    for (config, said) in [
        (secret(b"short"), "at least 32 bytes"),
        (secret(b"0123456789012345678901234567890\n"), "at least 32 bytes"),
        (secret(b"-----BEGIN PUBLIC KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n"), "not an HMAC secret"),
        (missing, "cannot use the key"),
        (section(skewed), "clock skew"),
        (url("http://id.example/keys"), "https"),
        (url("https://user:hunter2@id.example/keys"), "credentials"),
        (url("keys.json"), "not a valid URL"),
        (keys("{\"id\":1}\n"), "line 1"),
        (keys("hunter2"), "line 1"),
    ] {
        let error = build_authenticator(&config).err().expect(said);
        assert!(error.message.contains(said), "{said}: {error}");
        assert!(!format!("{error:?}").contains("hunter2") && !error.hint.is_empty(), "{error:?}");
    }
    assert!(build_authenticator(&ServerSection::default()).is_ok_and(|gate| !gate.requires_credentials()));
    assert!(check_bind_address("0.0.0.0:80".parse().unwrap(), &ServerSection::default()).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_api_keys_until_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.jsonl");
    let key = key_file::create(&path, "reports", None, false).unwrap();
    let auth = AuthSection { jwt: None, keys_file: Some(path.clone()) };
    let gate = build_authenticator(&ServerSection { auth: Some(auth), ..ServerSection::default() }).unwrap();
    let user = by_key(&gate, &key).await.unwrap();
    assert_eq!((user.id.as_deref(), user.role.admin), (Some("key:reports"), false));
    assert!(by_token(&gate, &key).await.is_ok(), "as a bearer too");
    // Once it is known nothing is waited for: it is not checked again, which takes a thread of its own.
    for _ in 0..1_000 {
        by_key(&gate, &key).now_or_never().expect("it waits").unwrap();
    }
    let last = if key.ends_with('0') { "1" } else { "0" };
    let near = format!("{}{last}", &key[..key.len() - 1]);
    for wrong in [near.as_str(), &key[..key.len() - 1], &key.to_uppercase(), &format!("{key}0"), &key[3..]] {
        is_turned_away(by_key(&gate, wrong).await, wrong);
    }
    is_turned_away(by_token(&gate, &signed(&claims("ann"))).await, "a token where none is believed");
    // A second key that is made while the server runs, and the first revoked.
    let second = key_file::create(&path, "reports", None, true).unwrap();
    key_file::revoke(&path, key.split('_').nth(1).unwrap()).unwrap();
    within("a revoked key is refused", is_refused(&gate, &key)).await;
    assert!(by_key(&gate, &second).await.is_ok());
    std::fs::remove_file(&path).unwrap();
    within("keys of a file that is gone are refused", is_refused(&gate, &second)).await;
}

/// Waits until a key is not believed.
async fn is_refused(gate: &Arc<dyn Authenticator>, key: &str) {
    while by_key(gate, key).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn key_guessing_does_not_delay_other_users() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.jsonl");
    let [ann, bob, cas] = ["ann", "bob", "cas"].map(|name| key_file::create(&path, name, None, false).unwrap());
    let auth = AuthSection { jwt: None, keys_file: Some(path) };
    let gate = build_authenticator(&ServerSection { auth: Some(auth), ..ServerSection::default() }).unwrap();
    by_key(&gate, &bob).await.unwrap();
    let guesses: Vec<_> = (0..200)
        .map(|n| {
            let (gate, guess) = (Arc::clone(&gate), format!("{}{n:064x}", &ann[..20]));
            tokio::spawn(async move { by_key(&gate, &guess).await.unwrap_err().code })
        })
        .collect();
    for _ in 0..100 {
        assert!(by_key(&gate, &bob).now_or_never().is_some_and(|told| told.is_ok()), "one who is known does not wait");
    }
    let mut later = 0;
    for guess in guesses {
        match guess.await.unwrap() {
            ProblemCode::Unauthenticated => {}
            ProblemCode::TooManyRequests => later += 1,
            code => panic!("{code:?}"),
        }
    }
    assert!(later >= 150, "most guesses are not even looked at: {later}");
    // Somebody who never stops guessing keeps nobody out who comes for the first time.
    let guessing: Vec<_> = (0..16)
        .map(|n| {
            let (gate, guess) = (Arc::clone(&gate), format!("{}{n:064x}", &ann[..20]));
            tokio::spawn(async move {
                while by_key(&gate, &guess).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            })
        })
        .collect();
    within("one who comes for the first time", is_let_in(&gate, &cas)).await;
    assert!(!guessing.iter().any(JoinHandle::is_finished), "a guess was believed");
    guessing.iter().for_each(JoinHandle::abort);
    within("the right one afterwards", is_let_in(&gate, &ann)).await;
}

/// Waits until a key is believed. Who has waited for too long is told to come again.
async fn is_let_in(gate: &Arc<dyn Authenticator>, key: &str) {
    while let Err(problem) = by_key(gate, key).await {
        assert_eq!(problem.code, ProblemCode::TooManyRequests);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
