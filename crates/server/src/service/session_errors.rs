//! Error history of each session: failures since the last success.
//!
//! A session belongs to one user. Its errors come from questions, which the core crate records
//! under the session id, and from corrections with session ids that clients choose themselves.

use querymend::correction::{self, CorrectionRequest, CorrectionResponse};
use querymend::error_history::ErrorRecord;
use querymend::{Problem, ProblemCode};
use querymend_sql::Dialect;

use super::{Service, check_length};
use crate::auth::user::User;

/// Maximum length of a session id, in bytes.
const MAX_SESSION_ID_BYTES: usize = 200;

/// Returns the history key for corrections of a session.
///
/// Ids contain no control characters, so no user name can produce the key of another user's
/// session.
fn history_key(user: &User, session: &str) -> String {
    format!("{}\u{1f}{session}", user.id())
}

fn check_session_id(session: &str) -> Result<(), Problem> {
    check_length("session_id", session, MAX_SESSION_ID_BYTES)?;
    if session.is_empty() || session.chars().any(char::is_control) {
        let message = "`session_id` is empty or contains control characters";
        return Err(Problem::new(ProblemCode::BadRequest, message).hint("use letters and digits"));
    }
    Ok(())
}

impl Service {
    /// Returns the errors of a session, oldest first.
    ///
    /// There is at most one record of its questions and one of its corrections.
    pub async fn session_errors(&self, user: &User, session: &str) -> Result<Vec<ErrorRecord>, Problem> {
        check_session_id(session)?;
        let mut records: Vec<ErrorRecord> = self.error_history.get(&history_key(user, session)).into_iter().collect();
        if self.session_store.session(user.id(), session).await?.is_some() {
            records.extend(self.error_history.get(session));
        }
        records.sort_by_key(|record| record.at_unix_ms);
        Ok(records)
    }

    /// Clears the error history of a session.
    pub async fn clear_session_errors(&self, user: &User, session: &str) -> Result<(), Problem> {
        check_session_id(session)?;
        self.error_history.clear(&history_key(user, session));
        if self.session_store.session(user.id(), session).await?.is_some() {
            self.error_history.clear(session);
        }
        Ok(())
    }

    /// Fills in the previous error of the session if the request repeats it.
    pub(super) fn fill_last_error(
        &self,
        user: &User,
        request: &mut CorrectionRequest,
        dialect: &Dialect,
    ) -> Result<(), Problem> {
        let Some(session) = &request.session_id else { return Ok(()) };
        check_session_id(session)?;
        let record = self.error_history.get(&history_key(user, session));
        if let Some(record) = record.filter(|record| correction::is_repeated_error(record, request, dialect)) {
            request.last_error.get_or_insert(record.message);
        }
        Ok(())
    }

    /// Records the error of a correction request together with its result.
    pub(super) fn record_error(
        &self,
        user: &User,
        request: &CorrectionRequest,
        corrected: &CorrectionResponse,
        dialect: &Dialect,
    ) {
        if let (Some(session), Some(failure)) =
            (&request.session_id, correction::to_query_failure(request, corrected, dialect))
        {
            self.error_history.record(&history_key(user, session), failure);
        }
    }
}
