//! Spans from events: one for the question, and beneath it one for each stage. Models are told of as the conventions for generative
//! AI have it, databases as those for database clients do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::trace::v1::span::{Event as Mark, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status as Outcome};
use querymend::correct::Corrected;
use querymend::direct::{NotRun, Ran};
use querymend::{Answer, Event, Stage, Status};
use querymend_sql::{ErrorType, Severity};

use super::Otlp;
use super::attributes::{list, number, text, truth, whole};
use super::parent::{Trace, span_id};
use crate::heard::{Hearing, Listener, Place};
use crate::service::word;

/// Spans of one question. A question that takes more of them is told without its last ones.
const MOST: usize = 128;
/// How much of a question or a query is told, where it is told at all.
const LONGEST_TEXT: usize = 4_096;

/// Spans that are being gathered.
struct Gathering {
    otlp: Otlp,
    trace: Trace,
    wall: Duration,
    began: Instant,
    spans: Vec<Span>,
}

impl Gathering {
    fn new(otlp: Otlp, trace: Trace, ago: Duration) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(ago);
        Self { otlp, trace, wall, began: Instant::now(), spans: Vec::new() }
    }

    /// The time as spans have it. A clock that is set does not make a span end before it began.
    fn now(&self) -> u64 {
        self.at(self.began.elapsed())
    }

    fn at(&self, since: Duration) -> u64 {
        (self.wall + since).as_nanos() as u64
    }

    fn child(&self, name: String, kind: SpanKind, attributes: Vec<KeyValue>) -> Span {
        Span {
            trace_id: self.trace.trace_id.to_vec(),
            span_id: span_id().to_vec(),
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
        if self.spans.len() < MOST {
            self.spans.push(span);
        }
    }

    /// Adds the span that all others belong to, and sends them.
    fn send(&mut self, name: &str, end: u64, attributes: Vec<KeyValue>, marks: Vec<Mark>, failed: Option<&str>) {
        let root = Span {
            span_id: self.trace.span_id.to_vec(),
            parent_span_id: self.trace.parent.map(Vec::from).unwrap_or_default(),
            start_time_unix_nano: self.at(Duration::ZERO),
            end_time_unix_nano: end,
            events: marks,
            status: failed.map(error),
            ..self.child(name.to_owned(), SpanKind::Server, attributes)
        };
        self.spans.push(root);
        let spans = std::mem::take(&mut self.spans);
        if self.trace.sampled {
            self.otlp.send(spans);
        }
    }
}

fn error(message: &str) -> Outcome {
    Outcome { message: message.to_owned(), code: StatusCode::Error as i32 }
}

fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}

/// Who offers a model, and what it is called there.
fn provider(model: &str) -> (&str, &str) {
    match model.split_once(':') {
        Some(("http" | "https", address)) => ("openai", address.rsplit_once('#').map_or(address, |(_, name)| name)),
        Some(("gemini", name)) => ("gcp.gemini", name),
        Some((provider, name)) => (provider, name),
        None => (model, model),
    }
}

fn database(place: &Place<'_>) -> Vec<KeyValue> {
    let system = if place.dialect == "postgres" { "postgresql" } else { place.dialect };
    vec![text("db.system.name", system), text("db.namespace", place.database), text("db.operation.name", "SELECT")]
}

fn place_of(place: &Place<'_>, trace_id: &str) -> Vec<KeyValue> {
    let mut attributes = vec![text("querymend.request_id", place.request.request_id)];
    attributes.extend(database(place).into_iter().take(2));
    if !trace_id.is_empty() {
        attributes.push(text("querymend.trace_id", trace_id));
    }
    attributes
}

impl Listener for Otlp {
    fn question(&self, place: &Place<'_>, trace_id: &str) -> Box<dyn Hearing> {
        let trace = Trace::of(place.request.traceparent, trace_id);
        let (provider, model) = provider(place.model);
        let model_attributes = vec![
            text("gen_ai.operation.name", "chat"),
            text("gen_ai.provider.name", provider),
            text("gen_ai.request.model", model),
        ];
        Box::new(Question {
            gathering: Gathering::new(self.clone(), trace, Duration::ZERO),
            attributes: place_of(place, trace_id),
            chat: format!("chat {model}"),
            model: model_attributes,
            query: format!("SELECT {}", place.database),
            database: database(place),
            open: None,
            marks: Vec::new(),
            fault: None,
            finished: false,
        })
    }

    fn corrected(&self, place: &Place<'_>, corrected: &Corrected, took: Duration) {
        let trace = Trace::of(place.request.traceparent, &corrected.trace_id);
        let mut gathering = Gathering::new(self.clone(), trace, took);
        let outcome = word(&corrected.status);
        let mut attributes = place_of(place, &corrected.trace_id);
        attributes.extend([
            text("outcome", outcome.as_str()),
            text("confidence", word(&corrected.confidence)),
            list("querymend.rules", corrected.fixes.iter().map(|fix| fix.code)),
        ]);
        let end = gathering.at(took);
        gathering.send("correct", end, attributes, Vec::new(), (!corrected.success).then_some(outcome.as_str()));
    }

