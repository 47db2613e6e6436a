//! Query repair with the database as the oracle, for single queries and batches.

use std::cell::{Cell, RefCell};

use querymend::correction::{RepairContext, explain_remaining};
use querymend_engine::{CancelFlag, Engine, Error, Limits, open};
use querymend_sql::{
    Applicability, Approved, EngineError, RepairOutcome, RepairRequest, ReviewContext, classify, repair,
};
use tokio::runtime::Runtime;

use crate::error::CliError;

/// Query to repair.
pub struct RepairInput<'b> {
    /// SQL text.
    pub text: &'b str,
    /// Schema, dialect and policy.
    pub context: ReviewContext<'b>,
    /// Question that the query answers, with its evidence.
    pub question: Option<&'b str>,
    /// Error message of the database for this query.
    pub error: Option<&'b str>,
    /// Least certain applicability of fixes to apply.
    pub apply: Applicability,
}

/// Connection to a database that dry-runs queries.
pub struct OracleConnection<'j> {
    runtime: &'j Runtime,
    engine: &'j dyn Engine,
    timeouts: Cell<usize>,
}

/// Open databases of one thread, in LRU order: most recently used last.
pub struct OraclePool {
    max_open: usize,
    runtime: Option<Runtime>,
    engines: Vec<(String, Box<dyn Engine>)>,
}

impl OraclePool {
    /// Creates an empty pool of at most `max_open` databases.
    pub fn new(max_open: usize) -> Self {
        Self { max_open, runtime: None, engines: Vec::new() }
    }

    /// Connects to the database at `address`, opened on first use. Evicts the least recently used
    /// one if the pool is full.
    pub fn connect(&mut self, address: &str) -> Result<OracleConnection<'_>, CliError> {
        let runtime = match self.runtime.take() {
            Some(runtime) => runtime,
            None => tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| CliError::new(format!("cannot start a thread: {error}")))?,
        };
        let runtime = self.runtime.insert(runtime);
        let entry = match self.engines.iter().position(|(known, _)| known == address) {
            Some(at) => self.engines.remove(at),
            None => (address.to_string(), open(address)?),
        };
        if self.engines.len() >= self.max_open.max(1) {
            self.engines.remove(0);
        }
        let engine = self.engines.push_mut(entry);
        Ok(OracleConnection { runtime, engine: &*engine.1, timeouts: Cell::default() })
    }
}

impl OracleConnection<'_> {
    /// Returns whether the database uses the dialect of the context; the same SQL may have another
    /// meaning in another dialect.
    pub fn has_dialect_of(&self, context: &ReviewContext<'_>) -> bool {
        self.engine.dialect().name == context.dialect.name
    }

    /// Returns the number of lookups that the database did not answer in time; their results count
    /// as unknown.
    pub fn timeouts(&self) -> usize {
        self.timeouts.get()
    }
}

/// Oracle that records the errors of the database.
struct RecordingOracle<'a> {
    connection: &'a OracleConnection<'a>,
    connection_error: RefCell<Option<Error>>,
    rejections: RefCell<Vec<(String, EngineError)>>,
}

impl querymend_sql::DatabaseOracle for RecordingOracle<'_> {
    fn dry_run(&self, query: &Approved) -> Result<(), EngineError> {
        match self.connection.runtime.block_on(self.connection.engine.probe(query)) {
            Ok(()) => Ok(()),
            Err(Error::Rejected(error)) => {
                self.rejections.borrow_mut().push((query.sql().to_string(), error.clone()));
                Err(error)
            }
            Err(error) => {
                let engine_error = EngineError { message: error.to_string(), ..EngineError::default() };
                self.connection_error.replace(Some(error));
                Err(engine_error)
            }
        }
    }

    fn returns_rows(&self, query: &Approved) -> Option<bool> {
        let limits = Limits::lookup(1);
        let cancel = CancelFlag::new();
        match self.connection.runtime.block_on(self.connection.engine.execute(query, &limits, &cancel)) {
            Ok(rows) => Some(!rows.rows.is_empty()),
            Err(error) => {
                let is_timeout = matches!(error, Error::TimedOut { .. });
                self.connection.timeouts.set(self.connection.timeouts.get() + usize::from(is_timeout));
                None
            }
        }
    }
}

/// Repairs a query. An error means that the database was unavailable and nothing is known about the
/// query.
pub fn repair_query(
    input: &RepairInput<'_>,
    connection: Option<&OracleConnection<'_>>,
) -> Result<RepairOutcome, CliError> {
    let RepairInput { text, context, question, error, apply } = *input;
    let error = error.map(str::trim).filter(|error| !error.is_empty());
    let classified = error.map(|error| {
        let engine_error = EngineError { message: error.to_string(), ..EngineError::default() };
        classify(context.dialect, &engine_error)
    });
    let request = RepairRequest { text, context, question, max_applicability: apply, error: classified.as_ref() };
    let connection = connection.filter(|connection| connection.has_dialect_of(&context));
    let oracle = connection.map(|connection| RecordingOracle {
        connection,
        connection_error: RefCell::default(),
        rejections: RefCell::default(),
    });
    let outcome = repair(&request, oracle.as_ref().map(|a| a as &dyn querymend_sql::DatabaseOracle));
    let (connection_error, rejections) = oracle.map(|o| (o.connection_error, o.rejections)).unwrap_or_default();
    if let Some(error) = connection_error.take() {
        return Err(error.into());
    }
    let rejections = rejections.take();
    let repair_context = RepairContext {
        context,
        question,
        error,
        apply,
        has_database: connection.is_some(),
        rejected_queries: &rejections,
    };
    Ok(explain_remaining(outcome, &repair_context))
}
