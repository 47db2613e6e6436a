//! Runs a system under test on every question of a dataset.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use anyhow::Result;
use querymend::{AnswerStatus, StopReason};
use querymend_engine::{CancelFlag, Limits};

use crate::execution_match::MatchOptions;
use crate::results::{ResultsFile, ResultsHeader};
use crate::scorer::AnswerScorer;
use crate::{CaseRecord, Dataset, EvalCase, EvalReport, SystemUnderTest};

/// Options of a run.
pub struct EvalOptions {
    /// Short label of the measured system: the model, the prompt, loop on or off. Title of reports
    /// and comparisons.
    pub label: String,
    /// Number of times to ask each question.
    pub runs: u32,
    /// Maximum number of questions, spread over the dataset; `None` for all.
    pub limit: Option<usize>,
    /// Number of questions to process concurrently.
    pub jobs: usize,
    /// File to append results to; questions that it already answers are not asked again.
    pub results: Option<PathBuf>,
    /// Options for comparing rows.
    pub matching: MatchOptions,
    /// Limits of the compared queries.
    pub limits: Limits,
    /// Cancels the run: no further questions are started, those in progress are finished.
    pub cancel: CancelFlag,
    /// Callback after every finished question.
    pub progress: Option<ProgressCallback>,
}

impl Default for EvalOptions {
    fn default() -> Self {
        Self {
            label: "run".into(),
            runs: 1,
            limit: None,
            jobs: 1,
            results: None,
            matching: MatchOptions::default(),
            limits: Limits { rows: 200_000, bytes: 256 << 20, time: Duration::from_secs(10), ..Limits::default() },
            cancel: CancelFlag::new(),
            progress: None,
        }
    }
}

/// Callback that receives the progress of a run.
pub type ProgressCallback = Box<dyn Fn(&EvalProgress<'_>) + Send + Sync>;

/// Progress of a run.
pub struct EvalProgress<'p> {
    /// Number of finished questions, including those of the results file.
    pub done: usize,
    /// Number of questions over all runs.
    pub total: usize,
    /// Record of the question that just finished.
    pub record: &'p CaseRecord,
}

type PendingCase<'f> = Pin<Box<dyn Future<Output = Option<CaseRecord>> + Send + 'f>>;

/// Asks every question and returns the report.
pub async fn run(dataset: &Dataset, system: &dyn SystemUnderTest, options: &EvalOptions) -> Result<EvalReport> {
    let cases = dataset.sample(options.limit);
    let runs = options.runs.max(1);
    let header = ResultsHeader {
        dataset: dataset.name.clone(),
        fingerprint: dataset.fingerprint(),
        label: options.label.clone(),
        skipped: dataset.skipped.clone(),
    };
    let (mut results, earlier) = match &options.results {
        Some(path) => {
            let (results, records) = ResultsFile::open(path, &header)?;
            (Some(results), records)
        }
        None => (None, Vec::new()),
    };
    let wanted: HashSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    let mut done: HashMap<(u32, String), CaseRecord> = earlier
        .into_iter()
        // Questions that could not be asked are not finished.
        .filter(|record| record.trouble.is_none() && record.run <= runs && wanted.contains(record.id.as_str()))
        .map(|record| ((record.run, record.id.clone()), record))
        .collect();
    let of = cases.len() * runs as usize;
    let all = (1..=runs).flat_map(|run| cases.iter().map(move |case| (run, *case)));
    let left: Vec<(u32, &EvalCase)> = all.filter(|(run, case)| !done.contains_key(&(*run, case.id.clone()))).collect();
    let scorer = AnswerScorer::new(options.matching, options.limits.clone());
    let mut left = left.into_iter();
    let mut pending: Vec<PendingCase<'_>> = Vec::new();
    loop {
        while pending.len() < options.jobs.max(1) && !options.cancel.is_cancelled() {
            let Some((run, case)) = left.next() else { break };
            pending.push(Box::pin(run_case(system, &scorer, run, case)));
        }
        if pending.is_empty() {
            break;
        }
        let Some(record) = next_finished(&mut pending).await else { continue };
        if let Some(results) = &mut results {
            results.append(&record)?;
        }
        let key = (record.run, record.id.clone());
        done.insert(key.clone(), record);
        if let (Some(on_progress), Some(record)) = (&options.progress, done.get(&key)) {
            on_progress(&EvalProgress { done: done.len(), total: of, record });
        }
    }
    // Restore dataset order, since questions finish in any order.
    let mut records = Vec::with_capacity(done.len());
    for run in 1..=runs {
        records.extend(cases.iter().filter_map(|case| done.remove(&(run, case.id.clone()))));
    }
    Ok(EvalReport::new(header, runs, of, records))
}

/// Returns the first finished case. Polls all pending cases on each wake-up, since there are only a
/// few.
async fn next_finished(pending: &mut Vec<PendingCase<'_>>) -> Option<CaseRecord> {
    poll_fn(|context| {
        for i in 0..pending.len() {
            if let Poll::Ready(record) = pending[i].as_mut().poll(context) {
                drop(pending.swap_remove(i));
                return Poll::Ready(record);
            }
        }
        Poll::Pending
    })
    .await
}

/// Asks one question and scores the answer; `None` if it was cancelled.
async fn run_case(
    system: &dyn SystemUnderTest,
    scorer: &AnswerScorer,
    run: u32,
    case: &EvalCase,
) -> Option<CaseRecord> {
    let answer = match system.ask(case).await {
        Ok(answer) => answer,
        Err(error) => return Some(CaseRecord::from_failure(case, run, format!("{error:#}"))),
    };
    if answer.stop == StopReason::Cancelled {
        return None;
    }
    let score = scorer.score(case, &answer).await;
    let mut record = CaseRecord::from_answer(case, run, &answer, score);
    if answer.status == AnswerStatus::Failed
        && matches!(answer.stop, StopReason::ModelFailed | StopReason::DatabaseFailed)
    {
        let message = answer.problem.map(|problem| problem.message);
        record.trouble = Some(message.unwrap_or_else(|| "the model or the database is unavailable".into()));
    }
    Some(record)
}
