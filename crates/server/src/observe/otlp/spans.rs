//! Spans built from events: one root span per question, with a child span per stage.
//!
//! Attributes follow the OpenTelemetry semantic conventions for generative AI and for database
//! clients.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Event as SpanEvent, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status as SpanStatus};
use querymend::correction::CorrectionResponse;
use querymend::sql_api::{QueryError, QueryResult};
use querymend::{Answer, AnswerStatus, Event, Stage};
use querymend_sql::{ErrorType, Severity};

use super::OtlpExporter;
use super::attributes::{boolean, float, integer, list, text};
use super::trace_context::{TraceContext, new_span_id};
use crate::observe::observer::{EventOrigin, Observer, RunObserver};
use crate::wire_name::wire_name;

/// Maximum number of child spans of a question. Further ones are dropped.
const MAX_SPANS: usize = 128;
/// Maximum length of a captured question or query, in bytes.
const MAX_TEXT_BYTES: usize = 4_096;

/// Collects the spans of one trace.
struct SpanBuilder {
    otlp: OtlpExporter,
    trace: TraceContext,
    started_at: Duration,
    began: Instant,
    spans: Vec<Span>,
}

impl SpanBuilder {
    fn new(otlp: OtlpExporter, trace: TraceContext, ago: Duration) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(ago);
        Self { otlp, trace, started_at: wall, began: Instant::now(), spans: Vec::new() }
    }

    /// Returns the current time in nanoseconds since the Unix epoch.
    ///
    /// It advances with the monotonic clock, so that setting the wall clock cannot end a span
    /// before its start.
    fn now(&self) -> u64 {
        self.at(self.began.elapsed())
    }

    fn at(&self, since: Duration) -> u64 {
        (self.started_at + since).as_nanos() as u64
    }

    fn child(&self, name: String, kind: SpanKind, attributes: Vec<KeyValue>) -> Span {
        Span {
            trace_id: self.trace.trace_id.to_vec(),
            span_id: new_span_id().to_vec(),
            parent_span_id: self.trace.span_id.to_vec(),
            flags: 1,
            name,
            kind: kind as i32,
            start_time_unix_nano: self.now(),
            attributes,
            ..Span::default()
        }
    }

    fn push(&mut self, span: Span) {
        if self.spans.len() < MAX_SPANS {
            self.spans.push(span);
        }
    }

    /// Adds the root span and queues all spans for export.
    fn finish(
        &mut self,
        name: &str,
        end: u64,
        attributes: Vec<KeyValue>,
        span_events: Vec<SpanEvent>,
        failed: Option<&str>,
    ) {
        let root = Span {
            span_id: self.trace.span_id.to_vec(),
            parent_span_id: self.trace.parent_span_id.map(Vec::from).unwrap_or_default(),
            start_time_unix_nano: self.at(Duration::ZERO),
            end_time_unix_nano: end,
            events: span_events,
            status: failed.map(error_status),
            ..self.child(name.to_owned(), SpanKind::Server, attributes)
        };
        self.spans.push(root);
        let spans = std::mem::take(&mut self.spans);
        if self.trace.is_sampled {
            self.otlp.send(spans);
        }
    }
}

fn error_status(message: &str) -> SpanStatus {
    SpanStatus { message: message.to_owned(), code: StatusCode::Error as i32 }
}

fn truncate_text(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]
}

/// Splits a model name into provider and model.
fn split_provider(model: &str) -> (&str, &str) {
    match model.split_once(':') {
        Some(("http" | "https", address)) => ("openai", address.rsplit_once('#').map_or(address, |(_, name)| name)),
        Some(("gemini", name)) => ("gcp.gemini", name),
        Some((provider, name)) => (provider, name),
        None => (model, model),
    }
}

fn database_attributes(origin: &EventOrigin<'_>) -> Vec<KeyValue> {
    let system = if origin.dialect == "postgres" { "postgresql" } else { origin.dialect };
    vec![text("db.system.name", system), text("db.namespace", origin.database), text("db.operation.name", "SELECT")]
}

fn origin_attributes(origin: &EventOrigin<'_>, trace_id: &str) -> Vec<KeyValue> {
    let mut attributes = vec![text("querymend.request_id", origin.request.request_id)];
    attributes.extend(database_attributes(origin).into_iter().take(2));
    if !trace_id.is_empty() {
        attributes.push(text("querymend.trace_id", trace_id));
    }
    attributes
}

