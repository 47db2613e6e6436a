//! Tokens that somebody else gave: which of them are believed, and what they say.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm as Signed, DecodingKey, Validation, decode, decode_header};
use querymend::config::{Algorithm, Jwt};
use querymend_net::Error;
use serde_json::{Map, Value};

use super::jwks::Jwks;
use super::{KEY_USER, Known, Named, Turned, is_user};

/// The longest token.
const LONGEST: usize = 16 << 10;
/// A shorter secret can be guessed from one token.
const SHORTEST_SECRET: usize = 32;
/// Clocks that differ by more are wrong, and tokens would hardly end.
const MOST_SKEW: Duration = Duration::from_secs(600);
/// A key's file that is longer is something else.
const LONGEST_FILE: u64 = 64 << 10;
/// The shortest RSA key of 2,048 bits, as DER.
const SHORTEST_RSA: usize = 266;

/// Which tokens are believed.
pub(super) struct Tokens {
    algorithm: Signed,
    validation: Validation,
    keys: Keys,
    role_claim: String,
}

enum Keys {
    One(Box<DecodingKey>),
    Set(Jwks),
}

impl Tokens {
    pub fn new(jwt: &Jwt) -> Result<Self, Error> {
        let wrong = |message: String, hint: &str| Err(Error::new(message, hint));
        if jwt.audience.is_empty() {
            return wrong("the audience of tokens is empty".into(), "set `server.sign_in.jwt.audience`");
        }
        if jwt.clock_skew > MOST_SKEW {
            let message = format!("clocks that differ by {:?} would let old tokens in", jwt.clock_skew);
            return wrong(message, "set `clock_skew` to 10 minutes at most");
        }
        let algorithm = match jwt.algorithm {
            Algorithm::HS256 => Signed::HS256,
            Algorithm::RS256 => Signed::RS256,
            Algorithm::EdDSA => Signed::EdDSA,
        };
        let keys = match (&jwt.key_file, &jwt.jwks_file, &jwt.jwks_url) {
            (Some(file), None, None) => Keys::One(Box::new(key(file, jwt.algorithm)?)),
            (None, Some(_), None) | (None, None, Some(_)) if jwt.algorithm == Algorithm::HS256 => {
                return wrong("HS256 needs the secret in a `key_file`".into(), "a key set holds public keys");
            }
            (None, Some(file), None) => Keys::Set(Jwks::of_file(file, algorithm)?),
            (None, None, Some(url)) => Keys::Set(Jwks::of_url(url, algorithm)?),
            _ => {
                let message = "it needs one of `key_file`, `jwks_file` and `jwks_url`".to_string();
                return wrong(message, "see `server.sign_in.jwt`");
            }
        };
        let mut validation = Validation::new(algorithm);
        validation.leeway = jwt.clock_skew.as_secs();
        validation.validate_nbf = true;
        validation.set_audience(&[&jwt.audience]);
        let mut required = vec!["exp", "aud", "sub"];
        if let Some(issuer) = &jwt.issuer {
            validation.set_issuer(&[issuer]);
            required.push("iss");
        }
        validation.set_required_spec_claims(&required);
        Ok(Self { algorithm, validation, keys, role_claim: jwt.role_claim.clone() })
    }

    /// Whom a token names, if it is to be believed.
    pub async fn read(&self, token: &str) -> Result<Known, Turned> {
        if token.len() > LONGEST {
            return Err(Turned::Away("the token is too long"));
        }
        let header = decode_header(token).map_err(|error| Turned::Away(reason(error.kind())))?;
        // Which algorithm is right was decided here. What the token says about it, or about where keys are, is not asked.
        if header.alg != self.algorithm {
            return Err(Turned::Away("signed in another way"));
        }
        // Whoever wrote it insists on something that is not understood here.
        if header.crit.is_some() || header.extras.inner().contains_key("b64") {
            return Err(Turned::Away("it demands an extension"));
        }
        let claims = match &self.keys {
            Keys::One(key) => self.claims(token, key)?,
            Keys::Set(set) => self.claims(token, &*set.key(header.kid.as_deref()).await?)?,
        };
        let id = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        if !is_user(id) || id.starts_with(KEY_USER) {
            return Err(Turned::Away("its `sub` cannot be the name of a user"));
        }
        Ok(Known { id: id.to_owned(), role: named(claims.get(&self.role_claim)) })
    }

