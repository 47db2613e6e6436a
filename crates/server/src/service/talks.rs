//! Conversations and past runs, each belonging to one user.

use querymend::{Conversation, Problem, ProblemCode};
use serde_json::Value;

use super::desk::may_ask;
use super::{Past, Service, administers, now};
use crate::shelf::Talk;
use crate::user::User;

/// Past runs that are listed at a time.
const MOST_PAST: usize = 200;

impl Service {
    /// Begins a conversation.
    pub async fn begin(&self, user: &User, database: Option<&str>) -> Result<Talk, Problem> {
        let desk = self.desk(user, database)?;
        let conversation = Conversation::new();
        let talk = Talk { user: user.name().to_owned(), database: desk.name, at: now(), version: 1, conversation };
        self.shelf.keep_talk(&talk).await?;
        Ok(talk)
    }

    /// A conversation of this user.
    pub async fn talk(&self, user: &User, id: &str) -> Result<Talk, Problem> {
        let talk = self.shelf.talk(user.name(), id).await?;
        talk.ok_or_else(|| {
            Problem::new(ProblemCode::NotFound, "there is no such session").hint("begin one with POST /v1/sessions")
        })
    }

    /// The newest conversations of this user.
    pub async fn talks(&self, user: &User) -> Result<Vec<Talk>, Problem> {
        self.shelf.talks(user.name(), 100).await
    }

    /// Forgets a conversation.
    pub async fn forget(&self, user: &User, id: &str) -> Result<(), Problem> {
        let gone = self.shelf.forget_talk(user.name(), id).await?;
        if gone {
            self.errors.clear(id);
            Ok(())
        } else {
            Err(Problem::new(ProblemCode::NotFound, "there is no such session"))
        }
    }

    /// The events of a past run of this user.
    pub async fn trace(&self, user: &User, id: &str) -> Result<Vec<Value>, Problem> {
        let events = self.shelf.run(user.name(), id).await?;
        events.ok_or_else(|| Problem::new(ProblemCode::NotFound, "there is no such trace"))
    }

    /// The newest past runs of this user, or of all where that is asked and the user administers.
    pub async fn past(&self, user: &User, all: bool, most: usize) -> Result<Vec<Past>, Problem> {
        if all {
            administers(user)?;
        }
        let whose = (!all).then(|| user.name());
        let mut past = self.shelf.past(whose, MOST_PAST).await?;
        // Who administers need not be allowed to ask every database.
        past.retain(|run| may_ask(user, &run.database));
        past.truncate(most);
        Ok(past)
    }
}
