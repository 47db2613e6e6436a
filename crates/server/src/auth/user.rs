//! Users, their credentials, and the trait that authenticates them.

use std::sync::Arc;

use querymend::config::RoleSection;

use crate::BoxFuture;

/// User who sends a request.
#[derive(Debug, Clone)]
pub struct User {
    /// Id used by sessions, examples, traces and the audit log; `None` if authentication is off.
    pub id: Option<String>,
    /// Name of the role; `None` if no roles are configured.
    pub role_name: Option<String>,
    /// Permissions of the user.
    pub role: Arc<RoleSection>,
}

impl User {
    /// Returns the only user of a server without authentication, who may do everything.
    pub fn anonymous() -> Self {
        let role = RoleSection { admin: true, ..RoleSection::default() };
        Self { id: None, role_name: None, role: Arc::new(role) }
    }

    /// Returns a key for data produced under the current role.
    ///
    /// Another role may be allowed less.
    pub fn id_with_role(&self) -> String {
        format!("{}\u{0}{}", self.id(), self.role_name.as_deref().unwrap_or_default())
    }

    /// Returns the key of data that belongs to the user; empty if authentication is off.
    pub fn id(&self) -> &str {
        self.id.as_deref().unwrap_or("")
    }
}

/// Credentials of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Credentials<'c> {
    /// Value of the `Authorization` header.
    pub authorization: Option<&'c str>,
    /// Value of the `X-Api-Key` header.
    pub api_key: Option<&'c str>,
}

/// Authenticates requests. One implementation admits everyone; the other requires a token or key.
pub trait Authenticator: Send + Sync {
    /// Returns the user of the credentials.
    ///
    /// This may take a while: API keys are slow to verify, and public keys may have to be fetched.
    fn authenticate<'a>(&'a self, credentials: &'a Credentials<'a>) -> BoxFuture<'a, User>;

    /// Returns whether requests must be authenticated.
    fn requires_credentials(&self) -> bool;
}

/// Admits every request as the anonymous user.
pub struct NoAuth(User);

impl Default for NoAuth {
    fn default() -> Self {
        Self(User::anonymous())
    }
}

impl Authenticator for NoAuth {
    fn authenticate<'a>(&'a self, _: &'a Credentials<'a>) -> BoxFuture<'a, User> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }

    fn requires_credentials(&self) -> bool {
        false
    }
}
