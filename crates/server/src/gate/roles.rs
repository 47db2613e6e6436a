//! What somebody who signed in may do.

use std::collections::BTreeMap;
use std::sync::Arc;

use querymend::config::{Role, ServerSection};
use querymend::{Problem, ProblemCode};

use super::{Known, Named};
use crate::user::User;

/// All roles.
pub(super) struct Roles {
    by_name: BTreeMap<String, Arc<Role>>,
    default: Option<String>,
    /// Of everyone, where there are no roles: asks every database and administers nothing.
    plain: Arc<Role>,
}

impl Roles {
    pub fn new(config: &ServerSection) -> Self {
        let by_name = config.roles.iter().map(|(name, role)| (name.clone(), Arc::new(role.clone()))).collect();
        Self { by_name, default: config.default_role.clone(), plain: Arc::default() }
    }

    /// The user with their role. Who has one that is not known here is not given another: it may have been meant to allow less.
    pub fn user(&self, known: Known) -> Result<User, Problem> {
        if self.by_name.is_empty() {
            // The name that a token gives to a role means nothing here.
            return Ok(User { id: Some(known.id), role_name: None, role: Arc::clone(&self.plain) });
        }
        let named = match &known.role {
            Named::Role(name) => Some(name),
            Named::None => self.default.as_ref(),
            Named::Unreadable => None,
        };
        let found = named.and_then(|name| self.by_name.get_key_value(name));
        let (name, role) = found.ok_or_else(|| {
            tracing::info!(user = known.id, role = named, "somebody has no role here");
            let message = match known.role {
                Named::None => "you have no role here",
                Named::Role(_) | Named::Unreadable => "your role is not known here",
            };
            Problem::new(ProblemCode::Forbidden, message)
                .hint("whoever runs this server can add the role, or set `server.default_role`")
        })?;
        Ok(User { id: Some(known.id), role_name: Some(name.clone()), role: Arc::clone(role) })
    }
}
