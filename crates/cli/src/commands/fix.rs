//! `querymend fix`: a query mended without a model, and only where it can be shown that it was broken.

use clap::{Args, ValueEnum};
use querymend::correct::{Corrected, enough, succeeded, words};
use querymend_sql::diff::{Change, diff};
use querymend_sql::{Applicability, Context, Finding, NotIndexed, Repair, Severity, Span, Status, review};
use serde::Serialize;

use crate::commands::batch::{Batch, Mending};
use crate::commands::check::pretty;
use crate::failure::{Exit, Failure};
use crate::given::Given;
use crate::input::Text;
use crate::mend::{Broken, Judge, Judges, mend};
use crate::out::{Out, counted};
use crate::{against, render};

/// Databases that the threads of a batch keep open, all together: many systems allow a program no more than a thousand
/// files.
const MOST_OPEN: usize = 256;

/// Label of a query that was given up, above it on stdout: whoever pipes it on sees it too.
const BEST_ATTEMPT: &str = "-- best attempt of querymend, given up: nothing proves that it asks what was meant";

/// How a mended query is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The SQL on stdout, what was done and why on stderr
    Text,
    /// One object
    Json,
}

/// How sure a fix must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Apply {
    /// Only what is proved
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

/// Mend a query without a model, and say what was done and why
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend fix --db shop.db query.sql
  querymend fix --db shop.db --sql 'SELECT id FROM products' --error 'no such column: id' --format json
  querymend fix --batch queries.jsonl --root data > mended.jsonl

With --db the database judges every attempt (it prepares it, and runs nothing); with --schema only the review does.
The lines of a batch may also hold \"question\", \"evidence\" and \"error\".
A mended query says two things: its names resolve (proved), and its meaning is likely or doubtful (judged).
A query that is given up is printed as far as it came, under a comment that says so.
Exit codes: 0 nothing was wrong or it is mended, 1 given up or refused, 2 could not be done.
A batch ends with 0 when every line was looked at, whatever became of it.")]
pub struct Fix {
    #[command(flatten)]
    pub given: Given,
    /// What the database said when the query failed
    #[arg(long, value_name = "MESSAGE", conflicts_with = "batch")]
    pub error: Option<String>,
    /// What it said the time before; the same error twice is given up
    #[arg(long, value_name = "MESSAGE", conflicts_with = "batch")]
    pub last_error: Option<String>,
    /// How often the query was mended already; 3 times are enough
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "batch")]
    pub retry_count: u32,
    /// The question that the query is to answer; its words tell candidates apart
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub question: Option<String>,
    /// What is known about the question
    #[arg(long, value_name = "TEXT", conflicts_with = "batch")]
    pub evidence: Option<String>,
    /// Session that the call belongs to; comes back as `session_id`
    #[arg(long, value_name = "ID", conflicts_with = "batch")]
    pub session: Option<String>,
    /// User that the call belongs to; comes back as `user_id`
    #[arg(long, value_name = "ID", conflicts_with = "batch")]
    pub user: Option<String>,
    /// How sure a fix must be
    #[arg(long, value_enum, default_value_t = Apply::Likely)]
    pub apply: Apply,
    /// Do not ask the database whether it would run what was mended
    #[arg(long)]
    pub no_dry_run: bool,
    /// How the mended query is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    #[command(flatten)]
    pub batch: Batch,
}

/// A correction as JSON, with what could not be looked up for it.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    corrected: Corrected,
    /// Columns of the query's tables whose values are not indexed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_indexed: Vec<NotIndexed>,
    /// Lookups that the database did not answer in time; they count as unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered_lookups: Option<usize>,
}

/// Does it.
pub fn run(fix: &Fix, out: &mut Out) -> Result<Exit, Failure> {
    let config = fix.given.config()?;
    let apply = Applicability::from(fix.apply);
    if let Some(file) = &fix.batch.batch {
        let open = (MOST_OPEN / fix.batch.threads()).max(1);
        let job = Mending { apply, dry_run: !fix.no_dry_run, open };
        return fix.batch.run(file, job, &fix.given.against, config, out);
    }
    if fix.given.against.nothing(&config)? {
        return Err(Failure::new("no tables are known, so nothing can be mended").hint(against::NAMING));
    }
    let text = fix.given.text()?;
    if let Some(why) = enough(fix.retry_count, fix.error.as_deref(), fix.last_error.as_deref()) {
        return aborted(fix, &text, why, out);
    }
    let policy = &config.policy;
    let known = fix.given.against.load(&config, out)?.within(policy, out);
    let context = Context { schema: known.schema.as_ref(), dialect: known.dialect, policy, question: None };
    let question = words(fix.question.as_deref(), fix.evidence.as_deref());
    let broken =
        Broken { text: &text.text, context, question: question.as_deref(), error: fix.error.as_deref(), apply };
    let mut judges = Judges::new(1);
    let database = known.database.as_deref().filter(|_| !fix.no_dry_run);
    let judge = database.map(|address| judges.judge(address)).transpose()?;
    if judge.as_ref().is_some_and(|judge| !judge.speaks(&context)) {
        out.note(&format!("note: the database does not speak {}, so it is not asked", known.dialect.name));
    }
    let repair = mend(&broken, judge.as_ref())?;
    let exit = if succeeded(repair.status) { Exit::Done } else { Exit::Refused };
    let not_indexed = known.not_indexed_in(&repair.sql, &context);
    let unanswered_lookups = judge.as_ref().map(Judge::timeouts).filter(|timeouts| *timeouts > 0);
    against::tell_not_indexed(&not_indexed, out);
    if let Some(timeouts) = unanswered_lookups {
        let lookups = counted(timeouts, "lookup");
        out.note(&format!(
            "note: the database did not answer {lookups} in time; what they would have settled stays open"
        ));
    }
    match fix.format {
        Format::Text => write_text(&text, &repair, &context, out)?,
        Format::Json => {
            let corrected = Corrected::new(repair, fix.session.clone(), fix.user.clone());
            out.json(&pretty(&Report { corrected, not_indexed, unanswered_lookups })?)?;
        }
    }
    Ok(exit)
}

