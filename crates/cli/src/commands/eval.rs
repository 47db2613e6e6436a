//! `querymend eval`: how good the answers are on a dataset, with the loop and without it.

mod asker;
mod files;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use querymend::Cancel;
use querymend_eval::{Baseline, Comparison, Dataset, Load, Options, Report, Target, Trouble, compare, run as measure};

use self::asker::Loop;
use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::out::{Out, counted};
use crate::setup::{Asking, runtime};
use crate::{interrupt, render};

/// Measure how good the answers are on a dataset of questions
#[derive(Debug, Args)]
#[command(
    name = "eval",
    after_help = "Examples:
  querymend eval run datasets/correction --model ollama:qwen2.5-coder --out results
  querymend eval compare datasets/correction --model ollama:qwen2.5-coder
  querymend eval baseline check results/results.jsonl datasets/correction/baseline.csv

Exit codes: 0 done, 1 worse than the baseline, 2 could not be done, 130 stopped with Ctrl-C."
)]
pub struct Eval {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Run(Run),
    Compare(Compare),
    Show(Show),
    #[command(subcommand)]
    Baseline(Held),
}

/// Ask every question of a dataset and report what came of it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend eval run datasets/correction --model ollama:qwen2.5-coder
  querymend eval run spider/dev.json --db-root spider/database --limit 100 --runs 3 --out results

With --out the run is taken up again where it was stopped: what is answered is not asked again.")]
struct Run {
    /// Dataset: our YAML or JSON, Spider, BIRD or defog files, or a folder of them
    dataset: PathBuf,
    #[command(flatten)]
    measured: Measured,
    /// How the report is written
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
}

/// Hold the loop turned off against the loop turned on, or two results files against each other
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend eval compare datasets/correction --model ollama:qwen2.5-coder --out results
  querymend eval compare results/off.jsonl results/on.jsonl")]
struct Compare {
    /// Dataset, or the results file that the other is held against
    first: PathBuf,
    /// Results file, if the first is one
    second: Option<PathBuf>,
    #[command(flatten)]
    measured: Measured,
}

/// Show the report of a results file again
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend eval show results/results.jsonl
  querymend eval show results/results.jsonl --format csv")]
struct Show {
    /// Results file of a run
    file: PathBuf,
    /// How the report is written
    #[arg(long, value_enum, default_value_t = Format::Markdown)]
    format: Format,
}

/// Keep what a run came to, or hold another run against it
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  querymend eval baseline write results/results.jsonl datasets/correction/baseline.csv
  querymend eval baseline check results/results.jsonl datasets/correction/baseline.csv")]
enum Held {
    /// Write what a run came to, one line for each question
    Write(Files),
    /// Say what is better and what is worse than before; exit code 1 if anything is worse
    Check(Files),
}

#[derive(Debug, Args)]
struct Files {
    /// Results file of a run
    results: PathBuf,
    /// The baseline, such as datasets/correction/baseline.csv
    baseline: PathBuf,
}

/// How a dataset is run.
#[derive(Debug, Args)]
struct Measured {
    #[command(flatten)]
    asking: Asking,
    /// Folder that databases are looked for in
    #[arg(long, value_name = "DIR")]
    db_root: Option<PathBuf>,
    /// Database of every question, instead of the one that it names; `demo` is the demo shop
    #[arg(long, value_name = "URL")]
    db: Option<String>,
    /// Ask so many questions at most, spread over the set
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Ask each question so many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Questions that are under way at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Folder for the results, the report (Markdown, CSV) and a chart (SVG)
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Markdown,
    /// A line for each question
    Csv,
    /// The figures, as one object
    Json,
}

