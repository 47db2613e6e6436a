//! `querymend eval`: measures answers on a dataset, with and without the correction loop.

mod files;
mod system;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use querymend::CancellationToken;
use querymend_eval::{
    Baseline, Dataset, EvalError, EvalOptions, EvalReport, LoadOptions, MetricTarget, RunComparison, compare,
    run as measure,
};

use self::system::QuerymendSystem;
use crate::args::model::ModelArgs;
use crate::error::{CliError, ExitStatus};
use crate::output::Out;
use crate::output::json::to_pretty_json;
use crate::output::text::{one_line, pluralize};
use crate::runtime::build_runtime;
use crate::signals;

/// Measure the accuracy of answers on a dataset of questions
#[derive(Debug, Args)]
#[command(
    name = "eval",
    after_help = "Examples:
  querymend eval run datasets/correction --model ollama:qwen2.5-coder --out results
  querymend eval compare datasets/correction --model ollama:qwen2.5-coder
  querymend eval baseline check results/results.jsonl datasets/correction/baseline.csv

Exit codes: 0 done, 1 worse than the baseline, 2 failed, 130 stopped with Ctrl-C."
)]
pub struct EvalCommand {
    #[command(subcommand)]
    action: EvalAction,
}

#[derive(Debug, Subcommand)]
enum EvalAction {
    Run(EvalRunArgs),
    Compare(EvalCompareArgs),
    Show(EvalShowArgs),
    #[command(subcommand)]
    Baseline(BaselineAction),
}

/// Ask every question of a dataset and report the results
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend eval run datasets/correction --model ollama:qwen2.5-coder
  querymend eval run spider/dev.json --db-root spider/database --limit 100 --runs 3 --out results

With --out a stopped run is resumed: answered questions are not asked again.")]
struct EvalRunArgs {
    /// Dataset: native YAML or JSON, Spider, BIRD or defog files, or a folder of them
    dataset: PathBuf,
    #[command(flatten)]
    run_args: DatasetRunArgs,
    /// Output format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Markdown)]
    format: ReportFormat,
}

/// Compare the correction loop disabled and enabled, or two results files
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend eval compare datasets/correction --model ollama:qwen2.5-coder --out results
  querymend eval compare results/off.jsonl results/on.jsonl")]
struct EvalCompareArgs {
    /// Dataset, or the first results file
    first: PathBuf,
    /// Second results file, if the first argument is one
    second: Option<PathBuf>,
    #[command(flatten)]
    run_args: DatasetRunArgs,
}

/// Print the report of a results file
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend eval show results/results.jsonl
  querymend eval show results/results.jsonl --format csv")]
struct EvalShowArgs {
    /// Results file of a run
    file: PathBuf,
    /// Output format of the report
    #[arg(long, value_enum, default_value_t = ReportFormat::Markdown)]
    format: ReportFormat,
}

/// Save the results of a run as a baseline, or compare a run with one
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  querymend eval baseline write results/results.jsonl datasets/correction/baseline.csv
  querymend eval baseline check results/results.jsonl datasets/correction/baseline.csv")]
enum BaselineAction {
    /// Write the results of a run, one line per question
    Write(BaselineFileArgs),
    /// Report improvements and regressions; exit code 1 if there are regressions
    Check(BaselineFileArgs),
}

#[derive(Debug, Args)]
struct BaselineFileArgs {
    /// Results file of a run
    results: PathBuf,
    /// Baseline file, such as datasets/correction/baseline.csv
    baseline: PathBuf,
}

/// Options for running a dataset.
#[derive(Debug, Args)]
struct DatasetRunArgs {
    #[command(flatten)]
    model_args: ModelArgs,
    /// Folder to search for databases
    #[arg(long, value_name = "DIR")]
    db_root: Option<PathBuf>,
    /// Database for all questions, instead of the one that each names; `demo` is the demo shop
    #[arg(long, value_name = "URL")]
    db: Option<String>,
    /// Maximum number of questions to ask, spread over the dataset
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Number of times to ask each question
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Number of questions to process concurrently
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Folder for the results, the report (Markdown, CSV) and a chart (SVG)
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Output format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// Markdown, for people
    Markdown,
    /// CSV with one line per question
    Csv,
    /// Metrics as a single JSON object
    Json,
}

