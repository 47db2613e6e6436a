//! How good is it: datasets, scores, baselines, comparisons.
//!
//! A [`Dataset`] is questions with the queries that answer them. [`run`] puts every question to an [`Asker`], runs what came
//! back and the gold query on the same database, and gives a [`Report`]; [`compare`] holds two reports against each other,
//! question by question. Nothing here knows how an answer is made, and nothing here is counted as right because it ran.
//!
//! # How a command uses it
//!
//! ```no_run
//! use std::path::Path;
//! use std::pin::Pin;
//! use querymend_eval::{Asker, Case, Dataset, Load, Options, Trouble, compare, run};
//!
//! struct Loop;
//! impl Asker for Loop {
//!     fn ask<'a>(&'a self, case: &'a Case) -> Pin<Box<dyn Future<Output = anyhow::Result<querymend::Answer>> + Send + 'a>> {
//!         // `case.database` can be opened as it stands: `querymend_engine::open(&case.database)`. `case.evidence` belongs
//!         // to the question; `case.gold` is for the judge alone.
//!         Box::pin(async move { anyhow::bail!("ask `{}` on `{}`", case.question, case.database) })
//!     }
//! }
//!
//! # async fn eval(off: Loop, on: Loop) -> anyhow::Result<()> {
//! // `eval datasets/correction --out on.jsonl --runs 3 --jobs 4`
//! let dataset = Dataset::load(Path::new("datasets/correction"), &Load::default())?;
//! for skipped in &dataset.skipped { /* a note on stderr: skipped.id, skipped.reason */ }
//! let mut options = Options { label: "loop on".into(), results: Some("on.jsonl".into()), runs: 3, ..Options::default() };
//! options.progress = Some(Box::new(|step| { /* a bar: step.done of step.of */ }));
//! // Ctrl-C calls `cancel()` on a clone of `options.cancel`: questions under way are finished, the rest stays for next time.
//! let report_on = run(&dataset, &on, &options).await?;
//! let text = report_on.markdown();        // or csv(), chart().svg(), serde_json::to_string(&report_on.summary())
//!
//! // `eval compare`: the same set with correction turned off, or with another prompt (A/B), or two results files read with
//! // `Report::read`.
//! let report_off = run(&dataset, &off, &Options { label: "loop off".into(), ..Options::default() }).await?;
//! let text = compare(&report_off, &report_on)?.table();
//!
//! // `eval --baseline datasets/correction/baseline.csv`: exit 1 if `regressions` is not empty.
//! let baseline = querymend_eval::Baseline::read(Path::new("datasets/correction/baseline.csv"))?;
//! let regressions = baseline.against(&report_on).regressions;
//! # Ok(()) }
//! ```
//!
//! Errors are `anyhow` errors; those that a person can do something about hold a [`Trouble`] with a hint
//! (`error.downcast_ref::<Trouble>()`).

mod baseline;
mod chart;
mod compare;
mod csv;
pub mod dataset;
mod judge;
mod markdown;
pub mod matching;
mod metrics;
mod record;
mod report;
mod results;
mod runner;

use std::pin::Pin;

pub use baseline::{Baseline, Drift, Line};
pub use chart::Chart;
pub use compare::{Comparison, McNemar, Method, Paired, compare, mcnemar};
pub use dataset::{Case, Dataset, Expect, Format, Load, Skipped};
pub use metrics::{ByType, Metrics, Spread, Target, spread};
pub use record::{Behaviour, Draft, Outcome, Record};
pub use report::{Report, Summary};
pub use runner::{Listener, Options, Progress, run};

/// What answers the questions of a dataset: the loop, with whatever model and settings are to be measured.
pub trait Asker: Sync {
    /// Answers one question. An error means that the world was in the way; giving up is an answer.
    fn ask<'a>(
        &'a self,
        case: &'a Case,
    ) -> Pin<Box<dyn Future<Output = anyhow::Result<querymend::Answer>> + Send + 'a>>;
}

/// What is wrong and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Trouble {
    /// In one sentence that names the file, and the line and field where there is one.
    pub what: String,
    /// What can be done about it.
    pub hint: String,
}

impl Trouble {
    pub(crate) fn error(what: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
        Self { what: what.into(), hint: hint.into() }.into()
    }
}