/// Does it.
pub fn run(eval: &Eval, out: &mut Out) -> Result<Exit, Failure> {
    match &eval.what {
        What::Run(run) => run_one(run, out),
        What::Compare(compare) => run_two(compare, out),
        What::Show(show) => {
            let report = Report::read(&show.file).map_err(failure)?;
            write(&report, show.format, out)?;
            Ok(Exit::Done)
        }
        What::Baseline(Held::Write(files)) => {
            let report = Report::read(&files.results).map_err(failure)?;
            Baseline::of(&report).write(&files.baseline).map_err(failure)?;
            out.note(&format!("wrote {}", files.baseline.display()));
            Ok(Exit::Done)
        }
        What::Baseline(Held::Check(files)) => check(files, out),
    }
}

fn run_one(run: &Run, out: &mut Out) -> Result<Exit, Failure> {
    let dataset = dataset(&run.dataset, &run.measured, out)?;
    let folder = files::folder(run.measured.out.as_deref())?;
    let Some(report) = run.measured.run(&dataset, None, folder, "results.jsonl", out)? else {
        return Ok(stopped(&run.measured, out));
    };
    if let Some(folder) = folder {
        files::report(folder, "report", &report)?;
        files::write(&folder.join("chart.svg"), &report.chart().svg())?;
    }
    write(&report, run.format, out)?;
    Ok(ended(&[&report], &run.measured, out))
}

fn run_two(two: &Compare, out: &mut Out) -> Result<Exit, Failure> {
    let folder = files::folder(two.measured.out.as_deref())?;
    let (off, on, exit) = if let Some(second) = &two.second {
        (Report::read(&two.first).map_err(failure)?, Report::read(second).map_err(failure)?, Exit::Done)
    } else {
        let dataset = dataset(&two.first, &two.measured, out)?;
        let Some(off) = two.measured.run(&dataset, Some(false), folder, "off.jsonl", out)? else {
            return Ok(stopped(&two.measured, out));
        };
        let on =
            if off.is_complete() { two.measured.run(&dataset, Some(true), folder, "on.jsonl", out)? } else { None };
        let Some(on) = on else { return Ok(stopped(&two.measured, out)) };
        let exit = ended(&[&off, &on], &two.measured, out);
        (off, on, exit)
    };
    let comparison = compare(&off, &on).map_err(failure)?;
    if let Some(folder) = folder {
        files::comparison(folder, &comparison)?;
        files::report(folder, "off", &off)?;
        files::report(folder, "on", &on)?;
    }
    out.write(comparison.table().as_bytes())?;
    out.write(targets(&comparison).as_bytes())?;
    Ok(exit)
}

/// The targets of the second run, met or not and by how much.
fn targets(comparison: &Comparison) -> String {
    let line = |target: &Target| {
        let [above, is, verdict] = target.told();
        format!("  {}: {is}, target over {above}: {verdict}\n", target.name)
    };
    let lines: String = comparison.metrics_b.targets().iter().map(line).collect();
    format!("\nTargets ({}):\n{lines}", comparison.b)
}

impl Measured {
    /// Asks every question, with the loop on or off, or else as it is configured; nothing if nobody wanted to wait any more.
    fn run(
        &self,
        dataset: &Dataset,
        correction: Option<bool>,
        folder: Option<&Path>,
        results: &str,
        out: &Out,
    ) -> Result<Option<Report>, Failure> {
        let mut config = self.asking.config()?;
        let correction = correction.unwrap_or(config.self_correction.enabled);
        config.self_correction.enabled = correction;
        config.self_correction.fallback &= correction;
        let model = self.asking.model(&config)?;
        // Of an address only the model's own name tells something.
        let name = model.name().rsplit('#').next().unwrap_or_default();
        let mut label = format!("{name}, loop {}", if correction { "on" } else { "off" });
        if config.prompt != "standard" {
            label.push_str(&format!(", prompt {}", config.prompt));
        }
        let cancel = Cancel::new();
        let asker = Loop::new(model, config, cancel.clone());
        let bar = bar(out, &label);
        let mut options = Options {
            label,
            runs: self.runs,
            limit: self.limit.map(|limit| limit as usize),
            jobs: self.jobs.into(),
            results: folder.map(|folder| folder.join(results)),
            ..Options::default()
        };
        let shown = bar.clone();
        options.progress = Some(Box::new(move |step| {
            shown.set_length(step.of as u64);
            shown.set_position(step.done as u64);
        }));
        let runtime = runtime()?;
        let (pressed, stop) = (cancel.clone(), options.cancel.clone());
        runtime.spawn(async move {
            while !pressed.is_cancelled() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            stop.cancel();
        });
        let report = interrupt::guarded(&runtime, &cancel, measure(dataset, &asker, &options));
        bar.finish_and_clear();
        runtime.shutdown_background();
        report.transpose().map_err(failure)
    }
}

