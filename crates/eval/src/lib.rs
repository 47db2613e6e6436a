//! Evaluation: datasets, scores, baselines and comparisons.
//!
//! A [`Dataset`] contains questions with gold queries. [`run`] asks a [`SystemUnderTest`] every
//! question, executes its answer and the gold query on the same database, and returns an
//! [`EvalReport`]; [`compare`] compares two reports question by question. The evaluation is
//! independent of how answers are produced, and a query never counts as right merely because it
//! ran.
//!
//! # Usage
//!
//! ```no_run
//! use std::path::Path;
//! use std::pin::Pin;
//! use querymend_eval::{SystemUnderTest, EvalCase, Dataset, LoadOptions, EvalOptions, compare, run};
//!
//! struct Pipeline;
//! impl SystemUnderTest for Pipeline {
//!     fn ask<'a>(&'a self, case: &'a EvalCase) -> Pin<Box<dyn Future<Output = anyhow::Result<querymend::Answer>> + Send + 'a>> {
//!         // `case.database` can be opened as it is: `querymend_engine::open(&case.database)`. `case.evidence` belongs
//!         // to the question; `case.gold` is for the judge alone.
//!         Box::pin(async move { anyhow::bail!("ask `{}` on `{}`", case.question, case.database) })
//!     }
//! }
//!
//! # async fn eval(off: Pipeline, on: Pipeline) -> anyhow::Result<()> {
//! // `eval datasets/correction --out on.jsonl --runs 3 --jobs 4`
//! let dataset = Dataset::load(Path::new("datasets/correction"), &LoadOptions::default())?;
//! for skipped in &dataset.skipped { /* a note on stderr: skipped.id, skipped.reason */ }
//! let mut options = EvalOptions { label: "loop on".into(), results: Some("on.jsonl".into()), runs: 3, ..EvalOptions::default() };
//! options.progress = Some(Box::new(|step| { /* a bar: step.done of step.of */ }));
//! // Ctrl-C calls `cancel()` on a clone of `options.cancel`: questions under way are finished, the rest stays for next time.
//! let report_on = run(&dataset, &on, &options).await?;
//! let text = report_on.markdown();        // or to_csv(), chart().svg(), serde_json::to_string(&report_on.summary())
//!
//! // `eval compare`: the same set with correction turned off, or with another prompt (A/B), or two results files read with
//! // `EvalReport::read`.
//! let report_off = run(&dataset, &off, &EvalOptions { label: "loop off".into(), ..EvalOptions::default() }).await?;
//! let text = compare(&report_off, &report_on)?.table();
//!
//! // `eval --baseline datasets/correction/baseline.csv`: exit 1 if `regressions` is not empty.
//! let baseline = querymend_eval::Baseline::read(Path::new("datasets/correction/baseline.csv"))?;
//! let regressions = baseline.diff(&report_on).regressions;
//! # Ok(()) }
//! ```
//!
//! Errors are `anyhow` errors; those that a user can fix contain an [`EvalError`] with a hint
//! (`error.downcast_ref::<EvalError>()`).

mod baseline;
mod chart;
mod compare;
mod csv;
pub mod dataset;
mod eval_case;
pub mod execution_match;
mod markdown;
mod metrics;
mod outcome;
mod record;
mod report;
mod results;
mod runner;
mod scorer;
mod text;

use std::pin::Pin;

pub use baseline::{Baseline, BaselineDiff, BaselineEntry};
pub use chart::BarChart;
pub use compare::{McNemar, McNemarMethod, PairedOutcomes, RunComparison, compare, mcnemar};
pub use dataset::{Dataset, DatasetFormat, LoadOptions, SkippedCase};
pub use eval_case::{EvalCase, Expectation};
pub use metrics::{ErrorTypeMetrics, EvalMetrics, MetricTarget, Spread, spread};
pub use outcome::CaseOutcome;
pub use record::{CaseRecord, DraftRecord, ExpectationMatch};
pub use report::{EvalReport, ReportSummary};
pub use runner::{EvalOptions, EvalProgress, ProgressCallback, run};

/// System that answers the questions of a dataset, with the model and settings to measure.
pub trait SystemUnderTest: Sync {
    /// Answers one question. An error means that the question could not be asked; giving up is an
    /// answer.
    fn ask<'a>(
        &'a self,
        case: &'a EvalCase,
    ) -> Pin<Box<dyn Future<Output = anyhow::Result<querymend::Answer>> + Send + 'a>>;
}

/// Error with a hint for fixing it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct EvalError {
    /// One sentence that names the file, and the line and field if known.
    pub what: String,
    /// Hint for fixing the error.
    pub hint: String,
}

impl EvalError {
    pub(crate) fn anyhow(what: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { what: what.into(), hint: hint.into() }.into()
    }
}
