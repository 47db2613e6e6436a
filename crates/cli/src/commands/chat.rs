//! `querymend chat`: a conversation in which each question sees the earlier ones.

mod editor;
mod input;
mod input_event;

use std::sync::Arc;

use clap::Args;
use querymend::{
    AnswerStatus, AskInput, CancellationToken, Clarification, Clarify, Config, ConversationSession, Event, Memory,
    Querymend,
};
use querymend_sql::{Dialect, Schema};
use tokio::runtime::Runtime;

use self::input::ChatInput;
use self::input_event::InputEvent;
use crate::args::answer::AnswerArgs;
use crate::args::database::DatabaseArgs;
use crate::commands::schema::{select_tables, write_tables};
use crate::deny_lists::check_deny_lists;
use crate::error::{CliError, ExitStatus};
use crate::output::progress::RunProgress;
use crate::output::text::one_line;
use crate::output::{Out, answer, table, trace_view};
use crate::runtime::build_runtime;
use crate::{clarify, model_selection, signals, state_dir};

/// Output of `/help`.
const HELP: &str = "\
Ask in plain English. A question sees the previous ones; `reset` starts over.
  /sql             the query of the last answer
  /explain         every attempt at the last question
  /trace [ID]      the same for a saved run
  /schema [TABLE]  the tables and their columns
  /save            save the last question and its query as a correct example
  /unsave          undo the last /save
  /reset           clear the conversation (also: reset)
  /help            this text
  /quit            quit (also: quit, exit, Ctrl-D)
If a question is ambiguous, the options are numbered: type a number, or nothing for the first.
Ctrl-C stops a question. A line that ends with \\ continues on the next one.";

/// Names of the chat commands, for completion.
const COMMANDS: [&str; 9] = ["/sql", "/explain", "/trace", "/schema", "/save", "/unsave", "/reset", "/help", "/quit"];

/// Ask questions in a conversation; each sees the earlier ones
#[derive(Debug, Args)]
#[command(
    name = "chat",
    after_help = "Examples:
  querymend chat --db shop.db --model ollama:qwen2.5-coder
  printf 'How many orders are there?\\nAnd in 2024?\\n' | querymend chat --db shop.db --model ollama:qwen2.5-coder

With --schema FILE and no database the SQL is drafted, checked against the file and printed, but not run.
Rows go to stdout, everything else to stderr. /help lists the commands. If stdin is not a terminal, each line is a
question or a command.
Exit codes: 0 quit, 1 a question from a pipe was given up, 2 failed, 130 stopped with Ctrl-C."
)]
pub struct ChatCommand {
    #[command(flatten)]
    pub database: DatabaseArgs,
    #[command(flatten)]
    pub answer_args: AnswerArgs,
    /// Assume the most likely reading of an ambiguous question and report it, instead of asking
    /// back
    #[arg(long)]
    pub assume: bool,
    /// Output format of rows; json prints the whole answer with all attempts
    #[arg(long, value_enum, default_value_t = table::ResultFormat::Table)]
    pub format: table::ResultFormat,
    /// Print the rows without a summary before them
    #[arg(long)]
    pub no_summary: bool,
}

