//! Verification of JWTs from an external issuer.

use std::fs;
use std::path::Path;
use std::time::Duration;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use querymend::config::{Jwt, JwtAlgorithm};
use querymend_net::Error;
use serde_json::{Map, Value};

use super::jwks::Jwks;
use super::{API_KEY_USER_PREFIX, AuthError, Identity, RoleClaim, is_valid_user_id};

/// Maximum length of a token, in bytes.
const MAX_TOKEN_BYTES: usize = 16 << 10;
/// Minimum length of an HMAC secret, in bytes. A shorter one can be brute-forced from a single
/// token.
const MIN_SECRET_BYTES: usize = 32;
/// Maximum clock skew that may be configured. With a larger one, expired tokens would stay valid
/// too long.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(600);
/// Maximum size of a key file, in bytes. A larger file is not a key.
const MAX_KEY_FILE_BYTES: u64 = 64 << 10;
/// Minimum size of an RSA public key of 2,048 bits in DER, in bytes.
const MIN_RSA_DER_BYTES: usize = 266;

/// Verifies the signature and claims of JWTs.
pub(super) struct JwtVerifier {
    algorithm: Algorithm,
    validation: Validation,
    keys: VerificationKeys,
    role_claim: String,
}

enum VerificationKeys {
    One(Box<DecodingKey>),
    Set(Jwks),
}

impl JwtVerifier {
    pub fn new(jwt: &Jwt) -> Result<Self, Error> {
        let wrong = |message: String, hint: &str| Err(Error::new(message, hint));
        if jwt.audience.is_empty() {
            return wrong("the audience of JWTs is empty".into(), "set `server.auth.jwt.audience`");
        }
        if jwt.clock_skew > MAX_CLOCK_SKEW {
            let message = format!("a clock skew of {:?} would accept expired tokens", jwt.clock_skew);
            return wrong(message, "set `clock_skew` to 10 minutes at most");
        }
        let algorithm = match jwt.algorithm {
            JwtAlgorithm::HS256 => Algorithm::HS256,
            JwtAlgorithm::RS256 => Algorithm::RS256,
            JwtAlgorithm::EdDSA => Algorithm::EdDSA,
        };
        let keys = match (&jwt.key_file, &jwt.jwks_file, &jwt.jwks_url) {
            (Some(file), None, None) => VerificationKeys::One(Box::new(load_key(file, jwt.algorithm)?)),
            (None, Some(_), None) | (None, None, Some(_)) if jwt.algorithm == JwtAlgorithm::HS256 => {
                return wrong("HS256 needs the secret in a `key_file`".into(), "a key set holds public keys");
            }
            (None, Some(file), None) => VerificationKeys::Set(Jwks::from_file(file, algorithm)?),
            (None, None, Some(url)) => VerificationKeys::Set(Jwks::from_url(url, algorithm)?),
            _ => {
                let message = "exactly one of `key_file`, `jwks_file` and `jwks_url` is required".to_string();
                return wrong(message, "see `server.auth.jwt`");
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

    /// Verifies a token and returns the identity that it claims.
    pub async fn verify(&self, token: &str) -> Result<Identity, AuthError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(AuthError::Rejected("token too long"));
        }
        let header = decode_header(token).map_err(|error| AuthError::Rejected(rejection_reason(error.kind())))?;
        // The algorithm is configured here, and the token's header is not trusted: this prevents
        // algorithm confusion and keys of the attacker's choice (`jku`, `jwk`).
        if header.alg != self.algorithm {
            return Err(AuthError::Rejected("wrong signature algorithm"));
        }
        // RFC 7515 requires rejecting tokens with critical extensions that are not understood.
        if header.crit.is_some() || header.extras.inner().contains_key("b64") {
            return Err(AuthError::Rejected("critical header extension"));
        }
        let claims = match &self.keys {
            VerificationKeys::One(key) => self.claims(token, key)?,
            VerificationKeys::Set(set) => self.claims(token, &*set.key(header.kid.as_deref()).await?)?,
        };
        let id = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        if !is_valid_user_id(id) || id.starts_with(API_KEY_USER_PREFIX) {
            return Err(AuthError::Rejected("`sub` is not a valid user id"));
        }
        Ok(Identity { id: id.to_owned(), role: parse_role_claim(claims.get(&self.role_claim)) })
    }

    fn claims(&self, token: &str, key: &DecodingKey) -> Result<Map<String, Value>, AuthError> {
        let decoded = decode::<Map<String, Value>>(token, key, &self.validation);
        decoded.map(|decoded| decoded.claims).map_err(|error| AuthError::Rejected(rejection_reason(error.kind())))
    }
}

/// Parses the role claim: a string, or the first element of an array.
fn parse_role_claim(claim: Option<&Value>) -> RoleClaim {
    let first = match claim {
        Some(Value::Array(list)) => list.first(),
        one => one,
    };
    match first {
        None | Some(Value::Null) => RoleClaim::None,
        Some(Value::String(name)) => RoleClaim::Role(name.clone()),
        Some(_) => RoleClaim::Invalid,
    }
}

/// Returns a fixed reason, because the error's own message may contain parts of the token.
fn rejection_reason(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ExpiredSignature => "token expired",
        ErrorKind::ImmatureSignature => "token not valid yet",
        ErrorKind::InvalidSignature => "invalid signature",
        ErrorKind::InvalidAudience => "wrong audience",
        ErrorKind::InvalidIssuer => "wrong issuer",
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => "wrong signature algorithm",
        ErrorKind::MissingRequiredClaim(claim) => match claim.as_str() {
            "exp" => "missing claim `exp`",
            "aud" => "missing claim `aud`",
            "iss" => "missing claim `iss`",
            _ => "missing claim `sub`",
        },
        _ => "malformed token",
    }
}

