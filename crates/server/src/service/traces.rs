//! Traces of past questions, each owned by one user.

use querymend::{Problem, ProblemCode};
use serde_json::Value;

use super::tenant::has_access;
use super::{Service, require_admin};
use crate::auth::user::User;
use crate::store::TraceSummary;

/// Maximum number of traces listed at a time.
const MAX_LISTED_TRACES: usize = 200;

impl Service {
    /// Returns the events of a trace of this user.
    pub async fn trace(&self, user: &User, id: &str) -> Result<Vec<Value>, Problem> {
        let events = self.session_store.trace(user.id(), id).await?;
        events.ok_or_else(|| Problem::new(ProblemCode::NotFound, "there is no such trace"))
    }

    /// Returns the most recent traces of this user.
    ///
    /// With `all`, which requires an admin role, returns those of all users.
    pub async fn list_traces(&self, user: &User, all: bool, limit: usize) -> Result<Vec<TraceSummary>, Problem> {
        if all {
            require_admin(user)?;
        }
        let owner = (!all).then(|| user.id());
        let mut traces = self.session_store.list_traces(owner, MAX_LISTED_TRACES).await?;
        // Admins do not necessarily have access to every database.
        traces.retain(|run| has_access(user, &run.database));
        traces.truncate(limit);
        Ok(traces)
    }
}
