//! Puts every question of a dataset to an asker.

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use anyhow::Result;
use querymend::{Status, Stop};
use querymend_engine::{Cancel, Limits};

use crate::judge::Judge;
use crate::matching::Matching;
use crate::results::{Header, Results};
use crate::{Asker, Case, Dataset, Record, Report};

/// How a dataset is run.
pub struct Options {
    /// What is measured, in a few words: the model, the prompt, loop on or off. Reports and comparisons are headed by it.
    pub label: String,
    /// How often each question is asked.
    pub runs: u32,
    /// At most so many questions, spread over the set.
    pub limit: Option<usize>,
    /// How many questions are under way at a time.
    pub jobs: usize,
    /// Where results are kept as they come; questions that are answered there already are not asked again.
    pub results: Option<PathBuf>,
    /// How rows are compared.
    pub matching: Matching,
    /// How far the queries that are compared may go.
    pub limits: Limits,
    /// Stops the run: no question is begun any more, those under way are finished.
    pub cancel: Cancel,
    /// Told of every question that is done.
    pub progress: Option<Listener>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            label: "run".into(),
            runs: 1,
            limit: None,
            jobs: 1,
            results: None,
            matching: Matching::default(),
            limits: Limits { rows: 200_000, bytes: 256 << 20, time: Duration::from_secs(10), ..Limits::default() },
            cancel: Cancel::new(),
            progress: None,
        }
    }
}

/// Someone who is told how far a run is.
pub type Listener = Box<dyn Fn(&Progress<'_>) + Send + Sync>;

/// How far a run is.
pub struct Progress<'p> {
    /// Questions that are done, with those of the results file.
    pub done: usize,
    /// Questions in all, over all runs.
    pub of: usize,
    /// The one that was just done.
    pub record: &'p Record,
}

type UnderWay<'f> = Pin<Box<dyn Future<Output = Option<Record>> + Send + 'f>>;

/// Asks every question and adds up what came of it.
pub async fn run(dataset: &Dataset, asker: &dyn Asker, options: &Options) -> Result<Report> {
    let cases = dataset.sample(options.limit);
    let runs = options.runs.max(1);
    let header = Header {
        dataset: dataset.name.clone(),
        fingerprint: dataset.fingerprint(),
        label: options.label.clone(),
        skipped: dataset.skipped.clone(),
    };
    let (mut results, earlier) = match &options.results {
        Some(path) => {
            let (results, records) = Results::open(path, &header)?;
            (Some(results), records)
        }
        None => (None, Vec::new()),
    };
    let wanted: HashSet<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    let mut done: HashMap<(u32, String), Record> = earlier
        .into_iter()
        // What the world was in the way of is not finished.
        .filter(|record| record.trouble.is_none() && record.run <= runs && wanted.contains(record.id.as_str()))
        .map(|record| ((record.run, record.id.clone()), record))
        .collect();
    let of = cases.len() * runs as usize;
    let all = (1..=runs).flat_map(|run| cases.iter().map(move |case| (run, *case)));
    let left: Vec<(u32, &Case)> = all.filter(|(run, case)| !done.contains_key(&(*run, case.id.clone()))).collect();
    let judge = Judge::new(options.matching, options.limits.clone());
    let mut left = left.into_iter();
    let mut under_way: Vec<UnderWay<'_>> = Vec::new();
    loop {
        while under_way.len() < options.jobs.max(1) && !options.cancel.is_cancelled() {
            let Some((run, case)) = left.next() else { break };
            under_way.push(Box::pin(ask(asker, &judge, run, case)));
        }
        if under_way.is_empty() {
            break;
        }
        let Some(record) = next_done(&mut under_way).await else { continue };
        if let Some(results) = &mut results {
            results.add(&record)?;
        }
        let key = (record.run, record.id.clone());
        done.insert(key.clone(), record);
        if let (Some(tell), Some(record)) = (&options.progress, done.get(&key)) {
            tell(&Progress { done: done.len(), of, record });
        }
    }
    // In the order of the set, however they came in.
    let mut records = Vec::with_capacity(done.len());
    for run in 1..=runs {
        records.extend(cases.iter().filter_map(|case| done.remove(&(run, case.id.clone()))));
    }
    Ok(Report::new(header, runs, of, records))
}

/// The first of them that is done. They are few, so all are looked at whenever one stirs.
async fn next_done(under_way: &mut Vec<UnderWay<'_>>) -> Option<Record> {
    poll_fn(|context| {
        for i in 0..under_way.len() {
            if let Poll::Ready(record) = under_way[i].as_mut().poll(context) {
                drop(under_way.swap_remove(i));
                return Poll::Ready(record);
            }
        }
        Poll::Pending
    })
    .await
}

/// Asks one question and judges the answer; nothing if it was cancelled on the way.
async fn ask(asker: &dyn Asker, judge: &Judge, run: u32, case: &Case) -> Option<Record> {
    let answer = match asker.ask(case).await {
        Ok(answer) => answer,
        Err(error) => return Some(Record::of_trouble(case, run, format!("{error:#}"))),
    };
    if answer.stop == Stop::Cancelled {
        return None;
    }
    let judged = judge.judge(case, &answer).await;
    let mut record = Record::of(case, run, &answer, judged);
    if answer.status == Status::Failed && matches!(answer.stop, Stop::ModelFailed | Stop::DatabaseFailed) {
        let message = answer.problem.map(|problem| problem.message);
        record.trouble = Some(message.unwrap_or_else(|| "the model or the database cannot be asked".into()));
    }
    Some(record)
}
