//! `querymend check`: reviews a query without running it.

use clap::{Args, ValueEnum};
use querymend::correction::question_with_evidence;
use querymend::sql_api::CheckReport;
use querymend_sql::{NotIndexed, Review, ReviewContext, Verdict, review};
use serde::Serialize;

use crate::args::schema_source::warn_unindexed_columns;
use crate::args::sql_input::SqlInputArgs;
use crate::commands::batch::{BatchArgs, CheckTask};
use crate::error::{CliError, ExitStatus};
use crate::input::SourceText;
use crate::output::json::to_pretty_json;
use crate::output::{Out, diagnostics, sarif};

/// Output format of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Annotated SQL, for people
    Text,
    /// Single JSON object
    Json,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}

/// Find errors in a query without running it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend check --db shop.db query.sql
  echo 'SELECT id FROM products' | querymend check --schema schema.sql --dialect postgres
  querymend check --batch queries.jsonl --root data > verdicts.jsonl

Exit codes: 0 no errors found, 1 errors found or refused, 2 failed.
The lines of a batch may also contain \"question\" and \"evidence\".
A batch exits with 0 if every line was checked, whatever was found.")]
pub struct CheckCommand {
    #[command(flatten)]
    pub input: SqlInputArgs,
    /// Output format of findings
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub format: CheckFormat,
    /// Question that the query should answer; the query is checked against it
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub question: Option<String>,
    /// Additional knowledge needed to answer the question
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub evidence: Option<String>,
    /// Also print the extracted references: tables, CTEs, aliases, allowed tables, the SQL
    #[arg(long, conflicts_with = "batch")]
    pub explain: bool,
    #[command(flatten)]
    pub batch_args: BatchArgs,
}

/// Review as JSON, with the columns that could not be compared.
#[derive(Serialize)]
struct CheckJson {
    #[serde(flatten)]
    checked: CheckReport,
    /// Columns of the query's tables whose values are not indexed; omitted if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_indexed: Vec<NotIndexed>,
}

/// Runs `querymend check`.
pub fn run(check: &CheckCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = check.input.load_config()?;
    if let Some(file) = &check.batch_args.batch {
        return check.batch_args.run(file, CheckTask, &check.input.schema_args, config, out);
    }
    let text = check.input.read_sql()?;
    let policy = &config.policy;
    let loaded = check.input.schema_args.load(&config, out)?.apply_policy_with_warnings(policy, out);
    if loaded.schema.is_none() {
        out.note("note: neither --db nor --schema was given, so names of tables and columns are not checked");
    }
    let question = question_with_evidence(check.question.as_deref(), check.evidence.as_deref());
    let context = ReviewContext {
        schema: loaded.schema.as_ref(),
        dialect: loaded.dialect,
        policy,
        question: question.as_deref(),
    };
    let review = review(&text.text, &context);
    let not_indexed = loaded.unindexed_columns(&review.references.tables);
    warn_unindexed_columns(&not_indexed, out);
    match check.format {
        CheckFormat::Text => write_text(&text, &review, check.explain, loaded.schema.is_some(), out)?,
        CheckFormat::Json => {
            out.json(&to_pretty_json(&CheckJson { checked: CheckReport::from(&review), not_indexed })?)?
        }
        CheckFormat::Sarif => out.json(&to_pretty_json(&sarif::log(&text.name, &review))?)?,
    }
    if check.explain && check.format == CheckFormat::Sarif {
        // SARIF has no field for references, and stdout must stay valid SARIF.
        out.message(&diagnostics::render_references(&review.references));
    }
    Ok(if review.is_clean() { ExitStatus::Success } else { ExitStatus::Refused })
}

fn write_text(text: &SourceText, review: &Review, explain: bool, fix: bool, out: &mut Out) -> Result<(), CliError> {
    let color = out.color;
    out.write(diagnostics::render_findings(&text.name, &text.text, &review.findings, color).as_bytes())?;
    if explain {
        if !review.findings.is_empty() {
            out.write(b"\n")?;
        }
        out.write(diagnostics::render_references(&review.references).as_bytes())?;
    }
    out.flush()?;
    out.note(&verdict_summary(review));
    // `fix` needs a schema, so it is suggested only if there is one.
    if let Some(hint) = diagnostics::explain_hint(&review.findings, fix) {
        out.note(&hint);
    }
    if !review.is_clean() && !explain {
        out.detail(&diagnostics::render_references(&review.references));
    }
    Ok(())
}

/// Returns the verdict in one line, with the number of findings by severity.
pub fn verdict_summary(review: &Review) -> String {
    let verdict = match review.verdict() {
        Verdict::Approved if review.is_clean() => "approved",
        Verdict::Approved => "read-only, but it would fail",
        Verdict::Refused => "refused",
    };
    if review.findings.is_empty() {
        verdict.to_string()
    } else {
        format!("{verdict}: {}", diagnostics::count_by_severity(&review.findings))
    }
}