    fn ran(&self, place: &Place<'_>, ran: &Result<Ran, NotRun>, took: Duration) {
        let trace = Trace::of(place.request.traceparent, &querymend::trace_id());
        let mut gathering = Gathering::new(self.clone(), trace, took);
        let end = gathering.at(took);
        let mut attributes = place_of(place, "");
        let failed = match ran {
            Ok(ran) => {
                let mut of_query = database(place);
                of_query.push(whole("db.response.returned_rows", ran.rows.rows.len()));
                if self.texts {
                    of_query.push(text("db.query.text", clipped(&ran.sql)));
                }
                // The database came last, after the critic.
                let start = end.saturating_sub((ran.ms * 1e6) as u64);
                let child = gathering.child(format!("SELECT {}", place.database), SpanKind::Client, of_query);
                gathering.push(Span { start_time_unix_nano: start, end_time_unix_nano: end, ..child });
                attributes.push(text("outcome", "ran"));
                None
            }
            Err(not) => {
                let code = word(&not.problem.code);
                attributes.extend([text("outcome", "failed"), text("error.type", code.as_str())]);
                Some(code)
            }
        };
        gathering.send("run", end, attributes, Vec::new(), failed.as_deref());
    }

    fn lost(&self) -> Vec<(&'static str, u64)> {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        vec![("spans", of(&self.dropped.spans)), ("metrics", of(&self.dropped.figures))]
    }
}

/// One question.
struct Question {
    gathering: Gathering,
    attributes: Vec<KeyValue>,
    /// How spans of the model are called, and what is said of each of them.
    chat: String,
    model: Vec<KeyValue>,
    /// The same of the database.
    query: String,
    database: Vec<KeyValue>,
    open: Option<Open>,
    marks: Vec<Mark>,
    /// The family of the failure that was seen last.
    fault: Option<ErrorType>,
    finished: bool,
}

/// A stage that is not over.
struct Open {
    stage: Stage,
    span: Span,
    /// What came of it was told.
    told: bool,
}

impl Question {
    fn begin(&mut self, stage: Stage, attempt: u32) {
        self.end("_OTHER");
        let (name, kind, mut attributes) = match stage {
            Stage::SchemaDiscovery | Stage::PatternSelection => (word(&stage), SpanKind::Internal, Vec::new()),
            Stage::Generation => (self.chat.clone(), SpanKind::Client, self.model.clone()),
            Stage::GuardrailCheck => ("review".to_owned(), SpanKind::Internal, Vec::new()),
            Stage::ToolExecution => (self.query.clone(), SpanKind::Client, self.database.clone()),
            Stage::SelfCorrection => ("mend".to_owned(), SpanKind::Internal, Vec::new()),
            // They are how it ended.
            Stage::Completed | Stage::Failed | Stage::HumanInTheLoop => return,
        };
        attributes.push(whole("querymend.attempt", attempt));
        let span = self.gathering.child(name, kind, attributes);
        self.open = Some(Open { stage, span, told: false });
    }

    /// Ends the stage that is open. A model or a database of which nothing was told has failed.
    fn end(&mut self, why: &str) {
        let Some(Open { stage, mut span, told }) = self.open.take() else { return };
        if span.end_time_unix_nano == 0 {
            span.end_time_unix_nano = self.gathering.now();
        }
        if !told && matches!(stage, Stage::Generation | Stage::ToolExecution) {
            span.attributes.push(text("error.type", why));
            span.status = Some(error(why));
        }
        self.gathering.push(span);
    }

    /// Says something about the stage that is open, if it is this one.
    fn say(&mut self, stage: Stage, attributes: Vec<KeyValue>, failed: Option<&str>) {
        let now = self.gathering.now();
        if let Some(open) = self.open.as_mut().filter(|open| open.stage == stage) {
            open.told = true;
            open.span.end_time_unix_nano = now;
            open.span.attributes.extend(attributes);
            open.span.status = failed.map(error);
        }
    }

    fn mark(&mut self, name: &str, attributes: Vec<KeyValue>) {
        if self.marks.len() < MOST {
            let time_unix_nano = self.gathering.now();
            self.marks.push(Mark { time_unix_nano, name: name.to_owned(), attributes, ..Mark::default() });
        }
    }

    fn query_text(&self, sql: &str) -> Option<KeyValue> {
        self.gathering.otlp.texts.then(|| text("db.query.text", clipped(sql)))
    }

