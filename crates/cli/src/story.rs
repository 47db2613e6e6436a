//! A run, attempt by attempt: what `--explain` shows of the one that just ended and `trace` of one that is kept.
//!
//! It reads events as JSON, the form in which they are kept, so that both tell the same story.

use querymend::Event;
use serde_json::Value;

use crate::answer::{ending, printable};
use crate::out::counted;
use crate::render::one_line;

/// Events in the form in which they are kept.
pub fn kept(events: &[Event]) -> Vec<Value> {
    events.iter().filter_map(|event| serde_json::to_value(event).ok()).collect()
}

/// The whole story.
pub fn tell(events: &[Value]) -> String {
    let mut story = Story { text: String::new(), attempt: 0, strategy: String::new() };
    events.iter().for_each(|event| story.add(event));
    story.text
}

struct Story {
    text: String,
    attempt: u64,
    strategy: String,
}

impl Story {
    fn add(&mut self, event: &Value) {
        // Only what belongs to a draft opens its paragraph; a stage is over before anything came of it.
        let kind = event["event"].as_str().unwrap_or_default();
        if !matches!(kind, "started" | "stage" | "linked" | "recalled" | "retrying" | "fell_back" | "finished") {
            self.open(event["attempt"].as_u64().unwrap_or(self.attempt));
        }
        match kind {
            "started" => self.started(event),
            "linked" => self.line(0, "tables shown", &format!("{} (of {})", list(&event["tables"]), event["of"])),
            "recalled" => self.recalled(event),
            "drafted" => self.block(1, "the model wrote", string(&event["text"])),
            "weighed" => {
                self.line(1, "drafts weighed", &format!("{} of {} agree on the answer", event["agree"], event["of"]));
                values(&event["drafts"]).iter().for_each(|draft| self.line(2, "draft", string(draft)));
            }
            "reviewed" => self.reviewed(event),
            "mended" => self.mended(event),
            "executed" => {
                let more = if event["truncated"] == true { ", and there were more" } else { "" };
                let rows =
                    format!("{} in {:.1} ms{more}", count(&event["rows"], "row"), event["ms"].as_f64().unwrap_or(0.0));
                self.line(1, "the database gave", &rows);
            }
            "rejected" => {
                let (finding, family) = (string(&event["finding"]), string(&event["error_type"]));
                let words = format!("{} ({finding}, {family})", string(&event["error"]["message"]));
                self.line(1, "the database refused it", &words);
            }
            "retrying" => self.retrying(event),
            "changed" => self.changes("the model changed", &event["changes"]),
            "fell_back" => {
                let words = format!("plain rows of {} are fetched and analysed here", list(&event["tables"]));
                self.line(0, "\nthe attempts are spent", &words);
            }
            "finished" => self.finished(&event["answer"]),
            _ => {}
        }
    }

    fn recalled(&mut self, event: &Value) {
        if event["known"].is_string() {
            self.line(0, "memory", "the same question was answered before; its query is tried");
        }
        for shown in values(&event["examples"]) {
            let like = shown["similarity"].as_f64().unwrap_or(0.0);
            self.line(0, &format!("example shown ({like:.2})"), string(&shown["question"]));
        }
        match event["stale"].as_array().map(Vec::len) {
            None => {}
            Some(1) => self.line(0, "memory", "1 example does not fit the tables any more"),
            Some(n) => self.line(0, "memory", &format!("{n} examples do not fit the tables any more")),
        }
        if let Some(trouble) = event["trouble"].as_str() {
            self.line(0, "memory cannot be asked", trouble);
        }
    }

    fn line(&mut self, depth: usize, name: &str, words: &str) {
        self.text.push_str(&format!("{}{name}: {}\n", "  ".repeat(depth), one_line(words)));
    }

    fn block(&mut self, depth: usize, name: &str, text: &str) {
        let indent = "  ".repeat(depth);
        self.text.push_str(&format!("{indent}{name}:\n"));
        for line in printable(text).lines() {
            self.text.push_str(&format!("{indent}  {line}\n"));
        }
    }

    fn open(&mut self, attempt: u64) {
        if attempt > self.attempt {
            self.attempt = attempt;
            let strategy = std::mem::take(&mut self.strategy);
            let how = if strategy.is_empty() { String::new() } else { format!(", strategy {strategy}") };
            self.text.push_str(&format!("\nattempt {attempt}{how}\n"));
        }
    }

