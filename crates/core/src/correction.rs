//! Request and response of a correction.
//!
//! Takes a failed query with the known facts about the failure, and returns a repaired query with
//! the applied fixes and its confidence.

use querymend_sql::{
    Applicability, AppliedFix, Dialect, EngineError, ErrorType, Finding, MeaningClaim, RepairOutcome, RepairStatus,
    ReviewContext, Rule, Severity, classify, diff, review,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error_history::{ErrorAnalysis, ErrorRecord, QueryFailure, SqlCorrection};
use crate::event::Confidence;
use crate::line_index::LineIndex;
use crate::{engine_finding, trace_id};

/// Maximum number of retries; after that the next one is expected to fail too.
pub const MAX_RETRIES: u32 = 3;
/// Maximum number of suggestions stored with an error of a session.
const MAX_SUGGESTIONS: usize = 5;

/// Query that failed or may fail.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "CorrectRequest")]
pub struct CorrectionRequest {
    /// SQL text of the query.
    pub original_query: String,
    /// Name of the database, if the server has several.
    #[serde(default)]
    pub database: Option<String>,
    /// Error message of the database.
    #[serde(default)]
    pub error_message: Option<String>,
    /// Error message of the previous attempt. If it equals `error_message`, the correction is given
    /// up.
    #[serde(default)]
    pub last_error: Option<String>,
    /// Schema, as written by `querymend schema --format json` or as CREATE TABLE statements. If
    /// absent, the schema of the database is used; if present, the database is not queried.
    #[serde(default)]
    pub schema_context: Option<Value>,
    /// Dialect of `schema_context`, such as `postgres`; defaults to the dialect of the database.
    /// Ignored without `schema_context`.
    #[serde(default)]
    pub dialect: Option<String>,
    /// Number of previous corrections of the query.
    #[serde(default)]
    pub retry_count: u32,
    /// Natural-language question that the query answers.
    #[serde(default)]
    pub question: Option<String>,
    /// Additional facts about the question.
    #[serde(default)]
    pub evidence: Option<String>,
    /// Least certain applicability of fixes that may be applied.
    #[serde(default = "likely")]
    pub apply: Applicability,
    /// Session of the request, echoed in the response. A server stores the errors of a session, so
    /// a repeated error is detected without `last_error`.
    #[serde(default)]
    pub session_id: Option<String>,
    /// User of the request, echoed in the response. Ignored by servers that authenticate users.
    #[serde(default)]
    pub user_id: Option<String>,
}

impl CorrectionRequest {
    /// Creates a request with only the query set.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            original_query: query.into(),
            database: None,
            error_message: None,
            last_error: None,
            schema_context: None,
            dialect: None,
            retry_count: 0,
            question: None,
            evidence: None,
            apply: likely(),
            session_id: None,
            user_id: None,
        }
    }
}

fn likely() -> Applicability {
    Applicability::Likely
}

/// Result of a correction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "CorrectResponse")]
pub struct CorrectionResponse {
    /// Query to run. Empty unless `success`, so that a query that was given up or rejected is never
    /// run.
    pub corrected_sql: String,
    /// Description of the applied fixes and their reasons.
    pub correction_applied: String,
    /// `true` if the query can be run: it had no errors, or was repaired.
    pub success: bool,
    /// Identifier of the correction in logs.
    pub trace_id: String,
    /// Outcome of the repair.
    pub status: RepairStatus,
    /// Applied fixes.
    pub fixes: Vec<AppliedFix>,
    /// Remaining findings.
    pub findings: Vec<LocatedFinding>,
    /// Session of the request.
    pub session_id: Option<String>,
    /// User of the request.
    pub user_id: Option<String>,
    /// Confidence in the query. `high` if it was not changed, `medium` if `meaning` is likely (run
    /// it and show the fixes), `low` if it is doubtful or the query was given up (ask a model or a
    /// person).
    pub confidence: Confidence,
    /// `true` if every name of the query is proven to resolve. `false` if the query was given up or
    /// rejected.
    pub names_resolved: bool,
    /// Likelihood that the changed query keeps the intended meaning. Absent if nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<MeaningClaim>,
    /// Reasons to doubt the meaning; empty unless it is doubtful.
    pub doubts: Vec<String>,
    /// Partially repaired query if the correction was given up; absent otherwise. `findings` refers
    /// to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_attempt: Option<String>,
}

/// Finding with its location in editor convention: lines and columns start at 1.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LocatedFinding {
    /// Finding without location.
    #[serde(flatten)]
    pub finding: Finding,
    /// Line of the start.
    pub line: usize,
    /// Column of the start.
    pub column: usize,
    /// Line of the end.
    pub end_line: usize,
    /// Column of the end.
    pub end_column: usize,
}

/// Adds line and column to the findings of a text.
pub fn locate_findings(findings: &[Finding], text: &str) -> Vec<LocatedFinding> {
    let lines = LineIndex::new(text);
    let locate = |finding: &Finding| {
        let (line, column) = lines.line_column(finding.span.start);
        let (end_line, end_column) = lines.line_column(finding.span.end.max(finding.span.start));
        LocatedFinding { finding: finding.clone(), line, column, end_line, end_column }
    };
    findings.iter().map(locate).collect()
}