impl Observer for OtlpExporter {
    fn on_question(&self, origin: &EventOrigin<'_>, trace_id: &str) -> Box<dyn RunObserver> {
        let trace = TraceContext::from_traceparent(origin.request.traceparent, trace_id);
        let (provider, model) = split_provider(origin.model);
        let model_attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.provider.name", provider),
            text("gen_ai.request.model", model),
        ];
        Box::new(QuestionSpans {
            builder: SpanBuilder::new(self.clone(), trace, Duration::ZERO),
            attributes: origin_attributes(origin, trace_id),
            chat_span_name: format!("chat {model}"),
            model_attributes,
            query_span_name: format!("SELECT {}", origin.database),
            database_attributes: database_attributes(origin),
            open_span: None,
            span_events: Vec::new(),
            last_error_type: None,
            finished: false,
        })
    }

    fn on_correction(&self, origin: &EventOrigin<'_>, corrected: &CorrectionResponse, took: Duration) {
        let trace = TraceContext::from_traceparent(origin.request.traceparent, &corrected.trace_id);
        let mut builder = SpanBuilder::new(self.clone(), trace, took);
        let outcome = wire_name(&corrected.status);
        let mut attributes = origin_attributes(origin, &corrected.trace_id);
        attributes.extend([
            text("outcome", outcome.as_str()),
            text("confidence", wire_name(&corrected.confidence)),
            list("querymend.rules", corrected.fixes.iter().map(|fix| fix.code)),
        ]);
        let end = builder.at(took);
        builder.finish("correct", end, attributes, Vec::new(), (!corrected.success).then_some(outcome.as_str()));
    }

    fn on_run(&self, origin: &EventOrigin<'_>, ran: &Result<QueryResult, QueryError>, took: Duration) {
        let trace = TraceContext::from_traceparent(origin.request.traceparent, &querymend::trace_id());
        let mut builder = SpanBuilder::new(self.clone(), trace, took);
        let end = builder.at(took);
        let mut attributes = origin_attributes(origin, "");
        let failed = match ran {
            Ok(ran) => {
                let mut of_query = database_attributes(origin);
                of_query.push(integer("db.response.returned_rows", ran.rows.rows.len()));
                if self.capture_content {
                    of_query.push(text("db.query.text", truncate_text(&ran.sql)));
                }
                // The database call is the last step of a run, after the review.
                let start = end.saturating_sub((ran.ms * 1e6) as u64);
                let child = builder.child(format!("SELECT {}", origin.database), SpanKind::Client, of_query);
                builder.push(Span { start_time_unix_nano: start, end_time_unix_nano: end, ..child });
                attributes.push(text("outcome", "ran"));
                None
            }
            Err(error) => {
                let code = wire_name(&error.problem.code);
                attributes.extend([text("outcome", "failed"), text("error.type", code.as_str())]);
                Some(code)
            }
        };
        builder.finish("run", end, attributes, Vec::new(), failed.as_deref());
    }

    fn dropped(&self) -> Vec<(&'static str, u64)> {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![("spans", of(&self.dropped.spans)), ("metrics", of(&self.dropped.metrics))]
    }
}

/// Spans of one question.
struct QuestionSpans {
    builder: SpanBuilder,
    attributes: Vec<KeyValue>,
    /// Name of model spans; `model_attributes` holds their attributes.
    chat_span_name: String,
    model_attributes: Vec<KeyValue>,
    /// Name of database spans; `database_attributes` holds their attributes.
    query_span_name: String,
    database_attributes: Vec<KeyValue>,
    open_span: Option<OpenSpan>,
    span_events: Vec<SpanEvent>,
    /// Error type of the most recent failure.
    last_error_type: Option<ErrorType>,
    finished: bool,
}

/// Span of the current stage.
struct OpenSpan {
    stage: Stage,
    span: Span,
    /// `true` after the stage has reported its result.
    reported: bool,
}

