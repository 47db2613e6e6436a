//! The search for a mended query: best first over the fixes of its findings, with the review as judge. It never waits: where
//! the database should be asked, [`Search::next`] says so, and the answer is given back to it.

use std::collections::{HashMap, HashSet};

use crate::dialect::{Classified, EngineError, classify};
use crate::finding::{Applicability, Finding, Fix, Severity, apply};
use crate::repair::{Applied, Repair, Request, Status};
use crate::review::{Approved, Context, Review, Stated, Verdict, review, review_refused};

/// How many reviews one repair may cost.
const MOST_REVIEWS: usize = 120;
/// A long text costs more to review, so that it is reviewed less often: as many bytes in all, but at least so often.
const MOST_BYTES: usize = 400_000;
const FEWEST_REVIEWS: usize = 6;
/// How many times the database is asked whether a column holds a value.
const MOST_LOOKUPS: usize = 16;
/// What a value that its column never holds adds to the doubt of a candidate: more than a place or two in the order.
const ABSENT: usize = 3;

/// What the search needs to know, or what came of it.
#[derive(Debug)]
pub enum Next {
    /// Would the database run this? Answer with [`Search::runs`].
    Runs(Approved),
    /// Does this give any row? Answer with [`Search::rows`].
    Rows(Approved),
    /// It is over.
    Done(Box<Repair>),
}

/// A query on its way to being mended.
struct State {
    text: String,
    applied: Vec<Applied>,
    review: Review,
    errors: usize,
    cost: usize,
    /// Values that only this candidate looks for, and that the database was not yet asked about.
    lookups: Vec<Stated>,
}

/// A repair in the course of being worked out.
pub struct Search<'r> {
    request: Request<'r>,
    /// A database answers; without one every query that is clean counts as one that runs.
    connected: bool,
    open: Vec<State>,
    /// The state that the database was asked about.
    asked: Option<State>,
    seen: HashSet<String>,
    reviews: usize,
    best: Option<State>,
    /// Values that the database was asked for, and whether they are absent.
    values: HashMap<Stated, bool>,
    looked_up: Option<Stated>,
    done: Option<Repair>,
}

impl<'r> Search<'r> {
    /// Begins. Without a database nothing is asked.
    pub fn new(request: Request<'r>, connected: bool) -> Self {
        let first = state(&request, request.text.to_string(), Vec::new(), 0);
        Self {
            request,
            connected,
            open: vec![first],
            asked: None,
            seen: HashSet::new(),
            reviews: 1,
            best: None,
            values: HashMap::new(),
            looked_up: None,
            done: None,
        }
    }

    /// Goes on until the database must be asked, or to the end.
    #[allow(clippy::should_implement_trait, reason = "it waits for an answer between two steps")]
    pub fn next(&mut self) -> Next {
        loop {
            if let Some(done) = &self.done {
                return Next::Done(Box::new(done.clone()));
            }
            let Some(at) = cheapest(&self.open) else {
                self.done = Some(self.end());
                continue;
            };
            if let Some(stated) = self.open[at].lookups.pop() {
                match self.values.get(&stated) {
                    Some(absent) => self.open[at].cost += ABSENT * usize::from(*absent),
                    None => {
                        if let Some(query) = self.lookup(&stated) {
                            self.open[at].lookups.push(stated.clone());
                            self.looked_up = Some(stated);
                            return Next::Rows(query);
                        }
                    }
                }
                continue;
            }
            let here = self.open.swap_remove(at);
            if !here.review.is_clean() {
                self.expand(here);
                continue;
            }
            match here.review.approve().ok().filter(|_| self.connected) {
                Some(query) => {
                    self.asked = Some(here);
                    return Next::Runs(query);
                }
                None => self.accepted(here),
            }
        }
    }

    /// The answer to [`Next::Runs`].
    pub fn runs(&mut self, answer: Result<(), EngineError>) {
        let Some(here) = self.asked.take() else { return };
        match answer {
            Ok(()) => self.accepted(here),
            Err(error) => {
                let said = classify(here.review.dialect(), &error);
                let known = refused(&self.request, &here, &said);
                self.expand(known.unwrap_or(here));
            }
        }
    }

    /// The answer to [`Next::Rows`].
    pub fn rows(&mut self, answer: Option<bool>) {
        if let Some(stated) = self.looked_up.take() {
            self.values.insert(stated, answer == Some(false));
        }
    }

