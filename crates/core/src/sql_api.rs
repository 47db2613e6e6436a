//! Operations on queries and values without a question.
//!
//! They serve people and programs that write SQL themselves.

use std::sync::Arc;
use std::time::Instant;

use querymend_engine::{self as engine, Engine, Limits};
use querymend_model::{CompletionRequest, Model};
use querymend_sql::schema::Schema;
use querymend_sql::{
    Applicability, Dialect, EngineError, ErrorType, LiteralFilter, QueryReferences, RepairOutcome, RepairRequest,
    RepairStatus, Review, ReviewContext, Rows, Severity, Verdict, classify, dialect, diff, drop_each_predicate,
    inspect_rows, repair, review,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::cancel::CancellationToken;
use crate::correction::{
    self, CorrectionRequest, CorrectionResponse, LocatedFinding, RepairContext, abort_reason, explain_remaining,
    locate_findings, question_with_evidence,
};
use crate::driver::Driver;
use crate::event::{Problem, ProblemCode};
use crate::linking::SchemaLinker;
use crate::querymend::Querymend;
use crate::run::StepError;
use crate::step_error::{engine_step_error, model_step_error};
use crate::{embedding_similarity, engine_finding, prompts};

/// Name of the model if none is configured.
pub const NO_MODEL: &str = "none";
/// Maximum number of values found for a search term.
const MAX_MATCHING_VALUES: usize = 20;

/// Result of reviewing a query.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CheckResponse")]
pub struct CheckReport {
    /// Safety verdict of the review.
    pub verdict: Verdict,
    /// `true` if the query is safe and no finding is an error.
    pub clean: bool,
    /// SQL dialect.
    pub dialect: &'static str,
    /// Errors and warnings.
    pub findings: Vec<LocatedFinding>,
    /// Names that the query references.
    pub extracted: QueryReferences,
}

impl From<&Review> for CheckReport {
    fn from(review: &Review) -> Self {
        Self {
            verdict: review.verdict(),
            clean: review.is_clean(),
            dialect: review.dialect().name,
            findings: locate_findings(&review.findings, &review.source),
            extracted: review.references.clone(),
        }
    }
}

/// Result of executing a query unchanged.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueryResult {
    /// Query that was executed.
    pub sql: String,
    /// Rows of the result.
    pub rows: Rows,
    /// Warnings about the query and its rows.
    pub warnings: Vec<LocatedFinding>,
    /// Execution time, in milliseconds.
    pub ms: f64,
}

/// Failure of a query.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueryError {
    /// Problem in a form that protocols can map.
    #[serde(flatten)]
    pub problem: Problem,
    /// Errors and warnings about the query.
    pub findings: Vec<LocatedFinding>,
}

impl From<Problem> for QueryError {
    fn from(problem: Problem) -> Self {
        Self { problem, findings: Vec::new() }
    }
}

/// Database value that matches a search term.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ValueMatch")]
pub struct MatchingValue {
    /// Name of the table.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Value as stored.
    pub value: String,
    /// `true` if the value equals the search term, ignoring case and surrounding whitespace.
    pub same: bool,
}

/// Explanation of an empty result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct EmptyResultReport {
    /// `true` if the query does return rows.
    pub finds_rows: bool,
    /// Predicates that individually exclude all rows: without any one of them, there would be rows.
    pub conditions: Vec<String>,
    /// Literals that do not occur in their column, with similar values.
    pub absent: Vec<MissingValue>,
}

/// Literal that does not occur in its column.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MissingValue {
    /// Literal and its column.
    #[serde(flatten)]
    pub filter: LiteralFilter,
    /// Similar values that occur in the column.
    pub near: Vec<String>,
}

