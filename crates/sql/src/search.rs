//! The search for a mended query: best first over the fixes of its findings, with the review as judge. It never waits: where
//! the database should be asked, [`Search::next`] says so, and the answer is given back to it.

use std::collections::{HashMap, HashSet};

use crate::dialect::{Classified, EngineError, classify};
use crate::finding::{Applicability, Finding, Fix, Proof, Severity, Span, apply};
use crate::near::is_nearly;
use crate::repair::{Applied, Repair, Request, Status};
use crate::review::{Approved, Context, JoinKey, Review, Stated, Verdict, review, review_refused};

/// How many reviews one repair may cost.
const MOST_REVIEWS: usize = 120;
/// A long text costs more to review, so that it is reviewed less often: as many bytes in all, but at least so often.
const MOST_BYTES: usize = 400_000;
const FEWEST_REVIEWS: usize = 6;
/// How many reviews the guesses behind it may cost.
const MOST_GUESSES: usize = 30;
/// How many times the database is asked what its rows say about a choice.
const MOST_LOOKUPS: usize = 16;
/// Fixes after which a query that runs is not looked into any more.
const MAX_SILENT_FIXES: usize = 12;
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

/// What rows can say about a choice between candidates.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Lookup {
    /// Does the column hold the value?
    Value(Stated),
    /// Does the key stand in two rows, so that a join by it multiplies what is there?
    Key(JoinKey),
    /// Does the query that proves a finding return a row?
    Proof(String),
}