    /// A clean query that the database would run. One that was clean from the start is left alone, unless whoever ran it knows
    /// of an error that only shows while rows are read.
    fn accepted(&mut self, here: State) {
        let untouched = here.applied.is_empty() && salvage_fixes(&here.review).is_empty();
        if let Some(said) = self.request.error.filter(|_| untouched)
            && let Some(known) = refused(&self.request, &here, said)
        {
            return self.expand(known);
        }
        let status = if untouched { Status::Untouched } else { Status::Mended };
        self.done = Some(outcome(status, if untouched { here } else { with_salvage(here) }));
    }

    /// Puts every way to mend the most telling error of a query on the list.
    fn expand(&mut self, here: State) {
        let steps = steps(&here.review, self.request.apply);
        let tied = self.connected && steps.len() > 1;
        for (code, fix, rank) in steps {
            if self.reviews >= (MOST_BYTES / here.text.len().max(1)).clamp(FEWEST_REVIEWS, MOST_REVIEWS) {
                break;
            }
            let text = apply(&here.review.source, &fix.edits);
            if text == here.text || !self.seen.insert(text.clone()) {
                continue;
            }
            let mut applied = here.applied.clone();
            applied.push(Applied { code, applicability: fix.applicability, why: fix.why.clone() });
            let mut next = state(&self.request, text, applied, here.cost + price(fix.applicability) + rank);
            self.reviews += 1;
            if tied {
                let new = next.review.stated.iter().filter(|s| !here.review.stated.contains(s));
                next.lookups = new.cloned().collect();
            }
            let salvaged = next.errors <= here.errors && fix.applicability == Applicability::Safe;
            let shrinks = next.errors < here.errors || salvaged;
            // What was harmless stays harmless; what was refused may become harmless.
            let harmless = next.review.verdict() == Verdict::Approved || here.review.verdict() == Verdict::Refused;
            if shrinks && harmless {
                self.open.push(next);
            }
        }
        if self.best.as_ref().is_none_or(|b| (here.errors, here.cost) < (b.errors, b.cost)) {
            self.best = Some(here);
        }
    }

    fn end(&mut self) -> Repair {
        match self.best.take() {
            Some(best) if best.review.verdict() == Verdict::Refused && !broken(&best.review) => {
                outcome(Status::Refused, best)
            }
            Some(best) => outcome(Status::GaveUp, best),
            None => outcome(Status::GaveUp, state(&self.request, self.request.text.to_string(), Vec::new(), 0)),
        }
    }

    /// The query that tells whether a column holds a value; nothing if enough were asked, or it would be refused.
    fn lookup(&self, stated: &Stated) -> Option<Approved> {
        if self.values.len() >= MOST_LOOKUPS {
            return None;
        }
        stated.lookup(&self.request.context)
    }
}

fn state(request: &Request<'_>, text: String, applied: Vec<Applied>, cost: usize) -> State {
    let context = Context { question: request.question, ..request.context };
    let review = review(&text, &context);
    weighed(text, applied, review, cost)
}

/// The same state, seen by rules that know what the database said against it; `None` if none of them can mend it.
fn refused(request: &Request<'_>, state: &State, said: &Classified) -> Option<State> {
    let context = Context { question: request.question, ..request.context };
    let review = review_refused(&state.text, &context, Some(said));
    let known = weighed(state.text.clone(), state.applied.clone(), review, state.cost);
    (known.errors > 0 && !steps(&known.review, request.apply).is_empty()).then_some(known)
}

fn weighed(text: String, applied: Vec<Applied>, review: Review, cost: usize) -> State {
    let errors = review.findings.iter().filter(|f| f.severity == Severity::Error).count();
    // Text that does not parse, or several statements, have one finding and may hide many.
    let several = review.findings.iter().any(|f| f.code == "many-statements");
    // A table that nobody knows hides what is wrong with its columns.
    let hidden = 2 * review.findings.iter().filter(|f| f.code == "unknown-table").count();
    let errors = errors + hidden + if broken(&review) { 100 } else { 50 * usize::from(several) };
    State { text, applied, review, errors, cost, lookups: Vec::new() }
}

/// Whether it was refused because it does not parse, rather than for what it does.
fn broken(review: &Review) -> bool {
    review.verdict() == Verdict::Refused
        && !review.findings.iter().any(|f| f.severity == Severity::Error && is_safety(f.code))
}

fn is_safety(code: &str) -> bool {
    crate::rules::Rule::named(code).is_some_and(|r| r.group == "safety")
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
