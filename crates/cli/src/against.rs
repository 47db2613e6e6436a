//! What a query is held against: a database, a schema file, or nothing but its dialect.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use querymend::config::ValuesSection;
use querymend::context::values;
use querymend_engine::{Answer, open};
use querymend_sql::dialect::{DIALECTS, SQLITE};
use querymend_sql::{Dialect, Policy, Schema};

use crate::failure::Failure;
use crate::input;
use crate::out::Out;
use crate::render::one_line;

/// How long the values of a database may take to be read: whoever checks a query waits for it.
const READING: Duration = Duration::from_secs(3);

/// The options that say it.
#[derive(Debug, Clone, Args)]
pub struct Against {
    /// Database whose tables the names are looked up in: a file, a folder of files, or an address such as postgres://USER@HOST/NAME
    #[arg(long, value_name = "URL", conflicts_with = "schema")]
    pub db: Option<String>,
    /// File that describes the tables: JSON, or CREATE TABLE statements
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,
    /// Dialect of the SQL [default: that of the database, else sqlite]
    #[arg(long, value_name = "NAME", value_parser = dialect)]
    pub dialect: Option<&'static Dialect>,
    /// Read no values of the database: only its tables and columns
    #[arg(long)]
    pub no_values: bool,
}

/// The tables and the dialect.
pub struct Known {
    /// None if only the text itself can be looked at.
    pub schema: Option<Schema>,
    /// What the text must be.
    pub dialect: &'static Dialect,
    /// The address of the database that the schema was read from, if it was one.
    pub database: Option<String>,
    /// Whether the values of its text columns are read too.
    pub values: bool,
}

impl Known {
    /// With the tables hidden that the policy keeps from being read. Entries that deny nothing here are told.
    pub fn within(self, policy: &Policy, out: &Out) -> Self {
        if let Some(schema) = &self.schema {
            tell_idle(policy, schema, out);
        }
        self.hiding(policy)
    }

    /// The same without a word.
    pub fn hiding(self, policy: &Policy) -> Self {
        let known = Self { schema: self.schema.map(|schema| policy.readable(schema)), ..self };
        known.learn(policy);
        known
    }

    /// Reads what the text columns hold, so that a value that is nowhere can be told. Without it only less is told, so that
    /// what goes wrong here says nothing.
    fn learn(&self, policy: &Policy) {
        let (Some(schema), Some(address)) = (&self.schema, self.database.as_deref().filter(|_| self.values)) else {
            return;
        };
        let Ok(engine) = open(address) else { return };
        let settings = ValuesSection { time: READING, ..ValuesSection::default() };
        let values = wait(Box::pin(async { Ok(values::read(&*engine, schema, policy, &settings).await) }));
        if let Ok(values) = values {
            schema.learn(Arc::new(values));
        }
    }
}

/// Warns of what the policy denies and the database does not have: it may be misspelt, and then nothing is denied.
pub fn tell_idle(policy: &Policy, schema: &Schema, out: &Out) {
    for entry in policy.idle_denies(schema) {
        let (list, what) = match policy.deny_columns.iter().any(|column| column == entry) {
            true => ("deny_columns", "column"),
            false => ("deny_tables", "table"),
        };
        let entry = one_line(entry);
        out.say(&format!("warning: `{entry}` in {list} fits no {what} of the database, and so denies none"));
    }
}

impl Against {
    /// Reads the schema, and says so where it is wanted.
    pub fn load(&self, out: &Out) -> Result<Known, Failure> {
        let begun = Instant::now();
        let known = self.read()?;
        if let Some(schema) = &known.schema {
            let took = begun.elapsed().as_millis();
            out.detail(&format!(
                "read the schema: {} tables in {took} ms; dialect {}",
                schema.tables().len(),
                known.dialect.name
            ));
        }
        Ok(known)
    }

    /// Reads the schema.
    pub fn read(&self) -> Result<Known, Failure> {
        if let Some(url) = &self.db {
            let engine = open(url)?;
            let schema = wait(engine.schema())?;
            let dialect = self.dialect.unwrap_or(engine.dialect());
            return Ok(Known { schema: Some(schema), dialect, database: Some(url.clone()), values: !self.no_values });
        }
        let dialect = self.dialect.unwrap_or(&SQLITE);
        let schema = self.schema.as_deref().map(|path| input::schema(path, dialect)).transpose()?;
        Ok(Known { schema, dialect, database: None, values: false })
    }

    /// Whether there is nothing to look names up in.
    pub fn nothing(&self) -> bool {
        self.db.is_none() && self.schema.is_none()
    }
}

/// Waits for a database where nothing else is going on.
pub fn wait<T>(answer: Answer<'_, T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("no thread can be started: {error}")))?;
    Ok(runtime.block_on(answer)?)
}

/// A dialect by name or nickname.
pub fn dialect(name: &str) -> Result<&'static Dialect, String> {
    Dialect::named(name).ok_or_else(|| {
        let names: Vec<&str> = DIALECTS.iter().map(|d| d.name).collect();
        format!("there is no dialect `{name}`; there are {}", names.join(", "))
    })
}
