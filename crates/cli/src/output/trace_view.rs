//! Attempt-by-attempt view of a run: `--explain` shows the current run, `trace` a stored one.
//!
//! Renders events from JSON, the format in which they are stored, so that both show the same.

use querymend::Event;
use serde_json::Value;

use crate::output::answer::{sanitize_lines, status_label};
use crate::output::text::{one_line, pluralize};

/// Converts events to the JSON in which they are stored.
pub fn to_json_events(events: &[Event]) -> Vec<Value> {
    events.iter().filter_map(|event| serde_json::to_value(event).ok()).collect()
}

/// Renders all events of a run.
pub fn render_trace(events: &[Value]) -> String {
    let mut view = TraceView { text: String::new(), attempt: 0, strategy: String::new() };
    events.iter().for_each(|event| view.push_event(event));
    view.text
}

struct TraceView {
    text: String,
    attempt: u64,
    strategy: String,
}

impl TraceView {
    fn push_event(&mut self, event: &Value) {
        // Only events of a draft start a paragraph; a stage event precedes the draft.
        let kind = event["event"].as_str().unwrap_or_default();
        if !matches!(
            kind,
            "started" | "stage" | "schema_linked" | "examples_retrieved" | "retrying" | "fallback_started" | "finished"
        ) {
            self.start_attempt(event["attempt"].as_u64().unwrap_or(self.attempt));
        }
        match kind {
            "started" => self.on_started(event),
            "schema_linked" => {
                self.push_line(0, "tables shown", &format!("{} (of {})", join_names(&event["tables"]), event["of"]))
            }
            "examples_retrieved" => self.on_examples_retrieved(event),
            "drafted" => self.push_block(1, "the model wrote", as_text(&event["text"])),
            "candidates_compared" => {
                self.push_line(
                    1,
                    "drafts compared",
                    &format!("{} of {} agree on the answer", event["agree"], event["of"]),
                );
                as_array(&event["drafts"]).iter().for_each(|draft| self.push_line(2, "draft", as_text(draft)));
            }
            "reviewed" => self.on_reviewed(event),
            "repaired" => self.on_repaired(event),
            "executed" => {
                let more = if event["truncated"] == true { ", and there were more" } else { "" };
                let rows = format!(
                    "{} in {:.1} ms{more}",
                    pluralize_value(&event["rows"], "row"),
                    event["ms"].as_f64().unwrap_or(0.0)
                );
                self.push_line(1, "the database returned", &rows);
            }
            "rejected" => {
                let (finding, family) = (as_text(&event["finding"]), as_text(&event["error_type"]));
                let words = format!("{} ({finding}, {family})", as_text(&event["error"]["message"]));
                self.push_line(1, "the database rejected it", &words);
            }
            "retrying" => self.on_retrying(event),
            "changed" => self.push_changes("the model changed", &event["changes"]),
            "fallback_started" => {
                let words = format!("plain rows of {} are fetched and analysed locally", join_names(&event["tables"]));
                self.push_line(0, "\nattempts exhausted", &words);
            }
            "finished" => self.on_finished(&event["answer"]),
            _ => {}
        }
    }

    fn on_examples_retrieved(&mut self, event: &Value) {
        if event["known"].is_string() {
            self.push_line(0, "memory", "the same question was answered before; its query is tried");
        }
        for shown in as_array(&event["examples"]) {
            let like = shown["similarity"].as_f64().unwrap_or(0.0);
            self.push_line(0, &format!("example shown ({like:.2})"), as_text(&shown["question"]));
        }
        match event["stale"].as_array().map(Vec::len) {
            None => {}
            Some(1) => self.push_line(0, "memory", "1 example no longer matches the schema"),
            Some(n) => self.push_line(0, "memory", &format!("{n} examples no longer match the schema")),
        }
        if let Some(error) = event["trouble"].as_str() {
            self.push_line(0, "memory is unavailable", error);
        }
    }

    fn push_line(&mut self, depth: usize, name: &str, text: &str) {
        self.text.push_str(&format!("{}{name}: {}\n", "  ".repeat(depth), one_line(text)));
    }

    fn push_block(&mut self, depth: usize, name: &str, text: &str) {
        let indent = "  ".repeat(depth);
        self.text.push_str(&format!("{indent}{name}:\n"));
        for line in sanitize_lines(text).lines() {
            self.text.push_str(&format!("{indent}  {line}\n"));
        }
    }

    fn start_attempt(&mut self, attempt: u64) {
        if attempt > self.attempt {
            self.attempt = attempt;
            let strategy = std::mem::take(&mut self.strategy);
            let how = if strategy.is_empty() { String::new() } else { format!(", strategy {strategy}") };
            self.text.push_str(&format!("\nattempt {attempt}{how}\n"));
        }
    }

