//! What follows from each outcome.

use std::sync::Arc;

use querymend_sql::diff::Tokens;
use querymend_sql::schema::Schema;
use querymend_sql::{
    Applicability, Approved, Cell, Context, EngineError, ErrorType, Extracted, Finding, Hit, Repair, Review, Rows,
    Severity, Stated, Status as Mending, Verdict, classify, dialect, is_wrapping, review,
};

use super::clarify::CHOICE;
use super::{Current, Draft, Gathered, Hindrance, LONGEST_QUESTION, Purpose, Run, Step};
use crate::context::Tables;
use crate::event::{Attempt, Event, Problem, ProblemCode, Stage, Stop};
use crate::intent::{self, Intent};
use crate::prompts;
use crate::strategies::Trouble;

/// With less of the tables than this no query can be written.
const FEWEST_BYTES: usize = 200;
/// How much of what a model wrote is kept in events.
pub(super) const LONGEST_TEXT: usize = 20_000;
/// What is said of an attempt that repeats an earlier one.
pub(super) const SAME_QUERY: &str = "the same query was there before";

impl Run {
    /// What cannot be a question is turned down before anything is asked.
    pub(super) fn check_question(&mut self) {
        let length = self.ask.question.len() + self.ask.evidence.as_ref().map_or(0, String::len);
        let wrong = if self.ask.question.trim().is_empty() {
            Some("the question is empty".to_string())
        } else if length > LONGEST_QUESTION {
            Some(format!("the question has {length} bytes; at most {LONGEST_QUESTION} are taken on"))
        } else {
            None
        };
        match wrong {
            Some(message) => {
                let hint = Some("ask one question in a few sentences".to_string());
                let problem = Problem { code: ProblemCode::BadRequest, message, hint, retry_after_s: None };
                self.fail(Stop::BadQuestion, problem);
            }
            None => self.stage(Stage::SchemaDiscovery),
        }
    }

    pub(super) fn stage(&mut self, stage: Stage) {
        self.events.push(Event::Stage { stage, attempt: self.attempt });
    }

    pub(super) fn gathered(&mut self, result: Result<Gathered, Hindrance>) {
        let Gathered { tables: known, recalled, missing } = match result {
            Ok(gathered) => gathered,
            Err(hindrance) => return self.hindered(hindrance),
        };
        self.schema = Arc::clone(known.schema());
        self.stage(Stage::PatternSelection);
        if let Some(sql) = self.ask.choice.clone() {
            self.tables = known;
            self.fitting = self.fitting(&recalled);
            self.pose();
            self.strategy = CHOICE;
            return self.settle(sql);
        }
        match intent::classify(&self.ask.question, &self.schema) {
            Intent::Data => {}
            Intent::Chat => {
                let tables: Vec<&str> = self.schema.tables().iter().map(|t| t.name.as_str()).take(50).collect();
                self.conversation = prompts::chat(&self.ask.question, &tables);
                self.purpose = Purpose::Chat;
                return self.complete();
            }
            Intent::DataModel => return self.talked(&intent::describe(&self.ask.question, &self.schema)),
            Intent::Write => return self.refuse_write(),
        }
        let is_known = recalled.known.is_some() && !self.ask.fresh;
        if let Some(missing) = missing.filter(|_| !is_known) {
            return self.abstain(*missing);
        }
        self.tables = known;
        self.fitting = self.fitting(&recalled);
        self.pose();
        if !self.remember(recalled) {
            self.complete();
        }
    }

    /// Words the question, with as much of the tables as there is room for.
    fn pose(&mut self) {
        // What is known besides the question names tables too.
        let asked = match &self.ask.evidence {
            Some(evidence) => format!("{} {evidence}", self.ask.question),
            None => self.ask.question.clone(),
        };
        let linked = self.tables.link_with(&asked, &self.named_values(&asked), self.bytes);
        let draft = prompts::Draft {
            dialect: self.dialect.title,
            notes: self.dialect.notes,
            schema: &linked.text,
            evidence: self.ask.evidence.as_deref(),
            examples: &self.fitting,
            earlier: &self.ask.earlier,
            question: &self.ask.question,
        };
        self.conversation = prompts::draft(self.settings.variant, &draft);
        self.events.push(Event::Linked { tables: linked.tables.clone(), of: linked.of });
        self.shown = linked.tables;
    }

