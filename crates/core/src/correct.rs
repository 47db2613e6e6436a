//! The contract of a correction: a query that failed goes in, with what is known of the failure; a query that is mended comes out,
//! with what was done and how sure that is.

use querymend_sql::{
    Applicability, Applied, Context, Dialect, EngineError, Finding, MeaningClaim, Repair, Rule, Severity, Status,
    classify, diff, review,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Confidence;
use crate::lines::Lines;
use crate::records::{Analysis, ErrorRecord, Failure, SqlCorrection};
use crate::{id, refusal};

/// After so many tries the next one would fail too.
pub const MOST_TRIES: u32 = 3;
/// Suggestions that are kept with an error of a session.
const MOST_SUGGESTIONS: usize = 5;

/// A query that failed, or may fail.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Correct {
    /// Its text.
    pub original_query: String,
    /// The database, where a server has several.
    #[serde(default)]
    pub database: Option<String>,
    /// What the database said about it.
    #[serde(default)]
    pub error_message: Option<String>,
    /// What it said the time before; the same error twice is given up.
    #[serde(default)]
    pub last_error: Option<String>,
    /// The tables, as `querymend schema --format json` writes them or as CREATE TABLE statements. Without them the database's are
    /// taken; with them the database is not asked.
    #[serde(default)]
    pub schema_context: Option<Value>,
    /// The dialect of `schema_context`, such as `postgres`; the database's where it is left out. Without `schema_context` the
    /// database's dialect always holds.
    #[serde(default)]
    pub dialect: Option<String>,
    /// How often the query was mended already.
    #[serde(default)]
    pub retry_count: u32,
    /// The question that it answers.
    #[serde(default)]
    pub question: Option<String>,
    /// What is known about the question.
    #[serde(default)]
    pub evidence: Option<String>,
    /// The most doubtful fix that may be applied.
    #[serde(default = "likely")]
    pub apply: Applicability,
    /// The session that it belongs to; it comes back. A server remembers the errors of a session, so that the same error twice
    /// is given up without `last_error`.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The user that it belongs to; it comes back. A server that knows who asks does not take it from here.
    #[serde(default)]
    pub user_id: Option<String>,
}

impl Correct {
    /// A query of which nothing more is known.
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

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Corrected {
    /// The query to run; empty unless `success`, so that nobody runs what was given up or refused.
    pub corrected_sql: String,
    /// What was done and why, in words.
    pub correction_applied: String,
    /// It can be run: nothing was wrong, or it is mended.
    pub success: bool,
    /// By which it is found in logs.
    pub trace_id: String,
    /// What became of it.
    pub status: Status,
    /// What was done.
    pub fixes: Vec<Applied>,
    /// What is left.
    pub findings: Vec<Placed>,
    /// The session that it belongs to.
    pub session_id: Option<String>,
    /// The user that it belongs to.
    pub user_id: Option<String>,
    /// How far it can be trusted: `high` for a query that was not changed, `medium` where `meaning` is likely (run it and show what
    /// was done), `low` where it is doubtful or the query was given up (ask a model or a person).
    pub confidence: Confidence,
    /// Whether every name of the query resolves, which is proved. False where it was given up or refused.
    pub names_resolved: bool,
    /// Whether the changed query probably asks what was meant; absent where nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<MeaningClaim>,
    /// What speaks against the meaning, in words; empty unless it is doubtful.
    pub doubts: Vec<String>,
    /// How far it was mended before it was given up; the findings speak of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_attempt: Option<String>,
}

/// A finding with its place as editors count it, from 1.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Placed {
    /// The finding.
    #[serde(flatten)]
    pub finding: Finding,
    /// Where it begins.
    pub line: usize,
    /// Where it begins.
    pub column: usize,
    /// Where it ends.
    pub end_line: usize,
    /// Where it ends.
    pub end_column: usize,
}

/// Findings with their places in the text that they speak of.
pub fn placed(findings: &[Finding], text: &str) -> Vec<Placed> {
    let lines = Lines::new(text);
    let place = |finding: &Finding| {
        let (line, column) = lines.line_column(finding.span.start);
        let (end_line, end_column) = lines.line_column(finding.span.end.max(finding.span.start));
        Placed { finding: finding.clone(), line, column, end_line, end_column }
    };
    findings.iter().map(place).collect()
}

