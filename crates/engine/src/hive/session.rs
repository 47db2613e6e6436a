//! One session on a server, with the settings that reading a query in a known way needs.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::address::{Greeting, Settings};
use super::call::{NAME_OF_SERVER, Server, State};
use super::cells::Gathered;
use super::fault::Fault;
use super::line::Line;
use super::lock;
use super::value::Value;
use crate::Limits;
use crate::stop::Stop;

/// Between two looks at a running statement: soon at first, later not so often.
const SOONEST: Duration = Duration::from_millis(5);
const LATEST: Duration = Duration::from_millis(100);
/// The longest nap in which nobody asks whether the query is to end.
const NAP: Duration = Duration::from_millis(10);

/// So many rows are asked for first, so many at most, and so many bytes of them.
const FIRST_PART: usize = 200;
const LARGEST_PART: usize = 10_000;
const HEAVIEST_PART: usize = 8 << 20;

/// Who is on the other end. They speak one protocol and two kinds of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    Spark,
    Hive,
}

pub(super) struct Session {
    settings: Arc<Settings>,
    server: Server,
    handle: Value,
    pub(super) product: Product,
    /// Something was left in the middle: what comes next on this line may be an answer to it.
    broken: bool,
}

impl Session {
    /// Calls the server and begins a session.
    pub(super) fn open(settings: &Arc<Settings>, stop: &Stop) -> Result<Self, Fault> {
        let mut server = connect(settings, stop)?;
        let mut begin = |wishes: &[(&str, &str)]| server.open_session(&settings.user, &settings.password.0, wishes);
        let handle = match begin(lock::AT_OPENING) {
            // Some servers allow no wishes; it then takes longer until they hear that a query is to end.
            Err(Fault::Refused(_)) => begin(&[])?,
            outcome => outcome?,
        };
        server.line().trust();
        let name = server.info(&handle, NAME_OF_SERVER)?.to_lowercase();
        let product = match name {
            name if name.contains("spark") => Product::Spark,
            name if name.contains("hive") => Product::Hive,
            // Something in between; whoever wrote the address knows what is behind it.
            _ if settings.dialect.name == "hive" => Product::Hive,
            _ => Product::Spark,
        };
        let mut session = Self { settings: Arc::clone(settings), server, handle, product, broken: false };
        lock::prepare(&mut session, &settings.database, stop)?;
        Ok(session)
    }

    /// Whether it can serve the next query.
    pub(super) fn is_clean(&self) -> bool {
        !self.broken
    }

    /// Hangs up without a word.
    pub(super) fn abandon(mut self) {
        self.broken = true;
    }

    /// Asks the server something on this line. A line on which an answer may still be under way is of no more use.
    pub(super) fn ask<T>(
        &mut self,
        stop: &Stop,
        question: impl FnOnce(&mut Server, &Value) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        self.server.line().heed(stop);
        let answer = question(&mut self.server, &self.handle);
        if matches!(answer, Err(Fault::Stopped | Fault::Lost { .. } | Fault::Strange(_))) {
            self.broken = true;
        }
        answer
    }

    /// Runs one statement, whatever it is: only `lock.rs` decides what may come here. The operation that is given back holds its
    /// rows, and has to be let go of.
    pub(super) fn run(&mut self, sql: &str, stop: &Stop) -> Result<Value, Fault> {
        // Ours comes first: a little more than what is left of the time, for the server to stop by itself if we are gone.
        let seconds = i64::try_from(stop.left(Duration::from_secs(86_400)).as_secs()).unwrap_or(0) + 2;
        let operation = self.ask(stop, |server, session| server.execute(session, sql, seconds))?;
        self.finish(operation, stop)
    }

    /// Runs one statement that is only about itself.
    pub(super) fn command(&mut self, sql: &str, stop: &Stop) -> Result<(), Fault> {
        let operation = self.run(sql, stop)?;
        self.let_go(&operation, false);
        Ok(())
    }