/// Runs `querymend chat`.
pub fn run(chat: &ChatCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = chat.answer_args.model_args.load_config()?;
    let engine = chat.database.open_or_offline(&config)?;
    let model =
        model_selection::select_model(&chat.answer_args.model_args, Some(&chat.answer_args.auto_pull), &config, out)?;
    let (name, dialect, model_name) = (engine.name().to_string(), engine.dialect(), model.name().to_string());
    let runtime = build_runtime()?;
    check_deny_lists(&config, &*engine, &runtime, out);
    let memory = if engine.is_offline() {
        None
    } else {
        let address = chat.database.address(&config)?.unwrap_or_default();
        chat.answer_args.memory_args.open_memory(&*engine, &address, true, &config, &runtime, out)?
    };
    let mut querymend = Querymend::new(engine, model, config.clone());
    if let Some(memory) = memory {
        querymend = querymend.with_memory(memory);
    }
    let schema = runtime.block_on(querymend.schema())?;
    let mut input = ChatInput::new(&schema)?;
    if input.is_interactive() {
        out.note(&format!("{name}, with the model {model_name}. /help lists the commands, Ctrl-D quits."));
    }
    let mut chat_session = ChatSession {
        memory: querymend.memory().cloned(),
        fresh: chat.answer_args.memory_args.fresh,
        session: querymend.session(),
        config: &config,
        runtime: &runtime,
        schema,
        dialect,
        format: chat.format,
        no_summary: chat.no_summary,
        events: Vec::new(),
        saved: Vec::new(),
        clarify: clarify::mode(chat.assume, &config, input.is_interactive()),
        pending: None,
    };
    let mut worst = ExitStatus::Success;
    let exit = loop {
        let line = match input.read_next(&runtime)? {
            InputEvent::Line(line) => line,
            InputEvent::Discarded => continue,
            InputEvent::EndOfInput => break worst,
            InputEvent::Interrupted => break ExitStatus::Interrupted,
        };
        match chat_session.handle_line(line.trim(), out) {
            Ok(None) => break worst,
            // Without a terminal there is no user to confirm that the next line should run.
            Ok(Some(ExitStatus::Interrupted)) if !input.is_interactive() => break ExitStatus::Interrupted,
            Ok(Some(exit)) if !input.is_interactive() => worst = worse_status(worst, exit),
            Ok(Some(_)) => {}
            // An error in one line does not end the conversation.
            Err(failure) => {
                out.flush()?;
                out.error(&failure);
                if !input.is_interactive() {
                    worst = ExitStatus::Failed;
                }
            }
        }
        out.flush()?;
        if out.is_closed() {
            break worst;
        }
    };
    // The input ended without a choice, so the ambiguous question was not answered.
    let is_open = chat_session.pending.is_some() && exit == ExitStatus::Success && !input.is_interactive();
    runtime.shutdown_background();
    Ok(if is_open { ExitStatus::Refused } else { exit })
}

fn worse_status(a: ExitStatus, b: ExitStatus) -> ExitStatus {
    match (a, b) {
        (ExitStatus::Failed | ExitStatus::Interrupted, _) => a,
        (_, ExitStatus::Success) => a,
        _ => b,
    }
}

/// State of a conversation.
struct ChatSession<'t> {
    session: ConversationSession<'t>,
    memory: Option<Memory>,
    /// `true` if answers must not come from memory.
    fresh: bool,
    config: &'t Config,
    runtime: &'t Runtime,
    schema: Arc<Schema>,
    dialect: &'static Dialect,
    format: table::ResultFormat,
    no_summary: bool,
    /// Events of the last question.
    events: Vec<Event>,
    /// Questions saved in this session.
    saved: Vec<String>,
    clarify: Clarify,
    /// Ambiguous question that waits for the user's choice in the next line.
    pending: Option<(String, Clarification)>,
}

