//! What went wrong in each session, until something goes well.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use querymend_sql::ErrorType;
use schemars::JsonSchema;
use serde::Serialize;

use crate::event::Confidence;
use crate::guard::{Clock, SystemClock};

/// What a failure means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Analysis {
    /// Its family.
    pub error_type: ErrorType,
    /// What is wrong, in a sentence.
    pub summary: String,
    /// What could be done.
    pub suggestions: Vec<String>,
}

/// A query that may mend a failure. It is not [`crate::event::Correction`], which tells what a correction came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SqlCorrection {
    /// The query that failed.
    pub original: String,
    /// The query instead; empty where there are only words.
    pub corrected: String,
    /// Why.
    pub explanation: String,
    /// The rule that it comes from.
    pub code: String,
    /// How sure it is.
    pub confidence: Confidence,
}

/// A failure, as it is noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The query that failed.
    pub sql: String,
    /// The database's code; empty if it gave none.
    pub code: String,
    /// Its own words.
    pub message: String,
    /// What that means.
    pub analysis: Analysis,
    /// What may mend it.
    pub correction: Option<SqlCorrection>,
}

/// The failures of a session: the last one, and what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ErrorRecord {
    /// The query that failed last.
    pub sql: String,
    /// The database's code; empty if it gave none.
    pub code: String,
    /// Its own words.
    pub message: String,
    /// When, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// How many queries have failed since the last success, with those that are no longer kept.
    pub attempts: u32,
    /// The queries that failed before it, oldest first.
    pub previous_attempts: VecDeque<String>,
    /// What the failure means.
    pub analysis: Analysis,
    /// What may mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub correction: Option<SqlCorrection>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Of so many sessions; the one that failed longest ago goes first.
    pub sessions: usize,
    /// So many previous attempts of each.
    pub previous: usize,
    /// For so long after the last failure.
    pub time: Duration,
}

impl Default for Keep {
    fn default() -> Self {
        Self { sessions: 1000, previous: 10, time: Duration::from_secs(60 * 60) }
    }
}

/// The error records of all sessions. They may be used from many threads at once.
pub struct ErrorRecords {
    keep: Keep,
    clock: Arc<dyn Clock>,
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    sessions: HashMap<String, Entry>,
    /// Counts what is noted: two failures in one millisecond are still told apart.
    count: u64,
}

struct Entry {
    record: ErrorRecord,
    at_ms: u64,
    number: u64,
}

impl ErrorRecords {
    /// None yet.
    pub fn new(keep: Keep) -> Self {
        Self { keep, clock: Arc::new(SystemClock), noted: Mutex::default() }
    }

    /// With another clock.
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Notes that a query of this session failed, and gives its record as it is now.
    pub fn note(&self, session: &str, failure: Failure) -> ErrorRecord {
        let mut noted = self.noted();
        let at_ms = self.clock.now_ms();
        noted.sessions.retain(|_, entry| !self.is_old(entry, at_ms));
        noted.count += 1;
        let number = noted.count;
        let (attempts, mut previous_attempts) = match noted.sessions.remove(session) {
            Some(Entry { mut record, .. }) => {
                record.previous_attempts.push_back(record.sql);
                (record.attempts, record.previous_attempts)
            }
            None => (0, VecDeque::new()),
        };
        let too_many = previous_attempts.len().saturating_sub(self.keep.previous);
        previous_attempts.drain(..too_many);
        let Failure { sql, code, message, analysis, correction } = failure;
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
        while noted.sessions.len() >= self.keep.sessions.max(1) {
            let oldest = noted.sessions.iter().min_by_key(|(_, entry)| entry.number).map(|(name, _)| name.clone());
            oldest.and_then(|name| noted.sessions.remove(&name));
        }
        noted.sessions.insert(session.to_owned(), Entry { record: record.clone(), at_ms, number });
        record
    }

    /// What went wrong in this session since something went well, if anything did and it is not too long ago.
    pub fn get(&self, session: &str) -> Option<ErrorRecord> {
        let mut noted = self.noted();
        let entry = noted.sessions.get(session)?;
        if self.is_old(entry, self.clock.now_ms()) {
            noted.sessions.remove(session);
            return None;
        }
        Some(entry.record.clone())
    }

