//! `querymend check`: what is wrong with a query, without running it.

use clap::{Args, ValueEnum};
use querymend::correct::words;
use querymend::direct::Checked;
use querymend_sql::{Context, NotIndexed, Review, Verdict, review};
use serde::Serialize;

use crate::against::tell_not_indexed;
use crate::commands::batch::{Batch, Checking};
use crate::failure::{Exit, Failure};
use crate::given::Given;
use crate::input::Text;
use crate::out::Out;
use crate::{render, sarif};

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Under the SQL, for people
    Text,
    /// One object
    Json,
    /// SARIF 2.1.0, for code hosts and editors
    Sarif,
}

/// Find what is wrong with a query, without running it
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend check --db shop.db query.sql
  echo 'SELECT id FROM products' | querymend check --schema schema.sql --dialect postgres
  querymend check --batch queries.jsonl --root data > verdicts.jsonl

Exit codes: 0 no errors found, 1 errors found or refused, 2 could not be done.
The lines of a batch may also hold \"question\" and \"evidence\".
A batch ends with 0 when every line was looked at, whatever was found.")]
pub struct Check {
    #[command(flatten)]
    pub given: Given,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// The question that the query is to answer: what it asks for is held against the query
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub question: Option<String>,
    /// What is known about the question
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub evidence: Option<String>,
    /// Also print what was extracted: tables, CTEs, aliases, allowed tables, the SQL
    #[arg(long, conflicts_with = "batch")]
    pub explain: bool,
    #[command(flatten)]
    pub batch: Batch,
}

/// A review as JSON, with what it could not compare.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    checked: Checked,
    /// Columns of the query's tables whose values are not indexed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_indexed: Vec<NotIndexed>,
}

/// Does it.
pub fn run(check: &Check, out: &mut Out) -> Result<Exit, Failure> {
    let config = check.given.config()?;
    if let Some(file) = &check.batch.batch {
        return check.batch.run(file, Checking, &check.given.against, config, out);
    }
    let text = check.given.text()?;
    let policy = &config.policy;
    let known = check.given.against.load(&config, out)?.within(policy, out);
    if known.schema.is_none() {
        out.note("note: neither --db nor --schema was given, so names of tables and columns are not checked");
    }
    let question = words(check.question.as_deref(), check.evidence.as_deref());
    let context =
        Context { schema: known.schema.as_ref(), dialect: known.dialect, policy, question: question.as_deref() };
    let review = review(&text.text, &context);
    let not_indexed = known.not_indexed(&review.extracted.tables);
    tell_not_indexed(&not_indexed, out);
    match check.format {
        Format::Text => write_text(&text, &review, check.explain, known.schema.is_some(), out)?,
        Format::Json => out.json(&pretty(&Report { checked: Checked::from(&review), not_indexed })?)?,
        Format::Sarif => out.json(&pretty(&sarif::log(&text.name, &review))?)?,
    }
    if check.explain && check.format == Format::Sarif {
        // SARIF has no place for it, and stdout must stay SARIF.
        out.say(&render::extracted(&review.extracted));
    }
    Ok(if review.is_clean() { Exit::Done } else { Exit::Refused })
}

fn write_text(text: &Text, review: &Review, explain: bool, fix: bool, out: &mut Out) -> Result<(), Failure> {
    let color = out.color;
    out.write(render::findings(&text.name, &text.text, &review.findings, color).as_bytes())?;
    if explain {
        if !review.findings.is_empty() {
            out.write(b"\n")?;
        }
        out.write(render::extracted(&review.extracted).as_bytes())?;
    }
    out.flush()?;
    out.note(&summary(review));
    // Without tables `fix` mends nothing.
    if let Some(hint) = render::more(&review.findings, fix) {
        out.note(&hint);
    }
    if !review.is_clean() && !explain {
        out.detail(&render::extracted(&review.extracted));
    }
    Ok(())
}

/// The verdict in one line, with how many findings there are.
pub fn summary(review: &Review) -> String {
    let verdict = match review.verdict() {
        Verdict::Approved if review.is_clean() => "approved",
        Verdict::Approved => "harmless, but the database would not run it",
        Verdict::Refused => "refused",
    };
    if review.findings.is_empty() {
        verdict.to_string()
    } else {
        format!("{verdict}: {}", render::count(&review.findings))
    }
}

/// A result as JSON that people can read too.
pub fn pretty(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(format!("the result cannot be written as JSON: {error}")))
}