impl ChatSession<'_> {
    /// Handles a line; returns `None` if it ends the conversation.
    fn handle_line(&mut self, line: &str, out: &mut Out) -> Result<Option<ExitStatus>, CliError> {
        if let Some((question, clarification)) = self.pending.take_if(|_| !line.starts_with('/')) {
            match clarify::parse_choice(line, &clarification) {
                Some(at) => {
                    let choice = clarification.options[at].sql.clone();
                    return self.ask(&question, Some(choice), out).map(Some);
                }
                None if line.parse::<i64>().is_ok() => {
                    let message = clarify::out_of_range(&clarification);
                    self.pending = Some((question, clarification));
                    return Err(CliError::new(message));
                }
                // Any other text is the next question.
                None => {}
            }
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("", _) => {}
            ("quit" | "exit" | "/quit" | "/exit", "") => return Ok(None),
            ("reset" | "/reset", "") => {
                self.session.reset();
                self.events.clear();
                out.note("the conversation was cleared");
            }
            ("/help", _) => out.message(HELP),
            ("/sql", _) => out.line(&answer::sanitize_lines(&self.last_answered()?.1))?,
            ("/explain", _) => self.explain(out)?,
            ("/trace", "") => self.explain(out)?,
            ("/trace", id) => {
                let events = crate::commands::trace::find_trace(self.config, id)?;
                out.write(trace_view::render_trace(&events).as_bytes())?;
            }
            ("/schema", names) => {
                let names: Vec<String> = names.split_whitespace().map(str::to_string).collect();
                write_tables(&select_tables(&self.schema, &names)?, out)?;
            }
            ("/save", "") => self.save(out)?,
            ("/save", _) => {
                return Err(CliError::new("/save takes no argument").hint("it saves the last question and its query"));
            }
            ("/unsave", _) => self.unsave(out)?,
            (command, _) if command.starts_with('/') => {
                return Err(CliError::new(format!("there is no command `{}`", one_line(command)))
                    .hint("/help lists all commands"));
            }
            _ => return self.ask(line, None, out).map(Some),
        }
        Ok(Some(ExitStatus::Success))
    }

    fn ask(&mut self, question: &str, choice: Option<String>, out: &mut Out) -> Result<ExitStatus, CliError> {
        let cancel = CancellationToken::new();
        let mut progress = RunProgress::new(out);
        let mut on_event = |event: &Event| progress.on_event(event);
        let (session, fresh, clarify) = (&mut self.session, self.fresh, Some(self.clarify));
        let ask =
            AskInput { question: question.to_string(), bypass_memory: fresh, clarify, choice, ..AskInput::default() };
        let work = async { session.ask_with(ask, &mut on_event, &cancel).await.clone() };
        let answered = signals::run_until_interrupted(self.runtime, &cancel, work);
        let events = progress.finish();
        let Some(mut answer) = answered else {
            out.message("stopped");
            return Ok(ExitStatus::Interrupted);
        };
        state_dir::save_trace(self.config, &answer.trace_id, &events, out);
        self.events = events;
        if self.no_summary && answer.status == AnswerStatus::Answered {
            answer.text = None;
        }
        if let (Some(clarification), true) = (&answer.clarification, self.format != table::ResultFormat::Json) {
            clarify::write(clarification, out);
            out.note("type its number, or nothing for the first; anything else is the next question");
            self.pending = Some((answer.question.clone(), clarification.clone()));
            return Ok(ExitStatus::Success);
        }
        self.pending = answer.clarification.clone().map(|clarification| (answer.question.clone(), clarification));
        answer::write_answer(&answer, self.format, self.dialect, out)
    }

    /// Returns the last question that was answered with rows, and its query.
    fn last_answered(&self) -> Result<(String, String), CliError> {
        let answered = self.session.answers().iter().rev().find(|turn| turn.status == AnswerStatus::Answered);
        let pair = answered.and_then(|turn| Some((turn.question.clone(), turn.sql.clone()?)));
        pair.ok_or_else(|| CliError::new("no question was answered yet").hint("ask one first"))
    }

    fn explain(&self, out: &mut Out) -> Result<(), CliError> {
        if self.events.is_empty() {
            return Err(CliError::new("no question was asked yet").hint("ask one first"));
        }
        out.write(trace_view::render_trace(&trace_view::to_json_events(&self.events)).as_bytes())
    }

    fn save(&mut self, out: &Out) -> Result<(), CliError> {
        let (question, sql) = self.last_answered()?;
        if self.runtime.block_on(self.memory()?.save(&question, &sql))? {
            out.note(&format!("saved: {}", one_line(&question)));
        } else {
            out.note("this is saved already");
        }
        self.session.clear_pending_feedback();
        self.saved.retain(|saved| *saved != question);
        self.saved.push(question);
        Ok(())
    }

    fn memory(&self) -> Result<&Memory, CliError> {
        self.memory.as_ref().ok_or_else(|| {
            CliError::new("memory is disabled").hint("leave out --no-memory, or set `memory.enabled` in querymend.yaml")
        })
    }

    fn unsave(&mut self, out: &Out) -> Result<(), CliError> {
        let Some(question) = self.saved.pop() else {
            return Err(CliError::new("nothing was saved in this chat").hint("/save saves the last answer"));
        };
        self.runtime.block_on(self.memory()?.remove(&question))?;
        out.note(&format!("no longer saved: {}", one_line(&question)));
        Ok(())
    }
}