/// Runs `querymend eval`.
pub fn run(eval: &EvalCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    match &eval.action {
        EvalAction::Run(run) => run_dataset(run, out),
        EvalAction::Compare(compare) => run_comparison(compare, out),
        EvalAction::Show(show) => {
            let report = EvalReport::read(&show.file).map_err(to_cli_error)?;
            write_report(&report, show.format, out)?;
            Ok(ExitStatus::Success)
        }
        EvalAction::Baseline(BaselineAction::Write(files)) => {
            let report = EvalReport::read(&files.results).map_err(to_cli_error)?;
            Baseline::from_report(&report).write(&files.baseline).map_err(to_cli_error)?;
            out.note(&format!("wrote {}", files.baseline.display()));
            Ok(ExitStatus::Success)
        }
        EvalAction::Baseline(BaselineAction::Check(files)) => check_baseline(files, out),
    }
}

fn run_dataset(run: &EvalRunArgs, out: &mut Out) -> Result<ExitStatus, CliError> {
    let dataset = load_dataset(&run.dataset, &run.run_args, out)?;
    let folder = files::create_folder(run.run_args.out.as_deref())?;
    let Some(report) = run.run_args.run(&dataset, None, folder, "results.jsonl", out)? else {
        return Ok(report_interrupted(&run.run_args, out));
    };
    if let Some(folder) = folder {
        files::write_report(folder, "report", &report)?;
        files::write_file(&folder.join("chart.svg"), &report.chart().svg())?;
    }
    write_report(&report, run.format, out)?;
    Ok(report_failures(&[&report], &run.run_args, out))
}

fn run_comparison(two: &EvalCompareArgs, out: &mut Out) -> Result<ExitStatus, CliError> {
    let folder = files::create_folder(two.run_args.out.as_deref())?;
    let (off, on, exit) = if let Some(second) = &two.second {
        (
            EvalReport::read(&two.first).map_err(to_cli_error)?,
            EvalReport::read(second).map_err(to_cli_error)?,
            ExitStatus::Success,
        )
    } else {
        let dataset = load_dataset(&two.first, &two.run_args, out)?;
        let Some(off) = two.run_args.run(&dataset, Some(false), folder, "off.jsonl", out)? else {
            return Ok(report_interrupted(&two.run_args, out));
        };
        let on =
            if off.is_complete() { two.run_args.run(&dataset, Some(true), folder, "on.jsonl", out)? } else { None };
        let Some(on) = on else { return Ok(report_interrupted(&two.run_args, out)) };
        let exit = report_failures(&[&off, &on], &two.run_args, out);
        (off, on, exit)
    };
    let comparison = compare(&off, &on).map_err(to_cli_error)?;
    if let Some(folder) = folder {
        files::write_comparison(folder, &comparison)?;
        files::write_report(folder, "off", &off)?;
        files::write_report(folder, "on", &on)?;
    }
    out.write(comparison.table().as_bytes())?;
    out.write(render_targets(&comparison).as_bytes())?;
    Ok(exit)
}

/// Renders the targets of the second run, with the margin by which each is met or missed.
fn render_targets(comparison: &RunComparison) -> String {
    let line = |target: &MetricTarget| {
        let [above, is, verdict] = target.describe();
        format!("  {}: {is}, target over {above}: {verdict}\n", target.name)
    };
    let lines: String = comparison.metrics_b.targets().iter().map(line).collect();
    format!("\nTargets ({}):\n{lines}", comparison.b)
}

impl DatasetRunArgs {
    /// Asks every question, with the correction loop on, off, or as configured. Returns `None` if
    /// the user interrupts twice.
    fn run(
        &self,
        dataset: &Dataset,
        correction: Option<bool>,
        folder: Option<&Path>,
        results: &str,
        out: &Out,
    ) -> Result<Option<EvalReport>, CliError> {
        let mut config = self.model_args.load_config()?;
        let correction = correction.unwrap_or(config.self_correction.enabled);
        config.self_correction.enabled = correction;
        config.self_correction.fallback &= correction;
        let model = self.model_args.open_model(&config)?;
        // Of an endpoint URL, only the model name is informative.
        let name = model.name().rsplit('#').next().unwrap_or_default();
        let mut label = format!("{name}, loop {}", if correction { "on" } else { "off" });
        if config.prompt != "standard" {
            label.push_str(&format!(", prompt {}", config.prompt));
        }
        let cancel = CancellationToken::new();
        let system = QuerymendSystem::new(model, config, cancel.clone());
        let bar = progress_bar(out, &label);
        let mut options = EvalOptions {
            label,
            runs: self.runs,
            limit: self.limit.map(|limit| limit as usize),
            jobs: self.jobs.into(),
            results: folder.map(|folder| folder.join(results)),
            ..EvalOptions::default()
        };
        let shown = bar.clone();
        options.progress = Some(Box::new(move |step| {
            shown.set_length(step.total as u64);
            shown.set_position(step.done as u64);
        }));
        let runtime = build_runtime()?;
        let (pressed, stop) = (cancel.clone(), options.cancel.clone());
        runtime.spawn(async move {
            while !pressed.is_cancelled() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            stop.cancel();
        });
        let report = signals::run_until_interrupted(&runtime, &cancel, measure(dataset, &system, &options));
        bar.finish_and_clear();
        runtime.shutdown_background();
        report.transpose().map_err(to_cli_error)
    }
}

