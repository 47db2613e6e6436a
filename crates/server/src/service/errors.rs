//! The errors of each session: what failed since something last went well.
//!
//! A session belongs to one user. Its errors come from questions of a conversation, which core records under the conversation's
//! id, and from corrections, whose session ids clients choose themselves.

use querymend::correct::{self, Correct, Corrected};
use querymend::records::ErrorRecord;
use querymend::{Problem, ProblemCode};
use querymend_sql::Dialect;

use super::{Service, short};
use crate::user::User;

/// The longest id of a session, in bytes.
const MAX_SESSION_ID: usize = 200;

/// The key of the errors that corrections of a session told of. A user's name cannot reach another user's sessions, since no
/// control character is part of an id.
fn key(user: &User, session: &str) -> String {
    format!("{}\u{1f}{session}", user.name())
}

fn check_id(session: &str) -> Result<(), Problem> {
    short("session_id", session, MAX_SESSION_ID)?;
    if session.is_empty() || session.chars().any(char::is_control) {
        let message = "`session_id` is empty or has control characters in it";
        return Err(Problem::new(ProblemCode::BadRequest, message).hint("name the session by letters and digits"));
    }
    Ok(())
}

impl Service {
    /// The errors of a session, oldest first: at most one record of its questions and one of its corrections.
    pub async fn session_errors(&self, user: &User, session: &str) -> Result<Vec<ErrorRecord>, Problem> {
        check_id(session)?;
        let mut records: Vec<ErrorRecord> = self.errors.get(&key(user, session)).into_iter().collect();
        if self.shelf.talk(user.name(), session).await?.is_some() {
            records.extend(self.errors.get(session));
        }
        records.sort_by_key(|record| record.at_unix_ms);
        Ok(records)
    }

    /// Forgets the errors of a session.
    pub async fn clear_session_errors(&self, user: &User, session: &str) -> Result<(), Problem> {
        check_id(session)?;
        self.errors.clear(&key(user, session));
        if self.shelf.talk(user.name(), session).await?.is_some() {
            self.errors.clear(session);
        }
        Ok(())
    }

    /// Fills in the error that the session had before, where the request repeats it.
    pub(super) fn recall_error(&self, user: &User, asked: &mut Correct, dialect: &Dialect) -> Result<(), Problem> {
        let Some(session) = &asked.session_id else { return Ok(()) };
        check_id(session)?;
        let record = self.errors.get(&key(user, session));
        if let Some(record) = record.filter(|record| correct::is_repeated(record, asked, dialect)) {
            asked.last_error.get_or_insert(record.message);
        }
        Ok(())
    }

    /// Records the error that a request told of, with what was made of it.
    pub(super) fn record_error(&self, user: &User, asked: &Correct, corrected: &Corrected, dialect: &Dialect) {
        if let (Some(session), Some(failure)) = (&asked.session_id, correct::failure(asked, corrected, dialect)) {
            self.errors.note(&key(user, session), failure);
        }
    }
}