    /// Where values stand that the question names: there are tables that it needs. A schema that fits is shown whole anyway.
    fn named_values(&self, asked: &str) -> Vec<Hit> {
        if self.tables.fit(self.bytes) {
            return Vec::new();
        }
        self.schema.values().map(|values| values.hits(asked)).unwrap_or_default()
    }

    /// The model cannot read that much: it is shown half as much, and no examples.
    fn pack_harder(&mut self, problem: Problem) {
        let told = self.conversation.iter().map(|message| message.text.len()).sum::<usize>();
        let posed = matches!(self.purpose, Purpose::Draft | Purpose::Recall);
        if !posed || self.bytes <= FEWEST_BYTES {
            return self.hindered(Hindrance::Gone(problem));
        }
        self.bytes = self.bytes.min(told) / 2;
        self.fitting.clear();
        self.examples.clear();
        self.pose();
        self.complete();
    }

    /// Asks the model, unless the budget is spent.
    pub(super) fn complete(&mut self) {
        if let Some(stop) = self.settings.budget.spent(&self.cost, self.now) {
            return self.give_up(stop);
        }
        self.stage(Stage::Generation);
        let sql = !matches!(self.purpose, Purpose::Chat | Purpose::Program);
        // Only the first draft is weighed: what is told of a fault has one answer.
        let weighed = self.purpose == Purpose::Draft && self.attempts.is_empty() && !self.settings.offline;
        let more = if weighed { self.settings.more } else { 0 };
        let (messages, temperature) = (self.conversation.clone(), self.settings.temperature);
        self.step = Step::Complete { messages, temperature, sql, more };
    }

    pub(super) fn completed(&mut self, result: Result<Draft, Hindrance>) {
        self.counts.model += 1;
        self.time_correction();
        let draft = match result {
            Ok(draft) => draft,
            // A model that was cut off because the time is spent did not fail.
            Err(Hindrance::Gone(problem))
                if problem.code == ProblemCode::ModelUnavailable
                    && self.settings.budget.spent(&self.cost, self.now) == Some(Stop::TimeSpent) =>
            {
                return self.give_up(Stop::TimeSpent);
            }
            Err(Hindrance::Cancelled) => return self.hindered(Hindrance::Cancelled),
            // It was only asked for a last way.
            Err(_) if self.purpose == Purpose::Program => return self.programmed(""),
            // Small talk needs no model.
            Err(_) if self.purpose == Purpose::Chat => return self.talked(intent::GREETING),
            Err(Hindrance::TooLong(problem)) => return self.pack_harder(problem),
            Err(hindrance) => return self.hindered(hindrance),
        };
        self.cost = self.cost.plus(draft.cost);
        let text = prompts::clipped(&draft.text, LONGEST_TEXT).to_string();
        self.events.push(Event::Drafted { attempt: self.attempt, text, usage: draft.cost });
        match self.purpose {
            Purpose::Chat => self.talked(&draft.text),
            Purpose::Program => self.programmed(&draft.text),
            Purpose::Draft if !draft.more.is_empty() && self.settings.correction => self.weigh(draft),
            Purpose::Recall | Purpose::Draft | Purpose::Analysis => self.settle(draft.text),
        }
    }