    fn on_started(&mut self, event: &Value) {
        self.push_line(0, "question", as_text(&event["question"]));
        self.push_line(0, "database", &format!("{} ({})", as_text(&event["database"]), as_text(&event["dialect"])));
        self.push_line(0, "model", as_text(&event["model"]));
        self.push_line(0, "attempts", &format!("{} at most", event["max_attempts"]));
        self.push_line(0, "trace", as_text(&event["trace_id"]));
    }

    fn on_reviewed(&mut self, event: &Value) {
        let verdict = if event["approved"] == true { "reviewed" } else { "held back" };
        self.push_block(1, verdict, as_text(&event["sql"]));
        for finding in as_array(&event["findings"]) {
            let head = format!("{}[{}]", as_text(&finding["severity"]), as_text(&finding["code"]));
            self.push_line(1, &head, as_text(&finding["message"]));
            for fact in as_array(&finding["evidence"]) {
                self.push_line(2, "note", as_text(fact));
            }
        }
        let extracted = &event["extracted"];
        self.push_line(1, "tables", &join_names(&extracted["tables"]));
        if !as_array(&extracted["unknown_tables"]).is_empty() {
            self.push_line(1, "unknown tables", &join_names(&extracted["unknown_tables"]));
        }
        self.push_line(1, "CTEs", &join_names(&extracted["ctes"]));
        let alias = |pair: &Value| match (as_text(&pair[0]), as_text(&pair[1])) {
            (alias, "") => format!("{alias} = (subquery)"),
            (alias, table) => format!("{alias} = {table}"),
        };
        let aliases: Vec<String> = as_array(&extracted["aliases"]).iter().map(alias).collect();
        self.push_line(1, "aliases", if aliases.is_empty() { "none".into() } else { aliases.join(", ") }.as_str());
        let allowed = &extracted["allowed_tables"];
        self.push_line(
            1,
            "allowed tables",
            if allowed.is_null() { "all".into() } else { join_names(allowed) }.as_str(),
        );
    }

    fn on_repaired(&mut self, event: &Value) {
        self.push_block(1, "repaired", as_text(&event["after"]));
        for fix in as_array(&event["applied"]) {
            let head = format!("{} ({})", as_text(&fix["code"]), as_text(&fix["applicability"]));
            self.push_line(2, &head, as_text(&fix["why"]));
        }
        self.push_changes("changed", &event["changes"]);
    }

    fn push_changes(&mut self, name: &str, changes: &Value) {
        let change = |change: &Value| match (as_text(&change["before"]), as_text(&change["after"])) {
            ("", after) => format!("+ '{after}'"),
            (before, "") => format!("- '{before}'"),
            (before, after) => format!("'{before}' → '{after}'"),
        };
        let changes: Vec<String> = as_array(changes).iter().map(change).collect();
        if !changes.is_empty() {
            self.push_line(1, name, &changes.join(", "));
        }
    }

    fn on_retrying(&mut self, event: &Value) {
        self.strategy = as_text(&event["strategy"]).to_string();
        self.start_attempt(event["attempt"].as_u64().unwrap_or(self.attempt));
        for feedback in as_array(&event["feedback"]) {
            self.push_line(1, &format!("feedback ({})", as_text(&feedback["kind"])), as_text(&feedback["text"]));
        }
    }

    fn on_finished(&mut self, answer: &Value) {
        let (status, stop) = (as_text(&answer["status"]), as_text(&answer["stop"]));
        let why = if stop == status { String::new() } else { format!(" ({})", stop.replace('_', " ")) };
        self.push_line(0, "\nended", &format!("{}{why}", status_label(status)));
        if let Some(sql) = answer["sql"].as_str() {
            self.push_block(0, "SQL", sql);
        }
        for key in ["message", "hint"] {
            if let Some(words) = answer["problem"][key].as_str() {
                self.push_line(0, if key == "hint" { "hint" } else { "problem" }, words);
            }
        }
        if let Some(text) = answer["text"].as_str() {
            self.push_block(0, "summary", text);
        }
        if status == "answered" {
            self.push_line(0, "confidence", as_text(&answer["confidence"]));
            as_array(&answer["reasons"]).iter().for_each(|reason| self.push_line(1, "because", as_text(reason)));
        }
        let (counts, cost) = (&answer["metadata"], &answer["cost"]);
        let mut took = format!(
            "{} to the model, {} to the database, {:.0} ms, {} read and {} written",
            pluralize_value(&counts["llm_calls"], "call"),
            counts["tool_executions"],
            counts["total_duration_ms"].as_f64().unwrap_or(0.0),
            pluralize_value(&cost["input_tokens"], "token"),
            cost["output_tokens"],
        );
        if let Some(usd) = cost["usd"].as_f64() {
            took.push_str(&format!(", ${usd:.4}"));
        }
        self.push_line(0, "took", &took);
    }
}

fn as_text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn pluralize_value(value: &Value, noun: &str) -> String {
    pluralize(value.as_u64().unwrap_or_default(), noun)
}

fn as_array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn join_names(names: &Value) -> String {
    let names: Vec<&str> = as_array(names).iter().map(as_text).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
