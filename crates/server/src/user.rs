//! Who asks, and what they may do.

use std::sync::Arc;

use querymend::config::Role;

use crate::shelf::Kept;

/// Somebody who asks.
#[derive(Debug, Clone)]
pub struct User {
    /// By which sessions, examples, traces and the audit log know them. Nothing where nobody signs in.
    pub id: Option<String>,
    /// The name of their role, where they have one.
    pub role_name: Option<String>,
    /// What they may do.
    pub role: Arc<Role>,
}

impl User {
    /// The one user of a server where nobody signs in: may do everything.
    pub fn anyone() -> Self {
        let role = Role { administer: true, ..Role::default() };
        Self { id: None, role_name: None, role: Arc::new(role) }
    }

    /// By which what was given out to them under a role is known: with another role they may be allowed less.
    pub fn with_role(&self) -> String {
        format!("{}\u{0}{}", self.name(), self.role_name.as_deref().unwrap_or_default())
    }

    /// By which what belongs to them is kept apart from what belongs to others.
    pub fn name(&self) -> &str {
        self.id.as_deref().unwrap_or("")
    }
}

/// What a request says about who sends it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Credentials<'c> {
    /// What stands in `Authorization`.
    pub authorization: Option<&'c str>,
    /// What stands in `X-Api-Key`.
    pub api_key: Option<&'c str>,
}

/// Who is let in. One implementation lets everyone in; others ask for tokens or keys.
pub trait Gate: Send + Sync {
    /// The user that the credentials belong to. It may take a while: keys are slow to check, and public keys may have to be fetched.
    fn user<'a>(&'a self, credentials: &'a Credentials<'a>) -> Kept<'a, User>;

    /// Whether users are told apart at all.
    fn asks(&self) -> bool;
}

/// Lets everyone in as the one user.
pub struct Open(User);

impl Default for Open {
    fn default() -> Self {
        Self(User::anyone())
    }
}

impl Gate for Open {
    fn user<'a>(&'a self, _: &'a Credentials<'a>) -> Kept<'a, User> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }

    fn asks(&self) -> bool {
        false
    }
}
