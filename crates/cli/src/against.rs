//! What a query is held against: a database, a schema file, or nothing but its dialect.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use querymend::Config;
use querymend::config::ValuesSection;
use querymend::context::values;
use querymend_engine::{Answer, open};
use querymend_sql::dialect::{DIALECTS, SQLITE};
use querymend_sql::{Context, Dialect, NotIndexed, NotIndexedReason, Policy, Schema, review};

use crate::failure::Failure;
use crate::input;
use crate::out::{Out, counted};
use crate::render::one_line;
use crate::setup::{Located, usual_database};

/// What to do where there are no tables.
pub const NAMING: &str = "name a database with --db, in the variable QUERYMEND_DB or as `database` in querymend.yaml, or a file \
                          with --schema";

/// The options that say it.
#[derive(Debug, Clone, Args)]
pub struct Against {
    #[command(flatten)]
    pub located: Located,
    /// Schema in the catalog, or on the server
    #[arg(long, value_name = "NAME", requires = "db_host", conflicts_with = "db_name")]
    pub db_schema: Option<String>,
    /// File that describes the tables, instead of a database: JSON, or CREATE TABLE statements
    #[arg(long, value_name = "FILE", conflicts_with_all = ["db", "db_host"])]
    pub schema: Option<PathBuf>,
    /// Dialect of the SQL [default: that of the database, else sqlite]
    #[arg(long, value_name = "NAME", value_parser = dialect)]
    pub dialect: Option<&'static Dialect>,
    /// Read no values of the database, nor the index of them that is kept: only its tables and columns
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
    /// Which values of its text columns are read too.
    pub values: ValuesSection,
}

/// Returns the settings for reading values of a database: what the configuration allows.
pub fn readable(config: &Config, unwanted: bool) -> ValuesSection {
    let allowed = config.values.clone();
    ValuesSection { enabled: allowed.enabled && !unwanted, ..allowed }
}

impl Known {
    /// The tables of a database. Its values are read when it is known what may be.
    pub fn database(address: &str, dialect: Option<&'static Dialect>, values: ValuesSection) -> Result<Self, Failure> {
        let engine = open(address)?;
        let schema = wait(engine.schema())?;
        let dialect = dialect.unwrap_or(engine.dialect());
        Ok(Self { schema: Some(schema), dialect, database: Some(address.to_string()), values })
    }

    /// The tables that a file describes.
    pub fn file(path: &Path, dialect: &'static Dialect) -> Result<Self, Failure> {
        Ok(Self { schema: Some(input::schema(path, dialect)?), ..Self::nothing(dialect) })
    }

    /// No tables.
    pub fn nothing(dialect: &'static Dialect) -> Self {
        let values = ValuesSection { enabled: false, ..ValuesSection::default() };
        Self { schema: None, dialect, database: None, values }
    }

    /// With the tables hidden that the policy keeps from being read. Entries that deny nothing here are told.
    pub fn within(self, policy: &Policy, out: &Out) -> Self {
        if let Some(schema) = &self.schema {
            tell_idle(policy, schema, out);
        }
        let begun = Instant::now();
        let known = self.hiding(policy);
        known.tell_values(begun.elapsed().as_millis(), out);
        known
    }

    /// Says with `-v` what is in the index of values, and names every column that is not.
    fn tell_values(&self, took_ms: u128, out: &Out) {
        let Some(values) = self.schema.as_ref().and_then(Schema::values) else { return };
        let columns = values.columns();
        let whole = columns.iter().filter(|held| held.whole).count();
        let indexed = counted(columns.len(), "column");
        out.detail(&format!("indexed the values of {indexed} in {took_ms} ms, {whole} of them whole"));
        for left_out in values.not_indexed() {
            out.detail(&format!("  not indexed: {}", described(left_out)));
        }
    }

    /// Returns the columns of some tables whose values are not indexed, but for sensitive ones.
    pub fn not_indexed(&self, tables: &[String]) -> Vec<NotIndexed> {
        let values = self.schema.as_ref().and_then(Schema::values);
        values.map_or(Vec::new(), |values| values.not_indexed_of(tables).cloned().collect())
    }

