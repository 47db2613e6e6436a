//! `querymend ask`: a question in, rows out; what goes wrong on the way is mended.

mod lines;

use std::sync::Arc;

use clap::Args;
use querymend::guard::Breakers;
use querymend::{Answer, Ask, Cancel, Event, Querymend, Status, Stop};
use querymend_memory::ExampleStore;
use tokio::runtime::Runtime;

pub use self::lines::Lines;
use crate::chosen::Unnamed;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::remember::{self, Remembering};
use crate::setup::{Asking, Database, runtime, tell_idle};
use crate::watch::Watch;
use crate::{answer, chosen, clarify, input, interrupt, state, story, table};

/// Ask a question in plain words and print the rows that answer it
#[derive(Debug, Args)]
#[command(
    name = "ask",
    after_help = "Examples:
  querymend ask --db shop.db --model ollama:qwen2.5-coder 'Which products cost more than 100?'
  querymend ask --db shop.db --explain --evidence 'big means over 100' 'How many big orders are there?'
  querymend ask --schema tables.sql 'How many orders are there?'
  querymend ask --batch questions.jsonl --root data --out answers.jsonl

Rows go to stdout, everything else to stderr. Where a question has several readings that lead to different rows, it is asked
which is meant if stdin is a terminal; else the most likely one is taken, and that is said. What was mended on the way is told in one line; --explain tells all of it.
If no model is named, the first that is found is asked, and that is said: one whose key is set (OPENAI_API_KEY and the like), one
that a server on this machine serves, one that was pulled (`querymend model`); else the default one is offered.
With --schema FILE and no database the SQL is drafted, checked against the file and printed, but not run.
The lines of a batch are {\"id\", \"db\", \"question\", \"evidence\"?}.
Exit codes: 0 answered, 1 given up, 2 could not be done, 130 stopped with Ctrl-C.
A batch ends with 0 when every line was asked, whatever became of it."
)]
pub struct AskQuestion {
    /// The question, or `-` for stdin [default: stdin when it is piped]
    pub question: Option<String>,
    #[command(flatten)]
    pub database: Database,
    #[command(flatten)]
    pub asking: Asking,
    #[command(flatten)]
    pub unnamed: Unnamed,
    #[command(flatten)]
    pub remembering: Remembering,
    /// What is known besides the question
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub evidence: Option<String>,
    /// Also tell every attempt: SQL, findings, fixes, changes, what the model was told, the names in the query
    #[arg(long, conflicts_with = "batch")]
    pub explain: bool,
    /// Have the model say in a sentence what the rows say: one more call of the model
    #[arg(long, conflicts_with = "batch")]
    pub summary: bool,
    /// Print the rows without a sentence before them
    #[arg(long, conflicts_with = "summary")]
    pub no_summary: bool,
    /// Take the most likely reading of an ambiguous question and say so, instead of asking which is meant
    #[arg(long, conflicts_with = "batch")]
    pub assume: bool,
    /// How rows are written; json is the whole answer with all attempts
    #[arg(long, value_enum, default_value_t = table::Format::Table, conflicts_with = "batch")]
    pub format: table::Format,
    #[command(flatten)]
    pub lines: Lines,
}

