//! Implementation of the `querymend memory` subcommands.

use std::collections::BTreeMap;
use std::sync::Arc;

use querymend::Config;
use querymend_engine::Engine;
use querymend_memory::import::{self, ExampleFormat};
use querymend_memory::{
    Example, ExampleFilter, ExampleQuery, ExampleStore, ExampleUpdate, Provenance, VerificationStatus,
};
use querymend_sql::dialect::SQLITE;
use querymend_sql::{Dialect, ReviewContext, Schema, Severity, review};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{
    ExampleIdsArgs, ExportExamplesArgs, ListExamplesArgs, SearchExamplesArgs, SeedExamplesArgs, ShowExampleArgs,
    VerifyExamplesArgs,
};
use crate::args::database::DatabaseArgs;
use crate::args::dialect::parse_dialect;
use crate::args::memory;
use crate::error::{CliError, ExitStatus};
use crate::output::json::to_pretty_json;
use crate::output::text::{one_line, pluralize};
use crate::output::{Out, OutputFormat};

/// Open store, with the output settings.
pub(super) struct MemoryActions<'d> {
    pub(super) store: Arc<dyn ExampleStore>,
    pub(super) runtime: Runtime,
    pub(super) config: Config,
    pub(super) format: OutputFormat,
    pub(super) out: &'d mut Out,
}

/// Schema of the database that examples are imported for.
struct SeedSchema<'t> {
    name: &'t str,
    dialect: &'static Dialect,
    schema: Schema,
}

/// Returns the reason to reject a query, or `None` if it may run.
fn rejection_reason(sql: &str, context: &ReviewContext<'_>) -> Option<String> {
    let found = review(sql, context);
    if found.is_clean() && found.approve().is_ok() {
        return None;
    }
    let error = found.findings.into_iter().find(|finding| finding.severity == Severity::Error);
    Some(error.map_or_else(|| "it is not a single read-only query".to_string(), |error| error.message))
}

/// Formats the number of examples, with the database if only one was searched.
fn example_count(examples: usize, database: Option<&str>) -> String {
    let of = database.map_or(String::new(), |name| format!(" of {}", one_line(name)));
    format!("{}{of}", pluralize(examples, "example"))
}

/// Identity of a database, and its engine.
type NamedEngine = (String, Arc<dyn Engine>);

/// Maximum number of examples read per page.
const PAGE_SIZE: usize = 1_000;

