//! Schema source of a review: a database, a schema file, or none (only the dialect).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use querymend::Config;
use querymend::config::ValuesSection;
use querymend::linking::value_sampling;
use querymend_engine::open;
use querymend_sql::dialect::SQLITE;
use querymend_sql::{Dialect, NotIndexed, NotIndexedReason, Policy, ReviewContext, Schema, review};

use crate::args::database::{DatabaseAddressArgs, default_database};
use crate::args::dialect::parse_dialect;
use crate::deny_lists::warn_unmatched_denies;
use crate::error::CliError;
use crate::input;
use crate::output::Out;
use crate::output::text::{one_line, pluralize};
use crate::runtime::block_on;

/// Hint for commands that need a schema when none is given.
pub const NO_SCHEMA_HINT: &str = "name a database with --db, in the variable QUERYMEND_DB or as `database` in querymend.yaml, or a file \
                          with --schema";

/// Options that select the schema and the dialect.
#[derive(Debug, Clone, Args)]
pub struct SchemaArgs {
    #[command(flatten)]
    pub address_args: DatabaseAddressArgs,
    /// Schema in the catalog, or on the server
    #[arg(long, value_name = "NAME", requires = "db_host", conflicts_with = "db_name")]
    pub db_schema: Option<String>,
    /// File that describes the tables, instead of a database: JSON, or CREATE TABLE statements
    #[arg(long, value_name = "FILE", conflicts_with_all = ["db", "db_host"])]
    pub schema: Option<PathBuf>,
    /// Dialect of the SQL [default: that of the database, else sqlite]
    #[arg(long, value_name = "NAME", value_parser = parse_dialect)]
    pub dialect: Option<&'static Dialect>,
    /// Read only tables and columns: neither sample values from the database nor load the cached
    /// value index
    #[arg(long)]
    pub no_values: bool,
}

/// Schema and dialect that queries are checked against.
pub struct LoadedSchema {
    /// `None` if only the query text can be checked.
    pub schema: Option<Schema>,
    /// Dialect of the query text.
    pub dialect: &'static Dialect,
    /// Address of the database that the schema was read from; `None` for a schema file.
    pub database: Option<String>,
    /// Settings for sampling the values of text columns.
    pub values: ValuesSection,
}

/// Returns the configured settings for sampling values; `unwanted` disables sampling.
pub fn value_settings(config: &Config, unwanted: bool) -> ValuesSection {
    let allowed = config.values.clone();
    ValuesSection { enabled: allowed.enabled && !unwanted, ..allowed }
}

impl LoadedSchema {
    /// Loads the schema of a database.
    ///
    /// Values are not read yet: the policy that restricts them is applied later.
    pub fn from_database(
        address: &str,
        dialect: Option<&'static Dialect>,
        values: ValuesSection,
    ) -> Result<Self, CliError> {
        let engine = open(address)?;
        let schema = block_on(engine.schema())?;
        let dialect = dialect.unwrap_or(engine.dialect());
        Ok(Self { schema: Some(schema), dialect, database: Some(address.to_string()), values })
    }

    /// Loads the schema that a file describes.
    pub fn from_file(path: &Path, dialect: &'static Dialect) -> Result<Self, CliError> {
        Ok(Self { schema: Some(input::read_schema(path, dialect)?), ..Self::without_schema(dialect) })
    }

    /// Returns a source without a schema.
    pub fn without_schema(dialect: &'static Dialect) -> Self {
        let values = ValuesSection { enabled: false, ..ValuesSection::default() };
        Self { schema: None, dialect, database: None, values }
    }

    /// Hides tables that the policy denies, and warns about deny-list entries that match nothing.
    pub fn apply_policy_with_warnings(self, policy: &Policy, out: &Out) -> Self {
        if let Some(schema) = &self.schema {
            warn_unmatched_denies(policy, schema, out);
        }
        let begun = Instant::now();
        let loaded = self.apply_policy(policy);
        loaded.log_value_index(begun.elapsed().as_millis(), out);
        loaded
    }

    /// Logs the columns in the value index, and each column that is missing from it, if `-v` is
    /// given.
    fn log_value_index(&self, took_ms: u128, out: &Out) {
        let Some(values) = self.schema.as_ref().and_then(Schema::value_index) else { return };
        let columns = values.columns();
        let whole = columns.iter().filter(|column| column.whole).count();
        let indexed = pluralize(columns.len(), "column");
        out.detail(&format!("indexed the values of {indexed} in {took_ms} ms, {whole} of them completely"));
        for left_out in values.not_indexed() {
            out.detail(&format!("  not indexed: {}", describe_unindexed_column(left_out)));
        }
    }

