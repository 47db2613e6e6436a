//! `querymend ask`: answers a question with rows, correcting failed drafts.

mod batch;

use std::sync::Arc;

use clap::Args;
use querymend::resilience::Breakers;
use querymend::{Answer, AnswerStatus, AskInput, CancellationToken, Event, Querymend, StopReason};
use querymend_memory::ExampleStore;
use tokio::runtime::Runtime;

pub use self::batch::AskBatchArgs;
use crate::args::answer::AnswerArgs;
use crate::args::database::DatabaseArgs;
use crate::args::memory;
use crate::deny_lists::check_deny_lists;
use crate::error::{CliError, ExitStatus};
use crate::output::progress::RunProgress;
use crate::output::{Out, answer, table, trace_view};
use crate::runtime::build_runtime;
use crate::{clarify, input, model_selection, signals, state_dir};

/// Ask a question in plain language and print the rows that answer it
#[derive(Debug, Args)]
#[command(
    name = "ask",
    after_help = "Examples:
  querymend ask --db shop.db --model ollama:qwen2.5-coder 'Which products cost more than 100?'
  querymend ask --db shop.db --explain --evidence 'big means over 100' 'How many big orders are there?'
  querymend ask --schema tables.sql 'How many orders are there?'
  querymend ask --batch questions.jsonl --root data --out answers.jsonl

Rows go to stdout, everything else to stderr. If a question is ambiguous and its readings return
different rows, you are asked which one is meant if stdin is a terminal; otherwise the most likely one is used, with a note.
Fixes are summarized in one line; --explain shows every attempt.
If no model is configured, the first available one is used, with a note: one whose key is set (OPENAI_API_KEY and the like), one
on a local server, one that was pulled (`querymend model`); otherwise the default model is offered for download.
With --schema FILE and no database the SQL is drafted, checked against the file and printed, but not run.
The lines of a batch are {\"id\", \"db\", \"question\", \"evidence\"?}.
Exit codes: 0 answered, 1 given up, 2 failed, 130 stopped with Ctrl-C.
A batch exits with 0 if every line was asked, whatever the outcome."
)]
pub struct AskCommand {
    /// Question, or `-` for stdin [default: stdin if it is piped]
    pub question: Option<String>,
    #[command(flatten)]
    pub database: DatabaseArgs,
    #[command(flatten)]
    pub answer_args: AnswerArgs,
    /// Additional knowledge needed to answer the question
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub evidence: Option<String>,
    /// Also print every attempt: SQL, findings, fixes, changes, feedback to the model, names in the
    /// query
    #[arg(long, conflicts_with = "batch")]
    pub explain: bool,
    /// Let the model summarize the rows in a sentence, at the cost of one more model call
    #[arg(long, conflicts_with = "batch")]
    pub summary: bool,
    /// Print the rows without a summary before them
    #[arg(long, conflicts_with = "summary")]
    pub no_summary: bool,
    /// Assume the most likely reading of an ambiguous question and report it, instead of asking
    /// back
    #[arg(long, conflicts_with = "batch")]
    pub assume: bool,
    /// Output format of rows; json prints the whole answer with all attempts
    #[arg(long, value_enum, default_value_t = table::ResultFormat::Table, conflicts_with = "batch")]
    pub format: table::ResultFormat,
    #[command(flatten)]
    pub batch_args: AskBatchArgs,
}