    /// Waits until an operation has its rows.
    pub(super) fn finish(&mut self, operation: Value, stop: &Stop) -> Result<Value, Fault> {
        match self.wait(&operation, stop) {
            Ok(()) => Ok(operation),
            Err(fault) => {
                self.let_go(&operation, fault == Fault::Stopped);
                Err(fault)
            }
        }
    }

    fn wait(&mut self, operation: &Value, stop: &Stop) -> Result<(), Fault> {
        let mut pause = SOONEST;
        let mut silent = 0;
        loop {
            if stop.reason().is_some() {
                return Err(Fault::Stopped);
            }
            let asked = Instant::now();
            match self.ask(stop, |server, _| server.state(operation))? {
                State::Finished => return Ok(()),
                State::Failed(status) if status.message.contains("Query timed out after") => {
                    return Err(Fault::TimedOut);
                }
                // Spark says that something went wrong a moment before it knows what.
                State::Failed(status) if status.message.is_empty() && silent < 20 => {
                    silent += 1;
                    pause = SOONEST;
                }
                State::Failed(status) => return Err(Fault::Refused(status)),
                State::TimedOut => return Err(Fault::TimedOut),
                State::Stopped => return Err(Fault::Strange("the server has stopped the query".into())),
                State::Running => {}
            }
            // Some servers wait by themselves before they say that there is nothing new.
            let until = asked + pause;
            while Instant::now() < until && stop.reason().is_none() {
                thread::sleep(NAP.min(until.saturating_duration_since(Instant::now())));
            }
            pause = (pause * 2).min(LATEST);
        }
    }

    /// Takes the rows of an operation, as far as they are allowed. The first ones show how heavy they are, and how many may come
    /// together.
    pub(super) fn gather(&mut self, operation: &Value, limits: &Limits, stop: &Stop) -> Result<Gathered, Fault> {
        let columns = self.ask(stop, |server, _| server.describe(operation))?;
        let mut gathered = Gathered::new(columns, limits);
        let mut part = FIRST_PART;
        loop {
            if stop.reason().is_some() {
                return Err(Fault::Stopped);
            }
            let columns = self.ask(stop, |server, _| server.fetch(operation, part))?;
            let came = gathered.add(columns)?;
            if came == 0 || gathered.taking.is_cut() {
                return Ok(gathered);
            }
            let missing = limits.rows.saturating_sub(gathered.taking.count()).saturating_add(1);
            part = (HEAVIEST_PART / gathered.taking.weight().max(1)).clamp(1, LARGEST_PART).min(missing);
        }
    }

    /// Lets go of an operation, so that the server can forget its rows; one that still runs is stopped there.
    pub(super) fn let_go(&mut self, operation: &Value, running: bool) {
        let stop = Stop::brief();
        if !self.broken {
            let stopped = if running { self.ask(&stop, |server, _| server.cancel(operation)) } else { Ok(()) };
            let closed = stopped.and_then(|()| self.ask(&stop, |server, _| server.close(operation)));
            if closed.is_err() {
                self.broken = true;
            }
        }
        if self.broken && running {
            // This line is busy with a question that the server does not answer: it is told on another one.
            let told = connect(&self.settings, &stop).and_then(|mut server| server.cancel(operation));
            drop(told);
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.broken {
            // Whether or not it hears: a server closes the sessions of those that hang up.
            self.server.line().heed(&Stop::brief());
            drop(self.server.close_session(&self.handle));
        }
    }
}

/// Calls the server and greets it.
fn connect(settings: &Settings, stop: &Stop) -> Result<Server, Fault> {
    let mut line = Line::open(&settings.host, settings.port, settings.tls.as_ref(), stop)?;
    if settings.greeting == Greeting::Plain {
        line.greet(&settings.user, &settings.password.0)?.map_err(Fault::Unknown)?;
    }
    Ok(Server::new(line))
}
