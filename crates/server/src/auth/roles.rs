//! Assignment of roles to authenticated users.

use std::collections::BTreeMap;
use std::sync::Arc;

use querymend::config::{RoleSection, ServerSection};
use querymend::{Problem, ProblemCode};

use super::{Identity, RoleClaim};
use crate::auth::user::User;

/// Configured roles.
pub(super) struct Roles {
    by_name: BTreeMap<String, Arc<RoleSection>>,
    default: Option<String>,
    /// Role of every user if none are configured: all databases, no admin rights.
    implicit_role: Arc<RoleSection>,
}

impl Roles {
    pub fn new(config: &ServerSection) -> Self {
        let by_name = config.roles.iter().map(|(name, role)| (name.clone(), Arc::new(role.clone()))).collect();
        Self { by_name, default: config.default_role.clone(), implicit_role: Arc::default() }
    }

    /// Returns the user with their role.
    ///
    /// An unknown role is an error and does not fall back to the default, which may allow more.
    pub fn assign_role(&self, identity: Identity) -> Result<User, Problem> {
        if self.by_name.is_empty() {
            // Without configured roles, the claim has no meaning.
            return Ok(User { id: Some(identity.id), role_name: None, role: Arc::clone(&self.implicit_role) });
        }
        let named = match &identity.role {
            RoleClaim::Role(name) => Some(name),
            RoleClaim::None => self.default.as_ref(),
            RoleClaim::Invalid => None,
        };
        let found = named.and_then(|name| self.by_name.get_key_value(name));
        let (name, role) = found.ok_or_else(|| {
            tracing::info!(user = identity.id, role = named, "user has no role");
            let message = match identity.role {
                RoleClaim::None => "you have no role on this server",
                RoleClaim::Role(_) | RoleClaim::Invalid => "your role is not configured on this server",
            };
            Problem::new(ProblemCode::Forbidden, message)
                .hint("the operator of the server can add the role, or set `server.default_role`")
        })?;
        Ok(User { id: Some(identity.id), role_name: Some(name.clone()), role: Arc::clone(role) })
    }
}
