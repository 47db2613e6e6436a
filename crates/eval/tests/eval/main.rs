//! How good is it: the figures, the sets, the runs and the comparisons, on hand-made answers and the demo shop.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod comparing;
mod datasets;
mod running;
mod scores;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Mutex;
use std::time::Duration;

use querymend::event::{Answer, AnswerStatus, Attempt, Confidence, Cost, Metadata, StopReason};
use querymend_eval::{Dataset, EvalCase, EvalOptions, LoadOptions, SystemUnderTest};
use querymend_sql::ErrorType;
use querymend_testing::{hang_timeout, scaled};

/// An answer that the first draft gave.
pub(crate) fn answered(sql: &str) -> Answer {
    Answer {
        chart: None,
        examples: Vec::new(),
        remembered: None,
        confidence_features: None,
        status: AnswerStatus::Answered,
        stop: StopReason::Answered,
        trace_id: "t".into(),
        question: "q".into(),
        sql: Some(sql.into()),
        rows: None,
        text: None,
        confidence: Confidence::High,
        reasons: vec![],
        fixes: vec![],
        warnings: vec![],
        attempts: vec![attempt(1, sql, None)],
        corrections: vec![],
        clarification: None,
        fallback: false,
        analysis: None,
        problem: None,
        metadata: Metadata { llm_calls: 1, total_duration_ms: 500.0, ..Metadata::default() },
        cost: Cost { input_tokens: 100, output_tokens: 20, usd: None },
    }
}

pub(crate) fn attempt(number: u32, sql: &str, error: Option<ErrorType>) -> Attempt {
    Attempt {
        number,
        sql: sql.into(),
        mended: None,
        fixes: vec![],
        error: error.map(|_| "it was refused".into()),
        finding: None,
        error_type: error,
        strategy: if number == 1 { "" } else { "column" },
        held_back: false,
    }
}

/// An answer that the second draft gave, after the first had failed.
pub(crate) fn corrected(bad: &str, error: ErrorType, good: &str) -> Answer {
    let mut answer = answered(good);
    answer.attempts = vec![attempt(1, bad, Some(error)), attempt(2, good, None)];
    answer.metadata.llm_calls = 2;
    answer
}

/// No answer, after three drafts.
pub(crate) fn gave_up(bad: &str, error: ErrorType) -> Answer {
    let mut answer = answered(bad);
    answer.status = AnswerStatus::GaveUp;
    answer.stop = StopReason::MaxAttempts;
    answer.attempts = (1..=3).map(|n| attempt(n, bad, Some(error))).collect();
    answer.metadata.llm_calls = 3;
    answer
}

/// Gives hand-made answers, and remembers what it was asked. What it does not know, it cannot ask.
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) answers: HashMap<String, Answer>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Script {
    pub(crate) fn new<const N: usize>(answers: [(&str, Answer); N]) -> Script {
        let answers = answers.into_iter().map(|(id, answer)| (id.to_string(), answer)).collect();
        Script { answers, asked: Mutex::default() }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

impl SystemUnderTest for Script {
    fn ask<'a>(&'a self, case: &'a EvalCase) -> Pin<Box<dyn Future<Output = anyhow::Result<Answer>> + Send + 'a>> {
        Box::pin(async move {
            self.asked.lock().unwrap().push(case.id.clone());
            // Gives way once, so that questions under way together are really under way together.
            tokio::task::yield_now().await;
            match self.answers.get(&case.id) {
                Some(answer) => Ok(answer.clone()),
                None => anyhow::bail!("no model was reached"),
            }
        })
    }
}

/// Options whose queries have as much time as a test has: the queries of small sets end at once, also on a slow machine.
pub(crate) fn patient_options() -> EvalOptions {
    within(hang_timeout())
}

/// Options for sets whose queries may take long, so that each has a limit: one that no short query misses.
pub(crate) fn bounded_options() -> EvalOptions {
    within(scaled(Duration::from_secs(30)))
}

fn within(time: Duration) -> EvalOptions {
    let mut options = EvalOptions::default();
    options.limits.time = time;
    options
}

/// A small set on the demo shop.
pub(crate) fn small_set(folder: &Path) -> Dataset {
    let file = folder.join("small.yaml");
    let text = "\
name: small
database: demo
cases:
  - { id: a, question: How many customers?, gold: SELECT count(*) FROM customers, kind: first_try }
  - { id: b, question: How many products?, gold: SELECT count(*) FROM products, kind: column }
  - { id: c, question: How many orders?, gold: SELECT count(*) FROM orders, kind: aggregation }
  - { id: d, question: The names?, gold: SELECT name FROM products, kind: column }
";
    std::fs::write(&file, text).unwrap();
    Dataset::load(&file, &LoadOptions::default()).unwrap()
}

/// Where the repository begins.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
