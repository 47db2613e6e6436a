//! Signing in: by tokens that somebody else gave (JWT) or by keys that are made here. Whoever is turned away is told one and the
//! same thing, whatever was wrong; the reason goes to the log, and the token or key never does.

#[cfg(test)]
mod fuzz;
mod jwks;
mod jwt;
pub mod keyfile;
mod keys;
mod roles;

use std::net::SocketAddr;
use std::sync::Arc;

use querymend::config::ServerSection;
use querymend::{Problem, ProblemCode};
use querymend_net::Error;

use self::jwt::Tokens;
use self::keys::Keys;
use self::roles::Roles;
use crate::shelf::Kept;
use crate::user::{Credentials, Gate, Open, User};

/// What begins the ids of users who sign in by a key, so that none of them is taken for a user whom a token names.
const KEY_USER: &str = "key:";

/// The gate that a configuration asks for: open, where nobody signs in. What makes it unsafe is an error: a secret that could be
/// guessed, a file that cannot be read.
pub fn gate(config: &ServerSection) -> Result<Arc<dyn Gate>, Error> {
    let Some(sign_in) = &config.sign_in else { return Ok(Arc::new(Open::default())) };
    let tokens = sign_in.jwt.as_ref().map(Tokens::new).transpose()?;
    let keys = sign_in.keys_file.as_deref().map(Keys::new).transpose()?;
    if tokens.is_none() && keys.is_none() {
        let hint = "name `jwt` or `keys_file` in `server.sign_in`";
        return Err(Error::new("nobody could sign in: neither tokens nor keys are believed", hint));
    }
    Ok(Arc::new(SignedIn { tokens, keys, roles: Roles::new(config) }))
}

/// Whether a server may listen at an address. Where nobody signs in, only those on this machine may reach it.
pub fn may_bind(address: SocketAddr, config: &ServerSection) -> Result<(), Error> {
    if config.sign_in.is_some() || address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let message = format!("{address} can be reached from elsewhere, and nobody would have to sign in");
    let hint = "set `server.sign_in` in querymend.yaml, or listen at 127.0.0.1 behind a server that asks who is there";
    Err(Error::new(message, hint))
}

/// Somebody whose token or key is right.
struct Known {
    id: String,
    role: Named,
}

/// The role that a token or key names.
enum Named {
    None,
    Role(String),
    /// Something that is no name of a role.
    Unreadable,
}

/// Why somebody is not let in.
enum Turned {
    /// Not with this. The reason is for the log.
    Away(&'static str),
    /// It cannot be decided now. What is said is for the client.
    Later(ProblemCode, &'static str, u64),
}

/// Lets in who has a right token or key.
struct SignedIn {
    tokens: Option<Tokens>,
    keys: Option<Keys>,
    roles: Roles,
}

impl SignedIn {
    async fn known(&self, credentials: &Credentials<'_>) -> Result<Known, Turned> {
        match (credentials.authorization, credentials.api_key) {
            (None, None) => Err(Turned::Away("neither token nor key")),
            // Something on the way may have looked at the one, and this server would look at the other.
            (Some(_), Some(_)) => Err(Turned::Away("both a token and a key")),
            (None, Some(key)) => self.by_key(key.trim()).await,
            (Some(text), None) => {
                let (scheme, token) = text.trim().split_once(' ').ok_or(Turned::Away("no bearer"))?;
                if !scheme.eq_ignore_ascii_case("bearer") {
                    return Err(Turned::Away("no bearer"));
                }
                let token = token.trim();
                if keyfile::looks_like_one(token) {
                    return self.by_key(token).await;
                }
                let tokens = self.tokens.as_ref().ok_or(Turned::Away("a token, and none is believed"))?;
                tokens.read(token).await
            }
        }
    }

    async fn by_key(&self, key: &str) -> Result<Known, Turned> {
        let keys = self.keys.as_ref().ok_or(Turned::Away("a key, and none is believed"))?;
        keys.read(key).await
    }
}

impl Gate for SignedIn {
    fn user<'a>(&'a self, credentials: &'a Credentials<'a>) -> Kept<'a, User> {
        Box::pin(async move {
            match self.known(credentials).await {
                Ok(known) => self.roles.user(known),
                Err(Turned::Away(reason)) => {
                    tracing::info!(reason, "somebody was not let in");
                    let problem =
                        Problem::new(ProblemCode::Unauthenticated, "sign in with a token or key that is valid");
                    Err(problem.hint("send `Authorization: Bearer TOKEN`, or `X-Api-Key: KEY`"))
                }
                Err(Turned::Later(code, message, wait)) => {
                    Err(Problem { retry_after_s: Some(wait), ..Problem::new(code, message) })
                }
            }
        })
    }

    fn asks(&self) -> bool {
        true
    }
}

/// What may stand as the name of a user: 1 to 128 letters and signs that can be seen. Others could make two users look the same in
/// a log, or tear its lines apart.
fn is_user(id: &str) -> bool {
    let unseen = |c: char| {
        c.is_control()
            || (c.is_whitespace() && c != ' ')
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
            || matches!(c, '\u{e0000}'..='\u{e0fff}')
    };
    (1..=128).contains(&id.chars().count()) && id.trim() == id && !id.contains(unseen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use querymend::config::SignIn;

    #[test]
    fn a01_only_this_machine_reaches_a_server_where_nobody_signs_in() {
        let open = ServerSection::default();
        let sign_in = SignIn { keys_file: Some("keys".into()), ..SignIn::default() };
        let closed = ServerSection { sign_in: Some(sign_in), ..ServerSection::default() };
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
            let told = may_bind(address, &open);
            assert_eq!(told.is_ok(), fine, "{address}");
            assert!(told.err().is_none_or(|error| error.hint.contains("sign_in")), "{address}");
            assert!(may_bind(address, &closed).is_ok(), "{address}");
        }
    }

    #[test]
    fn a01_names_of_users_can_be_seen() {
        for fine in ["ann", "Ann Lee", "auth0|5f7", "ünï", "a@b.example", &"x".repeat(128)] {
            assert!(is_user(fine), "{fine}");
        }
        for wrong in ["", " ann", "ann ", "a\nb", "a\0", "a\u{200b}", "a\u{202e}b", "a\tb", &"x".repeat(129)] {
            assert!(!is_user(wrong), "{wrong:?}");
        }
    }
}