/// Why another try is not worth it.
pub fn enough(retry_count: u32, error: Option<&str>, last_error: Option<&str>) -> Option<String> {
    let error = error.map(str::trim).filter(|error| !error.is_empty());
    if retry_count >= MOST_TRIES {
        let said = error.map_or(String::new(), |error| format!("; the last error was: {error}"));
        return Some(format!("given up after {retry_count} tries{said}"));
    }
    let same = error.filter(|error| last_error.map(str::trim) == Some(error));
    same.map(|error| format!("given up because the same error came twice: {error}"))
}

/// Whether a request repeats the error that its session has on record: the error has the same text, and the query is a further
/// try (`retry_count` above 0), the query that failed before, or the correction that was handed out for it. The same text about
/// another query is another error.
pub fn is_repeated(record: &ErrorRecord, asked: &Correct, dialect: &Dialect) -> bool {
    let same_error = asked.error_message.as_deref().map(str::trim) == Some(record.message.as_str());
    let query = diff::normalise(&asked.original_query, dialect);
    let same_query = |sql: &str| !sql.is_empty() && diff::normalise(sql, dialect) == query;
    let handed_out = record.correction.as_ref().map_or("", |correction| correction.corrected.as_str());
    same_error && (asked.retry_count > 0 || same_query(&record.sql) || same_query(handed_out))
}

/// The failure that a request tells of, as a session's record keeps it. None where the request has no error.
pub fn failure(asked: &Correct, corrected: &Corrected, dialect: &Dialect) -> Option<Failure> {
    let message = asked.error_message.as_deref().map(str::trim).filter(|error| !error.is_empty())?;
    let classified = classify(dialect, &EngineError { message: message.to_string(), ..EngineError::default() });
    let advice = corrected.findings.iter().map(|placed| placed.finding.advice.clone()).filter(|text| !text.is_empty());
    let analysis = Analysis {
        error_type: classified.error_type,
        summary: Rule::named(classified.finding).map_or(message, |rule| rule.summary()).to_string(),
        suggestions: advice.take(MOST_SUGGESTIONS).collect(),
    };
    let correction = corrected.success.then(|| SqlCorrection {
        original: asked.original_query.clone(),
        corrected: corrected.corrected_sql.clone(),
        explanation: corrected.correction_applied.clone(),
        code: corrected.fixes.first().map_or(String::new(), |fix| fix.code.to_string()),
        confidence: corrected.confidence,
    });
    let (sql, code) = (asked.original_query.clone(), classified.finding.to_string());
    Some(Failure { sql, code, message: message.to_string(), analysis, correction })
}

