//! `querymend chat`: questions one after the other, each of which sees those before it.

mod editor;
mod lines;

use std::sync::Arc;

use clap::Args;
use querymend::{Ask, Cancel, Clarification, Clarify, Config, Event, Memory, Querymend, Session, Status};
use querymend_sql::{Dialect, Schema};
use tokio::runtime::Runtime;

use self::lines::{Lines, Next};
use crate::chosen::Unnamed;
use crate::commands::schema::{chosen, describe};
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::remember::Remembering;
use crate::setup::{Asking, Database, runtime, tell_idle};
use crate::watch::Watch;
use crate::{answer, chosen, clarify, interrupt, state, story, table};

/// What `/help` says.
const HELP: &str = "\
Ask in plain words. A question sees the ones before it; `reset` begins anew.
  /sql             the query of the last answer
  /explain         every attempt at the last question
  /trace [ID]      the same of a run that is kept
  /schema [TABLE]  the tables and their columns
  /save            remember the last question and its query as right
  /unsave          take back what was saved last
  /reset           forget what was said (also: reset)
  /help            this text
  /quit            leave (also: quit, exit, Ctrl-D)
Where a question has several readings, the options have numbers: type one, or nothing for the first.
Ctrl-C stops a question. A line that ends with \\ goes on in the next one.";

/// The words that begin a command.
const COMMANDS: [&str; 9] = ["/sql", "/explain", "/trace", "/schema", "/save", "/unsave", "/reset", "/help", "/quit"];

/// Ask questions one after the other; each sees the ones before it
#[derive(Debug, Args)]
#[command(
    name = "chat",
    after_help = "Examples:
  querymend chat --db shop.db --model ollama:qwen2.5-coder
  printf 'How many orders are there?\\nAnd in 2024?\\n' | querymend chat --db shop.db --model ollama:qwen2.5-coder

With --schema FILE and no database the SQL is drafted, checked against the file and printed, but not run.
Rows go to stdout, everything else to stderr. /help lists the commands. When stdin is no terminal, each line of it is a
question or a command.
Exit codes: 0 left, 1 a question from a pipe was given up, 2 could not be done, 130 stopped with Ctrl-C."
)]
pub struct Chat {
    #[command(flatten)]
    pub database: Database,
    #[command(flatten)]
    pub asking: Asking,
    #[command(flatten)]
    pub unnamed: Unnamed,
    #[command(flatten)]
    pub remembering: Remembering,
    /// Take the most likely reading of an ambiguous question and say so, instead of asking which is meant
    #[arg(long)]
    pub assume: bool,
    /// How rows are written; json is the whole answer with all attempts
    #[arg(long, value_enum, default_value_t = table::Format::Table)]
    pub format: table::Format,
    /// Print the rows without a sentence before them
    #[arg(long)]
    pub no_summary: bool,
}

/// Does it.
pub fn run(chat: &Chat, out: &mut Out) -> Result<Exit, Failure> {
    let config = chat.asking.config()?;
    let engine = chat.database.open_or_offline(&config)?;
    let model = chosen::model(&chat.asking, Some(&chat.unnamed), &config, out)?;
    let (name, dialect, asked) = (engine.name().to_string(), engine.dialect(), model.name().to_string());
    let runtime = runtime()?;
    tell_idle(&config, &*engine, &runtime, out);
    let memory = if engine.is_offline() {
        None
    } else {
        let address = chat.database.address(&config)?.unwrap_or_default();
        chat.remembering.memory(&*engine, &address, true, &config, &runtime, out)?
    };
    let mut querymend = Querymend::new(engine, model, config.clone());
    if let Some(memory) = memory {
        querymend = querymend.with_memory(memory);
    }
    let schema = runtime.block_on(querymend.schema())?;
    let mut lines = Lines::new(&schema)?;
    if lines.interactive() {
        out.note(&format!("{name}, asked with {asked}. /help lists the commands, Ctrl-D leaves."));
    }
    let mut talk = Talk {
        memory: querymend.memory().cloned(),
        fresh: chat.remembering.fresh,
        session: querymend.session(),
        config: &config,
        runtime: &runtime,
        schema,
        dialect,
        format: chat.format,
        no_summary: chat.no_summary,
        events: Vec::new(),
        saved: Vec::new(),
        clarify: clarify::mode(chat.assume, &config, lines.interactive()),
        pending: None,
    };
    let mut worst = Exit::Done;
    let exit = loop {
        let line = match lines.next(&runtime)? {
            Next::Line(line) => line,
            Next::Again => continue,
            Next::Left => break worst,
            Next::Stopped => break Exit::Interrupted,
        };
        match talk.hear(line.trim(), out) {
            Ok(None) => break worst,
            // Nobody is there who could say whether to go on with the next line.
            Ok(Some(Exit::Interrupted)) if !lines.interactive() => break Exit::Interrupted,
            Ok(Some(exit)) if !lines.interactive() => worst = worse(worst, exit),
            Ok(Some(_)) => {}
            // The conversation goes on, whatever was in the way of one line.
            Err(failure) => {
                out.flush()?;
                out.error(&failure);
                if !lines.interactive() {
                    worst = Exit::Failed;
                }
            }
        }
        out.flush()?;
        if out.closed() {
            break worst;
        }
    };
    // Nobody said which reading is meant, so the question was not answered.
    let is_open = talk.pending.is_some() && exit == Exit::Done && !lines.interactive();
    runtime.shutdown_background();
    Ok(if is_open { Exit::Refused } else { exit })
}

fn worse(a: Exit, b: Exit) -> Exit {
    match (a, b) {
        (Exit::Failed | Exit::Interrupted, _) => a,
        (_, Exit::Done) => a,
        _ => b,
    }
}

