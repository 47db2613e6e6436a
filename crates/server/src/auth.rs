//! Authentication by JWTs of an external issuer or by API keys issued here.
//!
//! Every rejection returns the same message regardless of the cause. The reason is logged; the
//! token or key never is.

mod api_keys;
#[cfg(test)]
mod fuzz;
mod jwks;
mod jwt;
pub mod key_file;
mod roles;
pub mod user;

use std::net::SocketAddr;
use std::sync::Arc;

use querymend::config::ServerSection;
use querymend::{Problem, ProblemCode};
use querymend_net::Error;

use self::api_keys::ApiKeys;
use self::jwt::JwtVerifier;
use self::roles::Roles;
use crate::BoxFuture;
use crate::auth::user::{Authenticator, Credentials, NoAuth, User};

/// Prefix of user ids that come from API keys, so that no `sub` claim can collide with them.
const API_KEY_USER_PREFIX: &str = "key:";

/// Builds the authenticator that the configuration asks for; [`NoAuth`] if authentication is off.
///
/// Unsafe settings are errors: a guessable secret, or a file that cannot be read.
pub fn build_authenticator(config: &ServerSection) -> Result<Arc<dyn Authenticator>, Error> {
    let Some(auth) = &config.auth else { return Ok(Arc::new(NoAuth::default())) };
    let jwt = auth.jwt.as_ref().map(JwtVerifier::new).transpose()?;
    let api_keys = auth.keys_file.as_deref().map(ApiKeys::new).transpose()?;
    if jwt.is_none() && api_keys.is_none() {
        let hint = "set `jwt` or `keys_file` in `server.auth`";
        return Err(Error::new("no request could be authenticated: neither JWTs nor API keys are configured", hint));
    }
    Ok(Arc::new(CredentialAuthenticator { jwt, api_keys, roles: Roles::new(config) }))
}

/// Checks that the server may listen on an address.
///
/// Without authentication, only loopback addresses are allowed.
pub fn check_bind_address(address: SocketAddr, config: &ServerSection) -> Result<(), Error> {
    if config.auth.is_some() || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let message = format!("{address} is reachable from other machines, but authentication is off");
    let hint = "set `server.auth` in querymend.yaml, or listen on 127.0.0.1 behind an authenticating proxy";
    Err(Error::new(message, hint))
}

/// User of a verified token or key.
struct Identity {
    id: String,
    role: RoleClaim,
}

/// Role claimed by a token or key.
enum RoleClaim {
    None,
    Role(String),
    /// The claim is present but is not a role name.
    Invalid,
}

/// Reason that a request is not authenticated.
enum AuthError {
    /// Invalid credentials. The reason is for the log only.
    Rejected(&'static str),
    /// Verification is not possible at the moment: code, message for the client, seconds to wait.
    Unavailable(ProblemCode, &'static str, u64),
}

/// Authenticates by JWT or API key.
struct CredentialAuthenticator {
    jwt: Option<JwtVerifier>,
    api_keys: Option<ApiKeys>,
    roles: Roles,
}

impl CredentialAuthenticator {
    async fn identify(&self, credentials: &Credentials<'_>) -> Result<Identity, AuthError> {
        match (credentials.authorization, credentials.api_key) {
            (None, None) => Err(AuthError::Rejected("no token or API key")),
            // A proxy may have checked one of them while this server checks the other.
            (Some(_), Some(_)) => Err(AuthError::Rejected("both a token and an API key")),
            (None, Some(key)) => self.identify_by_key(key.trim()).await,
            (Some(text), None) => {
                let (scheme, token) = text.trim().split_once(' ').ok_or(AuthError::Rejected("not a bearer token"))?;
                if !scheme.eq_ignore_ascii_case("bearer") {
                    return Err(AuthError::Rejected("not a bearer token"));
                }
                let token = token.trim();
                if key_file::has_key_prefix(token) {
                    return self.identify_by_key(token).await;
                }
                let tokens = self.jwt.as_ref().ok_or(AuthError::Rejected("a token, but JWTs are not configured"))?;
                tokens.verify(token).await
            }
        }
    }

    async fn identify_by_key(&self, key: &str) -> Result<Identity, AuthError> {
        let keys = self.api_keys.as_ref().ok_or(AuthError::Rejected("an API key, but API keys are not configured"))?;
        keys.identify(key).await
    }
}

impl Authenticator for CredentialAuthenticator {
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, User> {
        Box::pin(async move {
            match self.identify(credentials).await {
                Ok(identity) => self.roles.assign_role(identity),
                Err(AuthError::Rejected(reason)) => {
                    tracing::info!(reason, "authentication failed");
                    let problem = Problem::new(
                        ProblemCode::Unauthenticated,
                        "authentication failed: a valid token or API key is required",
                    );
                    Err(problem.hint("send `Authorization: Bearer TOKEN`, or `X-Api-Key: KEY`"))
                }
                Err(AuthError::Unavailable(code, message, wait)) => {
                    Err(Problem { retry_after_s: Some(wait), ..Problem::new(code, message) })
                }
            }
        })
    }

    fn requires_credentials(&self) -> bool {
        true
    }
}

/// Returns whether a string may be a user id: 1 to 128 visible characters.
///
/// Invisible characters could make two users look the same in a log, or break its lines.
fn is_valid_user_id(id: &str) -> bool {
    let is_invisible = |c: char| {
        c.is_control()
            || (c.is_whitespace() && c != ' ')
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            || matches!(c, '\u{e0000}'..='\u{e0fff}')
    };
    (1..=128).contains(&id.chars().count()) && id.trim() == id && !id.contains(is_invisible)
}

#[cfg(test)]
mod tests {
    use super::*;
    use querymend::config::AuthSection;

    #[test]
    fn rejects_remote_bind_addresses_without_auth() {
        let open = ServerSection::default();
        let auth = AuthSection { keys_file: Some("keys".into()), ..AuthSection::default() };
        let closed = ServerSection { auth: Some(auth), ..ServerSection::default() };
        for (address, fine) in [
            ("127.0.0.1:1", true),
            ("127.8.9.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("10.0.0.1:1", false),
            ("[::ffff:10.0.0.1]:1", false),
        ] {
            let address: SocketAddr = address.parse().unwrap_or(SocketAddr::from(([0, 0, 0, 0], 0)));
            let result = check_bind_address(address, &open);
            assert_eq!(result.is_ok(), fine, "{address}");
            assert!(result.err().is_none_or(|error| error.hint.contains("auth")), "{address}");
            assert!(check_bind_address(address, &closed).is_ok(), "{address}");
        }
    }

    #[test]
    fn accepts_only_visible_user_ids() {
        for fine in ["ann", "Ann Lee", "auth0|5f7", "ünï", "a@b.example", &"x".repeat(128)] {
            assert!(is_valid_user_id(fine), "{fine}");
        }
        for wrong in ["", " ann", "ann ", "a\nb", "a\0", "a\u{200b}", "a\u{202e}b", "a\tb", &"x".repeat(129)] {
            assert!(!is_valid_user_id(wrong), "{wrong:?}");
        }
    }
}
