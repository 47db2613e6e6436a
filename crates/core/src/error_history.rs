//! Error history per session, cleared by the next success.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use querymend_sql::ErrorType;
use schemars::JsonSchema;
use serde::Serialize;

use crate::event::Confidence;
use crate::resilience::{Clock, SystemClock};

/// Analysis of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorAnalysis {
    /// Category of the error.
    pub error_type: ErrorType,
    /// One-sentence description of the error.
    pub summary: String,
    /// Suggested actions.
    pub suggestions: Vec<String>,
}

/// Suggested correction of a failed query.
///
/// Not to be confused with [`crate::event::Correction`], which reports the outcome of a correction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SqlCorrection {
    /// Query that failed.
    pub original: String,
    /// Corrected query; empty if there is only an explanation.
    pub corrected: String,
    /// Reason for the correction.
    pub explanation: String,
    /// Code of the rule that produced it.
    pub code: String,
    /// Confidence in the correction.
    pub confidence: Confidence,
}

/// Failure of a query, to be recorded in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryFailure {
    /// Query that failed.
    pub sql: String,
    /// Code of the rule that the error was classified as, such as `unknown-column`.
    pub code: String,
    /// Error message of the database.
    pub message: String,
    /// Analysis of the failure.
    pub analysis: ErrorAnalysis,
    /// Suggested correction.
    pub correction: Option<SqlCorrection>,
}

/// Failures of a session: the last one and the queries that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorRecord {
    /// Query that failed last.
    pub sql: String,
    /// Code of the rule that the error was classified as, such as `unknown-column`.
    pub code: String,
    /// Error message of the database.
    pub message: String,
    /// Time of the failure, in milliseconds since the Unix epoch.
    pub at_unix_ms: u64,
    /// Number of failed queries since the last success. Includes those dropped from
    /// `previous_attempts`.
    pub attempts: u32,
    /// Queries that failed before, oldest first.
    pub previous_attempts: VecDeque<String>,
    /// Analysis of the failure.
    pub analysis: ErrorAnalysis,
    /// Suggested correction. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<SqlCorrection>,
}

/// Limits of the error history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Maximum number of sessions; the one whose last failure is oldest is evicted first.
    pub max_sessions: usize,
    /// Maximum number of previous attempts per session.
    pub max_previous: usize,
    /// Time to live after the last failure.
    pub ttl: Duration,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { max_sessions: 1000, max_previous: 10, ttl: Duration::from_secs(60 * 60) }
    }
}

/// Error records of all sessions. Thread-safe.
pub struct ErrorHistory {
    limits: HistoryLimits,
    clock: Arc<dyn Clock>,
    state: Mutex<HistoryState>,
}

#[derive(Default)]
struct HistoryState {
    sessions: HashMap<String, HistoryEntry>,
    /// Sequence number that orders failures within the same millisecond.
    count: u64,
}

struct HistoryEntry {
    record: ErrorRecord,
    at_ms: u64,
    sequence: u64,
}

impl ErrorHistory {
    /// Creates an empty history.
    pub fn new(keep: HistoryLimits) -> Self {
        Self { limits: keep, clock: Arc::new(SystemClock), state: Mutex::default() }
    }

    /// Replaces the clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Records a failed query of a session and returns the updated record.
    pub fn record(&self, session: &str, failure: QueryFailure) -> ErrorRecord {
        let mut state = self.lock_state();
        let at_ms = self.clock.now_ms();
        state.sessions.retain(|_, entry| !self.is_expired(entry, at_ms));
        state.count += 1;
        let number = state.count;
        let (attempts, mut previous_attempts) = match state.sessions.remove(session) {
            Some(HistoryEntry { mut record, .. }) => {
                record.previous_attempts.push_back(record.sql);
                (record.attempts, record.previous_attempts)
            }
            None => (0, VecDeque::new()),
        };
        let too_many = previous_attempts.len().saturating_sub(self.limits.max_previous);
        previous_attempts.drain(..too_many);
        let QueryFailure { sql, code, message, analysis, correction } = failure;
        let record = ErrorRecord {
            sql,
            code,
            message,
            at_unix_ms: self.clock.unix_ms(),
            attempts: attempts.saturating_add(1),
            previous_attempts,
            analysis,
            correction,
        };
        while state.sessions.len() >= self.limits.max_sessions.max(1) {
            let oldest = state.sessions.iter().min_by_key(|(_, entry)| entry.sequence).map(|(name, _)| name.clone());
            oldest.and_then(|name| state.sessions.remove(&name));
        }
        state.sessions.insert(session.to_owned(), HistoryEntry { record: record.clone(), at_ms, sequence: number });
        record
    }

    /// Returns the record of a session unless it is expired or cleared.
    pub fn get(&self, session: &str) -> Option<ErrorRecord> {
        let mut noted = self.lock_state();
        let entry = noted.sessions.get(session)?;
        if self.is_expired(entry, self.clock.now_ms()) {
            noted.sessions.remove(session);
            return None;
        }
        Some(entry.record.clone())
    }

