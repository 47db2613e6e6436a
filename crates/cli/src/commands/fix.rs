//! `querymend fix`: repairs a query without a model, and only if it is provably broken.

use clap::{Args, ValueEnum};
use querymend::correction::{CorrectionResponse, abort_reason, is_success, question_with_evidence};
use querymend_sql::diff::{DiffHunk, diff};
use querymend_sql::{
    Applicability, Finding, NotIndexed, RepairOutcome, RepairStatus, ReviewContext, Severity, Span, review,
};
use serde::Serialize;

use crate::args::schema_source;
use crate::args::sql_input::SqlInputArgs;
use crate::commands::batch::{BatchArgs, FixTask};
use crate::error::{CliError, ExitStatus};
use crate::input::SourceText;
use crate::output::json::to_pretty_json;
use crate::output::text::{one_line, pluralize};
use crate::output::{Out, OutputFormat, diagnostics};
use crate::repair::{OracleConnection, OraclePool, RepairInput, repair_query};

/// Maximum number of databases that all threads of a batch keep open together: many systems limit a
/// process to about a thousand open files.
const MAX_OPEN_DATABASES: usize = 256;

/// Comment above an abandoned query on stdout, so that consumers of a pipe see it too.
const BEST_ATTEMPT: &str = "-- best attempt of querymend, given up: nothing proves that it answers the question";

/// Minimum certainty of fixes to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Apply {
    /// Only proven fixes
    Safe,
    /// Also the best of several candidates
    Likely,
}

impl From<Apply> for Applicability {
    fn from(apply: Apply) -> Self {
        match apply {
            Apply::Safe => Applicability::Safe,
            Apply::Likely => Applicability::Likely,
        }
    }
}

/// Repair a query without a model, and report the applied fixes and their reasons
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend fix --db shop.db query.sql
  querymend fix --db shop.db --sql 'SELECT id FROM products' --error 'no such column: id' --format json
  querymend fix --batch queries.jsonl --root data > fixed.jsonl

With --db the database validates every attempt (it prepares the query and runs nothing); with --schema only the review does.
The lines of a batch may also contain \"question\", \"evidence\" and \"error\".
A repaired query makes two claims: its names resolve (proved), and its meaning is likely or doubtful (estimated).
For a query that is given up, the best attempt is printed under a comment that marks it as such.
Exit codes: 0 no errors or repaired, 1 given up or refused, 2 failed.
A batch exits with 0 if every line was processed, whatever the outcome.")]
pub struct FixCommand {
    #[command(flatten)]
    pub input: SqlInputArgs,
    /// Error message of the database for the failed query
    #[arg(long, value_name = "MESSAGE", conflicts_with = "batch")]
    pub error: Option<String>,
    /// Error message of the previous attempt; fix gives up if both are the same
    #[arg(long, value_name = "MESSAGE", conflicts_with = "batch")]
    pub last_error: Option<String>,
    /// Number of earlier repairs of this query; fix gives up at 3
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "batch")]
    pub retry_count: u32,
    /// Question that the query should answer; used to rank candidates
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub question: Option<String>,
    /// Additional knowledge needed to answer the question
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub evidence: Option<String>,
    /// Session that the call belongs to; returned as `session_id`
    #[arg(long, value_name = "ID", conflicts_with = "batch")]
    pub session: Option<String>,
    /// User that the call belongs to; returned as `user_id`
    #[arg(long, value_name = "ID", conflicts_with = "batch")]
    pub user: Option<String>,
    /// Minimum certainty of fixes to apply
    #[arg(long, value_enum, default_value_t = Apply::Likely)]
    pub apply: Apply,
    /// Do not ask the database whether it would run the repaired query
    #[arg(long)]
    pub no_dry_run: bool,
    /// Output format; text prints the SQL to stdout, and the applied fixes with their reasons to
    /// stderr
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub format: OutputFormat,
    #[command(flatten)]
    pub batch_args: BatchArgs,
}