/// Runs `querymend ask`.
pub fn run(ask: &AskCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = ask.answer_args.model_args.load_config()?;
    if let Some(file) = &ask.batch_args.batch {
        return batch::run(file, ask, &config, out);
    }
    let question = input::read_question(ask.question.as_deref())?;
    // Open the database first: without one, downloading a model would be pointless.
    let engine = ask.database.open_or_offline(&config)?;
    let model =
        model_selection::select_model(&ask.answer_args.model_args, Some(&ask.answer_args.auto_pull), &config, out)?;
    let dialect = engine.dialect();
    let runtime = build_runtime()?;
    check_deny_lists(&config, &*engine, &runtime, out);
    let memory = if engine.is_offline() {
        None
    } else {
        let address = ask.database.address(&config)?.unwrap_or_default();
        ask.answer_args.memory_args.open_memory(&*engine, &address, false, &config, &runtime, out)?
    };
    let mut querymend = Querymend::new(engine, model, config.clone());
    if let Some(memory) = memory {
        querymend = querymend.with_memory(memory);
    }
    let is_interactive = clarify::is_interactive();
    let mut request = AskInput {
        question,
        evidence: ask.evidence.clone(),
        bypass_memory: ask.answer_args.memory_args.fresh,
        clarify: Some(clarify::mode(ask.assume, &config, is_interactive)),
        ..AskInput::default()
    };
    let (mut answer, summary_error, events) = loop {
        let (answered, events) = answer_question(&querymend, request.clone(), ask.summary, &runtime, out);
        let Some((answer, summary_error)) = answered else {
            out.message("stopped");
            runtime.shutdown_background();
            return Ok(ExitStatus::Interrupted);
        };
        state_dir::save_trace(&config, &answer.trace_id, &events, out);
        let Some(clarification) = answer.clarification.as_ref().filter(|_| is_interactive) else {
            break (answer, summary_error, events);
        };
        match clarify::prompt(clarification, out) {
            Some(sql) => request.choice = Some(sql),
            None => {
                out.note("hint: --assume uses the first; or ask again and name the one that you mean");
                return Ok(ExitStatus::Refused);
            }
        }
    };
    // Work that cannot be cancelled must not keep the process alive.
    runtime.shutdown_background();
    if ask.explain {
        out.message(&trace_view::render_trace(&trace_view::to_json_events(&events)));
        out.message("");
    }
    if let Some(why) = summary_error {
        out.note(&format!("note: the rows are not summarized: {why}"));
    }
    if ask.no_summary && answer.status == AnswerStatus::Answered {
        answer.text = None;
    }
    if let (true, table::ResultFormat::Csv | table::ResultFormat::Markdown, Some(text)) =
        (ask.summary, ask.format, &answer.text)
    {
        // The user requested the summary, so print it for CSV and Markdown too.
        out.note(&answer::sanitize_lines(text));
    }
    let exit = answer::write_answer(&answer, ask.format, dialect, out)?;
    let shown = ask.explain || answer.stop == StopReason::Cancelled || config.trace.max_traces == 0;
    if exit != ExitStatus::Success && !shown && !answer.attempts.is_empty() {
        out.note(&format!("note: `querymend trace {}` shows every attempt", answer.trace_id));
    }
    Ok(exit)
}

/// Answers one question. Returns the answer, or `None` if it was interrupted, along with the
/// recorded events.
fn answer_question(
    querymend: &Querymend,
    request: AskInput,
    summary: bool,
    runtime: &Runtime,
    out: &Out,
) -> (Option<(Answer, Option<String>)>, Vec<Event>) {
    let cancel = CancellationToken::new();
    let mut progress = RunProgress::new(out);
    let mut on_event = |event: &_| progress.on_event(event);
    let answered = signals::run_until_interrupted(runtime, &cancel, async {
        let mut answer = querymend.ask_with(request, &mut on_event, &cancel).await;
        let mut summary_error = None;
        if summary && answer.status == AnswerStatus::Answered {
            match querymend.summarise(&answer, &cancel).await {
                Ok(text) => answer.text = text.or(answer.text),
                Err(problem) => summary_error = Some(problem.message),
            }
        }
        (answer, summary_error)
    });
    (answered, progress.finish())
}

/// Opens a database for a batch, sharing the model with all other databases.
///
/// Each database has its own circuit breaker; the model has one for all databases.
pub fn open_shared(
    address: &str,
    database: &DatabaseArgs,
    model: &Arc<dyn querymend_model::Model>,
    config: &querymend::Config,
    breakers: &Arc<Breakers>,
    store: Option<&Arc<dyn ExampleStore>>,
) -> Result<Arc<Querymend>, CliError> {
    let engine = database.open_at(address, config)?;
    let memory = store.map(|store| memory::memory_for(Arc::clone(store), &*engine, address, config));
    let querymend = Querymend::with_shared_breakers(engine, Arc::clone(model), config.clone(), Arc::clone(breakers));
    Ok(Arc::new(match memory {
        Some(memory) => querymend.with_memory(memory),
        None => querymend,
    }))
}
