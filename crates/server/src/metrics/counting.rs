//! Hears what happens, and counts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend::correct::Corrected;
use querymend::direct::{NotRun, Ran};
use querymend::{Event, ProblemCode, Stage};
use querymend_sql::Status as Mending;

use super::Metrics;
use crate::heard::{Hearing, Listener, Place};
use crate::service::word;

/// Counts for the figures.
pub struct Counting(pub Arc<Metrics>);

impl Listener for Counting {
    fn question(&self, place: &Place<'_>, _: &str) -> Box<dyn Hearing> {
        Box::new(Question {
            metrics: Arc::clone(&self.0),
            database: place.database.to_owned(),
            model: place.model.to_owned(),
            stage: None,
            told: false,
            finished: false,
        })
    }

    fn corrected(&self, place: &Place<'_>, corrected: &Corrected, _: Duration) {
        if corrected.status == Mending::Untouched {
            return;
        }
        self.0.attempts.of(&[place.database]).count();
        if corrected.status == Mending::Mended {
            let by = if corrected.is_by_model() { "model" } else { "rules" };
            self.0.correction(place.database, by, corrected.success, corrected.confidence);
        }
    }

    fn ran(&self, place: &Place<'_>, ran: &Result<Ran, NotRun>, _: Duration) {
        let database = place.database;
        let outcome = match ran {
            Ok(ran) => {
                self.0.rows.of(&[database]).add(ran.rows.rows.len() as f64);
                self.0.database_seconds.of(&[database, "ran"]).observe(ran.ms / 1e3);
                "ran"
            }
            Err(not) if not.problem.code == ProblemCode::PreflightValidationFailed => "held_back",
            Err(_) => "failed",
        };
        self.0.queries.of(&[database, outcome]).count();
    }
}

/// Counts for one question.
struct Question {
    metrics: Arc<Metrics>,
    database: String,
    model: String,
    stage: Option<(Stage, Instant)>,
    /// What the model or the database that is asked in this stage said was told.
    told: bool,
    finished: bool,
}

impl Question {
    fn so_far(&self) -> f64 {
        self.stage.map_or(0.0, |(_, since)| since.elapsed().as_secs_f64())
    }

    fn database_took(&mut self, outcome: &str, seconds: f64) {
        self.told = true;
        self.metrics.queries.of(&[&self.database, outcome]).count();
        self.metrics.database_seconds.of(&[&self.database, outcome]).observe(seconds);
    }

    fn end_stage(&mut self) {
        let Some((stage, since)) = self.stage.take() else { return };
        let took = since.elapsed().as_secs_f64();
        match stage {
            Stage::Generation if !self.told => self.metrics.model_seconds.of(&[&self.model, "failed"]).observe(took),
            Stage::ToolExecution if !self.told => self.database_took("failed", took),
            // They are how it ended, and take no time.
            Stage::Completed | Stage::Failed | Stage::HumanInTheLoop => return,
            _ => {}
        }
        self.metrics.stage_seconds.of(&[&word(&stage)]).observe(took);
    }
}

impl Hearing for Question {
    fn hear(&mut self, event: &Event) {
        match event {
            Event::Stage { stage, .. } => {
                self.end_stage();
                self.stage = Some((*stage, Instant::now()));
                self.told = false;
            }
            Event::Drafted { usage, .. } => {
                self.told = true;
                let (metrics, model) = (&self.metrics, self.model.as_str());
                metrics.model_seconds.of(&[model, "ok"]).observe(self.so_far());
                metrics.tokens.of(&[model, "input"]).add(usage.input_tokens as f64);
                metrics.tokens.of(&[model, "output"]).add(usage.output_tokens as f64);
                if let Some(usd) = usage.usd {
                    metrics.cost.of(&[model]).add(usd);
                }
            }
            Event::Executed { ms, .. } => self.database_took("ran", ms / 1e3),
            Event::Rejected { error_type, .. } => {
                self.metrics.errors.of(&[&self.database, &word(error_type)]).count();
                self.database_took("rejected", self.so_far());
            }
            Event::Finished { answer } => {
                self.end_stage();
                self.finished = true;
                self.metrics.answered(&self.database, answer);
            }
            _ => {}
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if !self.finished {
            self.end_stage();
            self.metrics.questions.of(&[&self.database, "abandoned", "cancelled"]).count();
        }
    }
}