    /// Looks at a draft: it runs, is mended, or goes back.
    pub(super) fn settle(&mut self, text: String) {
        self.stage(Stage::GuardrailCheck);
        let found = self.review(&text);
        let no_sql = found.extracted.sql.trim().is_empty();
        self.has_sql |= !no_sql;
        self.prose = Some(text.trim().to_string()).filter(|text| no_sql && is_prose(text));
        let sql = if no_sql { text.trim() } else { found.extracted.sql.trim() }.to_string();
        self.events.push(Event::Reviewed {
            attempt: self.attempt,
            sql: prompts::clipped(&sql, LONGEST_TEXT).to_string(),
            approved: found.verdict() == Verdict::Approved,
            findings: found.findings.clone(),
            extracted: Extracted {
                sql: prompts::clipped(&found.extracted.sql, LONGEST_TEXT).to_string(),
                ..found.extracted.clone()
            },
        });
        let mut tokens = if no_sql { Tokens::of(&sql, self.dialect) } else { found.tokens() };
        let anew = self.seen.insert(tokens.identity().to_string());
        if sql.len() > LONGEST_TEXT {
            // Only as much is told of it.
            tokens = Tokens::of(prompts::clipped(&sql, LONGEST_TEXT), self.dialect);
        }
        let before = std::mem::replace(&mut self.tokens, tokens);
        if !self.attempts.is_empty() {
            let changes = before.changes(&self.tokens);
            self.events.push(Event::Changed { attempt: self.attempt, changes });
        }
        let attempt = Attempt {
            number: self.attempt,
            sql: prompts::clipped(&sql, LONGEST_TEXT).to_string(),
            mended: None,
            fixes: Vec::new(),
            error: found.findings.iter().find(|f| f.severity == Severity::Error).map(|f| f.message.clone()),
            finding: None,
            error_type: None,
            strategy: self.strategy,
            held_back: true,
        };
        match self.purpose {
            Purpose::Analysis => self.fallback_query = Some(attempt),
            _ => self.attempts.push(attempt),
        }
        self.drafted = text;
        self.current = Current { sql: sql.clone(), ..Current::default() };
        if !anew {
            if let Some(last) = self.latest_query() {
                last.error = Some(SAME_QUERY.into());
            }
            return self.spent(Stop::SameSql);
        }
        let mendable = found.findings.iter().any(|f| f.severity == Severity::Error && !f.fixes.is_empty());
        let respelt = |f: &Finding| (f.code == "unknown-value" && is_safe(f)) || f.repairs_silent_error();
        let misspelt = self.settings.correction && found.findings.iter().any(respelt);
        let unchecked = !self.settings.correction || !self.settings.preflight;
        match found.approve() {
            // An error that no database reports is put right, if the database proves it.
            Ok(_) if found.is_clean() && misspelt => self.mend(None),
            Ok(query) if found.is_clean() || unchecked => {
                self.note_salvaged(&found);
                self.send(query, found);
            }
            // Where no rule has a fix, a search would find none either.
            _ if self.settings.correction && mendable => self.mend(None),
            _ => self.trouble(self.held_back(&found.findings)),
        }
    }

    pub(super) fn review(&mut self, text: &str) -> Review {
        self.counts.reviews += 1;
        let context = Context {
            schema: Some(&self.schema),
            dialect: self.dialect,
            policy: &self.settings.policy,
            question: Some(&self.ask.question),
        };
        let mut found = review(text, &context);
        // What the evidence defines is covered.
        if let Some(evidence) = self.ask.evidence.as_ref().map(|evidence| evidence.to_lowercase()) {
            let is_defined = |f: &Finding| f.code == "uncovered-term" && evidence.contains(&f.subject.to_lowercase());
            found.findings.retain(|finding| !is_defined(finding));
        }
        found
    }

    pub(super) fn mend(&mut self, error: Option<EngineError>) {
        self.stage(Stage::SelfCorrection);
        self.counts.corrections += 1;
        let text = if error.is_some() { self.current.sql.clone() } else { self.drafted.clone() };
        self.current.refusal.clone_from(&error);
        self.step = Step::Mend { text, error };
    }