/// Returns the reason to stop retrying, if there is one.
pub fn abort_reason(retry_count: u32, error: Option<&str>, last_error: Option<&str>) -> Option<String> {
    let error = error.map(str::trim).filter(|error| !error.is_empty());
    if retry_count >= MAX_RETRIES {
        let suffix = error.map_or(String::new(), |error| format!("; the last error was: {error}"));
        return Some(format!("given up after {retry_count} retries{suffix}"));
    }
    let same = error.filter(|error| last_error.map(str::trim) == Some(error));
    same.map(|error| format!("given up because the same error occurred twice: {error}"))
}

/// Returns whether a request repeats the error that its session has on record.
///
/// The error has the same text, and the query is a retry (`retry_count` above 0), the query that
/// failed before, or the correction returned for it. The same text for another query is another
/// error.
pub fn is_repeated_error(record: &ErrorRecord, input: &CorrectionRequest, dialect: &Dialect) -> bool {
    let same_error = input.error_message.as_deref().map(str::trim) == Some(record.message.as_str());
    let query = diff::normalized_tokens(&input.original_query, dialect);
    let same_query = |sql: &str| !sql.is_empty() && diff::normalized_tokens(sql, dialect) == query;
    let handed_out = record.correction.as_ref().map_or("", |correction| correction.corrected.as_str());
    same_error && (input.retry_count > 0 || same_query(&record.sql) || same_query(handed_out))
}

/// Returns the failure that a request reports, for the record of its session. `None` if the request
/// has no error.
pub fn to_query_failure(
    input: &CorrectionRequest,
    corrected: &CorrectionResponse,
    dialect: &Dialect,
) -> Option<QueryFailure> {
    let message = input.error_message.as_deref().map(str::trim).filter(|error| !error.is_empty())?;
    let classified = classify(dialect, &EngineError { message: message.to_string(), ..EngineError::default() });
    let advice = corrected.findings.iter().map(|placed| placed.finding.advice.clone()).filter(|text| !text.is_empty());
    let analysis = ErrorAnalysis {
        error_type: ErrorType::of(classified.finding),
        summary: Rule::from_code(classified.finding).map_or(message, |rule| rule.summary()).to_string(),
        suggestions: advice.take(MAX_SUGGESTIONS).collect(),
    };
    let correction = corrected.success.then(|| SqlCorrection {
        original: input.original_query.clone(),
        corrected: corrected.corrected_sql.clone(),
        explanation: corrected.correction_applied.clone(),
        code: corrected.fixes.first().map_or(String::new(), |fix| fix.code.to_string()),
        confidence: corrected.confidence,
    });
    let (sql, code) = (input.original_query.clone(), classified.finding.to_string());
    Some(QueryFailure { sql, code, message: message.to_string(), analysis, correction })
}

