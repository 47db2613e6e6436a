//! Listens to a run: a live line on a terminal, the log, and the events for whoever wants to see them later.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use querymend::{Event, Stage, log};

use crate::out::Out;
use crate::render::one_line;

/// How much of what the model writes is shown while it writes.
const TAIL: usize = 120;

/// Someone who listens to one question.
pub struct Watch {
    line: Option<ProgressBar>,
    doing: &'static str,
    attempt: u32,
    of: u32,
    text: String,
    events: Vec<Event>,
}

impl Watch {
    /// With a live line where a person looks on.
    pub fn new(out: &Out) -> Self {
        let line = out.live().then(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
                line.set_style(style);
            }
            line.enable_steady_tick(Duration::from_millis(100));
            line
        });
        Self { line, doing: "", attempt: 1, of: 1, text: String::new(), events: Vec::new() }
    }

    /// Takes an event in.
    pub fn hear(&mut self, event: &Event) {
        log(event);
        match event {
            Event::Started { max_attempts, .. } => self.of = *max_attempts,
            Event::Stage { stage, attempt } => {
                (self.doing, self.attempt) = (in_words(*stage), *attempt);
                self.text.clear();
            }
            Event::Text { piece } => self.text.push_str(piece),
            _ => {}
        }
        if let Some(line) = &self.line {
            line.set_message(self.message());
        }
        if !matches!(event, Event::Text { .. }) {
            self.events.push(event.clone());
        }
    }

    fn message(&self) -> String {
        let attempt = match self.attempt {
            1 => String::new(),
            n => format!(" (attempt {n} of {})", self.of.max(n)),
        };
        let skipped = self.text.chars().count().saturating_sub(TAIL);
        let tail: String = self.text.chars().skip(skipped).collect();
        let tail = one_line(&tail.split_whitespace().collect::<Vec<_>>().join(" "));
        format!("{}{attempt}  {tail}", self.doing).trim_end().to_string()
    }

    /// Takes the line away and gives back what happened.
    pub fn end(self) -> Vec<Event> {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
        self.events
    }
}

fn in_words(stage: Stage) -> &'static str {
    match stage {
        Stage::PatternSelection => "reading the question",
        Stage::SchemaDiscovery => "reading the tables",
        Stage::Generation => "asking the model",
        Stage::GuardrailCheck => "reviewing the query",
        Stage::ToolExecution => "asking the database",
        Stage::SelfCorrection => "mending the query",
        Stage::Completed | Stage::Failed | Stage::HumanInTheLoop => "",
    }
}
