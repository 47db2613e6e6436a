//! Observer of a run: a progress line on a terminal, the log, and the recorded events.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use querymend::{Event, Stage, log};

use crate::output::Out;
use crate::output::text::one_line;

/// Maximum number of characters of model output in the progress line.
const MAX_TAIL_CHARS: usize = 120;

/// Observer of one question.
pub struct RunProgress {
    bar: Option<ProgressBar>,
    stage_label: &'static str,
    attempt: u32,
    max_attempts: u32,
    text: String,
    events: Vec<Event>,
}

impl RunProgress {
    /// Creates an observer, with a progress line if stderr supports it.
    pub fn new(out: &Out) -> Self {
        let bar = out.is_live().then(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                line.set_style(style);
            }
            line.enable_steady_tick(Duration::from_millis(100));
            line
        });
        Self { bar, stage_label: "", attempt: 1, max_attempts: 1, text: String::new(), events: Vec::new() }
    }

    /// Handles an event.
    pub fn on_event(&mut self, event: &Event) {
        log(event);
        match event {
            Event::Started { max_attempts, .. } => self.max_attempts = *max_attempts,
            Event::Stage { stage, attempt } => {
                (self.stage_label, self.attempt) = (stage_label(*stage), *attempt);
                self.text.clear();
            }
            Event::Text { piece } => self.text.push_str(piece),
            _ => {}
        }
        if let Some(line) = &self.bar {
            line.set_message(self.message());
        }
        if !matches!(event, Event::Text { .. }) {
            self.events.push(event.clone());
        }
    }

    fn message(&self) -> String {
        let attempt = match self.attempt {
            1 => String::new(),
            n => format!(" (attempt {n} of {})", self.max_attempts.max(n)),
        };
        let skipped = self.text.chars().count().saturating_sub(MAX_TAIL_CHARS);
        let tail: String = self.text.chars().skip(skipped).collect();
        let tail = one_line(&tail.split_whitespace().collect::<Vec<_>>().join(" "));
        format!("{}{attempt}  {tail}", self.stage_label).trim_end().to_string()
    }

    /// Removes the progress line and returns the recorded events.
    pub fn finish(self) -> Vec<Event> {
        if let Some(line) = &self.bar {
            line.finish_and_clear();
        }
        self.events
    }
}

fn stage_label(stage: Stage) -> &'static str {
    match stage {
        Stage::PatternSelection => "reading the question",
        Stage::SchemaDiscovery => "reading the tables",
        Stage::Generation => "asking the model",
        Stage::GuardrailCheck => "reviewing the query",
        Stage::ToolExecution => "querying the database",
        Stage::SelfCorrection => "repairing the query",
        Stage::Completed | Stage::Failed | Stage::HumanInTheLoop => "",
    }
}