impl MemoryActions<'_> {
    /// Returns the identity of the database, if one is configured.
    fn database_name(&self, database: &DatabaseArgs) -> Result<Option<String>, CliError> {
        Ok(self.open_database(database)?.map(|(name, _)| name))
    }

    /// Opens the database, if one is configured, and returns it with its identity.
    fn open_database(&self, database: &DatabaseArgs) -> Result<Option<NamedEngine>, CliError> {
        let Some(address) = database.address(&self.config)? else { return Ok(None) };
        let engine = database.open_at(&address, &self.config)?;
        Ok(Some((memory::database_identity(&*engine, &address), engine)))
    }

    pub(super) fn list(&mut self, list: &ListExamplesArgs) -> Result<ExitStatus, CliError> {
        let filter = ExampleFilter {
            database: self.database_name(&list.database)?,
            standing: list.standing,
            provenance: list.provenance,
            ..ExampleFilter::default()
        };
        let examples = self.runtime.block_on(self.store.list(&filter, 0, list.limit))?;
        let all = self.runtime.block_on(self.store.count(&filter))?;
        self.write_examples(&examples)?;
        self.out.note(&match all.saturating_sub(examples.len()) {
            0 => example_count(all, filter.database.as_deref()),
            more => format!("{} of {all} examples; --limit shows more ({more} are left)", examples.len()),
        });
        Ok(ExitStatus::Success)
    }

    fn write_examples(&mut self, examples: &[Example]) -> Result<(), CliError> {
        if self.format == OutputFormat::Json {
            return self.out.json(&to_pretty_json(&examples)?);
        }
        for example in examples {
            let question: String = one_line(&example.question).chars().take(100).collect();
            let (id, standing) = (&example.id[..example.id.len().min(8)], example.standing.name());
            self.out.line(&format!("{id}  {standing:10}  {:9}  {question}", example.provenance.name()))?;
        }
        self.out.flush()
    }

    pub(super) fn show(&mut self, show: &ShowExampleArgs) -> Result<ExitStatus, CliError> {
        let example = self.find_by_id_prefix(&show.id)?;
        if self.format == OutputFormat::Json {
            self.out.json(&to_pretty_json(&example)?)?;
            return Ok(ExitStatus::Success);
        }
        let mut line = |name: &str, words: &str| self.out.line(&format!("{name}: {}", one_line(words)));
        line("question", &example.question)?;
        line("SQL", &example.sql)?;
        line("database", if example.database.is_empty() { "any" } else { &example.database })?;
        line("dialect", &example.dialect)?;
        if let Some(metric) = &example.metric {
            line("metric", metric)?;
        }
        line("standing", &format!("{}, {}", example.standing.name(), example.provenance.name()))?;
        let shown = pluralize(example.uses, "time");
        line("shown", &format!("{shown}; helped {}, hurt {}", example.helped, example.hurt))?;
        line("id", &example.id)?;
        Ok(ExitStatus::Success)
    }

    /// Returns the only example whose id starts with `id`.
    fn find_by_id_prefix(&self, id: &str) -> Result<Example, CliError> {
        if let Some(example) = self.runtime.block_on(self.store.get(id))? {
            return Ok(example);
        }
        let mut found: Vec<Example> = Vec::new();
        self.for_each_example(&ExampleFilter::default(), |example| {
            if example.id.starts_with(id) {
                found.push(example);
            }
        })?;
        let count = found.len();
        match found.pop().filter(|_| count == 1 && !id.is_empty()) {
            Some(example) => Ok(example),
            None if count > 1 => {
                Err(CliError::new(format!("{count} examples begin with `{}`", one_line(id)))
                    .hint("type more of the id"))
            }
            None => Err(CliError::new(format!("there is no example `{}`", one_line(id)))
                .hint("`querymend memory list` lists all examples")),
        }
    }

    fn for_each_example(&self, filter: &ExampleFilter, mut take: impl FnMut(Example)) -> Result<(), CliError> {
        let mut skip = 0;
        loop {
            let page = self.runtime.block_on(self.store.list(filter, skip, PAGE_SIZE))?;
            skip += page.len();
            let last = page.len() < PAGE_SIZE;
            page.into_iter().for_each(&mut take);
            if last {
                return Ok(());
            }
        }
    }

    pub(super) fn search(&mut self, search: &SearchExamplesArgs) -> Result<ExitStatus, CliError> {
        let database = self.database_name(&search.database)?;
        let query = ExampleQuery {
            question: &search.question,
            database: database.as_deref().unwrap_or_default(),
            dialect: search.database.dialect.map(|dialect| dialect.name),
            only_database: database.is_some(),
            only_verified: false,
            limit: search.limit,
        };
        let found = self.runtime.block_on(self.store.search(&query))?;
        if self.format == OutputFormat::Json {
            let found: Vec<_> = found
                .iter()
                .map(|found| json!({ "similarity": found.similarity, "score": found.score, "example": found.example }))
                .collect();
            self.out.json(&to_pretty_json(&found)?)?;
            return Ok(ExitStatus::Success);
        }
        for found in &found {
            let example = &found.example;
            let id = &example.id[..example.id.len().min(8)];
            self.out.line(&format!("{id}  {:.2}  {}", found.similarity, one_line(&example.question)))?;
            self.out.line(&format!("                {}", one_line(&example.sql)))?;
        }
        self.out.flush()?;
        self.out.note(&example_count(found.len(), database.as_deref()));
        Ok(ExitStatus::Success)
    }

    pub(super) fn set_status(
        &mut self,
        ids: &ExampleIdsArgs,
        standing: VerificationStatus,
    ) -> Result<ExitStatus, CliError> {
        // Resolve all ids first, so that a typo in one changes nothing.
        let found = ids.ids.iter().map(|id| self.find_by_id_prefix(id)).collect::<Result<Vec<Example>, CliError>>()?;
        let change = ExampleUpdate { standing: Some(standing), ..ExampleUpdate::default() };
        let changes: Vec<(&str, ExampleUpdate)> = found.iter().map(|example| (example.id.as_str(), change)).collect();
        self.runtime.block_on(self.store.update(&changes))?;
        for example in &found {
            self.out.note(&format!("{}: {}", standing.name(), one_line(&example.question)));
        }
        Ok(ExitStatus::Success)
    }

    pub(super) fn remove(&mut self, ids: &ExampleIdsArgs) -> Result<ExitStatus, CliError> {
        let found = ids.ids.iter().map(|id| self.find_by_id_prefix(id)).collect::<Result<Vec<Example>, CliError>>()?;
        let known: Vec<&str> = found.iter().map(|example| example.id.as_str()).collect();
        let count = self.runtime.block_on(self.store.remove(&known))?;
        self.out.note(&format!("{count} forgotten"));
        Ok(ExitStatus::Success)
    }

    pub(super) fn seed(&mut self, args: &SeedExamplesArgs) -> Result<ExitStatus, CliError> {
        let database = self.open_database(&args.database)?;
        let (name, default_dialect) = match (&database, args.database.dialect) {
            (Some((name, engine)), _) => (name.as_str(), engine.dialect()),
            (None, Some(dialect)) => ("", dialect),
            (None, None) => ("", &SQLITE),
        };
        let mut examples = import::read_file(&args.file, name, default_dialect.name)?;
        for example in &mut examples {
            // Normalize aliases to the canonical dialect name.
            let known = parse_dialect(&example.dialect).map_err(|what| {
                CliError::new(format!("{}: {what}", args.file.display())).hint("`querymend dialects` lists them")
            })?;
            example.dialect = known.name.to_string();
        }
        let tables = database.as_ref().map(|(name, engine)| {
            let schema = self.runtime.block_on(engine.schema())?;
            Ok::<_, CliError>(SeedSchema { name, dialect: engine.dialect(), schema })
        });
        let (sound, refused) = self.partition_valid(examples, tables.transpose()?.as_ref());
        let new = self.runtime.block_on(self.store.add(&sound))?;
        for (question, why) in &refused {
            self.out.note(&format!("not imported, its query cannot be run: {question} ({why})"));
        }
        let known = sound.len() - new;
        self.out.note(&format!("{new} imported, {known} already stored, {} rejected", refused.len()));
        Ok(ExitStatus::Success)
    }

    /// Splits examples into valid ones, and the questions of rejected ones with the reason.
    ///
    /// Examples of other databases are not checked against a schema, which is noted, but each must
    /// still be a single read-only query.
    fn partition_valid(
        &self,
        examples: Vec<Example>,
        tables: Option<&SeedSchema<'_>>,
    ) -> (Vec<Example>, Vec<(String, String)>) {
        let (mut sound, mut refused, mut unchecked) = (Vec::new(), Vec::new(), 0_usize);
        for example in examples {
            let own = tables.filter(|tables| example.database == tables.name);
            unchecked += usize::from(own.is_none());
            let own_dialect = Dialect::from_name(&example.dialect).unwrap_or(&SQLITE);
            let context = ReviewContext {
                schema: own.map(|tables| &tables.schema),
                dialect: own.map_or(own_dialect, |tables| tables.dialect),
                policy: &self.config.policy,
                question: None,
            };
            match rejection_reason(&example.sql, &context) {
                None => sound.push(example),
                Some(why) => refused.push((one_line(&example.question), one_line(&why))),
            }
        }
        match (tables, unchecked) {
            (None, _) => self.out.note("note: no database was given, so queries were not checked against a schema"),
            (Some(_), 0) => {}
            (Some(_), 1) => {
                self.out.note("note: 1 query belongs to another database and was not checked against a schema")
            }
            (Some(_), n) => {
                self.out.note(&format!(
                    "note: {n} queries belong to other databases and were not checked against a schema"
                ));
            }
        }
        (sound, refused)
    }

    pub(super) fn export(&mut self, export: &ExportExamplesArgs) -> Result<ExitStatus, CliError> {
        let filter = ExampleFilter { database: self.database_name(&export.database)?, ..ExampleFilter::default() };
        let mut examples = Vec::new();
        self.for_each_example(&filter, |example| examples.push(example))?;
        let named = export.out.as_deref().and_then(ExampleFormat::from_path);
        let form = named.unwrap_or(if self.format == OutputFormat::Json {
            ExampleFormat::JsonLines
        } else {
            ExampleFormat::Yaml
        });
        let text = import::export(&examples, form)?;
        match &export.out {
            Some(file) => {
                let wrong =
                    |error: std::io::Error| CliError::new(format!("{} cannot be written: {error}", file.display()));
                std::fs::write(file, text).map_err(wrong)?;
            }
            None => self.out.write(text.as_bytes())?,
        }
        self.out.flush()?;
        self.out.note(&example_count(examples.len(), filter.database.as_deref()));
        Ok(ExitStatus::Success)
    }

    pub(super) fn verify(&mut self, verify: &VerifyExamplesArgs) -> Result<ExitStatus, CliError> {
        let engine = verify.database.open(&self.config)?;
        let address = verify.database.require_address(&self.config)?;
        let schema = self.runtime.block_on(engine.schema())?;
        let policy = self.config.policy.clone();
        let context =
            ReviewContext { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
        let filter =
            ExampleFilter { database: Some(memory::database_identity(&*engine, &address)), ..ExampleFilter::default() };
        let mut changes: Vec<(String, ExampleUpdate)> = Vec::new();
        let (mut fits, mut stale) = (0, Vec::new());
        self.for_each_example(&filter, |example| {
            let sound = rejection_reason(&example.sql, &context).is_none();
            let standing = match (sound, example.standing) {
                (true, VerificationStatus::Stale) => Some(VerificationStatus::Unverified),
                (false, VerificationStatus::Verified | VerificationStatus::Unverified) => {
                    Some(VerificationStatus::Stale)
                }
                _ => None,
            };
            if sound {
                fits += 1;
            } else {
                stale.push(one_line(&example.question));
            }
            if standing.is_some() {
                changes.push((example.id, ExampleUpdate { standing, ..ExampleUpdate::default() }));
            }
        })?;
        let changes: Vec<(&str, ExampleUpdate)> = changes.iter().map(|(id, change)| (id.as_str(), *change)).collect();
        self.runtime.block_on(self.store.update(&changes))?;
        stale.iter().for_each(|question| self.out.message(&format!("stale: {question}")));
        self.out.note(&format!("{fits} match the schema, {} do not", stale.len()));
        Ok(if stale.is_empty() { ExitStatus::Success } else { ExitStatus::Refused })
    }

    pub(super) fn stats(&mut self) -> Result<ExitStatus, CliError> {
        let count = |filter: ExampleFilter| self.runtime.block_on(self.store.count(&filter));
        let all = count(ExampleFilter::default())?;
        let mut by = Vec::new();
        for standing in VerificationStatus::ALL {
            by.push((standing.name(), count(ExampleFilter { standing: Some(standing), ..ExampleFilter::default() })?));
        }
        for provenance in Provenance::ALL {
            by.push((
                provenance.name(),
                count(ExampleFilter { provenance: Some(provenance), ..ExampleFilter::default() })?,
            ));
        }
        let (mut uses, mut helped, mut hurt) = (0u64, 0u64, 0u64);
        let mut databases: BTreeMap<String, usize> = BTreeMap::new();
        self.for_each_example(&ExampleFilter::default(), |example| {
            uses += u64::from(example.uses);
            helped += u64::from(example.helped);
            hurt += u64::from(example.hurt);
            *databases.entry(example.database).or_default() += 1;
        })?;
        if self.format == OutputFormat::Json {
            let counts: serde_json::Map<String, serde_json::Value> =
                by.iter().map(|(name, count)| ((*name).to_string(), json!(count))).collect();
            let stats = json!({
                "store": self.store.name(), "examples": all, "counts": counts, "databases": databases,
                "uses": uses, "helped": helped, "hurt": hurt,
            });
            self.out.json(&to_pretty_json(&stats)?)?;
            return Ok(ExitStatus::Success);
        }
        self.out.line(&format!("store: {}", one_line(self.store.name())))?;
        self.out.line(&format!("examples: {all}"))?;
        for (name, count) in by.iter().filter(|(_, count)| *count > 0) {
            self.out.line(&format!("  {name}: {count}"))?;
        }
        for (name, count) in &databases {
            let name = if name.is_empty() { "any database".to_string() } else { one_line(name) };
            self.out.line(&format!("  {name}: {count}"))?;
        }
        self.out.line(&format!("shown: {}; helped {helped}, hurt {hurt}", pluralize(uses, "time")))?;
        Ok(ExitStatus::Success)
    }
}
