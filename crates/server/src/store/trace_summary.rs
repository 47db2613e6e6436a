//! Summaries of traces, for lists.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Summary of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TraceSummary {
    /// Id of the trace.
    pub trace_id: String,
    /// Start time, in seconds since the Unix epoch.
    pub at: u64,
    /// Id of the user; empty if authentication is off.
    pub user: String,
    /// Text of the question.
    pub question: String,
    /// Name of the database.
    pub database: String,
    /// Status of the answer.
    pub status: String,
    /// Confidence of the answer.
    pub confidence: String,
    /// Query that was executed, or the best attempt; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// Number of drafts.
    pub attempts: usize,
    /// Total duration, in milliseconds.
    pub duration_ms: f64,
    /// Cost of the model calls in US dollars; absent if prices are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl TraceSummary {
    /// Summarizes the events of a run; `None` if it did not finish.
    pub fn from_events(id: &str, user: &str, events: &[Value]) -> Option<Self> {
        let named = |name: &str| events.iter().find(|event| event["event"] == name);
        let (started, answer) = (named("started")?, &named("finished")?["answer"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(Self {
            trace_id: id.to_owned(),
            at: started_at(id),
            user: user.to_owned(),
            question: text(&started["question"]),
            database: text(&started["database"]),
            status: text(&answer["status"]),
            confidence: text(&answer["confidence"]),
            sql: answer["sql"].as_str().map(str::to_owned),
            attempts: answer["attempts"].as_array().map_or(0, Vec::len),
            duration_ms: answer["metadata"]["total_duration_ms"].as_f64().unwrap_or_default(),
            usd: answer["cost"]["usd"].as_f64(),
        })
    }
}

/// Returns the start time of a run, in seconds since the Unix epoch, from its time-ordered id.
fn started_at(id: &str) -> u64 {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(12).collect();
    u64::from_str_radix(&digits, 16).unwrap_or_default() / 1_000
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn summarizes_a_run_from_its_events() {
        let id = querymend::trace_id();
        let events = [
            json!({"event": "started", "question": "How many?", "database": "shop"}),
            json!({"event": "finished", "answer": {
                "status": "answered", "confidence": "high", "sql": "SELECT 1", "attempts": [{}, {}],
                "metadata": {"total_duration_ms": 2.5}, "cost": {"usd": null}}}),
        ];
        let past = TraceSummary::from_events(&id, "ann", &events).unwrap();
        assert!(crate::clock::now() - past.at < 60, "{}", past.at);
        assert_eq!((past.question.as_str(), past.attempts, past.duration_ms, past.usd), ("How many?", 2, 2.5, None));
        // An interrupted run has no summary.
        assert_eq!(TraceSummary::from_events(&id, "ann", &events[..1]), None);
    }
}
