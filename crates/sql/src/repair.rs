//! Mends a query without a model: a small best-first search over the fixes of its findings, with the review as judge and,
//! where a database is connected, its own dry run.

use std::collections::HashSet;

use serde::Serialize;

use crate::dialect::EngineError;
use crate::finding::{Applicability, Finding, Fix, Severity, apply};
use crate::review::{Approved, Context, Review, Verdict, review};

/// What is asked.
#[derive(Clone, Copy)]
pub struct Request<'r> {
    /// The text that failed, or may fail.
    pub text: &'r str,
    /// Schema, dialect and policy.
    pub context: Context<'r>,
    /// The question that the query answers, and what is known about it; words that tell candidates apart.
    pub question: Option<&'r str>,
    /// The most doubtful fix that may be applied.
    pub apply: Applicability,
}

/// What became of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing is wrong with it, so nothing was changed.
    Untouched,
    /// Every error is gone, and the database, if one was asked, would run it.
    Mended,
    /// Some error could not be mended.
    GaveUp,
    /// It is not a question, or asks for what may not be read.
    Refused,
}

/// A fix that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The rule whose finding it mends.
    pub code: &'static str,
    /// How sure it is.
    pub applicability: Applicability,
    /// Why it is right.
    pub why: String,
}

/// The outcome.
#[derive(Debug, Clone)]
pub struct Repair {
    /// What became of the query.
    pub status: Status,
    /// The query now; the best attempt if it was given up.
    pub sql: String,
    /// What was done, in order.
    pub applied: Vec<Applied>,
    /// What is still to say about it.
    pub findings: Vec<Finding>,
}

/// The database's own dry run of a harmless query.
pub type DryRun<'d> = &'d dyn Fn(&Approved) -> Result<(), EngineError>;

/// How many reviews one repair may cost.
const MOST_REVIEWS: usize = 120;

struct State {
    text: String,
    applied: Vec<Applied>,
    review: Review,
    errors: usize,
    cost: usize,
}

/// Mends a query. Deterministic: the same request gives the same answer.
pub fn repair(request: &Request<'_>, dry_run: Option<DryRun<'_>>) -> Repair {
    let first = state(request, request.text.to_string(), Vec::new(), 0);
    if first.review.is_clean() && salvage_fixes(&first.review).is_empty() && runs(&first.review, dry_run) {
        return outcome(Status::Untouched, first);
    }
    let mut seen: HashSet<String> = HashSet::new();
    let mut reviews = 1;
    let mut best: Option<State> = None;
    let mut open = vec![first];
    while let Some(at) = cheapest(&open) {
        let here = open.swap_remove(at);
        if here.review.is_clean() && runs(&here.review, dry_run) {
            return outcome(Status::Mended, with_salvage(here));
        }
        for (code, fix, rank) in steps(&here.review, request.apply) {
            if reviews >= MOST_REVIEWS {
                break;
            }
            let text = apply(&here.review.source, &fix.edits);
            if text == here.text || !seen.insert(text.clone()) {
                continue;
            }
            let mut applied = here.applied.clone();
            applied.push(Applied { code, applicability: fix.applicability, why: fix.why.clone() });
            let next = state(request, text, applied, here.cost + price(fix.applicability) + rank);
            reviews += 1;
            let salvaged = next.errors <= here.errors && fix.applicability == Applicability::Safe;
            let shrinks = next.errors < here.errors || salvaged;
            // What was harmless stays harmless; what was refused may become harmless.
            let harmless = next.review.verdict() == Verdict::Approved || here.review.verdict() == Verdict::Refused;
            if shrinks && harmless {
                open.push(next);
            }
        }
        if best.as_ref().is_none_or(|b| (here.errors, here.cost) < (b.errors, b.cost)) {
            best = Some(here);
        }
    }
    match best {
        Some(best) if best.review.verdict() == Verdict::Refused && !broken(&best.review) => {
            outcome(Status::Refused, best)
        }
        Some(best) => outcome(Status::GaveUp, best),
        None => outcome(Status::GaveUp, state(request, request.text.to_string(), Vec::new(), 0)),
    }
}