    pub(super) fn mended(&mut self, result: Result<Repair, Hindrance>) {
        let repair = match result {
            Ok(repair) => repair,
            Err(hindrance) => return self.hindered(hindrance),
        };
        match self.usable(&repair) {
            Some((query, found)) => {
                if !self.compare_repair(&repair, &query) {
                    self.send_repaired(&repair, query, found);
                }
            }
            None => {
                let trouble = match self.current.refusal.take() {
                    Some(error) => self.refused(&error),
                    None if has_error(&repair.findings) => self.held_back(&repair.findings),
                    // The database refused what rules made of it: the faults of the draft itself are what can be told.
                    None => {
                        let drafted = self.drafted.clone();
                        let found = self.review(&drafted);
                        self.held_back(&found.findings)
                    }
                };
                self.trouble(trouble);
            }
        }
    }

    pub(super) fn send_repaired(&mut self, repair: &Repair, query: Approved, found: Review) {
        if !repair.applied.iter().all(|fix| is_wrapping(fix.code)) {
            self.note_mended(repair);
        }
        self.send(query, found);
    }

    /// The query that a repair came to, if it may be sent and was not sent before.
    pub(super) fn usable(&mut self, repair: &Repair) -> Option<(Approved, Review)> {
        let refused = self.current.refusal.is_some();
        let unchanged_will_do = match repair.status {
            Mending::Mended => !refused,
            // The critic was wrong about it: the database would run it as it is.
            Mending::Untouched if !refused => true,
            Mending::Untouched | Mending::GaveUp | Mending::Refused => return None,
        };
        let found = self.review(&repair.sql);
        let query = found.approve().ok()?;
        // What would be sent is compared, and not what it is wrapped in.
        let tokens = found.tokens();
        let fits = if tokens.identity() == Tokens::of(&self.current.sql, self.dialect).identity() {
            unchanged_will_do
        } else {
            !self.seen.contains(tokens.identity())
        };
        fits.then_some((query, found))
    }

    pub(super) fn send(&mut self, query: Approved, found: Review) {
        self.stage(Stage::ToolExecution);
        if query.sql() != self.current.sql {
            self.seen.insert(found.tokens().identity().to_string());
            self.current.sql = query.sql().to_string();
        }
        self.current.warnings = warnings(found.findings.clone());
        self.current.stated.clone_from(&found.stated);
        self.current.shape = found.shape;
        self.current.found = (found.source == self.current.sql).then(|| Arc::new(found));
        if let Some(last) = self.latest_query() {
            last.held_back = false;
        }
        if self.settings.offline {
            return self.drafted();
        }
        self.step = Step::Execute(query);
    }

    pub(super) fn executed(&mut self, result: Result<Rows, Hindrance>) {
        self.counts.database += 1;
        match result {
            Ok(rows) => self.got(rows),
            Err(Hindrance::Rejected(_) | Hindrance::TimedOut(_)) if self.purpose == Purpose::Recall => {
                self.misremembered()
            }
            Err(Hindrance::Rejected(error)) => {
                let classified = classify(self.dialect, &error);
                self.events.push(Event::Rejected {
                    attempt: self.attempt,
                    sql: self.current.sql.clone(),
                    error: error.clone(),
                    finding: classified.finding,
                    error_type: classified.error_type,
                });
                let hopeless =
                    [ErrorType::PermissionDenied, ErrorType::ConnectionError].contains(&classified.error_type);
                if self.settings.correction && !self.current.mended_after_refusal && !hopeless {
                    self.current.mended_after_refusal = true;
                    self.mend(Some(error));
                } else {
                    self.trouble(self.refused(&error));
                }
            }
            Err(Hindrance::TimedOut(after)) => {
                let words = format!("the query was stopped after {} seconds", after.as_secs_f64());
                let plain = self.plain(words);
                self.trouble(Trouble { code: "timed-out".into(), error_type: ErrorType::Timeout, ..plain });
            }
            Err(hindrance) => self.hindered(hindrance),
        }
    }

