//! What can be done with a query, or with a word, where there is no question: for people and programs that write SQL themselves.

use std::sync::Arc;
use std::time::Instant;

use querymend_engine::{Engine, Error as EngineTrouble, Limits};
use querymend_model::{Model, Request};
use querymend_sql::schema::Schema;
use querymend_sql::{
    Applicability, Context, Dialect, EngineError, Extracted, Repair, Request as Mending, Review, Rows, Severity,
    Stated, Status, Verdict, classify, dialect, diff, inspect, repair, review, without_each,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::context::Tables;
use crate::correct::{self, Circumstances, Correct, Corrected, Placed, enough, placed, told, words};
use crate::drive::Driver;
use crate::event::{Problem, ProblemCode};
use crate::prompts;
use crate::querymend::{Cancel, Querymend};
use crate::refusal;
use crate::run::Hindrance;
use crate::similarity;
use crate::trouble::{engine_trouble, model_trouble};

/// The name of the model where none is configured.
pub const NO_MODEL: &str = "none";
/// Values that are found for a word.
const FOUND: usize = 20;

/// What the critic says of a query.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Checked {
    /// Whether it is harmless.
    pub verdict: Verdict,
    /// Whether it is harmless and no finding is an error.
    pub clean: bool,
    /// The SQL that is spoken.
    pub dialect: &'static str,
    /// What is wrong with it, or odd.
    pub findings: Vec<Placed>,
    /// The names that it uses.
    pub extracted: Extracted,
}

impl From<&Review> for Checked {
    fn from(review: &Review) -> Self {
        Self {
            verdict: review.verdict(),
            clean: review.is_clean(),
            dialect: review.dialect().name,
            findings: placed(&review.findings, &review.source),
            extracted: review.extracted.clone(),
        }
    }
}

/// What came of a query that was run as it is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ran {
    /// The query that was sent.
    pub sql: String,
    /// Its rows.
    pub rows: Rows,
    /// What is odd about it, and about its rows.
    pub warnings: Vec<Placed>,
    /// How long the database took, in milliseconds.
    pub ms: f64,
}

/// Why a query was not run, or gave nothing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct NotRun {
    /// In a form that protocols can map.
    #[serde(flatten)]
    pub problem: Problem,
    /// What is wrong with the query.
    pub findings: Vec<Placed>,
}

impl From<Problem> for NotRun {
    fn from(problem: Problem) -> Self {
        Self { problem, findings: Vec::new() }
    }
}

/// A value of the database that is like a word.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Grounded {
    /// The table.
    pub table: String,
    /// Its column.
    pub column: String,
    /// The value as it is written there.
    pub value: String,
    /// It is the very word, but for case and spaces.
    pub same: bool,
}

/// Why a query finds nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Emptiness {
    /// It does find something.
    pub finds_rows: bool,
    /// Conditions without each of which it would.
    pub conditions: Vec<String>,
    /// Values that it looks for and that are not there, with those that are like them.
    pub absent: Vec<Absent>,
}

/// A value that is not in its column.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Absent {
    /// The value and its place.
    #[serde(flatten)]
    pub sought: Stated,
    /// What is there instead.
    pub near: Vec<String>,
}