    fn finish(&mut self, answer: &Answer) {
        let problem = answer.problem.as_ref().map(|problem| word(&problem.code));
        self.end(problem.as_deref().unwrap_or("_OTHER"));
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.extend([
            text("outcome", word(&answer.status)),
            text("confidence", word(&answer.confidence)),
            whole("attempt_count", answer.attempts.len()),
            text("querymend.stop", word(&answer.stop)),
            whole("querymend.correction_attempts", answer.metadata.correction_attempts),
            whole("gen_ai.usage.input_tokens", answer.cost.input_tokens),
            whole("gen_ai.usage.output_tokens", answer.cost.output_tokens),
            truth("querymend.from_memory", answer.remembered.is_some()),
        ]);
        let spent = answer.attempts.iter().rev().find_map(|attempt| attempt.error_type);
        attributes.extend(spent.or(self.fault).map(|kind| text("error_type", word(&kind))));
        attributes.extend(answer.rows.as_ref().map(|rows| whole("db.response.returned_rows", rows.rows.len())));
        attributes.extend(answer.cost.usd.map(|usd| number("querymend.cost_usd", usd)));
        if self.gathering.otlp.texts {
            attributes.push(text("querymend.question", clipped(&answer.question)));
        }
        let failed = matches!(answer.status, Status::GaveUp | Status::Failed).then(|| problem.unwrap_or_default());
        attributes.extend(failed.as_ref().map(|code| text("error.type", code.as_str())));
        self.finished = true;
        let (end, marks) = (self.gathering.now(), std::mem::take(&mut self.marks));
        self.gathering.send("question", end, attributes, marks, failed.as_deref());
    }
}

impl Hearing for Question {
    fn hear(&mut self, event: &Event) {
        match event {
            // The stages that say how it ended come just before the end, which knows why.
            Event::Stage { stage: Stage::Completed | Stage::Failed | Stage::HumanInTheLoop, .. } => {}
            Event::Stage { stage, attempt } => self.begin(*stage, *attempt),
            Event::Linked { tables, of } => {
                let attributes = vec![whole("querymend.tables_shown", tables.len()), whole("querymend.tables", *of)];
                self.say(Stage::PatternSelection, attributes, None);
            }
            Event::Recalled { known, examples, .. } => {
                let known = truth("querymend.known", known.is_some());
                self.mark("recalled", vec![known, whole("querymend.examples_shown", examples.len())]);
            }
            Event::Drafted { usage, .. } => {
                let mut attributes = vec![
                    whole("gen_ai.usage.input_tokens", usage.input_tokens),
                    whole("gen_ai.usage.output_tokens", usage.output_tokens),
                ];
                attributes.extend(usage.usd.map(|usd| number("querymend.cost_usd", usd)));
                self.say(Stage::Generation, attributes, None);
            }
            Event::Weighed { agree, of, .. } => {
                self.mark("weighed", vec![whole("querymend.agree", *agree), whole("querymend.drafts", *of)]);
            }
            Event::Reviewed { approved, findings, sql, .. } => {
                let mut attributes = vec![
                    truth("querymend.approved", *approved),
                    list("querymend.findings", findings.iter().take(16).map(|finding| finding.code)),
                ];
                let fault = findings.iter().find(|finding| finding.severity == Severity::Error);
                if let Some(kind) = fault.map(|finding| ErrorType::of(finding.code)) {
                    attributes.push(text("error_type", word(&kind)));
                    self.fault = Some(kind);
                }
                attributes.extend(self.query_text(sql));
                self.say(Stage::GuardrailCheck, attributes, None);
            }
            Event::Mended { applied, after, .. } => {
                let mut attributes = vec![list("querymend.rules", applied.iter().take(16).map(|fix| fix.code))];
                attributes.extend(self.query_text(after));
                self.say(Stage::SelfCorrection, attributes, None);
            }
            Event::Executed { rows, truncated, sql, .. } => {
                let mut attributes =
                    vec![whole("db.response.returned_rows", *rows), truth("querymend.truncated", *truncated)];
                attributes.extend(self.query_text(sql));
                self.say(Stage::ToolExecution, attributes, None);
            }
            Event::Rejected { error, finding, error_type, sql, .. } => {
                self.fault = Some(*error_type);
                let mut attributes = vec![text("error_type", word(error_type)), text("error.type", *finding)];
                if !error.code.is_empty() {
                    attributes.push(text("db.response.status_code", error.code.as_str()));
                }
                attributes.extend(self.query_text(sql));
                self.say(Stage::ToolExecution, attributes, Some(finding));
            }
            Event::Retrying { attempt, strategy, feedback, .. } => {
                let kinds = feedback.iter().take(16).map(|told| told.kind.as_str());
                let attributes =
                    vec![whole("querymend.attempt", *attempt), text("strategy", *strategy), list("feedback", kinds)];
                self.mark("retry", attributes);
            }
            Event::FellBack { tables } => self.mark("fall_back", vec![whole("querymend.tables", tables.len())]),
            Event::Finished { answer } => self.finish(answer),
            Event::Started { .. } | Event::Text { .. } | Event::Changed { .. } => {}
        }
    }

    fn traceparent(&self) -> Option<String> {
        Some(self.gathering.trace.traceparent())
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if !self.finished {
            self.end("cancelled");
            let mut attributes = std::mem::take(&mut self.attributes);
            attributes.extend([text("outcome", "abandoned"), text("error.type", "cancelled")]);
            let (end, marks) = (self.gathering.now(), std::mem::take(&mut self.marks));
            self.gathering.send("question", end, attributes, marks, Some("cancelled"));
        }
    }
}