fn state(request: &Request<'_>, text: String, applied: Vec<Applied>, cost: usize) -> State {
    let context = Context { question: request.question, ..request.context };
    let review = review(&text, &context);
    let errors = review.findings.iter().filter(|f| f.severity == Severity::Error).count();
    // Text that does not parse, or several statements, have one finding and may hide many.
    let several = review.findings.iter().any(|f| f.code == "many-statements");
    let errors = errors + if broken(&review) { 100 } else { 50 * usize::from(several) };
    State { text, applied, review, errors, cost }
}

/// Whether it was refused because it does not parse, rather than for what it does.
fn broken(review: &Review) -> bool {
    review.verdict() == Verdict::Refused
        && !review.findings.iter().any(|f| f.severity == Severity::Error && is_safety(f.code))
}

fn is_safety(code: &str) -> bool {
    crate::rules::Rule::named(code).is_some_and(|r| r.group == "safety")
}

fn runs(review: &Review, dry_run: Option<DryRun<'_>>) -> bool {
    match (review.approve(), dry_run) {
        (Ok(approved), Some(dry_run)) => dry_run(&approved).is_ok(),
        (Ok(_), None) => true,
        (Err(_), _) => false,
    }
}

fn outcome(status: Status, state: State) -> Repair {
    let sql = match (status, state.review.approve()) {
        // What is sent is what is given back, without the wrapping.
        (Status::Mended | Status::GaveUp, Ok(approved)) if !state.applied.is_empty() => approved.sql().to_string(),
        _ => state.text,
    };
    Repair { status, sql, applied: state.applied, findings: state.review.findings }
}

fn cheapest(open: &[State]) -> Option<usize> {
    (0..open.len()).min_by_key(|&i| (open[i].errors * 2 + open[i].cost, open[i].text.len(), i))
}

fn price(applicability: Applicability) -> usize {
    match applicability {
        Applicability::Safe => 0,
        Applicability::Likely => 1,
        Applicability::Suggested => 8,
    }
}

fn salvage_fixes(review: &Review) -> Vec<&Finding> {
    let artefact = |f: &&Finding| crate::rules::Rule::named(f.code).is_some_and(|r| r.group == "artefact");
    review.findings.iter().filter(artefact).filter(|f| f.code != "trailing-semicolon" && !f.fixes.is_empty()).collect()
}

/// What was salvaged on the way to a clean query is part of what was done to it.
fn with_salvage(mut state: State) -> State {
    for finding in salvage_fixes(&state.review) {
        let Some(fix) = finding.fixes.first() else { continue };
        state.applied.push(Applied { code: finding.code, applicability: fix.applicability, why: fix.why.clone() });
    }
    state
}

/// What may be tried next: salvage first and all at once, then the fixes of the first error that has any.
fn steps(review: &Review, most: Applicability) -> Vec<(&'static str, Fix, usize)> {
    let salvage = salvage_fixes(review);
    if let Some(first) = salvage.first() {
        let mut edits: Vec<_> = salvage.iter().flat_map(|f| f.fixes.iter().flat_map(|x| x.edits.clone())).collect();
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        let why = first.fixes.first().map_or(String::new(), |f| f.why.clone());
        return vec![(first.code, Fix { edits, applicability: Applicability::Safe, why }, 0)];
    }
    // A wrong table makes its columns and qualifiers look wrong too, so causes come before their consequences.
    // What is known to make the text parse comes before what is only suspected.
    let syntax = |f: &&Finding| crate::rules::Rule::named(f.code).is_some_and(|r| r.group == "syntax");
    let cause = |f: &&Finding| {
        if syntax(f) {
            return 0;
        }
        1 + ["many-statements", "unknown-table", "reserved-word", "unknown-alias"]
            .iter()
            .position(|c| *c == f.code)
            .unwrap_or(9)
    };
    let mendable = |f: &&Finding| f.severity == Severity::Error && f.fixes.iter().any(|x| x.applicability <= most);
    let Some(finding) = review.findings.iter().filter(mendable).min_by_key(cause) else { return Vec::new() };
    let fixes = finding.fixes.iter().filter(|f| f.applicability <= most);
    fixes.enumerate().map(|(rank, fix)| (finding.code, fix.clone(), rank)).collect()
}
