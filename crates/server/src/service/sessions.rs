//! Sessions, each owned by one user.

use querymend::{Conversation, Problem, ProblemCode};

use super::Service;
use crate::auth::user::User;
use crate::clock::now;
use crate::store::StoredSession;

impl Service {
    /// Creates a session.
    pub async fn create_session(&self, user: &User, database: Option<&str>) -> Result<StoredSession, Problem> {
        let tenant = self.tenant(user, database)?;
        let conversation = Conversation::new();
        let session =
            StoredSession { user: user.id().to_owned(), database: tenant.name, at: now(), version: 1, conversation };
        self.session_store.save_session(&session).await?;
        Ok(session)
    }

    /// Returns a session of this user.
    pub async fn session(&self, user: &User, id: &str) -> Result<StoredSession, Problem> {
        let session = self.session_store.session(user.id(), id).await?;
        session.ok_or_else(|| {
            Problem::new(ProblemCode::NotFound, "there is no such session").hint("create one with POST /v1/sessions")
        })
    }

    /// Returns the most recent sessions of this user.
    pub async fn list_sessions(&self, user: &User) -> Result<Vec<StoredSession>, Problem> {
        self.session_store.list_sessions(user.id(), 100).await
    }

    /// Deletes a session.
    pub async fn delete_session(&self, user: &User, id: &str) -> Result<(), Problem> {
        let deleted = self.session_store.delete_session(user.id(), id).await?;
        if deleted {
            self.error_history.clear(id);
            Ok(())
        } else {
            Err(Problem::new(ProblemCode::NotFound, "there is no such session"))
        }
    }
}