/// Nothing is tried, and the query is given up as it is.
fn aborted(fix: &Fix, text: &Text, why: String, out: &mut Out) -> Result<Exit, Failure> {
    match fix.format {
        Format::Text => out.error(&Failure::new(why).hint("ask a model or a person, or ask another question")),
        Format::Json => {
            let aborted = Corrected::aborted(&text.text, why, fix.session.clone(), fix.user.clone());
            out.json(&pretty(&aborted)?)?;
        }
    }
    Ok(Exit::Refused)
}

fn write_text(text: &Text, repair: &Repair, context: &Context<'_>, out: &mut Out) -> Result<(), Failure> {
    if succeeded(repair.status) {
        out.write(repair.sql.as_bytes())?;
        // What was not touched is given back byte for byte, but for a person who would find the prompt behind it.
        if (repair.status == Status::Mended || out.terminal) && !repair.sql.ends_with('\n') {
            out.write(b"\n")?;
        }
        out.flush()?;
    } else if repair.status == Status::GaveUp && !repair.applied.is_empty() {
        out.write(format!("{BEST_ATTEMPT}\n{}\n", repair.sql).as_bytes())?;
        out.flush()?;
    }
    // What is merely worth knowing about a query that runs would hide what was done to it.
    let least = if succeeded(repair.status) { Severity::Warning } else { Severity::Info };
    let left: Vec<Finding> = repair.findings.iter().filter(|f| f.severity <= least).cloned().collect();
    // Unchanged text is still in the user's file, so the findings are shown there.
    let name = if repair.applied.is_empty() { text.name.as_str() } else { "<mended>" };
    // A database does not always say where; then there is nothing to point at.
    let (nowhere, placed): (Vec<Finding>, Vec<Finding>) = left.iter().cloned().partition(|f| f.span == Span::default());
    for (sql, findings) in [(repair.sql.as_str(), placed), ("", nowhere)] {
        if !findings.is_empty() {
            out.say(&render::findings(name, sql, &findings, out.color_stderr));
        }
    }
    out.note(&summary(repair));
    for applied in &repair.applied {
        out.note(&format!("  {} ({}): {}", applied.code, sure(applied.applicability), render::one_line(&applied.why)));
    }
    let changes = if repair.applied.is_empty() { Vec::new() } else { changes(text, repair, context) };
    if !changes.is_empty() {
        out.note("changed:");
        for change in changes {
            out.note(&format!("  {}", render::one_line(&change.to_string())));
        }
    }
    if let Some(hint) = render::more(&left, false) {
        out.note(&hint);
    }
    Ok(())
}

/// What changed in the SQL. What was wrapped around it is not compared: a fence, read as SQL, is one long name.
fn changes(text: &Text, repair: &Repair, context: &Context<'_>) -> Vec<Change> {
    let before = review(&text.text, context).extracted.sql;
    let before = if before.trim().is_empty() { &text.text } else { &before };
    diff(before, &repair.sql, context.dialect)
}

/// What became of it, in one line.
fn summary(repair: &Repair) -> String {
    let fixes = match repair.applied.len() {
        0 => String::new(),
        n => format!(", with {}", counted(n, "fix")),
    };
    let left =
        if repair.findings.is_empty() { String::new() } else { format!(": {}", render::count(&repair.findings)) };
    match repair.status {
        Status::Untouched => format!("untouched: nothing keeps it from running{}", left.replacen(": ", "; ", 1)),
        Status::Mended => format!("mended{fixes}{left}; names resolved, meaning {}", meaning(repair)),
        Status::GaveUp => format!("given up{fixes}{left}"),
        Status::Refused => format!("refused{left}"),
    }
}

/// What is claimed of the meaning, with what speaks against it.
fn meaning(repair: &Repair) -> String {
    match repair.doubts.as_slice() {
        [] => "likely".into(),
        doubts => format!("doubtful: {}", render::one_line(&doubts.join("; "))),
    }
}

fn sure(applicability: Applicability) -> &'static str {
    match applicability {
        Applicability::Safe => "safe",
        Applicability::Likely => "likely",
        Applicability::Suggested => "suggested",
    }
}
