//! Server metrics for Prometheus and OpenTelemetry collectors.
//!
//! Labels are names of databases, models, stages and routes, never user input or user ids.

pub mod metric;
pub mod prometheus;
mod recorder;

use std::time::Duration;

use querymend::resilience::{BreakerState, BreakerStats};
use querymend::strategies::STRATEGIES;
use querymend::{Answer, Confidence};
use querymend_engine::Connections;

use self::metric::{Metric, MetricDesc, MetricKind, MetricSnapshot};
pub use self::recorder::MetricsRecorder;
use crate::clock::now;
use crate::wire_name::wire_name;

const fn counter(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> MetricDesc {
    MetricDesc { name, help, kind: MetricKind::Counter, labels }
}

const fn gauge(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> MetricDesc {
    MetricDesc { name, help, kind: MetricKind::Gauge, labels }
}

const fn histogram(name: &'static str, help: &'static str, labels: &'static [&'static str]) -> MetricDesc {
    MetricDesc { name, help, kind: MetricKind::Histogram, labels }
}

const SUCCESS_RATE: MetricDesc = gauge(
    "querymend_correction_success_rate",
    "Share of attempted corrections after which the query ran.",
    &["database"],
);
const BREAKER_STATE: MetricDesc =
    gauge("querymend_circuit_breaker_state", "State of the circuit breaker: 0 closed, 1 open, 2 half-open.", &["tool"]);
const BREAKER_OPENS: MetricDesc =
    counter("querymend_circuit_breaker_opens_total", "Number of times that the circuit breaker opened.", &["tool"]);
const BREAKER_REJECTIONS: MetricDesc =
    counter("querymend_circuit_breaker_rejections_total", "Calls rejected by the circuit breaker.", &["tool"]);
const TOOL_CALLS: MetricDesc = counter(
    "querymend_tool_calls_total",
    "Calls to databases and models by outcome: ok or failed.",
    &["tool", "outcome"],
);
const REQUESTS_RUNNING: MetricDesc = gauge("querymend_requests_running", "Requests in flight.", &[]);
const AUDIT_LINES: MetricDesc = counter("querymend_audit_lines_total", "Lines written to the audit log.", &[]);
const CONNECTIONS: MetricDesc =
    gauge("querymend_database_connections", "Connections to databases by state: idle or busy.", &["database", "state"]);
const TELEMETRY_DROPPED: MetricDesc = counter(
    "querymend_telemetry_dropped_total",
    "Telemetry items that did not reach the collector, by signal.",
    &["signal"],
);
const BUILD_INFO: MetricDesc =
    gauge("querymend_build_info", "Build information, always 1; the version is a label.", &["version"]);
const START_TIME: MetricDesc =
    gauge("process_start_time_seconds", "Start time of the process, in seconds since the Unix epoch.", &[]);
const RESIDENT_MEMORY: MetricDesc =
    gauge("process_resident_memory_bytes", "Resident memory of the process, in bytes.", &[]);

/// All metrics of one server.
pub struct ServerMetrics {
    started_at: u64,
    questions: Metric,
    question_seconds: Metric,
    stage_seconds: Metric,
    correction_attempts: Metric,
    corrections: Metric,
    high_confidence: Metric,
    low_confidence: Metric,
    errors: Metric,
    queries: Metric,
    rows: Metric,
    cache_hits: Metric,
    database_seconds: Metric,
    model_seconds: Metric,
    tokens: Metric,
    cost: Metric,
    http_requests: Metric,
    http_seconds: Metric,
}

impl Default for ServerMetrics {
    fn default() -> Self {
        let new = Metric::new;
        Self {
            started_at: now(),
            questions: new(counter(
                "querymend_questions_total",
                "Questions by outcome and stop reason; `abandoned` if the client disconnected.",
                &["database", "outcome", "stop"],
            )),
            question_seconds: new(histogram(
                "querymend_question_duration_seconds",
                "Time from question to answer, in seconds.",
                &["database", "outcome"],
            )),
            stage_seconds: new(histogram(
                "querymend_stage_duration_seconds",
                "Time per stage of a question, in seconds; stages that do not wait count towards the previous one.",
                &["stage"],
            )),
            correction_attempts: new(counter(
                "querymend_correction_attempts_total",
                "Attempted corrections, by rules and by models.",
                &["database"],
            )),
            corrections: new(counter(
                "querymend_corrections_total",
                "Corrections by origin (rules or model) and success of the corrected query.",
                &["database", "by", "successful"],
            )),
            high_confidence: new(counter(
                "querymend_high_confidence_corrections_total",
                "Corrections with high confidence.",
                &["database"],
            )),
            low_confidence: new(counter(
                "querymend_low_confidence_corrections_total",
                "Corrections with low confidence.",
                &["database"],
            )),
            errors: new(counter(
                "querymend_errors_total",
                "Rejected queries by error type.",
                &["database", "error_type"],
            )),
            queries: new(counter(
                "querymend_queries_total",
                "Queries by outcome: ran, rejected by the database, held_back by the review, or failed.",
                &["database", "outcome"],
            )),
            rows: new(counter("querymend_rows_returned_total", "Rows returned.", &["database"])),
            cache_hits: new(counter(
                "querymend_cache_hits_total",
                "Questions answered from memory, without a model call.",
                &["database"],
            )),
            database_seconds: new(histogram(
                "querymend_database_call_duration_seconds",
                "Execution time of queries, in seconds.",
                &["database", "outcome"],
            )),
            model_seconds: new(histogram(
                "querymend_model_call_duration_seconds",
                "Duration of model calls, in seconds.",
                &["model", "outcome"],
            )),
            tokens: new(counter(
                "querymend_model_tokens_total",
                "Tokens of model calls by direction: input or output.",
                &["model", "direction"],
            )),
            cost: new(counter(
                "querymend_model_cost_usd_total",
                "Cost of model calls in US dollars, if prices are known.",
                &["model"],
            )),
            http_requests: new(counter(
                "querymend_http_requests_total",
                "HTTP requests by route, method and status; 499 if the client disconnected.",
                &["route", "method", "status"],
            )),
            http_seconds: new(histogram(
                "querymend_http_request_duration_seconds",
                "Time from request to response headers, in seconds; event streams continue afterwards.",
                &["route", "method"],
            )),
        }
    }
}

/// Values that are not counted here but sampled at collection time.
pub struct RuntimeStats {
    /// State of the circuit breakers of databases and models.
    pub breakers: Vec<BreakerStats>,
    /// Number of requests in flight.
    pub running_requests: usize,
    /// Number of lines written to the audit log.
    pub audit_lines: u64,
    /// Number of telemetry items that did not reach a collector, by signal.
    pub dropped: Vec<(&'static str, u64)>,
    /// Pool connections of each database with an engine that pools them.
    pub connections: Vec<(String, Connections)>,
}

impl ServerMetrics {
    /// Initializes the counters of a database to zero, so that the first increment is visible.
    pub fn register_database(&self, database: &str) {
        for metric in
            [&self.correction_attempts, &self.high_confidence, &self.low_confidence, &self.rows, &self.cache_hits]
        {
            metric.with_labels(&[database]);
        }
    }

    /// Returns the start time of the server, in seconds since the Unix epoch.
    pub fn started_at(&self) -> u64 {
        self.started_at
    }

    /// Returns a snapshot of all metrics.
    pub fn snapshots(&self, runtime: &RuntimeStats) -> Vec<MetricSnapshot> {
        let counted = [
            &self.correction_attempts,
            &self.corrections,
            &self.high_confidence,
            &self.low_confidence,
            &self.questions,
            &self.question_seconds,
            &self.stage_seconds,
            &self.errors,
            &self.queries,
            &self.rows,
            &self.cache_hits,
            &self.database_seconds,
            &self.model_seconds,
            &self.tokens,
            &self.cost,
            &self.http_requests,
            &self.http_seconds,
        ];
        let mut all: Vec<MetricSnapshot> = counted.iter().map(|metric| metric.snapshot()).collect();
        all.push(MetricSnapshot::from_values(SUCCESS_RATE, self.success_rates()));
        all.extend(breaker_snapshots(&runtime.breakers));
        all.push(MetricSnapshot::from_values(REQUESTS_RUNNING, vec![(Vec::new(), runtime.running_requests as f64)]));
        all.push(MetricSnapshot::from_values(AUDIT_LINES, vec![(Vec::new(), runtime.audit_lines as f64)]));
        let connections = runtime.connections.iter().flat_map(|(database, count)| {
            [("busy", count.busy), ("idle", count.idle)]
                .map(|(state, count)| (vec![database.clone(), state.to_owned()], count as f64))
        });
        all.push(MetricSnapshot::from_values(CONNECTIONS, connections.collect()));
        let lost = runtime.dropped.iter().map(|(signal, count)| (vec![(*signal).to_owned()], *count as f64));
        all.push(MetricSnapshot::from_values(TELEMETRY_DROPPED, lost.collect()));
        all.push(MetricSnapshot::from_values(BUILD_INFO, vec![(vec![env!("CARGO_PKG_VERSION").to_owned()], 1.0)]));
        all.push(MetricSnapshot::from_values(START_TIME, vec![(Vec::new(), self.started_at as f64)]));
        all.push(MetricSnapshot::from_values(
            RESIDENT_MEMORY,
            resident_bytes().map(|bytes| (Vec::new(), bytes)).into_iter().collect(),
        ));
        all
    }

    /// Returns the success rate of corrections per database, without databases that had none.
    fn success_rates(&self) -> Vec<(Vec<String>, f64)> {
        let made = self.corrections.snapshot().points;
        let successful = |database: &String| -> f64 {
            let own = made.iter().filter(|point| point.labels.first() == Some(database));
            own.filter(|point| point.labels.last().is_some_and(|label| label == "true")).map(|point| point.value).sum()
        };
        let tried = self.correction_attempts.snapshot().points.into_iter().filter(|point| point.value > 0.0);
        let rate = |point: metric::DataPoint| {
            let database = point.labels.first()?;
            // The sum of an empty iterator is -0.0, which Prometheus would show as `-0`.
            let rate = successful(database) / point.value + 0.0;
            Some((point.labels, rate))
        };
        tried.filter_map(rate).collect()
    }

    /// Records a completed HTTP request.
    pub fn on_http_request(&self, route: &str, method: &str, status: u16, took: Duration) {
        self.http_requests.with_labels(&[route, method, &status.to_string()]).increment();
        self.http_seconds.with_labels(&[route, method]).observe(took.as_secs_f64());
    }

    fn on_correction(&self, database: &str, by: &str, successful: bool, confidence: Confidence) {
        self.corrections.with_labels(&[database, by, if successful { "true" } else { "false" }]).increment();
        match confidence {
            Confidence::High => self.high_confidence.with_labels(&[database]).increment(),
            Confidence::Low => self.low_confidence.with_labels(&[database]).increment(),
            Confidence::Medium => {}
        }
    }

    fn on_answer(&self, database: &str, answer: &Answer) {
        let outcome = wire_name(&answer.status);
        self.questions.with_labels(&[database, &outcome, &wire_name(&answer.stop)]).increment();
        self.question_seconds.with_labels(&[database, &outcome]).observe(answer.metadata.total_duration_ms / 1e3);
        self.correction_attempts.with_labels(&[database]).add(f64::from(answer.metadata.correction_attempts));
        for one in &answer.corrections {
            let by_model = STRATEGIES.iter().any(|strategy| strategy.name == one.strategy);
            self.on_correction(database, if by_model { "model" } else { "rules" }, one.successful, one.confidence);
        }
        for attempt in answer.attempts.iter().filter(|attempt| attempt.held_back) {
            self.queries.with_labels(&[database, "held_back"]).increment();
            if let Some(kind) = attempt.error_type {
                self.errors.with_labels(&[database, &wire_name(&kind)]).increment();
            }
        }
        if answer.remembered.is_some() {
            self.cache_hits.with_labels(&[database]).increment();
        }
        let rows = answer.rows.as_ref().map_or(0, |rows| rows.rows.len());
        self.rows.with_labels(&[database]).add(rows as f64);
    }
}

fn breaker_snapshots(all: &[BreakerStats]) -> [MetricSnapshot; 4] {
    let each = |value: fn(&BreakerStats) -> f64| all.iter().map(|one| (vec![one.tool.clone()], value(one))).collect();
    let state = |one: &BreakerStats| match one.state {
        BreakerState::Closed => 0.0,
        BreakerState::Open => 1.0,
        BreakerState::HalfOpen => 2.0,
    };
    let calls = all.iter().flat_map(|one| {
        [("ok", one.successes), ("failed", one.failures)]
            .map(|(outcome, count)| (vec![one.tool.clone(), outcome.to_owned()], count as f64))
    });
    [
        MetricSnapshot::from_values(BREAKER_STATE, each(state)),
        MetricSnapshot::from_values(BREAKER_OPENS, each(|one| one.opens as f64)),
        MetricSnapshot::from_values(BREAKER_REJECTIONS, each(|one| one.rejected as f64)),
        MetricSnapshot::from_values(TOOL_CALLS, calls.collect()),
    ]
}

/// Returns the resident set size; `None` if the platform does not expose it.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}
