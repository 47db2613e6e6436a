//! Past runs in short, as lists of them show them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A past run in short.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Past {
    /// By which it is found.
    pub trace_id: String,
    /// When it began, in seconds since 1970.
    pub at: u64,
    /// Who asked; empty where nobody signs in.
    pub user: String,
    /// The question.
    pub question: String,
    /// The database.
    pub database: String,
    /// How it ended.
    pub status: String,
    /// How sure the answer is.
    pub confidence: String,
    /// The query that ran, or the best attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// How many drafts there were.
    pub attempts: usize,
    /// How long it took.
    pub duration_ms: f64,
    /// What models cost, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl Past {
    /// A run in short, from its events; nothing, if they do not tell how it ended.
    pub fn of(id: &str, user: &str, events: &[Value]) -> Option<Self> {
        let named = |name: &str| events.iter().find(|event| event["event"] == name);
        let (started, answer) = (named("started")?, &named("finished")?["answer"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some(Self {
            trace_id: id.to_owned(),
            at: began(id),
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

/// When a run began, in seconds since 1970: its id begins with the time.
fn began(id: &str) -> u64 {
    let digits: String = id.chars().filter(char::is_ascii_hexdigit).take(12).collect();
    u64::from_str_radix(&digits, 16).unwrap_or_default() / 1_000
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn l12_a_run_in_short_says_what_was_asked_and_what_came_of_it() {
        let id = querymend::trace_id();
        let events = [
            json!({"event": "started", "question": "How many?", "database": "shop"}),
            json!({"event": "finished", "answer": {
                "status": "answered", "confidence": "high", "sql": "SELECT 1", "attempts": [{}, {}],
                "metadata": {"total_duration_ms": 2.5}, "cost": {"usd": null}}}),
        ];
        let past = Past::of(&id, "ann", &events).unwrap();
        assert!(crate::service::now() - past.at < 60, "{}", past.at);
        assert_eq!((past.question.as_str(), past.attempts, past.duration_ms, past.usd), ("How many?", 2, 2.5, None));
        // One that was cut off is not told as if it had ended.
        assert_eq!(Past::of(&id, "ann", &events[..1]), None);
    }
}
