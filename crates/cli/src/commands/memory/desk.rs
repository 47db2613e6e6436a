//! What each of the commands does with the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use querymend::Config;
use querymend_engine::Engine;
use querymend_memory::seed::{self, Form};
use querymend_memory::{Change, Example, ExampleStore, Filter, Provenance, Sought, Standing};
use querymend_sql::dialect::SQLITE;
use querymend_sql::{Context, Dialect, Schema, Severity, review};
use serde_json::json;
use tokio::runtime::Runtime;

use super::{Export, Format, Ids, List, Search, Seed, Show, Verify};
use crate::against::dialect;
use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::out::{Out, counted};
use crate::remember;
use crate::render::one_line;
use crate::setup::Database;

/// A store that is open, and how things are said of it.
pub(super) struct Desk<'d> {
    pub(super) store: Arc<dyn ExampleStore>,
    pub(super) runtime: Runtime,
    pub(super) config: Config,
    pub(super) format: Format,
    pub(super) out: &'d mut Out,
}

/// The tables of a database that is named.
struct Tables<'t> {
    name: &'t str,
    dialect: &'static Dialect,
    schema: Schema,
}

/// What is known against a query, and keeps it from being sent.
fn fault(sql: &str, context: &Context<'_>) -> Option<String> {
    let found = review(sql, context);
    if found.is_clean() && found.approve().is_ok() {
        return None;
    }
    let error = found.findings.into_iter().find(|finding| finding.severity == Severity::Error);
    Some(error.map_or_else(|| "it is not one query that only reads".to_string(), |error| error.message))
}

/// How many examples, and of which database where only one was looked at.
fn told(examples: usize, database: Option<&str>) -> String {
    let of = database.map_or(String::new(), |name| format!(" of {}", one_line(name)));
    format!("{}{of}", counted(examples, "example"))
}

/// A database, and the name by which it is known here.
type Opened = (String, Arc<dyn Engine>);

/// More are not read at a time.
const PAGE: usize = 1_000;