    fn started(&mut self, event: &Value) {
        self.line(0, "question", string(&event["question"]));
        self.line(0, "database", &format!("{} ({})", string(&event["database"]), string(&event["dialect"])));
        self.line(0, "model", string(&event["model"]));
        self.line(0, "attempts", &format!("{} at most", event["max_attempts"]));
        self.line(0, "trace", string(&event["trace_id"]));
    }

    fn reviewed(&mut self, event: &Value) {
        let verdict = if event["approved"] == true { "reviewed" } else { "held back" };
        self.block(1, verdict, string(&event["sql"]));
        for finding in values(&event["findings"]) {
            let head = format!("{}[{}]", string(&finding["severity"]), string(&finding["code"]));
            self.line(1, &head, string(&finding["message"]));
            for fact in values(&finding["evidence"]) {
                self.line(2, "note", string(fact));
            }
        }
        let extracted = &event["extracted"];
        self.line(1, "tables", &list(&extracted["tables"]));
        if !values(&extracted["unknown_tables"]).is_empty() {
            self.line(1, "unknown tables", &list(&extracted["unknown_tables"]));
        }
        self.line(1, "CTEs", &list(&extracted["ctes"]));
        let alias = |pair: &Value| match (string(&pair[0]), string(&pair[1])) {
            (alias, "") => format!("{alias} = (subquery)"),
            (alias, table) => format!("{alias} = {table}"),
        };
        let aliases: Vec<String> = values(&extracted["aliases"]).iter().map(alias).collect();
        self.line(1, "aliases", if aliases.is_empty() { "none".into() } else { aliases.join(", ") }.as_str());
        let allowed = &extracted["allowed_tables"];
        self.line(1, "allowed tables", if allowed.is_null() { "all".into() } else { list(allowed) }.as_str());
    }

    fn mended(&mut self, event: &Value) {
        self.block(1, "mended", string(&event["after"]));
        for fix in values(&event["applied"]) {
            let head = format!("{} ({})", string(&fix["code"]), string(&fix["applicability"]));
            self.line(2, &head, string(&fix["why"]));
        }
        self.changes("changed", &event["changes"]);
    }

    fn changes(&mut self, name: &str, changes: &Value) {
        let change = |change: &Value| match (string(&change["before"]), string(&change["after"])) {
            ("", after) => format!("+ '{after}'"),
            (before, "") => format!("- '{before}'"),
            (before, after) => format!("'{before}' → '{after}'"),
        };
        let changes: Vec<String> = values(changes).iter().map(change).collect();
        if !changes.is_empty() {
            self.line(1, name, &changes.join(", "));
        }
    }

    fn retrying(&mut self, event: &Value) {
        self.strategy = string(&event["strategy"]).to_string();
        self.open(event["attempt"].as_u64().unwrap_or(self.attempt));
        for told in values(&event["feedback"]) {
            self.line(1, &format!("told ({})", string(&told["kind"])), string(&told["text"]));
        }
    }

    fn finished(&mut self, answer: &Value) {
        let (status, stop) = (string(&answer["status"]), string(&answer["stop"]));
        let why = if stop == status { String::new() } else { format!(" ({})", stop.replace('_', " ")) };
        self.line(0, "\nended", &format!("{}{why}", ending(status)));
        if let Some(sql) = answer["sql"].as_str() {
            self.block(0, "SQL", sql);
        }
        for key in ["message", "hint"] {
            if let Some(words) = answer["problem"][key].as_str() {
                self.line(0, if key == "hint" { "hint" } else { "problem" }, words);
            }
        }
        if let Some(text) = answer["text"].as_str() {
            self.block(0, "in words", text);
        }
        if status == "answered" {
            self.line(0, "confidence", string(&answer["confidence"]));
            values(&answer["reasons"]).iter().for_each(|reason| self.line(1, "because", string(reason)));
        }
        let (counts, cost) = (&answer["metadata"], &answer["cost"]);
        let mut took = format!(
            "{} of the model, {} of the database, {:.0} ms, {} read and {} written",
            count(&counts["llm_calls"], "call"),
            counts["tool_executions"],
            counts["total_duration_ms"].as_f64().unwrap_or(0.0),
            count(&cost["input_tokens"], "token"),
            cost["output_tokens"],
        );
        if let Some(usd) = cost["usd"].as_f64() {
            took.push_str(&format!(", ${usd:.4}"));
        }
        self.line(0, "took", &took);
    }
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn count(value: &Value, noun: &str) -> String {
    counted(value.as_u64().unwrap_or_default(), noun)
}

fn values(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn list(names: &Value) -> String {
    let names: Vec<&str> = values(names).iter().map(string).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