/// The question and what is known about it, as one text.
pub fn words(question: Option<&str>, evidence: Option<&str>) -> Option<String> {
    let words: Vec<&str> =
        [question, evidence].into_iter().flatten().map(str::trim).filter(|w| !w.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Whether the query can be run now.
pub fn succeeded(status: Status) -> bool {
    matches!(status, Status::Untouched | Status::Mended)
}

/// How a repair was come by, as far as its findings depend on it.
pub struct Circumstances<'c> {
    /// Schema, dialect and policy.
    pub context: Context<'c>,
    /// The question with what is known about it.
    pub question: Option<&'c str>,
    /// What the database said about the query in the first place.
    pub error: Option<&'c str>,
    /// The most doubtful fix that was applied.
    pub apply: Applicability,
    /// The database was asked.
    pub judged: bool,
    /// What it refused: queries with its words.
    pub refused: &'c [(String, EngineError)],
}

/// The repair with findings that say what is left, also where only the database knows.
pub fn told(mut mended: Repair, about: &Circumstances<'_>) -> Repair {
    let Circumstances { context, question, error, apply, judged, refused } = about;
    // Of a query that runs by a guess, its findings say so.
    let guessed = mended.status == Status::GaveUp && mended.applied.iter().any(|a| a.applicability > *apply);
    if !guessed && !mended.applied.is_empty() && !mended.findings.is_empty() {
        // The findings of the search may speak of a text that still had its wrapping and comments.
        mended.findings = review(&mended.sql, &Context { question: *question, ..*context }).findings;
    }
    let unexplained = !mended.findings.iter().any(|f| f.severity == Severity::Error);
    match mended.status {
        Status::GaveUp if unexplained => {
            // The review sees no fault, so the database's own words must say what is left.
            let of_this = refused.iter().rfind(|(sql, _)| *sql == mended.sql).or(refused.last());
            mended.findings.extend(of_this.map(|(sql, said)| {
                // Its place only fits where the text that it was sent is the text that is given back.
                let position = said.position.filter(|_| mended.sql.starts_with(sql));
                refusal::finding(&EngineError { position, ..said.clone() }, sql, context.dialect)
            }));
        }
        Status::Untouched if !judged => {
            // The database refused the query, and nobody is here who could say that it was wrong.
            if let Some(error) = error {
                mended.status = Status::GaveUp;
                let said = EngineError { message: (*error).to_string(), ..EngineError::default() };
                mended.findings.push(refusal::finding(&said, "", context.dialect));
            }
        }
        _ => {}
    }
    mended
}

impl Corrected {
    /// What a repair comes to.
    pub fn new(repair: Repair, session_id: Option<String>, user_id: Option<String>) -> Self {
        let success = succeeded(repair.status);
        let meaning = repair.meaning();
        let given_up = repair.status == Status::GaveUp && !repair.applied.is_empty();
        Self {
            correction_applied: in_words(&repair),
            success,
            trace_id: id::fresh(),
            status: repair.status,
            findings: placed(&repair.findings, &repair.sql),
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

    /// Whether a model wrote the query: rules that succeed never apply what is only suggested.
    pub fn is_by_model(&self) -> bool {
        self.success && self.fixes.iter().any(|fix| fix.applicability == Applicability::Suggested)
    }

    /// The same with a query that a model wrote, since the rules could not correct it. It passed the same review, but only a
    /// person can say that it still asks what was meant.
    pub fn rewritten(self, code: &'static str, why: &str) -> Self {
        let why = format!("rewritten by the model: {why}");
        let mut fixes = vec![Applied { code, applicability: Applicability::Suggested, why: why.clone() }];
        fixes.extend(self.fixes);
        let (confidence, meaning) = (Confidence::Low, Some(MeaningClaim::Doubtful));
        let doubts = vec!["a model wrote it, and nothing proves that it asks what was meant".to_string()];
        Self { status: Status::Mended, confidence, meaning, doubts, correction_applied: why, fixes, ..self }
    }

    /// Nothing was tried, because it would not be worth it.
    pub fn aborted(sql: &str, why: String, session_id: Option<String>, user_id: Option<String>) -> Self {
        let repair = Repair {
            status: Status::GaveUp,
            sql: sql.to_string(),
            applied: Vec::new(),
            findings: Vec::new(),
            doubts: Vec::new(),
        };
        Self { correction_applied: why, ..Self::new(repair, session_id, user_id) }
    }
}

/// The form in which a model is asked for a correction.
pub(crate) fn reply_schema() -> Value {
    serde_json::json!({
        "type": "object",
        "properties": {"corrected_sql": {"type": "string"}, "correction_applied": {"type": "string"}},
        "required": ["corrected_sql", "correction_applied"],
        "additionalProperties": false,
    })
}

/// The query and the reason in a model's reply. A reply that does not keep to the form is taken whole: the review finds the SQL.
pub(crate) fn read_reply(text: &str) -> (String, String) {
    #[derive(Deserialize)]
    struct Reply {
        corrected_sql: String,
        #[serde(default)]
        correction_applied: String,
    }
    const NO_REASON: &str = "it gave no reason";
    let object = text.find('{').zip(text.rfind('}')).and_then(|(start, end)| text.get(start..=end));
    match object.and_then(|object| serde_json::from_str::<Reply>(object).ok()) {
        Some(reply) => {
            let why = reply.correction_applied.trim();
            (reply.corrected_sql, if why.is_empty() { NO_REASON } else { why }.to_string())
        }
        None => (text.to_string(), NO_REASON.to_string()),
    }
}

fn in_words(repair: &Repair) -> String {
    let whys: Vec<&str> = repair.applied.iter().map(|applied| applied.why.as_str()).collect();
    let error = |f: &&Finding| f.severity == Severity::Error;
    let left = repair.findings.iter().find(error).map_or("the database would not run it", |f| f.message.as_str());
    match repair.status {
        Status::Untouched => "nothing was changed: nothing keeps the query from running".into(),
        Status::Mended => whys.join("; "),
        Status::GaveUp => format!("given up: {left}"),
        Status::Refused => format!("refused: {left}"),
    }
}