impl Querymend {
    fn context<'c>(&'c self, schema: &'c Schema, question: Option<&'c str>) -> Context<'c> {
        Context { schema: Some(schema), dialect: self.engine.dialect(), policy: &self.policy, question }
    }

    /// What the critic says of a query. The query is not run; it is held against the tables and the index of values.
    pub async fn check(&self, sql: &str, question: Option<&str>) -> Result<Checked, Problem> {
        let schema = self.schema().await.map_err(database_problem)?;
        self.known.learned().await;
        Ok(Checked::from(&review(sql, &self.context(&schema, question))))
    }

    /// Mends a query without a model, and only where it can be shown that it was broken.
    pub async fn correct(&self, asked: &Correct) -> Result<Corrected, Problem> {
        let (session, user) = (asked.session_id.clone(), asked.user_id.clone());
        let error = asked.error_message.as_deref().map(str::trim).filter(|error| !error.is_empty());
        if let Some(why) = enough(asked.retry_count, error, asked.last_error.as_deref()) {
            return Ok(Corrected::aborted(&asked.original_query, why, session, user));
        }
        let said = error.map(|error| EngineError { message: error.to_string(), ..EngineError::default() });
        let words = words(asked.question.as_deref(), asked.evidence.as_deref());
        let mended = match &asked.schema_context {
            Some(tables) => self.mend_offline(asked, tables, said.as_ref(), words.as_deref())?,
            None => self.mend_here(asked, said.as_ref(), words.as_deref()).await?,
        };
        Ok(Corrected::new(mended, session, user))
    }

    async fn mend_here(
        &self,
        asked: &Correct,
        said: Option<&EngineError>,
        words: Option<&str>,
    ) -> Result<Repair, Problem> {
        let cancel = Cancel::new();
        let driver = Driver::new(self, "", true, words.unwrap_or_default().to_string(), &cancel);
        let mut refused = Vec::new();
        self.learned().await;
        let mended =
            driver.mend(&asked.original_query, said, asked.apply, true, &mut refused).await.map_err(hindered)?;
        let schema = driver.schema().await.map_err(database_problem)?;
        let about = Circumstances {
            context: self.context(&schema, None),
            question: words,
            error: said.map(|said| said.message.as_str()),
            apply: asked.apply,
            judged: true,
            refused: &refused,
        };
        Ok(told(mended, &about))
    }

    /// Against tables that came with the request: no database is asked.
    fn mend_offline(
        &self,
        asked: &Correct,
        tables: &Value,
        said: Option<&EngineError>,
        words: Option<&str>,
    ) -> Result<Repair, Problem> {
        let dialect = self.dialect_of(asked)?;
        let schema = self.schema_of(tables, dialect)?;
        let context = Context { dialect, ..self.context(&schema, None) };
        let classified = said.map(|said| classify(dialect, said));
        let text = asked.original_query.as_str();
        let request = Mending { text, context, question: words, apply: asked.apply, error: classified.as_ref() };
        let error = said.map(|said| said.message.as_str());
        let about = Circumstances { context, question: words, error, apply: asked.apply, judged: false, refused: &[] };
        Ok(told(repair(&request, None), &about))
    }

    /// The dialect that a request with its own tables speaks.
    fn dialect_of(&self, asked: &Correct) -> Result<&'static Dialect, Problem> {
        let Some(named) = &asked.dialect else { return Ok(self.engine.dialect()) };
        Dialect::named(named).ok_or_else(|| {
            let known: Vec<&str> = dialect::DIALECTS.iter().map(|dialect| dialect.name).collect();
            Problem::new(ProblemCode::BadRequest, format!("there is no dialect `{named}`"))
                .hint(format!("`dialect` is one of {}", known.join(", ")))
        })
    }

    /// The tables that came with a request, as far as the policy lets them be read.
    fn schema_of(&self, tables: &Value, dialect: &'static Dialect) -> Result<Schema, Problem> {
        let schema = match tables {
            Value::String(ddl) => Schema::from_ddl(ddl, dialect),
            json => Schema::from_json(&json.to_string()),
        };
        let schema = schema.map_err(|error| {
            Problem::new(ProblemCode::BadRequest, format!("schema_context cannot be read: {error}"))
                .hint("it is {\"tables\": [...]} as `querymend schema --format json` writes it, or CREATE TABLE text")
        })?;
        let schema = self.policy.readable(schema);
        similarity::attach(&schema);
        Ok(schema)
    }

    /// Corrects a query by rules, and asks the model where they give up. A rewrite of the model passes the same review as any
    /// query, and the database's dry run where there is a database. Where the model cannot be asked, the rules' result holds.
    pub async fn correct_with_model(&self, asked: &Correct, cancel: &Cancel) -> Result<Corrected, Problem> {
        let corrected = self.correct(asked).await?;
        let aborted = enough(asked.retry_count, asked.error_message.as_deref(), asked.last_error.as_deref()).is_some();
        let has_model = self.model.name() != NO_MODEL;
        let open = corrected.status == Status::GaveUp && asked.apply >= Applicability::Likely;
        if aborted || !open || !has_model {
            return Ok(corrected);
        }
        match self.rewrite(asked, &corrected, cancel).await {
            Ok(Some(rewritten)) => Ok(rewritten),
            Ok(None) => Ok(corrected),
            Err(problem) => {
                tracing::warn!(message = problem.message, "the model cannot be asked for a correction");
                Ok(corrected)
            }
        }
    }

    /// The query as the model would write it, if that passes.
    async fn rewrite(
        &self,
        asked: &Correct,
        corrected: &Corrected,
        cancel: &Cancel,
    ) -> Result<Option<Corrected>, Problem> {
        let words = words(asked.question.as_deref(), asked.evidence.as_deref()).unwrap_or_default();
        let tables = match &asked.schema_context {
            Some(tables) => {
                let dialect = self.dialect_of(asked)?;
                Arc::new(Tables::new(Arc::new(self.schema_of(tables, dialect)?), dialect, &self.policy))
            }
            None => self.tables().await.map_err(database_problem)?,
        };
        let dialect = self.dialect_of(asked)?;
        let linked = tables.link(&format!("{words} {}", asked.original_query), self.schema_bytes());
        let errors = || corrected.findings.iter().map(|p| &p.finding).filter(|f| f.severity == Severity::Error);
        let said = asked.error_message.as_deref().map(str::trim).filter(|error| !error.is_empty());
        let mut faults: Vec<&str> = said.into_iter().collect();
        faults.extend(errors().map(|f| if f.advice.is_empty() { f.message.as_str() } else { f.advice.as_str() }));
        let sql = asked.original_query.as_str();
        let messages = prompts::correct(dialect.title, &linked.text, &words, sql, &faults.join("\n"));
        let request = Request::new(messages)
            .temperature(self.config.temperature)
            .timeout(self.config.budget.request)
            .schema(correct::reply_schema());
        let reply = self.model.complete(&request, &mut |_| {}, &cancel.model).await;
        let reply = reply.map_err(|error| hindered(model_trouble(&error)))?;
        let (text, why) = correct::read_reply(&reply.text);
        let unchanged = diff::normalise(&text, dialect) == diff::normalise(sql, dialect);
        let context = Context { schema: Some(tables.schema()), dialect, policy: &self.policy, question: None };
        let (before, after) = (review(sql, &context).extracted, review(&text, &context).extracted);
        // A query that no longer reads any table asks something else.
        if text.trim().is_empty() || unchanged || (after.tables.is_empty() && !before.tables.is_empty()) {
            return Ok(None);
        }
        let again = Correct { original_query: text, error_message: None, last_error: None, ..asked.clone() };
        let rewritten = self.correct(&again).await?;
        let code = errors().next().map_or("engine-error", |f| f.code);
        Ok(rewritten.success.then(|| rewritten.rewritten(code, &why)))
    }

    /// Reviews a query and runs it as it is, read-only.
    pub async fn run(&self, sql: &str, limits: &Limits, cancel: &Cancel) -> Result<Ran, NotRun> {
        let schema = self.schema().await.map_err(database_problem)?;
        let review = review(sql, &self.context(&schema, None));
        let findings = || placed(&review.findings, &review.source);
        let query = match review.approve() {
            Ok(query) if review.is_clean() => query,
            _ => {
                let first = review.findings.iter().find(|f| f.severity == Severity::Error);
                let message = first.map_or("the query is refused", |f| f.message.as_str()).to_string();
                let hint = Some("`findings` says what is wrong; /v1/correct mends what can be mended".into());
                let problem =
                    Problem { code: ProblemCode::PreflightValidationFailed, message, hint, retry_after_s: None };
                return Err(NotRun { problem, findings: findings() });
            }
        };
        let start = Instant::now();
        match self.engine.execute(&query, limits, &cancel.engine).await {
            Ok(rows) => {
                let ms = start.elapsed().as_secs_f64() * 1e3;
                let mut warnings = findings();
                warnings.extend(placed(&inspect(&review, &rows, &self.context(&schema, None)), &review.source));
                Ok(Ran { sql: query.sql().to_string(), rows, warnings, ms })
            }
            Err(EngineTrouble::Rejected(said)) => {
                let found = refusal::finding(&said, query.sql(), self.engine.dialect());
                let message = found.message.clone();
                let code = match classify(self.engine.dialect(), &said).error_type {
                    querymend_sql::ErrorType::PermissionDenied => ProblemCode::PermissionDeniedNotRetryable,
                    _ => ProblemCode::PreflightValidationFailed,
                };
                let problem = Problem { code, message, hint: said.hint.clone(), retry_after_s: None };
                Err(NotRun { problem, findings: placed(&[found], query.sql()) })
            }
            Err(error) => Err(database_problem(error).into()),
        }
    }

    /// Values of the database that are like a word, in a column or anywhere. Nothing is found in columns whose values are not read.
    pub async fn ground(&self, word: &str, place: Option<(&str, &str)>) -> Result<Vec<Grounded>, Problem> {
        let schema = self.schema().await.map_err(database_problem)?;
        self.known.learned().await;
        let Some(values) = schema.values() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut keep = |table: &str, column: &str, value: String| {
            let same = value.trim().to_lowercase() == word.trim().to_lowercase();
            let grounded = Grounded { table: table.to_string(), column: column.to_string(), value, same };
            if !found.contains(&grounded) {
                found.push(grounded);
            }
        };
        let columns = values.columns().iter();
        let meant =
            columns.filter(|held| place.is_none_or(|(t, c)| same_name(&held.table, t) && same_name(&held.column, c)));
        for held in meant {
            for near in values.near(&held.table, &held.column, word, FOUND) {
                keep(&held.table, &held.column, near.value);
            }
            for value in values.beginning(&held.table, &held.column, word, FOUND) {
                keep(&held.table, &held.column, value.to_string());
            }
        }
        found.sort_by_key(|grounded| !grounded.same);
        found.truncate(FOUND);
        Ok(found)
    }

    /// Why a query finds nothing: which condition alone keeps all rows away, which values are not there.
    pub async fn explain_empty(&self, sql: &str, cancel: &Cancel) -> Result<Emptiness, NotRun> {
        let ran = self.run(sql, &Limits { rows: 2, ..self.config.limits() }, cancel).await?;
        if !crate::run::is_empty(&ran.rows) {
            return Ok(Emptiness { finds_rows: true, ..Emptiness::default() });
        }
        let schema = self.schema().await.map_err(database_problem)?;
        // Whoever asks why wants to know what is there instead.
        self.known.learned().await;
        let context = self.context(&schema, None);
        let driver = Driver::new(self, "", true, String::new(), cancel);
        let conditions = driver.explain(&without_each(&ran.sql, &context)).await;
        let absent = driver.look(&review(&ran.sql, &context).stated).await;
        let absent = absent.into_iter().map(|(sought, near)| Absent { sought, near }).collect();
        Ok(Emptiness { finds_rows: false, conditions, absent })
    }
}

fn same_name(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// What clients are told where the database cannot be asked.
pub fn database_problem(error: EngineTrouble) -> Problem {
    hindered(engine_trouble(error))
}

fn hindered(hindrance: Hindrance) -> Problem {
    let problem = |code, message| Problem { code, message, hint: None, retry_after_s: None };
    match hindrance {
        Hindrance::Gone(problem) | Hindrance::TooLong(problem) => problem,
        Hindrance::Rejected(said) => problem(ProblemCode::PreflightValidationFailed, said.message),
        Hindrance::TimedOut(after) => {
            problem(ProblemCode::BudgetExceeded, format!("the database did not answer within {after:?}"))
        }
        Hindrance::Cancelled => problem(ProblemCode::Cancelled, "stopped".into()),
    }
}