fn dataset(path: &Path, measured: &Measured, out: &Out) -> Result<Dataset, Failure> {
    let load = Load { database: measured.db.clone(), root: measured.db_root.clone() };
    let dataset = Dataset::load(path, &load).map_err(failure)?;
    if let Some(first) = dataset.skipped.first() {
        let (count, reason) = (counted(dataset.skipped.len(), "question"), render::one_line(&first.reason));
        out.note(&format!("note: {count} cannot be asked; the first, {}: {reason}", first.id));
    }
    Ok(dataset)
}

fn bar(out: &Out, label: &str) -> ProgressBar {
    if !out.live() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0).with_message(label.to_string());
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {elapsed}, {eta} left") {
        bar.set_style(style);
    }
    bar
}

fn write(report: &Report, format: Format, out: &mut Out) -> Result<(), Failure> {
    match format {
        Format::Markdown => out.write(report.markdown().as_bytes()),
        Format::Csv => out.write(report.csv().as_bytes()),
        Format::Json => out.line(&pretty(&report.summary())?),
    }
}

fn check(files: &Files, out: &mut Out) -> Result<Exit, Failure> {
    let baseline = Baseline::read(&files.baseline).map_err(failure)?;
    let report = Report::read(&files.results).map_err(failure)?;
    let drift = baseline.against(&report);
    for (kind, changes) in [("worse", &drift.regressions), ("better", &drift.improvements)] {
        for (id, change) in changes {
            out.line(&format!("{kind}: {}: {change}", render::one_line(id)))?;
        }
    }
    for (kind, ids) in [("new", &drift.added), ("not asked", &drift.missing)] {
        if !ids.is_empty() {
            out.line(&format!("{kind}: {}", render::one_line(&ids.join(", "))))?;
        }
    }
    out.flush()?;
    out.note(&format!("{} worse, {} better", drift.regressions.len(), drift.improvements.len()));
    Ok(if drift.regressions.is_empty() { Exit::Done } else { Exit::Refused })
}

fn stopped(measured: &Measured, out: &Out) -> Exit {
    out.say("stopped");
    if measured.out.is_some() {
        out.note("note: the same command takes it up again");
    }
    Exit::Interrupted
}

/// How it ended: a question that could not be put is no answer of the model's.
fn ended(reports: &[&Report], measured: &Measured, out: &Out) -> Exit {
    if reports.iter().any(|report| !report.is_complete()) {
        return stopped(measured, out);
    }
    let troubles = || reports.iter().flat_map(|report| &report.records).filter_map(|record| record.trouble.as_ref());
    let Some(first) = troubles().next() else { return Exit::Done };
    let what = format!("{} could not be put: {}", counted(troubles().count(), "question"), render::one_line(first));
    out.error(&Failure::new(what).hint("check the model and the databases; with --out only these are asked again"));
    Exit::Failed
}

fn failure(error: anyhow::Error) -> Failure {
    match error.downcast_ref::<Trouble>() {
        Some(trouble) => Failure::new(trouble.what.clone()).hint(trouble.hint.clone()),
        None => Failure::new(format!("{error:#}")).hint("check the files that the command names"),
    }
}