impl QuestionSpans {
    fn begin_stage(&mut self, stage: Stage, attempt: u32) {
        self.end_stage("_OTHER");
        let (name, kind, mut attributes) = match stage {
            Stage::SchemaDiscovery | Stage::PatternSelection => (wire_name(&stage), SpanKind::Internal, Vec::new()),
            Stage::Generation => (self.chat_span_name.clone(), SpanKind::Client, self.model_attributes.clone()),
            Stage::GuardrailCheck => ("review".to_owned(), SpanKind::Internal, Vec::new()),
            Stage::ToolExecution => (self.query_span_name.clone(), SpanKind::Client, self.database_attributes.clone()),
            Stage::SelfCorrection => ("repair".to_owned(), SpanKind::Internal, Vec::new()),
            // Terminal stages have no span of their own.
            Stage::Completed | Stage::Failed | Stage::HumanInTheLoop => return,
        };
        attributes.push(integer("querymend.attempt", attempt));
        let span = self.builder.child(name, kind, attributes);
        self.open_span = Some(OpenSpan { stage, span, reported: false });
    }

    /// Ends the open stage. A model or database call without a reported result has failed.
    fn end_stage(&mut self, why: &str) {
        let Some(OpenSpan { stage, mut span, reported }) = self.open_span.take() else { return };
        if span.end_time_unix_nano == 0 {
            span.end_time_unix_nano = self.builder.now();
        }
        if !reported && matches!(stage, Stage::Generation | Stage::ToolExecution) {
            span.attributes.push(text("error.type", why));
            span.status = Some(error_status(why));
        }
        self.builder.push(span);
    }

    /// Adds attributes to the open span if it belongs to `stage`.
    fn annotate(&mut self, stage: Stage, attributes: Vec<KeyValue>, failed: Option<&str>) {
        let now = self.builder.now();
        if let Some(open) = self.open_span.as_mut().filter(|open| open.stage == stage) {
            open.reported = true;
            open.span.end_time_unix_nano = now;
            open.span.attributes.extend(attributes);
            open.span.status = failed.map(error_status);
        }
    }

    fn add_event(&mut self, name: &str, attributes: Vec<KeyValue>) {
        if self.span_events.len() < MAX_SPANS {
            let time_unix_nano = self.builder.now();
            self.span_events.push(SpanEvent {
                time_unix_nano,
                name: name.to_owned(),
                attributes,
                ..SpanEvent::default()
            });
        }
    }

    fn query_text(&self, sql: &str) -> Option<KeyValue> {
        self.builder.otlp.capture_content.then(|| text("db.query.text", truncate_text(sql)))
    }

    fn finish(&mut self, answer: &Answer) {
        let problem = answer.problem.as_ref().map(|problem| wire_name(&problem.code));
        self.end_stage(problem.as_deref().unwrap_or("_OTHER"));
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.extend([
            text("outcome", wire_name(&answer.status)),
            text("confidence", wire_name(&answer.confidence)),
            integer("attempt_count", answer.attempts.len()),
            text("querymend.stop", wire_name(&answer.stop)),
            integer("querymend.correction_attempts", answer.metadata.correction_attempts),
            integer("gen_ai.usage.input_tokens", answer.cost.input_tokens),
            integer("gen_ai.usage.output_tokens", answer.cost.output_tokens),
            boolean("querymend.from_memory", answer.remembered.is_some()),
        ]);
        let spent = answer.attempts.iter().rev().find_map(|attempt| attempt.error_type);
        attributes.extend(spent.or(self.last_error_type).map(|kind| text("error_type", wire_name(&kind))));
        attributes.extend(answer.rows.as_ref().map(|rows| integer("db.response.returned_rows", rows.rows.len())));
        attributes.extend(answer.cost.usd.map(|usd| float("querymend.cost_usd", usd)));
        if self.builder.otlp.capture_content {
            attributes.push(text("querymend.question", truncate_text(&answer.question)));
        }
        let failed =
            matches!(answer.status, AnswerStatus::GaveUp | AnswerStatus::Failed).then(|| problem.unwrap_or_default());
        attributes.extend(failed.as_ref().map(|code| text("error.type", code.as_str())));
        self.finished = true;
        let (end, span_events) = (self.builder.now(), std::mem::take(&mut self.span_events));
        self.builder.finish("question", end, attributes, span_events, failed.as_deref());
    }
}

