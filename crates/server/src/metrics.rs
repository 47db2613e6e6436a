//! Figures about what a server does, as Prometheus and collectors of OpenTelemetry want them. Labels are names of databases, models,
//! stages and routes, and never what a person wrote or who it was.

mod counting;
pub mod registry;
pub mod text;

use std::time::Duration;

use querymend::guard::{State, Stats};
use querymend::strategies::STRATEGIES;
use querymend::{Answer, Confidence};
use querymend_engine::Connections;

pub use self::counting::Counting;
use self::registry::{About, Family, Kind, Told};
use crate::service::{now, word};

const fn counter(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> About {
    About { name, help, kind: Kind::Counter, labels }
}

const fn gauge(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> About {
    About { name, help, kind: Kind::Gauge, labels }
}

const fn seconds(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> About {
    About { name, help, kind: Kind::Histogram, labels }
}

const SUCCESS_RATE: About = gauge(
    "querymend_correction_success_rate",
    "Share of the corrections tried since the start after which the query ran",
    &["database"],
);
const BREAKER_STATE: About = gauge(
    "querymend_circuit_breaker_state",
    "0 closed, 1 open, 2 half-open: one call at a time is let through",
    &["tool"],
);
const BREAKER_OPENS: About = counter("querymend_circuit_breaker_opens_total", "Times that a breaker opened", &["tool"]);
const BREAKER_REJECTIONS: About =
    counter("querymend_circuit_breaker_rejections_total", "Calls that a breaker did not let through", &["tool"]);
const TOOL_CALLS: About = counter(
    "querymend_tool_calls_total",
    "Calls of databases and models that went well (ok) or failed, as their breakers count them",
    &["tool", "outcome"],
);
const RUNNING: About = gauge("querymend_requests_running", "Requests that are running", &[]);
const AUDIT_LINES: About = counter("querymend_audit_lines_total", "Lines that are on disk in the audit log", &[]);
const CONNECTIONS: About = gauge(
    "querymend_database_connections",
    "Connections to databases: idle, or busy with a query",
    &["database", "state"],
);
const LOST: About = counter(
    "querymend_telemetry_dropped_total",
    "What a collector did not get, because it was slow or away",
    &["signal"],
);
const BUILD: About = gauge("querymend_build_info", "Always 1; the version is a label", &["version"]);
const STARTED: About = gauge("process_start_time_seconds", "When the server started, in seconds since 1970", &[]);
const MEMORY: About = gauge("process_resident_memory_bytes", "Memory that the process has", &[]);

/// All figures of one server.
pub struct Metrics {
    started: u64,
    questions: Family,
    question_seconds: Family,
    stage_seconds: Family,
    attempts: Family,
    corrections: Family,
    high_confidence: Family,
    low_confidence: Family,
    errors: Family,
    queries: Family,
    rows: Family,
    hits: Family,
    database_seconds: Family,
    model_seconds: Family,
    tokens: Family,
    cost: Family,
    http: Family,
    http_seconds: Family,
}

impl Default for Metrics {
    fn default() -> Self {
        let new = Family::new;
        Self {
            started: now(),
            questions: new(counter(
                "querymend_questions_total",
                "Questions by how they ended and why; `abandoned` where nobody waited for the end",
                &["database", "outcome", "stop"],
            )),
            question_seconds: new(seconds(
                "querymend_question_duration_seconds",
                "From a question to its answer",
                &["database", "outcome"],
            )),
            stage_seconds: new(seconds(
                "querymend_stage_duration_seconds",
                "Time in each stage of a question; checks that wait for nothing count to the stage before",
                &["stage"],
            )),
            attempts: new(counter(
                "querymend_correction_attempts_total",
                "Corrections that were tried, by rules and by models",
                &["database"],
            )),
            corrections: new(counter(
                "querymend_corrections_total",
                "Corrections that were made, by whom, and whether the query ran afterwards",
                &["database", "by", "successful"],
            )),
            high_confidence: new(counter(
                "querymend_high_confidence_corrections_total",
                "Corrections that are as good as certain",
                &["database"],
            )),
            low_confidence: new(counter(
                "querymend_low_confidence_corrections_total",
                "Corrections of low confidence: retried once at most, or given up",
                &["database"],
            )),
            errors: new(counter(
                "querymend_errors_total",
                "Queries that were held back or refused, by the family of failure",
                &["database", "error_type"],
            )),
            queries: new(counter(
                "querymend_queries_total",
                "Queries that ran, were refused by the database (rejected) or by the critic (held_back), or failed otherwise",
                &["database", "outcome"],
            )),
            rows: new(counter("querymend_rows_returned_total", "Rows that were given back", &["database"])),
            hits: new(counter(
                "querymend_cache_hits_total",
                "Questions that were answered from memory, without a model",
                &["database"],
            )),
            database_seconds: new(seconds(
                "querymend_database_call_duration_seconds",
                "Time that databases took for queries",
                &["database", "outcome"],
            )),
            model_seconds: new(seconds(
                "querymend_model_call_duration_seconds",
                "Time that models took for drafts",
                &["model", "outcome"],
            )),
            tokens: new(counter(
                "querymend_model_tokens_total",
                "Tokens that models read (input) and wrote (output)",
                &["model", "direction"],
            )),
            cost: new(counter(
                "querymend_model_cost_usd_total",
                "What models cost, where prices are known",
                &["model"],
            )),
            http: new(counter(
                "querymend_http_requests_total",
                "Requests by route, method and status; 499 where the client hung up",
                &["route", "method", "status"],
            )),
            http_seconds: new(seconds(
                "querymend_http_request_duration_seconds",
                "From a request to the head of its response; a stream of events goes on after that",
                &["route", "method"],
            )),
        }
    }
}

/// What is not counted here but looked at when somebody asks.
pub struct Now {
    /// How databases and models have been doing.
    pub breakers: Vec<Stats>,
    /// Requests that are running.
    pub running: usize,
    /// Lines in the audit log.
    pub audit_lines: u64,
    /// What a collector did not get, by kind.
    pub lost: Vec<(&'static str, u64)>,
    /// The connections to each database whose engine keeps some.
    pub connections: Vec<(String, Connections)>,
}

impl Metrics {
    /// Figures of a database begin at zero, so that the first of anything is seen to have come.
    pub fn begin(&self, database: &str) {
        for family in [&self.attempts, &self.high_confidence, &self.low_confidence, &self.rows, &self.hits] {
            family.of(&[database]);
        }
    }

    /// When it began, in seconds since 1970.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Everything as it is now.
    pub fn told(&self, now: &Now) -> Vec<Told> {
        let counted = [
            &self.attempts,
            &self.corrections,
            &self.high_confidence,
            &self.low_confidence,
            &self.questions,
            &self.question_seconds,
            &self.stage_seconds,
            &self.errors,
            &self.queries,
            &self.rows,
            &self.hits,
            &self.database_seconds,
            &self.model_seconds,
            &self.tokens,
            &self.cost,
            &self.http,
            &self.http_seconds,
        ];
        let mut all: Vec<Told> = counted.iter().map(|family| family.told()).collect();
        all.push(Told::now(SUCCESS_RATE, self.success_rates()));
        all.extend(breakers(&now.breakers));
        all.push(Told::now(RUNNING, vec![(Vec::new(), now.running as f64)]));
        all.push(Told::now(AUDIT_LINES, vec![(Vec::new(), now.audit_lines as f64)]));
        let connections = now.connections.iter().flat_map(|(database, count)| {
            [("busy", count.busy), ("idle", count.idle)]
                .map(|(state, count)| (vec![database.clone(), state.to_owned()], count as f64))
        });
        all.push(Told::now(CONNECTIONS, connections.collect()));
        let lost = now.lost.iter().map(|(signal, count)| (vec![(*signal).to_owned()], *count as f64));
        all.push(Told::now(LOST, lost.collect()));
        all.push(Told::now(BUILD, vec![(vec![env!("CARGO_PKG_VERSION").to_owned()], 1.0)]));
        all.push(Told::now(STARTED, vec![(Vec::new(), self.started as f64)]));
        all.push(Told::now(MEMORY, resident().map(|bytes| (Vec::new(), bytes)).into_iter().collect()));
        all
    }

    /// Nothing is said of a database where nothing was tried.
    fn success_rates(&self) -> Vec<(Vec<String>, f64)> {
        let made = self.corrections.told().points;
        let successful = |database: &String| -> f64 {
            let own = made.iter().filter(|point| point.labels.first() == Some(database));
            own.filter(|point| point.labels.last().is_some_and(|label| label == "true")).map(|point| point.value).sum()
        };
        let tried = self.attempts.told().points.into_iter().filter(|point| point.value > 0.0);
        let rate = |point: registry::Point| {
            let database = point.labels.first()?;
            // The sum of no points is -0.0, which Prometheus would show as `-0`.
            let rate = successful(database) / point.value + 0.0;
            Some((point.labels, rate))
        };
        tried.filter_map(rate).collect()
    }

    /// A request over HTTP was answered.
    pub fn request(&self, route: &str, method: &str, status: u16, took: Duration) {
        self.http.of(&[route, method, &status.to_string()]).count();
        self.http_seconds.of(&[route, method]).observe(took.as_secs_f64());
    }

    fn correction(&self, database: &str, by: &str, successful: bool, confidence: Confidence) {
        self.corrections.of(&[database, by, if successful { "true" } else { "false" }]).count();
        match confidence {
            Confidence::High => self.high_confidence.of(&[database]).count(),
            Confidence::Low => self.low_confidence.of(&[database]).count(),
            Confidence::Medium => {}
        }
    }

    fn answered(&self, database: &str, answer: &Answer) {
        let outcome = word(&answer.status);
        self.questions.of(&[database, &outcome, &word(&answer.stop)]).count();
        self.question_seconds.of(&[database, &outcome]).observe(answer.metadata.total_duration_ms / 1e3);
        self.attempts.of(&[database]).add(f64::from(answer.metadata.correction_attempts));
        for one in &answer.corrections {
            let by_model = STRATEGIES.iter().any(|strategy| strategy.name == one.strategy);
            self.correction(database, if by_model { "model" } else { "rules" }, one.successful, one.confidence);
        }
        for held in answer.attempts.iter().filter(|attempt| attempt.held_back) {
            self.queries.of(&[database, "held_back"]).count();
            if let Some(kind) = held.error_type {
                self.errors.of(&[database, &word(&kind)]).count();
            }
        }
        if answer.remembered.is_some() {
            self.hits.of(&[database]).count();
        }
        let rows = answer.rows.as_ref().map_or(0, |rows| rows.rows.len());
        self.rows.of(&[database]).add(rows as f64);
    }
}

fn breakers(all: &[Stats]) -> [Told; 4] {
    let each = |value: fn(&Stats) -> f64| all.iter().map(|one| (vec![one.tool.clone()], value(one))).collect();
    let state = |one: &Stats| match one.state {
        State::Closed => 0.0,
        State::Open => 1.0,
        State::HalfOpen => 2.0,
    };
    let calls = all.iter().flat_map(|one| {
        [("ok", one.successes), ("failed", one.failures)]
            .map(|(outcome, count)| (vec![one.tool.clone(), outcome.to_owned()], count as f64))
    });
    [
        Told::now(BREAKER_STATE, each(state)),
        Told::now(BREAKER_OPENS, each(|one| one.opens as f64)),
        Told::now(BREAKER_REJECTIONS, each(|one| one.rejected as f64)),
        Told::now(TOOL_CALLS, calls.collect()),
    ]
}

/// Where the system tells it.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}