impl Desk<'_> {
    /// The name by which a database is known here, where one is named.
    fn named(&self, database: &Database) -> Result<Option<String>, Failure> {
        Ok(self.opened(database)?.map(|(name, _)| name))
    }

    /// The same, with the database itself.
    fn opened(&self, database: &Database) -> Result<Option<Opened>, Failure> {
        let Some(address) = database.address(&self.config)? else { return Ok(None) };
        let engine = database.open_at(&address, &self.config)?;
        Ok(Some((remember::identity(&*engine, &address), engine)))
    }

    pub(super) fn list(&mut self, list: &List) -> Result<Exit, Failure> {
        let filter = Filter {
            database: self.named(&list.database)?,
            standing: list.standing,
            provenance: list.provenance,
            ..Filter::default()
        };
        let examples = self.runtime.block_on(self.store.list(&filter, 0, list.limit))?;
        let all = self.runtime.block_on(self.store.count(&filter))?;
        self.write(&examples)?;
        self.out.note(&match all.saturating_sub(examples.len()) {
            0 => told(all, filter.database.as_deref()),
            more => format!("{} of {all} examples; --limit shows more ({more} are left)", examples.len()),
        });
        Ok(Exit::Done)
    }

    fn write(&mut self, examples: &[Example]) -> Result<(), Failure> {
        if self.format == Format::Json {
            return self.out.json(&pretty(&examples)?);
        }
        for example in examples {
            let question: String = one_line(&example.question).chars().take(100).collect();
            let (id, standing) = (&example.id[..example.id.len().min(8)], example.standing.name());
            self.out.line(&format!("{id}  {standing:10}  {:9}  {question}", example.provenance.name()))?;
        }
        self.out.flush()
    }

    pub(super) fn show(&mut self, show: &Show) -> Result<Exit, Failure> {
        let example = self.find(&show.id)?;
        if self.format == Format::Json {
            self.out.json(&pretty(&example)?)?;
            return Ok(Exit::Done);
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
        let shown = counted(example.uses, "time");
        line("shown", &format!("{shown}; helped {}, hurt {}", example.helped, example.hurt))?;
        line("id", &example.id)?;
        Ok(Exit::Done)
    }

    /// The one example whose id begins like this.
    fn find(&self, id: &str) -> Result<Example, Failure> {
        if let Some(example) = self.runtime.block_on(self.store.get(id))? {
            return Ok(example);
        }
        let mut found: Vec<Example> = Vec::new();
        self.each(&Filter::default(), |example| {
            if example.id.starts_with(id) {
                found.push(example);
            }
        })?;
        let count = found.len();
        match found.pop().filter(|_| count == 1 && !id.is_empty()) {
            Some(example) => Ok(example),
            None if count > 1 => {
                Err(Failure::new(format!("{count} examples begin with `{}`", one_line(id)))
                    .hint("write more of the id"))
            }
            None => Err(Failure::new(format!("there is no example `{}`", one_line(id)))
                .hint("`querymend memory list` shows those that there are")),
        }
    }

    fn each(&self, filter: &Filter, mut take: impl FnMut(Example)) -> Result<(), Failure> {
        let mut skip = 0;
        loop {
            let page = self.runtime.block_on(self.store.list(filter, skip, PAGE))?;
            skip += page.len();
            let last = page.len() < PAGE;
            page.into_iter().for_each(&mut take);
            if last {
                return Ok(());
            }
        }
    }

    pub(super) fn search(&mut self, search: &Search) -> Result<Exit, Failure> {
        let database = self.named(&search.database)?;
        let sought = Sought {
            question: &search.question,
            database: database.as_deref().unwrap_or_default(),
            dialect: search.database.dialect.map(|dialect| dialect.name),
            only_database: database.is_some(),
            only_verified: false,
            most: search.limit,
        };
        let found = self.runtime.block_on(self.store.search(&sought))?;
        if self.format == Format::Json {
            let found: Vec<_> = found
                .iter()
                .map(|found| json!({ "similarity": found.similarity, "score": found.score, "example": found.example }))
                .collect();
            self.out.json(&pretty(&found)?)?;
            return Ok(Exit::Done);
        }
        for found in &found {
            let example = &found.example;
            let id = &example.id[..example.id.len().min(8)];
            self.out.line(&format!("{id}  {:.2}  {}", found.similarity, one_line(&example.question)))?;
            self.out.line(&format!("                {}", one_line(&example.sql)))?;
        }
        self.out.flush()?;
        self.out.note(&told(found.len(), database.as_deref()));
        Ok(Exit::Done)
    }

    pub(super) fn judge(&mut self, ids: &Ids, standing: Standing) -> Result<Exit, Failure> {
        // All are looked for first, so that a slip in one changes nothing.
        let found = ids.ids.iter().map(|id| self.find(id)).collect::<Result<Vec<Example>, Failure>>()?;
        let change = Change { standing: Some(standing), ..Change::default() };
        let changes: Vec<(&str, Change)> = found.iter().map(|example| (example.id.as_str(), change)).collect();
        self.runtime.block_on(self.store.change(&changes))?;
        for example in &found {
            self.out.note(&format!("{}: {}", standing.name(), one_line(&example.question)));
        }
        Ok(Exit::Done)
    }

    pub(super) fn remove(&mut self, ids: &Ids) -> Result<Exit, Failure> {
        let found = ids.ids.iter().map(|id| self.find(id)).collect::<Result<Vec<Example>, Failure>>()?;
        let known: Vec<&str> = found.iter().map(|example| example.id.as_str()).collect();
        let count = self.runtime.block_on(self.store.remove(&known))?;
        self.out.note(&format!("{count} forgotten"));
        Ok(Exit::Done)
    }

    pub(super) fn seed(&mut self, given: &Seed) -> Result<Exit, Failure> {
        let database = self.opened(&given.database)?;
        let (name, spoken) = match (&database, given.database.dialect) {
            (Some((name, engine)), _) => (name.as_str(), engine.dialect()),
            (None, Some(dialect)) => ("", dialect),
            (None, None) => ("", &SQLITE),
        };
        let mut examples = seed::read_file(&given.file, name, spoken.name)?;
        for example in &mut examples {
            // The dialect by its own name, whatever the file calls it.
            let known = dialect(&example.dialect).map_err(|what| {
                Failure::new(format!("{}: {what}", given.file.display())).hint("`querymend dialects` lists them")
            })?;
            example.dialect = known.name.to_string();
        }
        let tables = database.as_ref().map(|(name, engine)| {
            let schema = self.runtime.block_on(engine.schema())?;
            Ok::<_, Failure>(Tables { name, dialect: engine.dialect(), schema })
        });
        let (sound, refused) = self.sorted_out(examples, tables.transpose()?.as_ref());
        let new = self.runtime.block_on(self.store.add(&sound))?;
        for (question, why) in &refused {
            self.out.note(&format!("not taken in, its query cannot be run: {question} ({why})"));
        }
        let known = sound.len() - new;
        self.out.note(&format!("{new} taken in, {known} known before, {} refused", refused.len()));
        Ok(Exit::Done)
    }

    /// The examples that may be taken in, and the questions of the others, each with what is wrong. What belongs to no database
    /// that is open is not held against tables, and that is said; it must be one query that only reads all the same.
    fn sorted_out(&self, examples: Vec<Example>, tables: Option<&Tables<'_>>) -> (Vec<Example>, Vec<(String, String)>) {
        let (mut sound, mut refused, mut unheld) = (Vec::new(), Vec::new(), 0_usize);
        for example in examples {
            let own = tables.filter(|tables| example.database == tables.name);
            unheld += usize::from(own.is_none());
            let spoken = Dialect::named(&example.dialect).unwrap_or(&SQLITE);
            let context = Context {
                schema: own.map(|tables| &tables.schema),
                dialect: own.map_or(spoken, |tables| tables.dialect),
                policy: &self.config.policy,
                question: None,
            };
            match fault(&example.sql, &context) {
                None => sound.push(example),
                Some(why) => refused.push((one_line(&example.question), one_line(&why))),
            }
        }
        match (tables, unheld) {
            (None, _) => self.out.note("note: no database was named, so queries were not held against tables"),
            (Some(_), 0) => {}
            (Some(_), 1) => self.out.note("note: 1 query is of another database, and was not held against tables"),
            (Some(_), n) => {
                self.out.note(&format!("note: {n} queries are of other databases, and were not held against tables"));
            }
        }
        (sound, refused)
    }

    pub(super) fn export(&mut self, export: &Export) -> Result<Exit, Failure> {
        let filter = Filter { database: self.named(&export.database)?, ..Filter::default() };
        let mut examples = Vec::new();
        self.each(&filter, |example| examples.push(example))?;
        let named = export.out.as_deref().and_then(Form::of);
        let form = named.unwrap_or(if self.format == Format::Json { Form::JsonLines } else { Form::Yaml });
        let text = seed::export(&examples, form)?;
        match &export.out {
            Some(file) => {
                let wrong =
                    |error: std::io::Error| Failure::new(format!("{} cannot be written: {error}", file.display()));
                std::fs::write(file, text).map_err(wrong)?;
            }
            None => self.out.write(text.as_bytes())?,
        }
        self.out.flush()?;
        self.out.note(&told(examples.len(), filter.database.as_deref()));
        Ok(Exit::Done)
    }

    pub(super) fn verify(&mut self, verify: &Verify) -> Result<Exit, Failure> {
        let engine = verify.database.open(&self.config)?;
        let address = verify.database.must_have_address(&self.config)?;
        let schema = self.runtime.block_on(engine.schema())?;
        let policy = self.config.policy.clone();
        let context = Context { schema: Some(&schema), dialect: engine.dialect(), policy: &policy, question: None };
        let filter = Filter { database: Some(remember::identity(&*engine, &address)), ..Filter::default() };
        let mut changes: Vec<(String, Change)> = Vec::new();
        let (mut fits, mut stale) = (0, Vec::new());
        self.each(&filter, |example| {
            let sound = fault(&example.sql, &context).is_none();
            let standing = match (sound, example.standing) {
                (true, Standing::Stale) => Some(Standing::Unverified),
                (false, Standing::Verified | Standing::Unverified) => Some(Standing::Stale),
                _ => None,
            };
            if sound {
                fits += 1;
            } else {
                stale.push(one_line(&example.question));
            }
            if standing.is_some() {
                changes.push((example.id, Change { standing, ..Change::default() }));
            }
        })?;
        let changes: Vec<(&str, Change)> = changes.iter().map(|(id, change)| (id.as_str(), *change)).collect();
        self.runtime.block_on(self.store.change(&changes))?;
        stale.iter().for_each(|question| self.out.say(&format!("stale: {question}")));
        self.out.note(&format!("{fits} fit the tables, {} do not", stale.len()));
        Ok(if stale.is_empty() { Exit::Done } else { Exit::Refused })
    }

    pub(super) fn stats(&mut self) -> Result<Exit, Failure> {
        let count = |filter: Filter| self.runtime.block_on(self.store.count(&filter));
        let all = count(Filter::default())?;
        let mut by = Vec::new();
        for standing in Standing::ALL {
            by.push((standing.name(), count(Filter { standing: Some(standing), ..Filter::default() })?));
        }
        for provenance in Provenance::ALL {
            by.push((provenance.name(), count(Filter { provenance: Some(provenance), ..Filter::default() })?));
        }
        let (mut uses, mut helped, mut hurt) = (0u64, 0u64, 0u64);
        let mut databases: BTreeMap<String, usize> = BTreeMap::new();
        self.each(&Filter::default(), |example| {
            uses += u64::from(example.uses);
            helped += u64::from(example.helped);
            hurt += u64::from(example.hurt);
            *databases.entry(example.database).or_default() += 1;
        })?;
        if self.format == Format::Json {
            let counts: serde_json::Map<String, serde_json::Value> =
                by.iter().map(|(name, count)| ((*name).to_string(), json!(count))).collect();
            let stats = json!({
                "store": self.store.name(), "examples": all, "counts": counts, "databases": databases,
                "uses": uses, "helped": helped, "hurt": hurt,
            });
            self.out.json(&pretty(&stats)?)?;
            return Ok(Exit::Done);
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
        self.out.line(&format!("shown: {}; helped {helped}, hurt {hurt}", counted(uses, "time")))?;
        Ok(Exit::Done)
    }
}