    /// Forgets what went wrong in this session: something went well. False if there was nothing.
    pub fn clear(&self, session: &str) -> bool {
        self.noted().sessions.remove(session).is_some()
    }

    /// How many sessions have a record. Some may be too old already, which is noticed when something is noted.
    pub fn len(&self) -> usize {
        self.noted().sessions.len()
    }

    /// Whether no session has one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn is_old(&self, entry: &Entry, now_ms: u64) -> bool {
        Duration::from_millis(now_ms.saturating_sub(entry.at_ms)) >= self.keep.time
    }

    /// Nothing under the lock can panic half way, so a poisoned lock holds good values.
    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ErrorRecords {
    fn default() -> Self {
        Self::new(Keep::default())
    }
}

impl fmt::Debug for ErrorRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Queries may hold what people typed, so only their number is shown.
        f.debug_struct("ErrorRecords").field("keep", &self.keep).field("sessions", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::guard::ManualClock;

    fn failure(sql: &str) -> Failure {
        Failure {
            sql: sql.to_owned(),
            code: "1".to_owned(),
            message: "no such column: prce".to_owned(),
            analysis: Analysis {
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
    fn l04_a_record_grows_until_something_goes_well() {
        let clock = Arc::new(ManualClock::new());
        let records = ErrorRecords::default().with_clock(clock.clone());
        assert_eq!(records.get("a"), None);
        assert!(!records.clear("a"));
        records.note("a", failure("first"));
        records.note("b", failure("other"));
        clock.advance(Duration::from_secs(5));
        records.note("a", failure("second"));
        let record = records.note("a", failure("third"));
        assert_eq!(records.get("a").as_ref(), Some(&record));
        assert_eq!((record.sql.as_str(), record.attempts, record.at_unix_ms), ("third", 3, 5_000));
        assert_eq!(record.previous_attempts, ["first", "second"]);
        let json = serde_json::to_value(&record).unwrap();
        assert_eq!(json["analysis"]["error_type"], "column_not_found");
        assert_eq!(json["correction"]["confidence"], "high");
        assert!(records.clear("a"));
        assert_eq!((records.get("a"), records.len()), (None, 1));
        assert_eq!(records.note("a", failure("fourth")).attempts, 1);
    }

    #[test]
    fn l04_records_are_bounded_and_expire() {
        let clock = Arc::new(ManualClock::new());
        let keep = Keep { sessions: 3, previous: 2, time: Duration::from_secs(10) };
        let records = ErrorRecords::new(keep).with_clock(clock.clone());
        for sql in ["1", "2", "3", "4", "5"] {
            records.note("a", failure(sql));
        }
        let record = records.get("a").unwrap();
        assert_eq!((record.attempts, record.previous_attempts), (5, VecDeque::from(["3".to_owned(), "4".to_owned()])));
        for session in ["b", "c"] {
            records.note(session, failure("x"));
        }
        records.note("a", failure("6"));
        records.note("d", failure("x"));
        assert_eq!(["a", "b", "c", "d"].map(|s| records.get(s).is_some()), [true, false, true, true]);
        clock.advance(Duration::from_millis(9_999));
        assert!(records.get("d").is_some());
        records.note("c", failure("x"));
        clock.advance(Duration::from_millis(1));
        assert_eq!(records.get("d"), None);
        assert_eq!(records.note("e", failure("x")).attempts, 1);
        assert_eq!(records.len(), 2, "a went with the note, d with the get");
    }

    #[test]
    fn l04_l12_eight_threads_lose_no_count() {
        let (tight, roomy) = (ErrorRecords::new(Keep { sessions: 4, ..Keep::default() }), ErrorRecords::default());
        thread::scope(|scope| {
            for thread in 0..8 {
                let (tight, roomy) = (&tight, &roomy);
                scope.spawn(move || {
                    for n in 0..500 {
                        let own = format!("{thread}/{n}");
                        assert_eq!(tight.note(&own, failure("x")).attempts, 1);
                        assert!(tight.len() <= 4);
                        roomy.note(&own, failure("x"));
                        roomy.note("shared", failure("x"));
                        assert!(roomy.clear(&own));
                    }
                });
            }
        });
        assert_eq!((tight.len(), roomy.len()), (4, 1));
        assert_eq!(roomy.get("shared").unwrap().attempts, 4000);
    }
}