/// Joins the question and its evidence into one text.
pub fn question_with_evidence(question: Option<&str>, evidence: Option<&str>) -> Option<String> {
    let parts: Vec<&str> =
        [question, evidence].into_iter().flatten().map(str::trim).filter(|w| !w.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Returns whether the query can be run.
pub fn is_success(status: RepairStatus) -> bool {
    matches!(status, RepairStatus::Untouched | RepairStatus::Mended)
}

/// Inputs of a repair that its findings depend on.
pub struct RepairContext<'c> {
    /// Schema, dialect and policy.
    pub context: ReviewContext<'c>,
    /// Question with its evidence.
    pub question: Option<&'c str>,
    /// Original error message of the database.
    pub error: Option<&'c str>,
    /// Least certain applicability of fixes that may be applied.
    pub apply: Applicability,
    /// `true` if the repair was validated by the database.
    pub has_database: bool,
    /// Queries that the database rejected, with its errors.
    pub rejected_queries: &'c [(String, EngineError)],
}

/// Adds the remaining errors to the findings, including those that only the database detects.
pub fn explain_remaining(mut repair: RepairOutcome, repair_context: &RepairContext<'_>) -> RepairOutcome {
    let RepairContext { context, question, error, apply, has_database, rejected_queries } = repair_context;
    // The findings of a query that only runs because of a guess already report the guess.
    let guessed = repair.status == RepairStatus::GaveUp && repair.applied.iter().any(|a| a.applicability > *apply);
    if !guessed && !repair.applied.is_empty() && !repair.findings.is_empty() {
        // The findings of the search may refer to text that still had its wrapping and comments.
        repair.findings = review(&repair.sql, &ReviewContext { question: *question, ..*context }).findings;
    }
    let unexplained = !repair.findings.iter().any(|f| f.severity == Severity::Error);
    match repair.status {
        RepairStatus::GaveUp if unexplained => {
            // The review finds no error, so report the message of the database.
            let of_this = rejected_queries.iter().rfind(|(sql, _)| *sql == repair.sql).or(rejected_queries.last());
            repair.findings.extend(of_this.map(|(sql, engine_error)| {
                // The position is only valid if the returned text starts with the text that was
                // sent.
                let position = engine_error.position.filter(|_| repair.sql.starts_with(sql));
                engine_finding::from_error(&EngineError { position, ..engine_error.clone() }, sql, context.dialect)
            }));
        }
        RepairStatus::Untouched if !has_database => {
            // The database rejected the query, and none is connected to confirm that it is valid
            // after all.
            if let Some(error) = error {
                repair.status = RepairStatus::GaveUp;
                let engine_error = EngineError { message: (*error).to_string(), ..EngineError::default() };
                repair.findings.push(engine_finding::from_error(&engine_error, "", context.dialect));
            }
        }
        _ => {}
    }
    repair
}

impl CorrectionResponse {
    /// Creates the response for a repair.
    pub fn new(repair: RepairOutcome, session_id: Option<String>, user_id: Option<String>) -> Self {
        let success = is_success(repair.status);
        let meaning = repair.meaning();
        let given_up = repair.status == RepairStatus::GaveUp && !repair.applied.is_empty();
        Self {
            correction_applied: describe_repair(&repair),
            success,
            trace_id: trace_id::generate(),
            status: repair.status,
            findings: locate_findings(&repair.findings, &repair.sql),
            fixes: repair.applied,
            session_id,
            user_id,
            confidence: match (success, meaning) {
                (true, None) => Confidence::High,
                (true, Some(MeaningClaim::Likely)) => Confidence::Medium,
                (true, Some(MeaningClaim::Doubtful)) | (false, _) => Confidence::Low,
            },
            names_resolved: success,
            meaning,
            doubts: repair.doubts,
            best_attempt: given_up.then(|| repair.sql.clone()),
            corrected_sql: if success { repair.sql } else { String::new() },
        }
    }

    /// Returns whether a model wrote the query.
    ///
    /// Successful rules never apply fixes that are only suggested.
    pub fn is_by_model(&self) -> bool {
        self.success && self.fixes.iter().any(|fix| fix.applicability == Applicability::Suggested)
    }

    /// Marks the query as written by a model because the rules could not correct it.
    ///
    /// It passed the same review, but only a person can confirm that it still expresses the
    /// intended question.
    pub fn with_model_rewrite(self, code: &'static str, why: &str) -> Self {
        let why = format!("rewritten by the model: {why}");
        let mut fixes = vec![AppliedFix { code, applicability: Applicability::Suggested, why: why.clone() }];
        fixes.extend(self.fixes);
        let (confidence, meaning) = (Confidence::Low, Some(MeaningClaim::Doubtful));
        let doubts = vec!["a model wrote it, and nothing proves that it answers the question".to_string()];
        Self { status: RepairStatus::Mended, confidence, meaning, doubts, correction_applied: why, fixes, ..self }
    }

    /// Creates the response for a request that is not worth another attempt.
    pub fn aborted(sql: &str, why: String, session_id: Option<String>, user_id: Option<String>) -> Self {
        let repair = RepairOutcome {
            status: RepairStatus::GaveUp,
            sql: sql.to_string(),
            applied: Vec::new(),
            findings: Vec::new(),
            doubts: Vec::new(),
        };
        Self { correction_applied: why, ..Self::new(repair, session_id, user_id) }
    }
}

/// Returns the JSON schema of the reply that a model is prompted for.
pub(crate) fn reply_schema() -> Value {
    serde_json::json!({
        "type": "object",
        "properties": {"corrected_sql": {"type": "string"}, "correction_applied": {"type": "string"}},
        "required": ["corrected_sql", "correction_applied"],
        "additionalProperties": false,
    })
}

/// Parses the query and the reason from a model's reply.
///
/// A reply that does not match the schema is returned as a whole: the review extracts the SQL.
pub(crate) fn parse_reply(text: &str) -> (String, String) {
    #[derive(Deserialize)]
    struct CorrectionReply {
        corrected_sql: String,
        #[serde(default)]
        correction_applied: String,
    }
    const NO_REASON: &str = "it gave no reason";
    let object = text.find('{').zip(text.rfind('}')).and_then(|(start, end)| text.get(start..=end));
    match object.and_then(|object| serde_json::from_str::<CorrectionReply>(object).ok()) {
        Some(reply) => {
            let why = reply.correction_applied.trim();
            (reply.corrected_sql, if why.is_empty() { NO_REASON } else { why }.to_string())
        }
        None => (text.to_string(), NO_REASON.to_string()),
    }
}

fn describe_repair(repair: &RepairOutcome) -> String {
    let whys: Vec<&str> = repair.applied.iter().map(|applied| applied.why.as_str()).collect();
    let error = |f: &&Finding| f.severity == Severity::Error;
    let left = repair.findings.iter().find(error).map_or("the database would reject it", |f| f.message.as_str());
    match repair.status {
        RepairStatus::Untouched => "nothing was changed: nothing prevents the query from running".into(),
        RepairStatus::Mended => whys.join("; "),
        RepairStatus::GaveUp => format!("given up: {left}"),
        RepairStatus::Refused => format!("refused: {left}"),
    }
}