    fn claims(&self, token: &str, key: &DecodingKey) -> Result<Map<String, Value>, Turned> {
        let decoded = decode::<Map<String, Value>>(token, key, &self.validation);
        decoded.map(|decoded| decoded.claims).map_err(|error| Turned::Away(reason(error.kind())))
    }
}

/// The role is a text, or the first of a list of them.
fn named(claim: Option<&Value>) -> Named {
    let first = match claim {
        Some(Value::Array(list)) => list.first(),
        one => one,
    };
    match first {
        None | Some(Value::Null) => Named::None,
        Some(Value::String(name)) => Named::Role(name.clone()),
        Some(_) => Named::Unreadable,
    }
}

/// Without the text of the error, which may repeat a piece of the token.
fn reason(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "the token is out of date",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidSignature => "the signature is wrong",
        ErrorKind::InvalidAudience => "it is meant for somebody else",
        ErrorKind::InvalidIssuer => "somebody else gave it",
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => "signed in another way",
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "exp" => "it does not say until when it is valid",
            "aud" => "it does not say for whom it is meant",
            "iss" => "it does not say who gave it",
            _ => "it does not say who it is about",
        },
        _ => "the token cannot be read",
    }
}

/// The secret or public key in a file.
fn key(file: &Path, algorithm: Algorithm) -> Result<DecodingKey, Error> {
    let shown = file.display();
    let wrong =
        |why: &str, hint: &str| Error::new(format!("the key in {shown} cannot be used: {why}"), hint.to_owned());
    let length = fs::metadata(file).map_err(|error| wrong(&error.to_string(), "check `key_file`"))?.len();
    if length > LONGEST_FILE {
        return Err(wrong("the file is too long to be one", "check `key_file`"));
    }
    let bytes = fs::read(file).map_err(|error| wrong(&error.to_string(), "check `key_file`"))?;
    let has = |words: &[u8]| bytes.windows(words.len()).any(|window| window == words);
    let public = "give the public key as PEM";
    match algorithm {
        Algorithm::HS256 => {
            // A public key is no secret: whoever has it could write tokens.
            if has(b"-----BEGIN") || bytes.starts_with(b"ssh-") {
                return Err(wrong("it is a key of another kind, and no secret", "name the `algorithm` that it is for"));
            }
            // Editors and shells end a file with a line end that is no part of the secret.
            let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
            if secret.len() < SHORTEST_SECRET {
                let hint = "make one with `openssl rand -base64 48`";
                return Err(wrong(&format!("a secret has at least {SHORTEST_SECRET} bytes"), hint));
            }
            Ok(DecodingKey::from_secret(secret))
        }
        _ if has(b"PRIVATE KEY-----") => Err(wrong("it is a private key", public)),
        Algorithm::RS256 => {
            let key = DecodingKey::from_rsa_pem(&bytes).map_err(|_| wrong("it is no RSA key", public))?;
            if key.try_get_as_bytes().map_or(0, <[u8]>::len) < SHORTEST_RSA {
                return Err(wrong("an RSA key has at least 2048 bits", "make a longer one"));
            }
            Ok(key)
        }
        Algorithm::EdDSA => {
            let key = DecodingKey::from_ed_pem(&bytes).map_err(|_| wrong("it is no Ed25519 key", public))?;
            if key.try_get_as_bytes().map_or(0, <[u8]>::len) != 32 {
                return Err(wrong("it is no Ed25519 key", public));
            }
            Ok(key)
        }
    }
}