    fn got(&mut self, rows: Rows) {
        self.events.push(Event::Executed {
            attempt: self.attempt,
            sql: self.current.sql.clone(),
            rows: rows.rows.len(),
            truncated: rows.truncated,
            ms: (self.now - self.began).as_secs_f64() * 1e3,
        });
        self.mark_corrections();
        if let Some(last) = self.latest_query() {
            last.error = None;
        }
        let nothing = is_empty(&rows);
        let looks = nothing && !self.current.stated.is_empty() && self.settings.correction && self.fell_back.is_none();
        let looks = looks && self.remembered.is_none();
        if self.kept.is_some() && (nothing || !self.uses_shown_value()) {
            // It was asked again because nothing was found. Only a query that looks for a value that is there is better.
            return self.keep();
        }
        if looks && self.attempt < self.settings.budget.max_attempts {
            let current = self.current.clone();
            self.step = Step::Look(current.stated.clone());
            self.kept = Some((current, rows));
        } else {
            self.answered(rows);
        }
    }

    /// Whether the query looks for one of the values that the model was shown, and no longer speaks of the absent one.
    fn uses_shown_value(&self) -> bool {
        let shown = self.troubles.iter().flat_map(|t| &t.values);
        let took = |(absent, held): &(Stated, Vec<String>)| {
            let there = self.current.stated.iter().any(|s| held.contains(&s.value));
            there && !self.current.sql.contains(&format!("'{}'", absent.value))
        };
        shown.clone().any(took)
    }

    pub(super) fn looked(&mut self, result: Result<Vec<(Stated, Vec<String>)>, Hindrance>) {
        let absent = match result {
            Ok(absent) => absent,
            Err(hindrance) => return self.hindered(hindrance),
        };
        self.absent = absent.iter().map(|(stated, _)| stated.clone()).collect();
        let helpful: Vec<(Stated, Vec<String>)> = absent.into_iter().filter(|(_, held)| !held.is_empty()).collect();
        let Some((first, _)) = helpful.first() else { return self.keep() };
        let plain = self.plain("the query runs and finds nothing".into());
        self.trouble(Trouble {
            code: "unknown-value".into(),
            subject: first.value.clone(),
            from_database: false,
            values: helpful,
            ..plain
        });
    }

    pub(super) fn fetched(&mut self, result: Result<Arc<Schema>, Hindrance>) {
        self.counts.database += 1;
        match result {
            Ok(schema) => {
                let known = Tables::new(schema, &dialect::SQLITE, &self.settings.policy);
                let linked = known.link(&self.ask.question, usize::MAX);
                self.schema = Arc::clone(known.schema());
                self.dialect = &dialect::SQLITE;
                self.seen.clear();
                self.purpose = Purpose::Analysis;
                self.strategy = "fallback";
                let evidence = self.ask.evidence.as_deref();
                self.conversation = prompts::analyse(&linked.text, evidence, &self.ask.question);
                self.complete();
            }
            Err(Hindrance::Cancelled) => self.hindered(Hindrance::Cancelled),
            Err(_) => self.give_up(self.fell_back.unwrap_or(Stop::AttemptsSpent)),
        }
    }
}

fn is_safe(finding: &Finding) -> bool {
    finding.fixes.first().is_some_and(|fix| fix.applicability == Applicability::Safe)
}

/// Fewest words of a sentence.
const MIN_PROSE_WORDS: usize = 4;

/// Whether a text is one or more sentences, and no data, code or noise.
fn is_prose(text: &str) -> bool {
    let is_plain = |c: &char| c.is_alphabetic() || c.is_whitespace() || ".,;:!?'’\"()-".contains(*c);
    let (length, plain) = (text.chars().count(), text.chars().filter(is_plain).count());
    let words = text.split_whitespace().count();
    words >= MIN_PROSE_WORDS && plain * 10 >= length * 9 && length <= words * 15
}

fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|f| f.severity == Severity::Error)
}

fn warnings(findings: Vec<Finding>) -> Vec<Finding> {
    findings.into_iter().filter(|f| f.severity == Severity::Warning).collect()
}

/// No row, or one row of nothing but NULL and zero.
pub(crate) fn is_empty(rows: &Rows) -> bool {
    match rows.rows.as_slice() {
        [] => true,
        [row] => row.iter().all(|cell| matches!(cell, Cell::Null | Cell::Integer(0))),
        _ => false,
    }
}
