//! A repair with the database as judge, as one call and as batches ask for it.

use std::cell::{Cell, RefCell};

use querymend::correct::{Circumstances, told};
use querymend_engine::{Cancel, Engine, Error, Limits, open};
use querymend_sql::{Applicability, Approved, Context, EngineError, Repair, Request, classify, repair};
use tokio::runtime::Runtime;

use crate::failure::Failure;

/// A query that failed, or may fail.
pub struct Broken<'b> {
    /// Its text.
    pub text: &'b str,
    /// Schema, dialect and policy.
    pub context: Context<'b>,
    /// The question that it answers, with what is known about it.
    pub question: Option<&'b str>,
    /// What the database said about it.
    pub error: Option<&'b str>,
    /// The most doubtful fix that may be applied.
    pub apply: Applicability,
}

/// A database that says whether it would run a query.
pub struct Judge<'j> {
    runtime: &'j Runtime,
    engine: &'j dyn Engine,
    timeouts: Cell<usize>,
}

/// Databases that one thread has open, the last one used at the end.
pub struct Judges {
    most: usize,
    runtime: Option<Runtime>,
    engines: Vec<(String, Box<dyn Engine>)>,
}

impl Judges {
    /// None is open yet, and never more than so many are.
    pub fn new(most: usize) -> Self {
        Self { most, runtime: None, engines: Vec::new() }
    }

    /// The database at an address, opened at its first use.
    pub fn judge(&mut self, address: &str) -> Result<Judge<'_>, Failure> {
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| Failure::new(format!("no thread can be started: {error}")))?,
        };
        let runtime = self.runtime.insert(runtime);
        let held = match self.engines.iter().position(|(known, _)| known == address) {
            Some(at) => self.engines.remove(at),
            None => (address.to_string(), open(address)?),
        };
        if self.engines.len() >= self.most.max(1) {
            self.engines.remove(0);
        }
        let engine = self.engines.push_mut(held);
        Ok(Judge { runtime, engine: &*engine.1, timeouts: Cell::default() })
    }
}

impl Judge<'_> {
    /// Whether it speaks the dialect; the same text may mean something else in another.
    pub fn speaks(&self, context: &Context<'_>) -> bool {
        self.engine.dialect().name == context.dialect.name
    }

    /// Returns how many lookups the database did not answer in time. They count as unknown.
    pub fn timeouts(&self) -> usize {
        self.timeouts.get()
    }
}

/// A judge that remembers what the database said.
struct Asked<'a> {
    judge: &'a Judge<'a>,
    trouble: RefCell<Option<Error>>,
    refusals: RefCell<Vec<(String, EngineError)>>,
}

impl querymend_sql::Judge for Asked<'_> {
    fn runs(&self, query: &Approved) -> Result<(), EngineError> {
        match self.judge.runtime.block_on(self.judge.engine.probe(query)) {
            Ok(()) => Ok(()),
            Err(Error::Rejected(said)) => {
                self.refusals.borrow_mut().push((query.sql().to_string(), said.clone()));
                Err(said)
            }
            Err(error) => {
                let said = EngineError { message: error.to_string(), ..EngineError::default() };
                self.trouble.replace(Some(error));
                Err(said)
            }
        }
    }

    fn gives_rows(&self, query: &Approved) -> Option<bool> {
        let limits = Limits::lookup(1);
        let cancel = Cancel::new();
        match self.judge.runtime.block_on(self.judge.engine.execute(query, &limits, &cancel)) {
            Ok(rows) => Some(!rows.rows.is_empty()),
            Err(error) => {
                let is_timeout = matches!(error, Error::TimedOut { .. });
                self.judge.timeouts.set(self.judge.timeouts.get() + usize::from(is_timeout));
                None
            }
        }
    }
}

/// Mends a query. A failure means that the database could not be asked, and nothing is known about the query.
pub fn mend(broken: &Broken<'_>, judge: Option<&Judge<'_>>) -> Result<Repair, Failure> {
    let Broken { text, context, question, error, apply } = *broken;
    let error = error.map(str::trim).filter(|error| !error.is_empty());
    let classified = error.map(|error| {
        let said = EngineError { message: error.to_string(), ..EngineError::default() };
        classify(context.dialect, &said)
    });
    let request = Request { text, context, question, apply, error: classified.as_ref() };
    let judge = judge.filter(|judge| judge.speaks(&context));
    let asked = judge.map(|judge| Asked { judge, trouble: RefCell::default(), refusals: RefCell::default() });
    let mended = repair(&request, asked.as_ref().map(|a| a as &dyn querymend_sql::Judge));
    let (trouble, refusals) = asked.map(|a| (a.trouble, a.refusals)).unwrap_or_default();
    if let Some(error) = trouble.take() {
        return Err(error.into());
    }
    let refused = refusals.take();
    let about = Circumstances { context, question, error, apply, judged: judge.is_some(), refused: &refused };
    Ok(told(mended, &about))
}
