//! Observer that records metrics from events.

use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend::correction::CorrectionResponse;
use querymend::sql_api::{QueryError, QueryResult};
use querymend::{Event, ProblemCode, Stage};
use querymend_sql::RepairStatus;

use super::ServerMetrics;
use crate::observe::observer::{EventOrigin, Observer, RunObserver};
use crate::wire_name::wire_name;

/// Records metrics of all requests.
pub struct MetricsRecorder(pub Arc<ServerMetrics>);

impl Observer for MetricsRecorder {
    fn on_question(&self, origin: &EventOrigin<'_>, _: &str) -> Box<dyn RunObserver> {
        Box::new(QuestionMetrics {
            metrics: Arc::clone(&self.0),
            database: origin.database.to_owned(),
            model: origin.model.to_owned(),
            stage: None,
            reported: false,
            finished: false,
        })
    }

    fn on_correction(&self, origin: &EventOrigin<'_>, corrected: &CorrectionResponse, _: Duration) {
        if corrected.status == RepairStatus::Untouched {
            return;
        }
        self.0.correction_attempts.with_labels(&[origin.database]).increment();
        if corrected.status == RepairStatus::Mended {
            let by = if corrected.is_by_model() { "model" } else { "rules" };
            self.0.on_correction(origin.database, by, corrected.success, corrected.confidence);
        }
    }

    fn on_run(&self, origin: &EventOrigin<'_>, ran: &Result<QueryResult, QueryError>, _: Duration) {
        let database = origin.database;
        let outcome = match ran {
            Ok(ran) => {
                self.0.rows.with_labels(&[database]).add(ran.rows.rows.len() as f64);
                self.0.database_seconds.with_labels(&[database, "ran"]).observe(ran.ms / 1e3);
                "ran"
            }
            Err(not) if not.problem.code == ProblemCode::PreflightValidationFailed => "held_back",
            Err(_) => "failed",
        };
        self.0.queries.with_labels(&[database, outcome]).increment();
    }
}

/// Records metrics of one question.
struct QuestionMetrics {
    metrics: Arc<ServerMetrics>,
    database: String,
    model: String,
    stage: Option<(Stage, Instant)>,
    /// `true` after the model or database called in the current stage has reported its result.
    reported: bool,
    finished: bool,
}

impl QuestionMetrics {
    fn stage_elapsed(&self) -> f64 {
        self.stage.map_or(0.0, |(_, since)| since.elapsed().as_secs_f64())
    }

    fn on_database_call(&mut self, outcome: &str, seconds: f64) {
        self.reported = true;
        self.metrics.queries.with_labels(&[&self.database, outcome]).increment();
        self.metrics.database_seconds.with_labels(&[&self.database, outcome]).observe(seconds);
    }

    fn end_stage(&mut self) {
        let Some((stage, since)) = self.stage.take() else { return };
        let took = since.elapsed().as_secs_f64();
        match stage {
            Stage::Generation if !self.reported => {
                self.metrics.model_seconds.with_labels(&[&self.model, "failed"]).observe(took)
            }
            Stage::ToolExecution if !self.reported => self.on_database_call("failed", took),
            // Terminal stages have no duration.
            Stage::Completed | Stage::Failed | Stage::HumanInTheLoop => return,
            _ => {}
        }
        self.metrics.stage_seconds.with_labels(&[&wire_name(&stage)]).observe(took);
    }
}

impl RunObserver for QuestionMetrics {
    fn on_event(&mut self, event: &Event) {
        match event {
            Event::Stage { stage, .. } => {
                self.end_stage();
                self.stage = Some((*stage, Instant::now()));
                self.reported = false;
            }
            Event::Drafted { usage, .. } => {
                self.reported = true;
                let (metrics, model) = (&self.metrics, self.model.as_str());
                metrics.model_seconds.with_labels(&[model, "ok"]).observe(self.stage_elapsed());
                metrics.tokens.with_labels(&[model, "input"]).add(usage.input_tokens as f64);
                metrics.tokens.with_labels(&[model, "output"]).add(usage.output_tokens as f64);
                if let Some(usd) = usage.usd {
                    metrics.cost.with_labels(&[model]).add(usd);
                }
            }
            Event::Executed { ms, .. } => self.on_database_call("ran", ms / 1e3),
            Event::Rejected { error_type, .. } => {
                self.metrics.errors.with_labels(&[&self.database, &wire_name(error_type)]).increment();
                self.on_database_call("rejected", self.stage_elapsed());
            }
            Event::Finished { answer } => {
                self.end_stage();
                self.finished = true;
                self.metrics.on_answer(&self.database, answer);
            }
            _ => {}
        }
    }
}

impl Drop for QuestionMetrics {
    fn drop(&mut self) {
        if !self.finished {
            self.end_stage();
            self.metrics.questions.with_labels(&[&self.database, "abandoned", "cancelled"]).increment();
        }
    }
}