    /// The same for the tables of a query.
    pub fn not_indexed_in(&self, sql: &str, context: &Context<'_>) -> Vec<NotIndexed> {
        let values = self.schema.as_ref().and_then(Schema::values);
        let is_by_accident = |column: &NotIndexed| column.reason != NotIndexedReason::Sensitive;
        // Most databases are indexed whole, and a review takes its time.
        match values {
            Some(values) if values.not_indexed().iter().any(is_by_accident) => {
                self.not_indexed(&review(sql, context).extracted.tables)
            }
            _ => Vec::new(),
        }
    }

    /// The same without a word.
    pub fn hiding(self, policy: &Policy) -> Self {
        let known = Self { schema: self.schema.map(|schema| policy.readable(schema)), ..self };
        if let Some(schema) = &known.schema {
            querymend::similarity::attach(schema);
        }
        known.learn(policy);
        known
    }

    /// Reads what the text columns hold, or loads it where it is kept, so that a value that is nowhere can be told. Columns that
    /// cannot be read are listed in the index.
    fn learn(&self, policy: &Policy) {
        let address = self.database.as_deref().filter(|_| self.values.enabled);
        let (Some(schema), Some(address)) = (&self.schema, address) else { return };
        let Ok(engine) = open(address) else { return };
        let values = wait(Box::pin(async { Ok(values::load(&*engine, schema, policy, &self.values).await) }));
        if let Ok(values) = values {
            schema.learn(Arc::new(values));
        }
    }
}

/// Tells people which columns of the query's tables are not indexed, in one line.
pub fn tell_not_indexed(left_out: &[NotIndexed], out: &Out) {
    let Some(first) = left_out.first() else { return };
    let more = match left_out.len() {
        1 => String::new(),
        n => format!(", and {} more (-v names them)", n - 1),
    };
    out.note(&format!("note: values are not compared with {}{more}", described(first)));
}

/// `table.column: why`.
pub fn described(left_out: &NotIndexed) -> String {
    let NotIndexed { table, column, reason, detail } = left_out;
    let detail = detail.as_deref().map_or(String::new(), |detail| format!(": {}", one_line(detail)));
    format!("{}: {}{detail}", one_line(&format!("{table}.{column}")), reason.as_str())
}

/// What to do about columns that are not indexed.
pub fn remedy(reason: NotIndexedReason) -> &'static str {
    match reason {
        NotIndexedReason::RowLimit => "raise `values.total_rows`, or leave big tables out with `values.exclude`",
        NotIndexedReason::ByteLimit => {
            "raise `values.table_bytes` and `values.bytes`, or leave columns out with `values.exclude`"
        }
        NotIndexedReason::TimedOut => "raise `values.time`, or leave slow tables out with `values.exclude`",
        NotIndexedReason::Failed => "grant SELECT on the table, or leave it out with `values.exclude`",
        NotIndexedReason::Unavailable => "check the connection and try again",
        NotIndexedReason::Sensitive => "name it in `values.allow` if it is not",
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
    pub fn load(&self, config: &Config, out: &Out) -> Result<Known, Failure> {
        let begun = Instant::now();
        let known = self.read(config)?;
        if let Some(schema) = &known.schema {
            let took = begun.elapsed().as_millis();
            out.detail(&format!(
                "read the schema: {} in {took} ms; dialect {}",
                counted(schema.tables().len(), "table"),
                known.dialect.name
            ));
        }
        Ok(known)
    }

    fn read(&self, config: &Config) -> Result<Known, Failure> {
        if let Some(address) = self.address(config)? {
            return Known::database(&address, self.dialect, readable(config, self.no_values));
        }
        let dialect = self.dialect.unwrap_or(&SQLITE);
        match &self.schema {
            Some(path) => Known::file(path, dialect),
            None => Ok(Known::nothing(dialect)),
        }
    }

    /// The database, if there is one. A file is held to be all that is wanted.
    fn address(&self, config: &Config) -> Result<Option<String>, Failure> {
        if self.schema.is_some() {
            return Ok(None);
        }
        let named = self.located.address(self.db_schema.as_deref(), self.dialect)?;
        Ok(named.or_else(|| usual_database(config)))
    }

    /// Whether there is nothing to look names up in.
    pub fn nothing(&self, config: &Config) -> Result<bool, Failure> {
        Ok(self.schema.is_none() && self.address(config)?.is_none())
    }

    /// Whether options name something to look names up in.
    pub fn is_named(&self) -> bool {
        self.schema.is_some() || self.located.db.is_some() || self.located.db_host.is_some()
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