impl Querymend {
    fn review_context<'c>(&'c self, schema: &'c Schema, question: Option<&'c str>) -> ReviewContext<'c> {
        ReviewContext { schema: Some(schema), dialect: self.engine.dialect(), policy: &self.policy, question }
    }

    /// Reviews a query against the schema and the value index. The query is not executed.
    pub async fn check(&self, sql: &str, question: Option<&str>) -> Result<CheckReport, Problem> {
        let schema = self.schema().await.map_err(database_problem)?;
        self.schema_cache.wait_for_values().await;
        Ok(CheckReport::from(&review(sql, &self.review_context(&schema, question))))
    }

    /// Corrects a query without a model, and only if it is proven to be broken.
    pub async fn correct(&self, input: &CorrectionRequest) -> Result<CorrectionResponse, Problem> {
        let (session, user) = (input.session_id.clone(), input.user_id.clone());
        let error = input.error_message.as_deref().map(str::trim).filter(|error| !error.is_empty());
        if let Some(why) = abort_reason(input.retry_count, error, input.last_error.as_deref()) {
            return Ok(CorrectionResponse::aborted(&input.original_query, why, session, user));
        }
        let engine_error = error.map(|error| EngineError { message: error.to_string(), ..EngineError::default() });
        let words = question_with_evidence(input.question.as_deref(), input.evidence.as_deref());
        let repaired = match &input.schema_context {
            Some(tables) => self.repair_offline(input, tables, engine_error.as_ref(), words.as_deref())?,
            None => self.repair_with_database(input, engine_error.as_ref(), words.as_deref()).await?,
        };
        Ok(CorrectionResponse::new(repaired, session, user))
    }

    async fn repair_with_database(
        &self,
        input: &CorrectionRequest,
        engine_error: Option<&EngineError>,
        words: Option<&str>,
    ) -> Result<RepairOutcome, Problem> {
        let cancel = CancellationToken::new();
        let driver = Driver::new(self, "", true, words.unwrap_or_default().to_string(), &cancel);
        let mut rejected = Vec::new();
        self.wait_for_values().await;
        let repaired = driver
            .repair(&input.original_query, engine_error, input.apply, true, &mut rejected)
            .await
            .map_err(step_problem)?;
        let schema = driver.schema().await.map_err(database_problem)?;
        let repair_context = RepairContext {
            context: self.review_context(&schema, None),
            question: words,
            error: engine_error.map(|engine_error| engine_error.message.as_str()),
            apply: input.apply,
            has_database: true,
            rejected_queries: &rejected,
        };
        Ok(explain_remaining(repaired, &repair_context))
    }

    /// Repairs a query against the schema in the request, without a database.
    fn repair_offline(
        &self,
        input: &CorrectionRequest,
        tables: &Value,
        engine_error: Option<&EngineError>,
        words: Option<&str>,
    ) -> Result<RepairOutcome, Problem> {
        let dialect = self.requested_dialect(input)?;
        let schema = self.parse_schema_context(tables, dialect)?;
        let context = ReviewContext { dialect, ..self.review_context(&schema, None) };
        let classified = engine_error.map(|engine_error| classify(dialect, engine_error));
        let text = input.original_query.as_str();
        let request = RepairRequest {
            text,
            context,
            question: words,
            max_applicability: input.apply,
            error: classified.as_ref(),
        };
        let error = engine_error.map(|engine_error| engine_error.message.as_str());
        let repair_context = RepairContext {
            context,
            question: words,
            error,
            apply: input.apply,
            has_database: false,
            rejected_queries: &[],
        };
        Ok(explain_remaining(repair(&request, None), &repair_context))
    }

    /// Returns the dialect of a request with its own schema.
    fn requested_dialect(&self, input: &CorrectionRequest) -> Result<&'static Dialect, Problem> {
        let Some(named) = &input.dialect else { return Ok(self.engine.dialect()) };
        Dialect::from_name(named).ok_or_else(|| {
            let known: Vec<&str> = dialect::DIALECTS.iter().map(|dialect| dialect.name).collect();
            Problem::new(ProblemCode::BadRequest, format!("there is no dialect `{named}`"))
                .hint(format!("`dialect` is one of {}", known.join(", ")))
        })
    }

    /// Parses the schema in a request, restricted to what the policy allows to be read.
    fn parse_schema_context(&self, tables: &Value, dialect: &'static Dialect) -> Result<Schema, Problem> {
        let schema = match tables {
            Value::String(ddl) => Schema::from_ddl(ddl, dialect),
            json => Schema::from_json(&json.to_string()),
        };
        let schema = schema.map_err(|error| {
            Problem::new(ProblemCode::BadRequest, format!("schema_context cannot be read: {error}"))
                .hint("it is {\"tables\": [...]} as `querymend schema --format json` writes it, or CREATE TABLE text")
        })?;
        let schema = self.policy.filter_schema(schema);
        embedding_similarity::attach(&schema);
        Ok(schema)
    }

    /// Corrects a query by rules, and by the model if the rules give up.
    ///
    /// A rewrite by the model passes the same review as any query, and a dry run on the database if
    /// there is one. If the model is unavailable, the result of the rules is returned.
    pub async fn correct_with_model(
        &self,
        input: &CorrectionRequest,
        cancel: &CancellationToken,
    ) -> Result<CorrectionResponse, Problem> {
        let corrected = self.correct(input).await?;
        let aborted =
            abort_reason(input.retry_count, input.error_message.as_deref(), input.last_error.as_deref()).is_some();
        let has_model = self.model.name() != NO_MODEL;
        let open = corrected.status == RepairStatus::GaveUp && input.apply >= Applicability::Likely;
        if aborted || !open || !has_model {
            return Ok(corrected);
        }
        match self.rewrite_with_model(input, &corrected, cancel).await {
            Ok(Some(rewritten)) => Ok(rewritten),
            Ok(None) => Ok(corrected),
            Err(problem) => {
                tracing::warn!(message = problem.message, "the model cannot be asked for a correction");
                Ok(corrected)
            }
        }
    }

    /// Returns the rewrite of the model, if it passes the review.
    async fn rewrite_with_model(
        &self,
        input: &CorrectionRequest,
        corrected: &CorrectionResponse,
        cancel: &CancellationToken,
    ) -> Result<Option<CorrectionResponse>, Problem> {
        let words = question_with_evidence(input.question.as_deref(), input.evidence.as_deref()).unwrap_or_default();
        let tables = match &input.schema_context {
            Some(tables) => {
                let dialect = self.requested_dialect(input)?;
                Arc::new(SchemaLinker::new(
                    Arc::new(self.parse_schema_context(tables, dialect)?),
                    dialect,
                    &self.policy,
                ))
            }
            None => self.linker().await.map_err(database_problem)?,
        };
        let dialect = self.requested_dialect(input)?;
        let linked = tables.link(&format!("{words} {}", input.original_query), self.max_schema_bytes());
        let errors = || corrected.findings.iter().map(|p| &p.finding).filter(|f| f.severity == Severity::Error);
        let error_message = input.error_message.as_deref().map(str::trim).filter(|error| !error.is_empty());
        let mut faults: Vec<&str> = error_message.into_iter().collect();
        faults.extend(errors().map(|f| if f.advice.is_empty() { f.message.as_str() } else { f.advice.as_str() }));
        let sql = input.original_query.as_str();
        let messages = prompts::correct(dialect.title, &linked.text, &words, sql, &faults.join("\n"));
        let request = CompletionRequest::new(messages)
            .temperature(self.config.temperature)
            .timeout(self.config.budget.request)
            .schema(correction::reply_schema());
        let reply = self.model.complete(&request, &mut |_| {}, &cancel.model).await;
        let reply = reply.map_err(|error| step_problem(model_step_error(&error)))?;
        let (text, why) = correction::parse_reply(&reply.text);
        let unchanged = diff::normalized_tokens(&text, dialect) == diff::normalized_tokens(sql, dialect);
        let context = ReviewContext { schema: Some(tables.schema()), dialect, policy: &self.policy, question: None };
        let (before, after) = (review(sql, &context).references, review(&text, &context).references);
        // A query that does not read any table answers another question.
        if text.trim().is_empty() || unchanged || (after.tables.is_empty() && !before.tables.is_empty()) {
            return Ok(None);
        }
        let again = CorrectionRequest { original_query: text, error_message: None, last_error: None, ..input.clone() };
        let rewritten = self.correct(&again).await?;
        let code = errors().next().map_or("engine-error", |f| f.code);
        Ok(rewritten.success.then(|| rewritten.with_model_rewrite(code, &why)))
    }

    /// Reviews a query and executes it unchanged, read-only.
    pub async fn run(&self, sql: &str, limits: &Limits, cancel: &CancellationToken) -> Result<QueryResult, QueryError> {
        let schema = self.schema().await.map_err(database_problem)?;
        let review = review(sql, &self.review_context(&schema, None));
        let findings = || locate_findings(&review.findings, &review.source);
        let query = match review.approve() {
            Ok(query) if review.is_clean() => query,
            _ => {
                let first = review.findings.iter().find(|f| f.severity == Severity::Error);
                let message = first.map_or("the query is refused", |f| f.message.as_str()).to_string();
                let hint = Some("`findings` lists the errors; /v1/correct fixes what it can".into());
                let problem =
                    Problem { code: ProblemCode::PreflightValidationFailed, message, hint, retry_after_s: None };
                return Err(QueryError { problem, findings: findings() });
            }
        };
        let start = Instant::now();
        match self.engine.execute(&query, limits, &cancel.engine).await {
            Ok(rows) => {
                let ms = start.elapsed().as_secs_f64() * 1e3;
                let mut warnings = findings();
                warnings.extend(locate_findings(
                    &inspect_rows(&review, &rows, &self.review_context(&schema, None)),
                    &review.source,
                ));
                Ok(QueryResult { sql: query.sql().to_string(), rows, warnings, ms })
            }
            Err(engine::Error::Rejected(engine_error)) => {
                let found = engine_finding::from_error(&engine_error, query.sql(), self.engine.dialect());
                let message = found.message.clone();
                let code = match ErrorType::of(classify(self.engine.dialect(), &engine_error).finding) {
                    querymend_sql::ErrorType::PermissionDenied => ProblemCode::PermissionDeniedNotRetryable,
                    _ => ProblemCode::PreflightValidationFailed,
                };
                let problem = Problem { code, message, hint: engine_error.hint.clone(), retry_after_s: None };
                Err(QueryError { problem, findings: locate_findings(&[found], query.sql()) })
            }
            Err(error) => Err(database_problem(error).into()),
        }
    }

    /// Finds database values that match a search term, in one column or in all. Columns whose
    /// values are not sampled have no matches.
    pub async fn find_values(
        &self,
        word: &str,
        in_column: Option<(&str, &str)>,
    ) -> Result<Vec<MatchingValue>, Problem> {
        let schema = self.schema().await.map_err(database_problem)?;
        self.schema_cache.wait_for_values().await;
        let Some(values) = schema.value_index() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut add = |table: &str, column: &str, value: String| {
            let same = value.trim().to_lowercase() == word.trim().to_lowercase();
            let grounded = MatchingValue { table: table.to_string(), column: column.to_string(), value, same };
            if !found.contains(&grounded) {
                found.push(grounded);
            }
        };
        let columns = values.columns().iter();
        let searched = columns.filter(|held| {
            in_column.is_none_or(|(t, c)| is_same_name(&held.table, t) && is_same_name(&held.column, c))
        });
        for held in searched {
            for near in values.similar_values(&held.table, &held.column, word, MAX_MATCHING_VALUES) {
                add(&held.table, &held.column, near.value);
            }
            for value in values.values_with_prefix(&held.table, &held.column, word, MAX_MATCHING_VALUES) {
                add(&held.table, &held.column, value.to_string());
            }
        }
        found.sort_by_key(|grounded| !grounded.same);
        found.truncate(MAX_MATCHING_VALUES);
        Ok(found)
    }

    /// Explains an empty result.
    ///
    /// Returns the predicates that individually exclude all rows, and the literals that do not
    /// occur in their column.
    pub async fn explain_empty(&self, sql: &str, cancel: &CancellationToken) -> Result<EmptyResultReport, QueryError> {
        let ran = self.run(sql, &Limits { rows: 2, ..self.config.limits() }, cancel).await?;
        if !ran.rows.is_effectively_empty() {
            return Ok(EmptyResultReport { finds_rows: true, ..EmptyResultReport::default() });
        }
        let schema = self.schema().await.map_err(database_problem)?;
        // Similar values come from the value index.
        self.schema_cache.wait_for_values().await;
        let context = self.review_context(&schema, None);
        let driver = Driver::new(self, "", true, String::new(), cancel);
        let conditions = driver.find_blocking_predicates(&drop_each_predicate(&ran.sql, &context)).await;
        let absent = driver.find_missing_values(&review(&ran.sql, &context).literal_filters).await;
        let absent = absent.into_iter().map(|(sought, near)| MissingValue { filter: sought, near }).collect();
        Ok(EmptyResultReport { finds_rows: false, conditions, absent })
    }
}

fn is_same_name(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}

/// Converts an engine error to the problem reported to clients.
pub fn database_problem(error: engine::Error) -> Problem {
    step_problem(engine_step_error(error))
}

fn step_problem(error: StepError) -> Problem {
    let problem = |code, message| Problem { code, message, hint: None, retry_after_s: None };
    match error {
        StepError::Unavailable(problem) | StepError::ContextTooLong(problem) => problem,
        StepError::Rejected(engine_error) => problem(ProblemCode::PreflightValidationFailed, engine_error.message),
        StepError::TimedOut(after) => {
            problem(ProblemCode::BudgetExceeded, format!("the database did not answer within {after:?}"))
        }
        StepError::Cancelled => problem(ProblemCode::Cancelled, "stopped".into()),
    }
}