/// What becomes of a warning that may be an error which no database reports.
enum SilentError {
    /// The database is to be asked first.
    Asks(Lookup, Approved),
    /// It is proved.
    Proved(&'static str, Fix),
}

/// A query on its way to being mended.
#[derive(Clone)]
pub(crate) struct State {
    text: String,
    applied: Vec<Applied>,
    pub(crate) review: Review,
    errors: usize,
    cost: usize,
    /// How many candidates, with this one, were equally good as far as the schema and the question tell.
    equals: usize,
    /// What only this candidate looks for or joins by, and the database was not yet asked about.
    lookups: Vec<Lookup>,
    /// Reasons why the fixes may have changed the meaning.
    doubts: Vec<String>,
}

/// One way to go on from a query.
pub(crate) struct Step {
    code: &'static str,
    pub(crate) fix: Fix,
    rank: usize,
    pub(crate) equals: usize,
    /// A column is taken that is called otherwise.
    renames: bool,
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
    /// What the database was asked, and whether there are such rows; `None` if it could not tell in time.
    answers: HashMap<Lookup, Option<bool>>,
    looked_up: Option<Lookup>,
    /// A query that runs, with the question whether a value that it looks for is really nowhere.
    doubted: Option<(State, Approved)>,
    /// A repaired query, with the question whether it returns rows.
    repaired: Option<(State, Approved)>,
    /// Whether that is asked. Who runs the query next finds out anyway.
    asks_for_rows: bool,
    /// What nothing proves is tried as well, once nothing else is left.
    may_guess: bool,
    guessing: bool,
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
            answers: HashMap::new(),
            looked_up: None,
            doubted: None,
            repaired: None,
            asks_for_rows: false,
            may_guess: false,
            guessing: false,
            done: None,
        }
    }

    /// A query that has to be given up is given back in a form that runs, if a guess makes it run. It stays given up: nothing
    /// proves that the guess is what was meant. Only a database can say that it runs, so without one there is no guess.
    #[must_use]
    pub fn with_guesses(mut self) -> Self {
        self.may_guess = self.connected && self.request.apply >= Applicability::Likely;
        self.asks_for_rows = self.connected;
        self
    }

    /// Goes on until the database must be asked, or to the end.
    #[allow(clippy::should_implement_trait, reason = "it waits for an answer between two steps")]
    pub fn next(&mut self) -> Next {
        loop {
            if let Some(done) = &self.done {
                return Next::Done(Box::new(done.clone()));
            }
            if let Some((_, query)) = self.doubted.as_ref().or(self.repaired.as_ref()) {
                return Next::Rows(query.clone());
            }
            let Some(at) = cheapest(&self.open) else {
                if !self.begin_to_guess() {
                    self.done = Some(self.end());
                }
                continue;
            };
            if let Some(lookup) = self.open[at].lookups.pop() {
                match self.answers.get(&lookup) {
                    Some(found) => self.open[at].cost += doubt(&lookup, *found, self.open[at].equals),
                    None => {
                        if let Some(query) = self.lookup(&lookup) {
                            self.open[at].lookups.push(lookup.clone());
                            self.looked_up = Some(lookup);
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
        if let Some(lookup) = self.looked_up.take() {
            self.answers.insert(lookup, answer);
        }
        if let Some((here, _)) = self.doubted.take() {
            self.accepted(here);
        } else if let Some((mut here, _)) = self.repaired.take() {
            if answer == Some(false) {
                here.doubts.push("it returns no rows".into());
            }
            self.done = Some(outcome(Status::Mended, here));
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
        if let Some(fix) = self.never_true(&here) {
            return self.respell(here, "compared-with-null", &fix);
        }
        if self.connected
            && let Some((lookup, fix)) = self.misspelt(&here)
        {
            match self.answers.contains_key(&lookup) {
                true => return self.respell(here, "unknown-value", &fix),
                false => {
                    if let Some(query) = self.lookup(&lookup) {
                        self.looked_up = Some(lookup);
                        self.doubted = Some((here, query));
                        return;
                    }
                }
            }
        }
        if self.connected {
            match self.silent_error(&here) {
                Some(SilentError::Proved(code, fix)) => return self.respell(here, code, &fix),
                Some(SilentError::Asks(lookup, query)) => {
                    self.looked_up = Some(lookup);
                    self.doubted = Some((here, query));
                    return;
                }
                None => {}
            }
        }
        // What is changed anyway is made to run on older databases too: whose they are, nobody said.
        if !untouched
            && self.reviews < MOST_REVIEWS
            && let Some(next) = self.plainer(&here)
        {
            self.open = vec![next];
            return;
        }
        // Fixes that are sure enough may also have been missed because another error, which nothing mends, stood before theirs.
        if here.applied.iter().any(|a| a.applicability > self.request.apply) {
            self.done = Some(guess(&self.request, with_salvage(here)));
            return;
        }
        if untouched {
            self.done = Some(outcome(Status::Untouched, here));
            return;
        }
        let mut here = with_salvage(here);
        let warnings = here.review.findings.iter().filter(|f| f.severity == Severity::Warning);
        here.doubts.extend(warnings.map(|f| f.message.clone()).collect::<Vec<_>>());
        match here.review.approve().ok().filter(|_| self.asks_for_rows) {
            Some(query) => self.repaired = Some((here, query)),
            None => self.done = Some(outcome(Status::Mended, here)),
        }
    }

    /// A value that its column spells otherwise, as far as the index of values knows, and how it is put right. The index may be
    /// older than the rows, so that the database has the last word: what it holds after all is passed over.
    fn misspelt(&self, here: &State) -> Option<(Lookup, Fix)> {
        let values = self.request.context.schema?.values()?;
        let misspelt = |f: &&Finding| f.code == "unknown-value" && f.proofs.is_empty();
        here.review.findings.iter().filter(misspelt).find_map(|finding| {
            let fix = finding.fixes.first().filter(|fix| fix.applicability == Applicability::Safe)?;
            let absent = |s: &&Stated| s.value == finding.subject && values.absent(&s.table, &s.column, &s.value);
            let lookup = Lookup::Value(here.review.stated.iter().find(absent)?.clone());
            let nowhere = matches!(self.answers.get(&lookup), None | Some(Some(false)));
            nowhere.then(|| (lookup, fix.clone()))
        })
    }

    /// The first warning whose proofs the database gave, or is still to be asked for.
    fn silent_error(&self, here: &State) -> Option<SilentError> {
        if here.applied.len() >= MAX_SILENT_FIXES {
            return None;
        }
        'findings: for finding in here.review.findings.iter().filter(|f| f.repairs_silent_error()) {
            let Some(fix) = finding.fixes.first() else { continue };
            let changes_rows =
                changes_rows(here, fix, &self.request.context).filter(|_| finding.code == "unknown-value");
            for proof in finding.proofs.iter().chain(&changes_rows) {
                let lookup = Lookup::Proof(proof.sql.clone());
                match self.answers.get(&lookup) {
                    Some(answer) if *answer == Some(proof.has_rows) => {}
                    Some(_) => continue 'findings,
                    None => match self.lookup(&lookup) {
                        Some(query) => return Some(SilentError::Asks(lookup, query)),
                        None => continue 'findings,
                    },
                }
            }
            return Some(SilentError::Proved(finding.code, fix.clone()));
        }
        None
    }

    /// A comparison with NULL that is never true, in a query that is mended for another fault. One that runs as it is stays so.
    fn never_true(&self, here: &State) -> Option<Fix> {
        let mut own =
            here.review.findings.iter().filter(|f| f.code == "compared-with-null" && !here.applied.is_empty());
        own.find_map(|f| f.fixes.first().filter(|fix| fix.applicability <= self.request.apply).cloned())
    }

    /// Goes on with the fix of a warning (a value as its column spells it), if that is a query as good as this one.
    fn respell(&mut self, here: State, code: &'static str, fix: &Fix) {
        let text = apply(&here.review.source, &fix.edits);
        let mut applied = here.applied.clone();
        applied.push(Applied { code, applicability: fix.applicability, why: fix.why.clone() });
        let mut next = state(&self.request, text, applied, here.cost);
        next.doubts.clone_from(&here.doubts);
        self.reviews += 1;
        if next.review.is_clean() && next.text != here.text {
            self.open = vec![next];
        } else {
            let status = if here.applied.is_empty() { Status::Untouched } else { Status::Mended };
            self.done = Some(outcome(status, here));
        }
    }

    /// How many comparisons of a query cannot be meant: of a number with a word, with a value that only other columns have, or of
    /// columns that no key ties.
    fn strange(&self, review: &Review) -> usize {
        let values = self.request.context.schema.and_then(|schema| schema.values());
        let elsewhere = |f: &Finding| values.is_some_and(|values| !values.holding(&f.subject).is_empty());
        let respelt = |f: &Finding| f.fixes.iter().any(|fix| fix.applicability == Applicability::Safe);
        let strange = |f: &&Finding| match f.code {
            "compared-types" | "off-key-join" => true,
            "unknown-value" => !respelt(f) && elsewhere(f),
            _ => false,
        };
        review.findings.iter().filter(strange).count()
    }

    /// The query without a function that came late, if it is as good as this one.
    fn plainer(&mut self, here: &State) -> Option<State> {
        let fix = here.review.plainer.as_ref().filter(|fix| fix.applicability <= self.request.apply)?;
        let mut applied = here.applied.clone();
        applied.push(Applied { code: "unknown-function", applicability: fix.applicability, why: fix.why.clone() });
        let mut next = state(&self.request, apply(&here.review.source, &fix.edits), applied, here.cost);
        next.doubts.clone_from(&here.doubts);
        self.reviews += 1;
        next.review.is_clean().then_some(next)
    }

    /// Whether what was given up is tried once more, from where it came furthest, with fixes that nothing proves.
    fn begin_to_guess(&mut self) -> bool {
        let hopeful = |b: &&State| b.review.verdict() == Verdict::Approved || broken(&b.review);
        let Some(best) = self.best.as_ref().filter(hopeful).filter(|_| self.may_guess && !self.guessing) else {
            return false;
        };
        self.open.push(best.clone());
        self.guessing = true;
        self.reviews = 0;
        true
    }

    /// Puts every way to mend the most telling error of a query on the list.
    fn expand(&mut self, here: State) {
        let steps = match self.guessing {
            true => guesses(&here.review),
            false => steps(&here.review, self.request.apply),
        };
        let (tied, candidates) = (self.connected && steps.len() > 1, steps.len());
        let most = if self.guessing { MOST_GUESSES } else { MOST_REVIEWS };
        for Step { code, fix, rank, equals, renames } in steps {
            if self.reviews >= (MOST_BYTES / here.text.len().max(1)).clamp(FEWEST_REVIEWS, most) {
                break;
            }
            let text = apply(&here.review.source, &fix.edits);
            if text == here.text || !self.seen.insert(text.clone()) {
                continue;
            }
            let mut next = state(&self.request, text, here.applied.clone(), here.cost + rank);
            self.reviews += 1;
            // Another column or table that makes a comparison which cannot be meant is not the one, however good it looked.
            let strange = self.strange(&next.review) > self.strange(&here.review);
            let replaces = renames || code == "unknown-table";
            let applicability = if replaces && strange { Applicability::Suggested } else { fix.applicability };
            next.cost += price(applicability) + ABSENT * usize::from(strange && code == "ambiguous-column");
            next.applied.push(Applied { code, applicability, why: fix.why.clone() });
            next.doubts.clone_from(&here.doubts);
            next.doubts.extend(meaning_doubt(code, applicability, renames, candidates, &here.review, &next.review));
            next.equals = equals;
            if tied {
                let new = next.review.stated.iter().filter(|s| !here.review.stated.contains(s));
                next.lookups = new.cloned().map(Lookup::Value).collect();
            }
            // Which table a name belongs to is no question of join paths.
            if tied && equals > 1 && !["ambiguous-column", "unknown-table"].contains(&code) {
                let new = next.review.join_keys.iter().filter(|k| !here.review.join_keys.contains(k));
                next.lookups.extend(new.cloned().map(Lookup::Key));
            }
            let salvaged = next.errors <= here.errors && fix.applicability == Applicability::Safe;
            let shrinks = next.errors < here.errors || salvaged;
            // What was harmless stays harmless; what was refused may become harmless.
            let harmless = next.review.verdict() == Verdict::Approved || here.review.verdict() == Verdict::Refused;
            if shrinks && harmless {
                self.open.push(next);
            }
        }
        // What a guess leads to counts only if it runs.
        if !self.guessing && self.best.as_ref().is_none_or(|b| (here.errors, here.cost) < (b.errors, b.cost)) {
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

    /// The query whose rows tell; nothing if enough were asked, or it would be refused.
    fn lookup(&self, lookup: &Lookup) -> Option<Approved> {
        if self.answers.len() >= MOST_LOOKUPS {
            return None;
        }
        match lookup {
            Lookup::Value(stated) => stated.lookup(&self.request.context),
            Lookup::Key(key) => key.lookup(&self.request.context),
            Lookup::Proof(sql) => review(sql, &self.request.context).approve().ok(),
        }
    }
}

/// Returns the proof that a fix takes rows away: one that changes no row of a valid query is not made.
fn changes_rows(here: &State, fix: &Fix, context: &Context<'_>) -> Option<Proof> {
    let before = here.review.approve().ok()?;
    let after = review(&apply(&here.review.source, &fix.edits), context).approve().ok()?;
    let rows = |query: &Approved, name: &str| format!("SELECT * FROM ({}) AS {name}", query.sql());
    let sql = format!("SELECT 1 FROM ({} EXCEPT {}) AS lost LIMIT 1", rows(&before, "before"), rows(&after, "after"));
    Some(Proof { sql, has_rows: true })
}

/// Returns why a fix may have changed what the query asks, if it may.
///
/// Of the repairs of real failing queries, those with none of these doubts, rows and no warning are right in 3 of 4 cases, the others
/// in 1 of 3: docs/repair.md.
fn meaning_doubt(
    code: &str,
    applicability: Applicability,
    renames: bool,
    candidates: usize,
    before: &Review,
    after: &Review,
) -> Option<String> {
    let added = after.extracted.tables.iter().find(|table| !before.extracted.tables.contains(table));
    match (applicability, code, added) {
        (Applicability::Suggested, ..) => Some("nothing proves the change".into()),
        (Applicability::Likely, ..) if renames => Some("a column was replaced by one of another name".into()),
        (_, "many-statements", _) => Some("another statement was left out".into()),
        (Applicability::Likely, "ambiguous-column", _) if candidates > 1 => {
            Some("several tables have the column, and one was chosen".into())
        }
        // A text that did not parse had no tables to compare with.
        (_, "unknown-table", _) | (_, _, None) => None,
        (_, _, Some(table)) => (!broken(before)).then(|| format!("the table `{table}` was added")),
    }
}

/// What the rows that were found, or not found, add to the doubt of a candidate.
fn doubt(lookup: &Lookup, found: Option<bool>, equals: usize) -> usize {
    match (lookup, found) {
        (Lookup::Value(_), Some(false)) => ABSENT,
        // Behind all that are as good as it, and no further: a join that multiplies rows may well be meant.
        (Lookup::Key(_), Some(true)) => equals,
        (Lookup::Value(_) | Lookup::Key(_) | Lookup::Proof(_), _) => 0,
    }
}

pub(crate) fn state(request: &Request<'_>, text: String, applied: Vec<Applied>, cost: usize) -> State {
    let context = Context { question: request.question, ..request.context };
    let review = review(&text, &context);
    weighed(text, applied, review, cost)
}

/// The same state, seen by rules that know what the database said against it; `None` if none of them can mend it.
fn refused(request: &Request<'_>, state: &State, said: &Classified) -> Option<State> {
    let context = Context { question: request.question, ..request.context };
    let review = review_refused(&state.text, &context, Some(said));
    let mut known = weighed(state.text.clone(), state.applied.clone(), review, state.cost);
    known.doubts.clone_from(&state.doubts);
    (known.errors > 0 && !steps(&known.review, request.apply).is_empty()).then_some(known)
}

fn weighed(text: String, applied: Vec<Applied>, review: Review, cost: usize) -> State {
    let errors = review.findings.iter().filter(|f| f.severity == Severity::Error).count();
    // Text that does not parse, or several statements, have one finding and may hide many.
    let several = review.findings.iter().any(|f| f.code == "many-statements");
    // A table that nobody knows hides what is wrong with its columns.
    let hidden = 2 * review.findings.iter().filter(|f| f.code == "unknown-table").count();
    let errors = errors + hidden + if broken(&review) { 100 } else { 50 * usize::from(several) };
    State { text, applied, review, errors, cost, equals: 1, lookups: Vec::new(), doubts: Vec::new() }
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
    Repair { status, sql, applied: state.applied, findings: state.review.findings, doubts: state.doubts }
}

/// What was given up, in a form that runs by a guess. The findings are the errors of the text as it was given, since nothing
/// proves that the guess mended them.
fn guess(request: &Request<'_>, state: State) -> Repair {
    let given = self::state(request, request.text.to_string(), Vec::new(), 0);
    let unproved = state.applied.iter().filter(|a| a.applicability == Applicability::Suggested);
    let findings = unproved.map(|applied| {
        let error = given.review.findings.iter().find(|f| f.code == applied.code && f.severity == Severity::Error);
        let message = error.map_or("the query does not run", |f| f.message.as_str());
        let subject = error.map_or("", |f| f.subject.as_str());
        let suggestions = error.map(suggestions).unwrap_or_default();
        let candidates = match suggestions.as_slice() {
            [] => String::new(),
            names => format!("; candidates: {}", names.join(", ")),
        };
        let message =
            format!("{message}, and nothing proves what is meant{candidates}; it runs by a guess: {}", applied.why);
        Finding::new(applied.code, Severity::Error, Span::default(), subject, message)
            .suggest(suggestions.first().cloned())
            .advise("The query was made to run by a guess: hold it against the question.")
    });
    let findings: Vec<Finding> = findings.collect();
    Repair { findings, ..outcome(Status::GaveUp, state) }
}

/// Returns what the fixes of a finding would write in the place of its subject, the best first.
fn suggestions(finding: &Finding) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for fix in &finding.fixes {
        let Some(edit) = fix.edits.iter().find(|e| e.span == finding.span) else { continue };
        if !names.contains(&edit.text) {
            names.push(edit.text.clone());
        }
    }
    names
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
pub(crate) fn steps(review: &Review, most: Applicability) -> Vec<Step> {
    let salvage = salvage_fixes(review);
    if let Some(first) = salvage.first() {
        let mut edits: Vec<_> = salvage.iter().flat_map(|f| f.fixes.iter().flat_map(|x| x.edits.clone())).collect();
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        let why = first.fixes.first().map_or(String::new(), |f| f.why.clone());
        let fix = Fix { edits, applicability: Applicability::Safe, why, tied: false };
        return vec![Step { code: first.code, fix, rank: 0, equals: 1, renames: false }];
    }
    root_cause(review, most).map(|finding| ways(finding, most)).unwrap_or_default()
}

/// Returns the error that is repaired first: the one that causes others, among those that have a fix.
pub(crate) fn root_cause(review: &Review, most: Applicability) -> Option<&Finding> {
    // A wrong table makes its columns and qualifiers look wrong too, so causes come before their consequences.
    // What is known to make the text parse comes before what is only suspected.
    let syntax = |f: &&Finding| crate::rules::Rule::named(f.code).is_some_and(|r| r.group == "syntax");
    let cause = |f: &&Finding| {
        if syntax(f) {
            return 0;
        }
        1 + ["many-statements", "unquoted-name", "unknown-table", "reserved-word", "unknown-alias"]
            .iter()
            .position(|c| *c == f.code)
            .unwrap_or(9)
    };
    let mendable = |f: &&Finding| f.severity == Severity::Error && f.fixes.iter().any(|x| x.applicability <= most);
    review.findings.iter().filter(mendable).min_by_key(cause)
}

/// What may be guessed: every fix of every error, since the first error may be one that nobody can mend.
fn guesses(review: &Review) -> Vec<Step> {
    if !salvage_fixes(review).is_empty() {
        return steps(review, Applicability::Suggested);
    }
    let errors = review.findings.iter().filter(|f| f.severity == Severity::Error);
    errors.flat_map(|f| ways(f, Applicability::Suggested)).collect()
}

/// The fixes of a finding, the surest first.
fn ways(finding: &Finding, most: Applicability) -> Vec<Step> {
    let fixes: Vec<&Fix> = finding.fixes.iter().filter(|f| f.applicability <= most).collect();
    let first = |at: usize| (0..=at).rev().find(|&i| !fixes[i].tied).unwrap_or(0);
    let equals = |at: usize| (0..fixes.len()).filter(|&i| first(i) == first(at)).count();
    let keeps = |fix: &Fix| {
        let mut words = fix.edits.iter().flat_map(|e| e.text.split(|c: char| !c.is_alphanumeric() && c != '_'));
        words.any(|word| is_nearly(word, &finding.subject, 0.95))
    };
    let step = |(rank, fix): (usize, &&Fix)| {
        let renames = finding.code == "unknown-column" && !keeps(fix);
        Step { code: finding.code, fix: (*fix).clone(), rank, equals: equals(rank), renames }
    };
    fixes.iter().enumerate().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SQLITE;
    use crate::{Policy, Schema};

    /// Two keys lead to the same table, and nobody declared that either is unique there.
    const TIED: &str = "CREATE TABLE places (code TEXT, region TEXT, city TEXT);
        CREATE TABLE parcels (parcel INTEGER PRIMARY KEY, target TEXT REFERENCES places (code),
                              zone TEXT REFERENCES places (region));";

    /// What becomes of a query when the database says of each key whether it stands in two rows; and how often it was asked.
    fn mended(connected: bool, twice: impl Fn(&str) -> Option<bool>) -> (String, usize) {
        let schema = Schema::from_ddl(TIED, &SQLITE).unwrap();
        let policy = Policy::default();
        let context = Context { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
        let text = "SELECT parcel, city FROM parcels";
        let request = Request { text, context, question: None, apply: Applicability::Likely, error: None };
        let mut search = Search::new(request, connected);
        let mut asked = 0;
        loop {
            match search.next() {
                Next::Runs(_) => search.runs(Ok(())),
                Next::Rows(query) => {
                    asked += 1;
                    assert!(query.sql().contains("HAVING COUNT(*) > 1 LIMIT 1"), "{}", query.sql());
                    search.rows(twice(query.sql()));
                }
                Next::Done(repair) => return (repair.sql, asked),
            }
        }
    }

    #[test]
    fn of_two_equal_joins_the_database_says_which_multiplies_rows() {
        let by = |own: &str, there: &str| {
            format!("SELECT parcel, places.city FROM parcels JOIN places ON parcels.{own} = places.{there}")
        };
        let (target, zone) = (by("target", "code"), by("zone", "region"));
        assert_eq!(mended(true, |q| Some(q.contains("GROUP BY region"))), (target.clone(), 1));
        assert_eq!(mended(true, |q| Some(q.contains("GROUP BY code"))), (zone, 2));
        // If both do, or it cannot tell in time, the first one stays; without a database nothing is asked.
        assert_eq!(mended(true, |_| Some(true)).0, target);
        assert_eq!(mended(true, |_| None).0, target);
        assert_eq!(mended(false, |_| Some(true)), (target, 0));
    }

    #[test]
    fn what_runs_by_a_guess_stays_given_up() {
        let schema = Schema::from_ddl(include_str!("../tests/pages/shop.sql"), &SQLITE).unwrap();
        let policy = Policy::default();
        let context = Context { schema: Some(&schema), dialect: &SQLITE, policy: &policy, question: None };
        let text = "SELECT MAX(SUM(total)) FROM orders";
        let request = Request { text, context, question: None, apply: Applicability::Likely, error: None };
        let end = |mut search: Search<'_>| loop {
            match search.next() {
                Next::Runs(_) => search.runs(Ok(())),
                Next::Rows(_) => search.rows(None),
                Next::Done(repair) => break *repair,
            }
        };
        let plain = end(Search::new(request, true));
        assert_eq!((plain.status, plain.sql.as_str(), plain.applied.len()), (Status::GaveUp, text, 0));
        let guessed = end(Search::new(request, true).with_guesses());
        assert_eq!((guessed.status, guessed.sql.as_str()), (Status::GaveUp, "SELECT (SUM(total)) FROM orders"));
        assert!(guessed.findings.iter().all(|f| f.severity == Severity::Error && f.message.contains("guess")));
        assert!(!guessed.findings.is_empty());
        // Without a database nobody can say that it runs.
        assert_eq!(end(Search::new(request, false).with_guesses()).sql, text);
    }
}