/// A conversation and what it is about.
struct Talk<'t> {
    session: Session<'t>,
    memory: Option<Memory>,
    /// Memory does not answer.
    fresh: bool,
    config: &'t Config,
    runtime: &'t Runtime,
    schema: Arc<Schema>,
    dialect: &'static Dialect,
    format: table::Format,
    no_summary: bool,
    /// What happened during the last question.
    events: Vec<Event>,
    /// Questions that were saved in this chat.
    saved: Vec<String>,
    clarify: Clarify,
    /// A question that has several readings, until the next line says which is meant.
    pending: Option<(String, Clarification)>,
}

impl Talk<'_> {
    /// Takes a line. Nothing comes back where it ends the conversation.
    fn hear(&mut self, line: &str, out: &mut Out) -> Result<Option<Exit>, Failure> {
        if let Some((question, clarification)) = self.pending.take_if(|_| !line.starts_with('/')) {
            match clarify::picked(line, &clarification) {
                Some(at) => {
                    let choice = clarification.options[at].sql.clone();
                    return self.ask(&question, Some(choice), out).map(Some);
                }
                None if line.parse::<i64>().is_ok() => {
                    let message = clarify::out_of_range(&clarification);
                    self.pending = Some((question, clarification));
                    return Err(Failure::new(message));
                }
                // Anything else is the next question.
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
                out.note("what was said is forgotten");
            }
            ("/help", _) => out.say(HELP),
            ("/sql", _) => out.line(&answer::printable(&self.last()?.1))?,
            ("/explain", _) => self.explain(out)?,
            ("/trace", "") => self.explain(out)?,
            ("/trace", id) => {
                let events = crate::commands::trace::find(self.config, id)?;
                out.write(story::tell(&events).as_bytes())?;
            }
            ("/schema", names) => {
                let names: Vec<String> = names.split_whitespace().map(str::to_string).collect();
                describe(&chosen(&self.schema, &names)?, out)?;
            }
            ("/save", "") => self.save(out)?,
            ("/save", _) => {
                return Err(
                    Failure::new("/save takes no argument").hint("it remembers the last question and its query")
                );
            }
            ("/unsave", _) => self.unsave(out)?,
            (command, _) if command.starts_with('/') => {
                return Err(Failure::new(format!("there is no command `{}`", crate::render::one_line(command)))
                    .hint("/help lists those that there are"));
            }
            _ => return self.ask(line, None, out).map(Some),
        }
        Ok(Some(Exit::Done))
    }

    fn ask(&mut self, question: &str, choice: Option<String>, out: &mut Out) -> Result<Exit, Failure> {
        let cancel = Cancel::new();
        let mut watch = Watch::new(out);
        let mut hear = |event: &Event| watch.hear(event);
        let (session, fresh, clarify) = (&mut self.session, self.fresh, Some(self.clarify));
        let ask = Ask { question: question.to_string(), fresh, clarify, choice, ..Ask::default() };
        let work = async { session.ask_with(ask, &mut hear, &cancel).await.clone() };
        let answered = interrupt::guarded(self.runtime, &cancel, work);
        let events = watch.end();
        let Some(mut answer) = answered else {
            out.say("stopped");
            return Ok(Exit::Interrupted);
        };
        state::keep(self.config, &answer.trace_id, &events, out);
        self.events = events;
        if self.no_summary && answer.status == Status::Answered {
            answer.text = None;
        }
        if let (Some(clarification), true) = (&answer.clarification, self.format != table::Format::Json) {
            clarify::write(clarification, out);
            out.note("type its number, or nothing for the first; anything else is the next question");
            self.pending = Some((answer.question.clone(), clarification.clone()));
            return Ok(Exit::Done);
        }
        self.pending = answer.clarification.clone().map(|clarification| (answer.question.clone(), clarification));
        answer::write(&answer, self.format, self.dialect, out)
    }

    /// The last question that was answered with rows, and its query.
    fn last(&self) -> Result<(String, String), Failure> {
        let answered = self.session.turns().iter().rev().find(|turn| turn.status == Status::Answered);
        let pair = answered.and_then(|turn| Some((turn.question.clone(), turn.sql.clone()?)));
        pair.ok_or_else(|| Failure::new("no question was answered yet").hint("ask one first"))
    }

    fn explain(&self, out: &mut Out) -> Result<(), Failure> {
        if self.events.is_empty() {
            return Err(Failure::new("no question was asked yet").hint("ask one first"));
        }
        out.write(story::tell(&story::kept(&self.events)).as_bytes())
    }

    fn save(&mut self, out: &Out) -> Result<(), Failure> {
        let (question, sql) = self.last()?;
        if self.runtime.block_on(self.memory()?.save(&question, &sql))? {
            out.note(&format!("saved: {}", crate::render::one_line(&question)));
        } else {
            out.note("this is saved already");
        }
        self.session.settled();
        self.saved.retain(|saved| *saved != question);
        self.saved.push(question);
        Ok(())
    }

    fn memory(&self) -> Result<&Memory, Failure> {
        self.memory.as_ref().ok_or_else(|| {
            Failure::new("nothing is remembered here")
                .hint("leave out --no-memory, or set `memory.enabled` in querymend.yaml")
        })
    }

    fn unsave(&mut self, out: &Out) -> Result<(), Failure> {
        let Some(question) = self.saved.pop() else {
            return Err(Failure::new("nothing was saved in this chat").hint("/save keeps the last answer"));
        };
        self.runtime.block_on(self.memory()?.forget(&question))?;
        out.note(&format!("no longer saved: {}", crate::render::one_line(&question)));
        Ok(())
    }
}