    /// Returns the columns of `tables` whose values are not indexed, except sensitive ones.
    pub fn unindexed_columns(&self, tables: &[String]) -> Vec<NotIndexed> {
        let values = self.schema.as_ref().and_then(Schema::value_index);
        values.map_or(Vec::new(), |values| values.not_indexed_of(tables).cloned().collect())
    }

    /// Returns the columns of the query's tables whose values are not indexed, except sensitive
    /// ones.
    pub fn unindexed_columns_of_query(&self, sql: &str, context: &ReviewContext<'_>) -> Vec<NotIndexed> {
        let values = self.schema.as_ref().and_then(Schema::value_index);
        let is_by_accident = |column: &NotIndexed| column.reason != NotIndexedReason::Sensitive;
        // Most databases are fully indexed, so skip the cost of a review.
        match values {
            Some(values) if values.not_indexed().iter().any(is_by_accident) => {
                self.unindexed_columns(&review(sql, context).references.tables)
            }
            _ => Vec::new(),
        }
    }

    /// Hides tables that the policy denies.
    pub fn apply_policy(self, policy: &Policy) -> Self {
        let loaded = Self { schema: self.schema.map(|schema| policy.filter_schema(schema)), ..self };
        if let Some(schema) = &loaded.schema {
            querymend::embedding_similarity::attach(schema);
        }
        loaded.load_values(policy);
        loaded
    }

    /// Samples the values of text columns, or loads them from the cache, so that literals that
    /// match no value can be reported. Columns that cannot be read are listed in the index.
    fn load_values(&self, policy: &Policy) {
        let address = self.database.as_deref().filter(|_| self.values.enabled);
        let (Some(schema), Some(address)) = (&self.schema, address) else { return };
        let Ok(engine) = open(address) else { return };
        let values = block_on(Box::pin(async {
            Ok(value_sampling::load_or_sample(&*engine, schema, policy, &self.values).await)
        }));
        if let Ok(values) = values {
            schema.set_value_index(Arc::new(values));
        }
    }
}

/// Prints a one-line note about columns of the query's tables that are not indexed.
pub fn warn_unindexed_columns(left_out: &[NotIndexed], out: &Out) {
    let Some(first) = left_out.first() else { return };
    let more = match left_out.len() {
        1 => String::new(),
        n => format!(", and {} more (-v lists them)", n - 1),
    };
    out.note(&format!("note: values are not compared with {}{more}", describe_unindexed_column(first)));
}

/// Formats an unindexed column as `table.column: reason`.
pub fn describe_unindexed_column(left_out: &NotIndexed) -> String {
    let NotIndexed { table, column, reason, detail } = left_out;
    let detail = detail.as_deref().map_or(String::new(), |detail| format!(": {}", one_line(detail)));
    format!("{}: {}{detail}", one_line(&format!("{table}.{column}")), reason.as_str())
}

/// Returns a hint for getting columns indexed.
pub fn unindexed_column_hint(reason: NotIndexedReason) -> &'static str {
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

impl SchemaArgs {
    /// Loads the schema, and logs the time it took if `-v` is given.
    pub fn load(&self, config: &Config, out: &Out) -> Result<LoadedSchema, CliError> {
        let begun = Instant::now();
        let loaded = self.read_schema(config)?;
        if let Some(schema) = &loaded.schema {
            let took = begun.elapsed().as_millis();
            out.detail(&format!(
                "read the schema: {} in {took} ms; dialect {}",
                pluralize(schema.tables().len(), "table"),
                loaded.dialect.name
            ));
        }
        Ok(loaded)
    }

    fn read_schema(&self, config: &Config) -> Result<LoadedSchema, CliError> {
        if let Some(address) = self.address(config)? {
            return LoadedSchema::from_database(&address, self.dialect, value_settings(config, self.no_values));
        }
        let dialect = self.dialect.unwrap_or(&SQLITE);
        match &self.schema {
            Some(path) => LoadedSchema::from_file(path, dialect),
            None => Ok(LoadedSchema::without_schema(dialect)),
        }
    }

    /// Returns the database address, if any. A schema file takes precedence over a configured
    /// database.
    fn address(&self, config: &Config) -> Result<Option<String>, CliError> {
        if self.schema.is_some() {
            return Ok(None);
        }
        let named = self.address_args.address(self.db_schema.as_deref(), self.dialect)?;
        Ok(named.or_else(|| default_database(config)))
    }

    /// Returns whether neither a database nor a schema file is configured.
    pub fn has_no_schema(&self, config: &Config) -> Result<bool, CliError> {
        Ok(self.schema.is_none() && self.address(config)?.is_none())
    }

    /// Returns whether an option names a database or a schema file.
    pub fn has_explicit_schema(&self) -> bool {
        self.schema.is_some() || self.address_args.db.is_some() || self.address_args.db_host.is_some()
    }
}