/// Does it.
pub fn run(ask: &AskQuestion, out: &mut Out) -> Result<Exit, Failure> {
    let config = ask.asking.config()?;
    if let Some(file) = &ask.lines.batch {
        return lines::run(file, ask, &config, out);
    }
    let question = input::question(ask.question.as_deref())?;
    // A model may have to be fetched first, and that would be for nothing if there is no database.
    let engine = ask.database.open_or_offline(&config)?;
    let model = chosen::model(&ask.asking, Some(&ask.unnamed), &config, out)?;
    let dialect = engine.dialect();
    let runtime = runtime()?;
    tell_idle(&config, &*engine, &runtime, out);
    let memory = if engine.is_offline() {
        None
    } else {
        let address = ask.database.address(&config)?.unwrap_or_default();
        ask.remembering.memory(&*engine, &address, false, &config, &runtime, out)?
    };
    let mut querymend = Querymend::new(engine, model, config.clone());
    if let Some(memory) = memory {
        querymend = querymend.with_memory(memory);
    }
    let is_interactive = clarify::is_interactive();
    let mut asked = Ask {
        question,
        evidence: ask.evidence.clone(),
        fresh: ask.remembering.fresh,
        clarify: Some(clarify::mode(ask.assume, &config, is_interactive)),
        ..Ask::default()
    };
    let (mut answer, unsaid, events) = loop {
        let (answered, events) = answered(&querymend, asked.clone(), ask.summary, &runtime, out);
        let Some((answer, unsaid)) = answered else {
            out.say("stopped");
            runtime.shutdown_background();
            return Ok(Exit::Interrupted);
        };
        state::keep(&config, &answer.trace_id, &events, out);
        let Some(clarification) = answer.clarification.as_ref().filter(|_| is_interactive) else {
            break (answer, unsaid, events);
        };
        match clarify::prompt(clarification, out) {
            Some(sql) => asked.choice = Some(sql),
            None => {
                out.note("hint: --assume takes the first; or ask again and name the one that you mean");
                return Ok(Exit::Refused);
            }
        }
    };
    // What does not let itself be stopped must not keep the program.
    runtime.shutdown_background();
    if ask.explain {
        out.say(&story::tell(&story::kept(&events)));
        out.say("");
    }
    if let Some(why) = unsaid {
        out.note(&format!("note: the rows are not put into words: {why}"));
    }
    if ask.no_summary && answer.status == Status::Answered {
        answer.text = None;
    }
    if let (true, table::Format::Csv | table::Format::Markdown, Some(text)) = (ask.summary, ask.format, &answer.text) {
        // The model was asked for it.
        out.note(&answer::printable(text));
    }
    let exit = answer::write(&answer, ask.format, dialect, out)?;
    let shown = ask.explain || answer.stop == Stop::Cancelled || config.trace.keep == 0;
    if exit != Exit::Done && !shown && !answer.attempts.is_empty() {
        out.note(&format!("note: `querymend trace {}` shows every attempt", answer.trace_id));
    }
    Ok(exit)
}

/// Answers one question; no answer if it was stopped. What happened on the way stands beside it.
fn answered(
    querymend: &Querymend,
    asked: Ask,
    summary: bool,
    runtime: &Runtime,
    out: &Out,
) -> (Option<(Answer, Option<String>)>, Vec<Event>) {
    let cancel = Cancel::new();
    let mut watch = Watch::new(out);
    let mut hear = |event: &_| watch.hear(event);
    let answered = interrupt::guarded(runtime, &cancel, async {
        let mut answer = querymend.ask_with(asked, &mut hear, &cancel).await;
        let mut unsaid = None;
        if summary && answer.status == Status::Answered {
            match querymend.summarise(&answer, &cancel).await {
                Ok(text) => answer.text = text.or(answer.text),
                Err(problem) => unsaid = Some(problem.message),
            }
        }
        (answer, unsaid)
    });
    (answered, watch.end())
}

/// One database with the model, as every question of a batch asks it. Each database has a breaker of its own, and the model
/// one for all of them.
pub fn shared(
    address: &str,
    database: &Database,
    model: &Arc<dyn querymend_model::Model>,
    config: &querymend::Config,
    breakers: &Arc<Breakers>,
    store: Option<&Arc<dyn ExampleStore>>,
) -> Result<Arc<Querymend>, Failure> {
    let engine = database.open_at(address, config)?;
    let memory = store.map(|store| remember::of(Arc::clone(store), &*engine, address, config));
    let querymend = Querymend::guarded(engine, Arc::clone(model), config.clone(), Arc::clone(breakers));
    Ok(Arc::new(match memory {
        Some(memory) => querymend.with_memory(memory),
        None => querymend,
    }))
}