/// Loads the HMAC secret or public key of a file.
fn load_key(file: &Path, algorithm: JwtAlgorithm) -> Result<DecodingKey, Error> {
    let shown = file.display();
    let wrong = |why: &str, hint: &str| Error::new(format!("cannot use the key in {shown}: {why}"), hint.to_owned());
    let length = fs::metadata(file).map_err(|error| wrong(&error.to_string(), "check `key_file`"))?.len();
    if length > MAX_KEY_FILE_BYTES {
        return Err(wrong("the file is too large for a key", "check `key_file`"));
    }
    let bytes = fs::read(file).map_err(|error| wrong(&error.to_string(), "check `key_file`"))?;
    let has = |pattern: &[u8]| bytes.windows(pattern.len()).any(|window| window == pattern);
    let public = "give the public key as PEM";
    match algorithm {
        JwtAlgorithm::HS256 => {
            // A public key is not a secret: anyone who has it could sign tokens (algorithm
            // confusion attack).
            if has(b"-----BEGIN") || bytes.starts_with(b"ssh-") {
                return Err(wrong(
                    "it is a public or private key, not an HMAC secret",
                    "set `algorithm` to the algorithm of the key",
                ));
            }
            // Editors and shells append a newline that is not part of the secret.
            let secret = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
            let secret = secret.strip_suffix(b"\r").unwrap_or(secret);
            if secret.len() < MIN_SECRET_BYTES {
                let hint = "generate one with `openssl rand -base64 48`";
                return Err(wrong(&format!("an HMAC secret must have at least {MIN_SECRET_BYTES} bytes"), hint));
            }
            Ok(DecodingKey::from_secret(secret))
        }
        _ if has(b"PRIVATE KEY-----") => Err(wrong("it is a private key", public)),
        JwtAlgorithm::RS256 => {
            let key = DecodingKey::from_rsa_pem(&bytes).map_err(|_| wrong("it is not an RSA key", public))?;
            if key.try_get_as_bytes().map_or(0, <[u8]>::len) < MIN_RSA_DER_BYTES {
                return Err(wrong("an RSA key must have at least 2048 bits", "use a longer key"));
            }
            Ok(key)
        }
        JwtAlgorithm::EdDSA => {
            let key = DecodingKey::from_ed_pem(&bytes).map_err(|_| wrong("it is not an Ed25519 key", public))?;
            if key.try_get_as_bytes().map_or(0, <[u8]>::len) != 32 {
                return Err(wrong("it is not an Ed25519 key", public));
            }
            Ok(key)
        }
    }
}