impl RunObserver for QuestionSpans {
    fn on_event(&mut self, event: &Event) {
        match event {
            // Terminal stages precede `Finished`, which contains the reason.
            Event::Stage { stage: Stage::Completed | Stage::Failed | Stage::HumanInTheLoop, .. } => {}
            Event::Stage { stage, attempt } => self.begin_stage(*stage, *attempt),
            Event::SchemaLinked { tables, of } => {
                let attributes =
                    vec![integer("querymend.tables_shown", tables.len()), integer("querymend.tables", *of)];
                self.annotate(Stage::PatternSelection, attributes, None);
            }
            Event::ExamplesRetrieved { known, examples, .. } => {
                let known = boolean("querymend.known", known.is_some());
                self.add_event("examples_retrieved", vec![known, integer("querymend.examples_shown", examples.len())]);
            }
            Event::Drafted { usage, .. } => {
                let mut attributes = vec![
                    integer("gen_ai.usage.input_tokens", usage.input_tokens),
                    integer("gen_ai.usage.output_tokens", usage.output_tokens),
                ];
                attributes.extend(usage.usd.map(|usd| float("querymend.cost_usd", usd)));
                self.annotate(Stage::Generation, attributes, None);
            }
            Event::CandidatesCompared { agree, of, .. } => {
                self.add_event(
                    "candidates_compared",
                    vec![integer("querymend.agree", *agree), integer("querymend.drafts", *of)],
                );
            }
            Event::Reviewed { approved, findings, sql, .. } => {
                let mut attributes = vec![
                    boolean("querymend.approved", *approved),
                    list("querymend.findings", findings.iter().take(16).map(|finding| finding.code)),
                ];
                let fault = findings.iter().find(|finding| finding.severity == Severity::Error);
                if let Some(kind) = fault.map(|finding| ErrorType::of(finding.code)) {
                    attributes.push(text("error_type", wire_name(&kind)));
                    self.last_error_type = Some(kind);
                }
                attributes.extend(self.query_text(sql));
                self.annotate(Stage::GuardrailCheck, attributes, None);
            }
            Event::Repaired { applied, after, .. } => {
                let mut attributes = vec![list("querymend.rules", applied.iter().take(16).map(|fix| fix.code))];
                attributes.extend(self.query_text(after));
                self.annotate(Stage::SelfCorrection, attributes, None);
            }
            Event::Executed { rows, truncated, sql, .. } => {
                let mut attributes =
                    vec![integer("db.response.returned_rows", *rows), boolean("querymend.truncated", *truncated)];
                attributes.extend(self.query_text(sql));
                self.annotate(Stage::ToolExecution, attributes, None);
            }
            Event::Rejected { error, finding, error_type, sql, .. } => {
                self.last_error_type = Some(*error_type);
                let mut attributes = vec![text("error_type", wire_name(error_type)), text("error.type", *finding)];
                if !error.code.is_empty() {
                    attributes.push(text("db.response.status_code", error.code.as_str()));
                }
                attributes.extend(self.query_text(sql));
                self.annotate(Stage::ToolExecution, attributes, Some(finding));
            }
            Event::Retrying { attempt, strategy, feedback, .. } => {
                let kinds = feedback.iter().take(16).map(|item| item.kind.as_str());
                let attributes =
                    vec![integer("querymend.attempt", *attempt), text("strategy", *strategy), list("feedback", kinds)];
                self.add_event("retry", attributes);
            }
            Event::FallbackStarted { tables } => {
                self.add_event("fall_back", vec![integer("querymend.tables", tables.len())])
            }
            Event::Finished { answer } => self.finish(answer),
            Event::Started { .. } | Event::Text { .. } | Event::Changed { .. } => {}
        }
    }

    fn traceparent(&self) -> Option<String> {
        Some(self.builder.trace.traceparent())
    }
}

impl Drop for QuestionSpans {
    fn drop(&mut self) {
        if !self.finished {
            self.end_stage("cancelled");
            let mut attributes = std::mem::take(&mut self.attributes);
            attributes.extend([text("outcome", "abandoned"), text("error.type", "cancelled")]);
            let (end, span_events) = (self.builder.now(), std::mem::take(&mut self.span_events));
            self.builder.finish("question", end, attributes, span_events, Some("cancelled"));
        }
    }
}