    /// Removes the record of a session after a success. Returns `false` if there was none.
    pub fn clear(&self, session: &str) -> bool {
        self.lock_state().sessions.remove(session).is_some()
    }

    /// Returns the number of sessions with a record. Expired records count until the next failure
    /// is recorded.
    pub fn len(&self) -> usize {
        self.lock_state().sessions.len()
    }

    /// Returns whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn is_expired(&self, entry: &HistoryEntry, now_ms: u64) -> bool {
        Duration::from_millis(now_ms.saturating_sub(entry.at_ms)) >= self.limits.ttl
    }

    /// Locks the state. Nothing under the lock panics halfway, so the state of a poisoned lock
    /// is consistent.
    fn lock_state(&self) -> MutexGuard<'_, HistoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ErrorHistory {
    fn default() -> Self {
        Self::new(HistoryLimits::default())
    }
}

impl fmt::Debug for ErrorHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Queries may contain user input, so print only their number.
        f.debug_struct("ErrorRecords")
            .field("keep", &self.limits)
            .field("sessions", &self.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::resilience::ManualClock;

    fn failure(sql: &str) -> QueryFailure {
        QueryFailure {
            sql: sql.to_owned(),
            code: "1".to_owned(),
            message: "no such column: prce".to_owned(),
            analysis: ErrorAnalysis {
                error_type: ErrorType::ColumnNotFound,
                summary: "`products` has no column `prce`".to_owned(),
                suggestions: vec!["price".to_owned()],
            },
            correction: Some(SqlCorrection {
                original: sql.to_owned(),
                corrected: String::new(),
                explanation: "there is `price`".to_owned(),
                code: "unknown-column".to_owned(),
                confidence: Confidence::High,
            }),
        }
    }

    #[test]
    fn accumulates_failures_until_cleared() {
        let clock = Arc::new(ManualClock::new());
        let records = ErrorHistory::default().with_clock(clock.clone());
        assert_eq!(records.get("a"), None);
        assert!(!records.clear("a"));
        records.record("a", failure("first"));
        records.record("b", failure("other"));
        clock.advance(Duration::from_secs(5));
        records.record("a", failure("second"));
        let record = records.record("a", failure("third"));
        assert_eq!(records.get("a").as_ref(), Some(&record));
        assert_eq!((record.sql.as_str(), record.attempts, record.at_unix_ms), ("third", 3, 5_000));
        assert_eq!(record.previous_attempts, ["first", "second"]);
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["analysis"]["error_type"], "column_not_found");
        assert_eq!(json["correction"]["confidence"], "high");
        assert!(records.clear("a"));
        assert_eq!((records.get("a"), records.len()), (None, 1));
        assert_eq!(records.record("a", failure("fourth")).attempts, 1);
    }

    #[test]
    fn bounds_and_expires_records() {
        let clock = Arc::new(ManualClock::new());
        let keep = HistoryLimits { max_sessions: 3, max_previous: 2, ttl: Duration::from_secs(10) };
        let records = ErrorHistory::new(keep).with_clock(clock.clone());
        for sql in ["1", "2", "3", "4", "5"] {
            records.record("a", failure(sql));
        }
        let record = records.get("a").unwrap();
        assert_eq!((record.attempts, record.previous_attempts), (5, VecDeque::from(["3".to_owned(), "4".to_owned()])));
        for session in ["b", "c"] {
            records.record(session, failure("x"));
        }
        records.record("a", failure("6"));
        records.record("d", failure("x"));
        assert_eq!(["a", "b", "c", "d"].map(|s| records.get(s).is_some()), [true, false, true, true]);
        clock.advance(Duration::from_millis(9_999));
        assert!(records.get("d").is_some());
        records.record("c", failure("x"));
        clock.advance(Duration::from_millis(1));
        assert_eq!(records.get("d"), None);
        assert_eq!(records.record("e", failure("x")).attempts, 1);
        assert_eq!(records.len(), 2, "a went with the note, d with the get");
    }

    #[test]
    fn counts_every_failure_of_eight_threads() {
        let (tight, roomy) =
            (ErrorHistory::new(HistoryLimits { max_sessions: 4, ..HistoryLimits::default() }), ErrorHistory::default());
        thread::scope(|scope| {
            for thread in 0..8 {
                let (tight, roomy) = (&tight, &roomy);
                scope.spawn(move || {
                    for n in 0..500 {
                        let own = format!("{thread}/{n}");
                        assert_eq!(tight.record(&own, failure("x")).attempts, 1);
                        assert!(tight.len() <= 4);
                        roomy.record(&own, failure("x"));
                        roomy.record("shared", failure("x"));
                        assert!(roomy.clear(&own));
                    }
                });
            }
        });
        assert_eq!((tight.len(), roomy.len()), (4, 1));
        assert_eq!(roomy.get("shared").unwrap().attempts, 4000);
    }
}