/// Correction as JSON, with the lookups that could not be made.
#[derive(Serialize)]
struct FixJson {
    #[serde(flatten)]
    corrected: CorrectionResponse,
    /// Columns of the query's tables whose values are not indexed; omitted if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_indexed: Vec<NotIndexed>,
    /// Number of lookups that the database did not answer in time; their results count as unknown.
    /// Omitted if zero.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered_lookups: Option<usize>,
}

/// Runs `querymend fix`.
pub fn run(fix: &FixCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = fix.input.load_config()?;
    let apply = Applicability::from(fix.apply);
    if let Some(file) = &fix.batch_args.batch {
        let open = (MAX_OPEN_DATABASES / fix.batch_args.threads()).max(1);
        let job = FixTask { apply, dry_run: !fix.no_dry_run, max_open: open };
        return fix.batch_args.run(file, job, &fix.input.schema_args, config, out);
    }
    if fix.input.schema_args.has_no_schema(&config)? {
        return Err(CliError::new("no schema is given, so nothing can be fixed").hint(schema_source::NO_SCHEMA_HINT));
    }
    let text = fix.input.read_sql()?;
    if let Some(why) = abort_reason(fix.retry_count, fix.error.as_deref(), fix.last_error.as_deref()) {
        return write_aborted(fix, &text, why, out);
    }
    let policy = &config.policy;
    let known = fix.input.schema_args.load(&config, out)?.apply_policy_with_warnings(policy, out);
    let context = ReviewContext { schema: known.schema.as_ref(), dialect: known.dialect, policy, question: None };
    let question = question_with_evidence(fix.question.as_deref(), fix.evidence.as_deref());
    let repair_input =
        RepairInput { text: &text.text, context, question: question.as_deref(), error: fix.error.as_deref(), apply };
    let mut pool = OraclePool::new(1);
    let database = known.database.as_deref().filter(|_| !fix.no_dry_run);
    let connection = database.map(|address| pool.connect(address)).transpose()?;
    if connection.as_ref().is_some_and(|connection| !connection.has_dialect_of(&context)) {
        out.note(&format!(
            "note: the dialect of the database is not {}, so the database is not used",
            known.dialect.name
        ));
    }
    let repair = repair_query(&repair_input, connection.as_ref())?;
    let exit = if is_success(repair.status) { ExitStatus::Success } else { ExitStatus::Refused };
    let not_indexed = known.unindexed_columns_of_query(&repair.sql, &context);
    let unanswered_lookups = connection.as_ref().map(OracleConnection::timeouts).filter(|timeouts| *timeouts > 0);
    schema_source::warn_unindexed_columns(&not_indexed, out);
    if let Some(timeouts) = unanswered_lookups {
        let lookups = pluralize(timeouts, "lookup");
        out.note(&format!(
            "note: the database did not answer {lookups} in time; what they would have resolved remains open"
        ));
    }
    match fix.format {
        OutputFormat::Text => write_text(&text, &repair, &context, out)?,
        OutputFormat::Json => {
            let corrected = CorrectionResponse::new(repair, fix.session.clone(), fix.user.clone());
            out.json(&to_pretty_json(&FixJson { corrected, not_indexed, unanswered_lookups })?)?;
        }
    }
    Ok(exit)
}

/// Reports a query that is given up without a repair attempt.
fn write_aborted(fix: &FixCommand, text: &SourceText, why: String, out: &mut Out) -> Result<ExitStatus, CliError> {
    match fix.format {
        OutputFormat::Text => out.error(&CliError::new(why).hint("ask a model or a person, or ask another question")),
        OutputFormat::Json => {
            let aborted = CorrectionResponse::aborted(&text.text, why, fix.session.clone(), fix.user.clone());
            out.json(&to_pretty_json(&aborted)?)?;
        }
    }
    Ok(ExitStatus::Refused)
}