fn load_dataset(path: &Path, run_args: &DatasetRunArgs, out: &Out) -> Result<Dataset, CliError> {
    let load = LoadOptions { database: run_args.db.clone(), root: run_args.db_root.clone() };
    let dataset = Dataset::load(path, &load).map_err(to_cli_error)?;
    if let Some(first) = dataset.skipped.first() {
        let (count, reason) = (pluralize(dataset.skipped.len(), "question"), one_line(&first.reason));
        out.note(&format!("note: {count} cannot be asked; the first, {}: {reason}", first.id));
    }
    Ok(dataset)
}

fn progress_bar(out: &Out, label: &str) -> ProgressBar {
    if !out.is_live() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0).with_message(label.to_string());
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {elapsed}, {eta} left") {
        bar.set_style(style);
    }
    bar
}

fn write_report(report: &EvalReport, format: ReportFormat, out: &mut Out) -> Result<(), CliError> {
    match format {
        ReportFormat::Markdown => out.write(report.markdown().as_bytes()),
        ReportFormat::Csv => out.write(report.to_csv().as_bytes()),
        ReportFormat::Json => out.line(&to_pretty_json(&report.summary())?),
    }
}

fn check_baseline(files: &BaselineFileArgs, out: &mut Out) -> Result<ExitStatus, CliError> {
    let baseline = Baseline::read(&files.baseline).map_err(to_cli_error)?;
    let report = EvalReport::read(&files.results).map_err(to_cli_error)?;
    let drift = baseline.diff(&report);
    for (kind, changes) in [("worse", &drift.regressions), ("better", &drift.improvements)] {
        for (id, change) in changes {
            out.line(&format!("{kind}: {}: {change}", one_line(id)))?;
        }
    }
    for (kind, ids) in [("new", &drift.added), ("not asked", &drift.missing)] {
        if !ids.is_empty() {
            out.line(&format!("{kind}: {}", one_line(&ids.join(", "))))?;
        }
    }
    out.flush()?;
    out.note(&format!("{} worse, {} better", drift.regressions.len(), drift.improvements.len()));
    Ok(if drift.regressions.is_empty() { ExitStatus::Success } else { ExitStatus::Refused })
}

fn report_interrupted(run_args: &DatasetRunArgs, out: &Out) -> ExitStatus {
    out.message("stopped");
    if run_args.out.is_some() {
        out.note("note: the same command resumes it");
    }
    ExitStatus::Interrupted
}

/// Reports questions that could not be asked, and returns the exit status. They do not count as
/// answers of the model.
fn report_failures(reports: &[&EvalReport], run_args: &DatasetRunArgs, out: &Out) -> ExitStatus {
    if reports.iter().any(|report| !report.is_complete()) {
        return report_interrupted(run_args, out);
    }
    let errors = || reports.iter().flat_map(|report| &report.records).filter_map(|record| record.trouble.as_ref());
    let Some(first) = errors().next() else { return ExitStatus::Success };
    let what = format!("{} could not be asked: {}", pluralize(errors().count(), "question"), one_line(first));
    out.error(&CliError::new(what).hint("check the model and the databases; with --out only these are asked again"));
    ExitStatus::Failed
}

fn to_cli_error(error: anyhow::Error) -> CliError {
    match error.downcast_ref::<EvalError>() {
        Some(dataset_error) => CliError::new(dataset_error.what.clone()).hint(dataset_error.hint.clone()),
        None => CliError::new(format!("{error:#}")).hint("check the files that the command names"),
    }
}