fn write_text(
    text: &SourceText,
    repair: &RepairOutcome,
    context: &ReviewContext<'_>,
    out: &mut Out,
) -> Result<(), CliError> {
    if is_success(repair.status) {
        out.write(repair.sql.as_bytes())?;
        // Untouched SQL is printed byte for byte, except that a terminal needs a line break before
        // its prompt.
        if (repair.status == RepairStatus::Mended || out.is_terminal) && !repair.sql.ends_with('\n') {
            out.write(b"\n")?;
        }
        out.flush()?;
    } else if repair.status == RepairStatus::GaveUp && !repair.applied.is_empty() {
        out.write(format!("{BEST_ATTEMPT}\n{}\n", repair.sql).as_bytes())?;
        out.flush()?;
    }
    // Infos about a query that runs would hide the applied fixes.
    let least = if is_success(repair.status) { Severity::Warning } else { Severity::Info };
    let left: Vec<Finding> = repair.findings.iter().filter(|f| f.severity <= least).cloned().collect();
    // Unchanged text is still in the user's file, so the findings refer to that file.
    let name = if repair.applied.is_empty() { text.name.as_str() } else { "<repaired>" };
    // Databases do not always report a position; then there is nothing to annotate.
    let (nowhere, placed): (Vec<Finding>, Vec<Finding>) = left.iter().cloned().partition(|f| f.span == Span::default());
    for (sql, findings) in [(repair.sql.as_str(), placed), ("", nowhere)] {
        if !findings.is_empty() {
            out.message(&diagnostics::render_findings(name, sql, &findings, out.color_stderr));
        }
    }
    out.note(&repair_summary(repair));
    for applied in &repair.applied {
        out.note(&format!(
            "  {} ({}): {}",
            applied.code,
            applicability_label(applied.applicability),
            one_line(&applied.why)
        ));
    }
    let changes = if repair.applied.is_empty() { Vec::new() } else { diff_changes(text, repair, context) };
    if !changes.is_empty() {
        out.note("changed:");
        for change in changes {
            out.note(&format!("  {}", one_line(&change.to_string())));
        }
    }
    if let Some(hint) = diagnostics::explain_hint(&left, false) {
        out.note(&hint);
    }
    Ok(())
}

/// Returns the changes in the SQL. Compares only the extracted SQL, since a code fence lexed as SQL
/// is one long identifier.
fn diff_changes(text: &SourceText, repair: &RepairOutcome, context: &ReviewContext<'_>) -> Vec<DiffHunk> {
    let before = review(&text.text, context).references.sql;
    let before = if before.trim().is_empty() { &text.text } else { &before };
    diff(before, &repair.sql, context.dialect)
}

/// Returns the outcome in one line.
fn repair_summary(repair: &RepairOutcome) -> String {
    let fixes = match repair.applied.len() {
        0 => String::new(),
        n => format!(", with {}", pluralize(n, "fix")),
    };
    let left = if repair.findings.is_empty() {
        String::new()
    } else {
        format!(": {}", diagnostics::count_by_severity(&repair.findings))
    };
    match repair.status {
        RepairStatus::Untouched => {
            format!("untouched: nothing prevents it from running{}", left.replacen(": ", "; ", 1))
        }
        RepairStatus::Mended => format!("repaired{fixes}{left}; names resolved, meaning {}", meaning_label(repair)),
        RepairStatus::GaveUp => format!("given up{fixes}{left}"),
        RepairStatus::Refused => format!("refused{left}"),
    }
}

/// Returns the claim about the meaning, with the doubts against it.
fn meaning_label(repair: &RepairOutcome) -> String {
    match repair.doubts.as_slice() {
        [] => "likely".into(),
        doubts => format!("doubtful: {}", one_line(&doubts.join("; "))),
    }
}

fn applicability_label(applicability: Applicability) -> &'static str {
    match applicability {
        Applicability::Safe => "safe",
        Applicability::Likely => "likely",
        Applicability::Suggested => "suggested",
    }
}
