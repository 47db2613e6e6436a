//! What becomes of an attempt that failed: another one, or the end.

use querymend_model::Message;
use querymend_sql::schema::Table;
use querymend_sql::{
    Applicability, Applied, Approved, Context, EngineError, ErrorType, Finding, Repair, Review, Severity, classify,
    diff, is_wrapping, review,
};

use super::clarify::Resume;
use super::steps::LONGEST_TEXT;
use super::{Hindrance, Purpose, Run, Step};
use crate::context::Weights;
use crate::event::{Attempt, Confidence, Correction, Event, Problem, ProblemCode, Stop};
use crate::prompts;
use crate::retry::RetryStrategy;
use crate::strategies::{self, Trouble, View};

/// How much is kept of what a critic or a database says: some repeat the whole query.
const LONGEST_MESSAGE: usize = 1_000;
/// Tables that are fetched whole for an analysis that runs here.
const MOST_FETCHED: usize = 4;
/// Where no draft names a table, those are fetched whose link to the question scores at least this share of the best one.
const CLEARLY_LINKED: f32 = 0.5;

impl Run {
    /// A trouble that says no more than its words.
    pub(super) fn plain(&self, message: String) -> Trouble {
        Trouble {
            sql: self.current.sql.clone(),
            code: "engine-error".into(),
            subject: String::new(),
            error_type: ErrorType::Unknown,
            message: prompts::clipped(&message, LONGEST_MESSAGE).to_string(),
            from_database: true,
            findings: Vec::new(),
            values: Vec::new(),
        }
    }

    /// What the critic holds against a query.
    pub(super) fn held_back(&self, findings: &[Finding]) -> Trouble {
        let mut errors = findings.iter().filter(|f| f.severity == Severity::Error);
        let first = errors.clone().next().map(|first| {
            // Where only some tables are allowed, one that does not exist is no secret: its name is wrong.
            let misnamed = errors.find(|f| f.code == "unknown-table" && f.span == first.span);
            misnamed.filter(|_| first.code == "protected-table").unwrap_or(first)
        });
        let code = first.map_or("no-sql", |f| f.code);
        Trouble {
            code: code.into(),
            subject: first.map_or(String::new(), |f| f.subject.clone()),
            error_type: ErrorType::of(code),
            from_database: false,
            findings: findings.to_vec(),
            ..self.plain(first.map_or("there is no SQL in the text".into(), |f| f.message.clone()))
        }
    }

    /// What the database holds against a query, with what the critic can add.
    pub(super) fn refused(&self, error: &EngineError) -> Trouble {
        let classified = classify(self.dialect, error);
        let hint = error.hint.as_ref().map_or(String::new(), |h| format!(" {h}"));
        Trouble {
            code: classified.finding.into(),
            subject: classified.names.first().map_or(String::new(), |(_, name)| name.clone()),
            error_type: classified.error_type,
            findings: review(&self.current.sql, &self.context()).findings,
            ..self.plain(format!("{}{hint}", error.message))
        }
    }

    pub(super) fn context(&self) -> Context<'_> {
        Context {
            schema: Some(&self.schema),
            dialect: self.dialect,
            policy: &self.settings.policy,
            question: Some(&self.ask.question),
        }
    }

    /// A clean query whose text had to be put right: an escape, an apostrophe, a line end that was lost.
    pub(super) fn note_salvaged(&mut self, found: &Review) {
        for finding in &found.findings {
            let artefact = querymend_sql::Rule::named(finding.code).is_some_and(|r| r.group == "artefact");
            if let Some(fix) = finding.fixes.first().filter(|_| artefact && !is_wrapping(finding.code)) {
                let why = fix.why.clone();
                self.current.fixes.push(Applied { code: finding.code, applicability: fix.applicability, why });
            }
        }
        let fixes = self.current.fixes.clone();
        if let Some(last) = self.latest_query() {
            last.fixes = fixes;
        }
    }

    /// Writes down what was mended.
    pub(super) fn note_mended(&mut self, repair: &Repair) {
        let before = self.current.sql.clone();
        let changes = diff::diff(&before, &repair.sql, self.dialect);
        self.events.push(Event::Mended {
            attempt: self.attempt,
            before,
            after: repair.sql.clone(),
            applied: repair.applied.clone(),
            changes,
        });
        let held_back = self.latest_query().and_then(|a| a.error.clone()).unwrap_or_default();
        let sure = repair.applied.iter().map(|a| a.applicability).max().unwrap_or(Applicability::Safe);
        self.corrections.push(Correction {
            original_error: self.current.refusal.as_ref().map_or(held_back, |e| e.message.clone()),
            strategy: repair.applied.iter().map(|a| a.code).collect::<Vec<_>>().join(", "),
            successful: false,
            confidence: if sure == Applicability::Safe { Confidence::High } else { Confidence::Medium },
            duration_ms: (self.now - self.began).as_secs_f64() * 1e3,
        });
        let fixes = repair.applied.iter().filter(|fix| !is_wrapping(fix.code));
        self.current.fixes.extend(fixes.clone().cloned());
        if let Some(last) = self.latest_query() {
            last.mended = Some(repair.sql.clone());
            last.fixes.extend(fixes.cloned());
        }
    }

    /// The query ran, so the last correction was one.
    pub(super) fn mark_corrections(&mut self) {
        if let Some(last) = self.corrections.last_mut() {
            last.successful = true;
        }
    }

    /// The query that is being worked on: the last attempt, or the fallback's.
    pub(super) fn latest_query(&mut self) -> Option<&mut Attempt> {
        self.fallback_query.as_mut().or(self.attempts.last_mut())
    }

    /// Notes how long the model took for the correction that it was asked for.
    pub(super) fn time_correction(&mut self) {
        if let Some(began) = self.correction_began.take()
            && let Some(last) = self.corrections.last_mut()
        {
            last.duration_ms = (self.now - began).as_secs_f64() * 1e3;
        }
    }

    /// Decides what follows from a failed attempt.
    pub(super) fn trouble(&mut self, trouble: Trouble) {
        if let Some(last) = self.latest_query() {
            last.error = Some(trouble.message.clone());
            last.finding = Some(trouble.code.clone());
            last.error_type = Some(trouble.error_type);
        }
        if self.purpose == Purpose::Analysis {
            return self.give_up(self.fell_back.unwrap_or(Stop::AttemptsSpent));
        }
        let same = self.troubles.last().is_some_and(|t| t.is_same(&trouble));
        let alike = self.troubles.iter().filter(|t| t.error_type == trouble.error_type).count() as u32;
        self.troubles.push(trouble.clone());
        if !self.settings.correction {
            return self.give_up(Stop::CorrectionOff);
        }
        let policy = match self.settings.retry.decide(trouble.error_type, alike + 1) {
            Err(stop) => return self.spent(stop),
            Ok(_) if same => return self.spent(Stop::SameError),
            Ok(_) if self.attempt >= self.settings.budget.max_attempts => return self.spent(Stop::AttemptsSpent),
            Ok(policy) => policy,
        };
        if let Some(stop) = self.settings.budget.spent(&self.cost, self.now) {
            return self.give_up(stop);
        }
        if !self.compare_unrepaired(|| Resume::Retry(Box::new(trouble.clone()), policy)) {
            self.ask_again(&trouble, policy);
        }
    }

    /// Asks the model again, in the first way that fits. Only now the counter moves.
    pub(super) fn ask_again(&mut self, trouble: &Trouble, policy: RetryStrategy) {
        let (attempt, of) = (self.attempt + 1, self.settings.budget.max_attempts);
        let view = View { schema: &self.schema, dialect: self.dialect, shown: &self.shown, attempt, of, policy };
        let strategy = strategies::choose(trouble, &view);
        let feedback = (strategy.tell)(trouble, &view);
        self.attempt += 1;
        self.counts.corrections += 1;
        self.strategy = strategy.name;
        self.corrections.push(Correction {
            original_error: trouble.message.clone(),
            strategy: strategy.name.into(),
            successful: false,
            // What is retried once only is a guess.
            confidence: match policy {
                RetryStrategy::LimitedRetry => Confidence::Low,
                _ => Confidence::Medium,
            },
            duration_ms: 0.0,
        });
        self.correction_began = Some(self.now);
        // A text that is far too long for a query is not sent back either.
        if strategy.anew || trouble.sql.len() > LONGEST_TEXT {
            self.conversation.truncate(2);
            if let (Some(last), Some(told)) = (self.conversation.last_mut(), feedback.first())
                && !last.text.ends_with(&told.text)
            {
                last.text = format!("{}\n{}", last.text.trim_end(), told.text);
            }
        } else {
            let failure = if trouble.from_database {
                format!("The query failed: {}.", trouble.message.trim_end_matches('.'))
            } else if trouble.values.is_empty() {
                "The query cannot be run.".to_string()
            } else {
                "The query finds nothing.".to_string()
            };
            self.conversation.push(Message::assistant(trouble.sql.clone()));
            self.conversation.push(prompts::revise(&failure, &feedback));
        }
        self.events.push(Event::Retrying { attempt: self.attempt, of, strategy: strategy.name, feedback });
        self.complete();
    }

    /// The attempts are over. Plain rows may still give an answer, once.
    pub(super) fn spent(&mut self, stop: Stop) {
        if !self.compare_unrepaired(|| Resume::GiveUp(stop)) {
            self.fall_back(stop);
        }
    }

    /// Fetches plain rows, if that was not tried yet.
    pub(super) fn fall_back(&mut self, stop: Stop) {
        let worth = matches!(stop, Stop::AttemptsSpent | Stop::SameSql | Stop::SameError | Stop::PolicySpent);
        let affordable = self.settings.budget.spent(&self.cost, self.now).is_none();
        if self.kept.is_some() || !worth || !self.settings.fallback || self.fell_back.is_some() || !affordable {
            return self.give_up(self.fell_back.unwrap_or(stop));
        }
        let tables = self.plain_tables();
        if tables.is_empty() || !self.settings.correction {
            return self.give_up(stop);
        }
        if self.ask.hand_over {
            return self.hand_over(tables, stop);
        }
        self.fell_back = Some(stop);
        self.events.push(Event::FellBack { tables: tables.iter().map(|(name, _)| name.clone()).collect() });
        self.step = Step::Fetch(tables);
    }

    /// The tables to fetch for the fallback, each as a plain SELECT: those that the attempts name, then those that the question
    /// was linked to. A draft may leave out the very table that it needs, or name none that exists.
    fn plain_tables(&self) -> Vec<(String, Approved)> {
        let mut words: Vec<String> = self.attempts.iter().flat_map(|a| diff::normalise(&a.sql, self.dialect)).collect();
        words.iter_mut().for_each(|w| *w = w.trim_matches(['"', '`', '[', ']']).to_lowercase());
        let is_named = |t: &&Table| words.contains(&t.name.to_lowercase());
        let linked = self.tables.ranked(&self.ask.question, &[], &Weights::default(), MOST_FETCHED);
        // Beside tables that a draft names, only the best link is worth its rows.
        let share = if self.schema.tables().iter().any(|t| is_named(&t)) { 1.0 } else { CLEARLY_LINKED };
        let least = linked.first().map_or(f32::MAX, |(_, score)| *score * share);
        let is_linked = |t: &&Table| linked.iter().any(|(table, score)| *score >= least && table.name == t.name);
        let plain = |t: &Table| {
            let parts = [t.schema.as_deref(), Some(t.name.as_str())];
            let name: Vec<String> = parts.into_iter().flatten().map(|p| self.dialect.quoted(p)).collect();
            let query = review(&format!("SELECT * FROM {}", name.join(".")), &self.context()).approve().ok()?;
            Some((t.name.clone(), query))
        };
        let tables = || self.schema.tables().iter();
        let rest = tables().filter(is_linked).filter(|t| !is_named(t));
        tables().filter(is_named).chain(rest).filter_map(plain).take(MOST_FETCHED).collect()
    }

    /// The world is in the way.
    pub(super) fn hindered(&mut self, hindrance: Hindrance) {
        let problem = |code, message: String, hint| Problem { code, message, hint, retry_after_s: None };
        match hindrance {
            // It was only asked again to find more: what was found before is still an answer.
            Hindrance::Gone(_) | Hindrance::TooLong(_) | Hindrance::TimedOut(_) | Hindrance::Rejected(_)
                if self.kept.is_some() =>
            {
                self.keep()
            }
            Hindrance::Cancelled => {
                self.fail(Stop::Cancelled, problem(ProblemCode::Cancelled, "the question was cancelled".into(), None));
            }
            Hindrance::Gone(problem) | Hindrance::TooLong(problem) => {
                let model = problem.code == ProblemCode::ModelUnavailable || matches!(self.step, Step::Complete { .. });
                self.fail(if model { Stop::ModelFailed } else { Stop::DatabaseFailed }, problem);
            }
            Hindrance::TimedOut(after) => {
                let words = format!("nothing came within {} seconds", after.as_secs_f64());
                self.fail(Stop::DatabaseFailed, problem(ProblemCode::DatabaseUnavailable, words, None));
            }
            Hindrance::Rejected(error) => {
                let problem = problem(ProblemCode::DatabaseUnavailable, error.message, error.hint);
                self.fail(Stop::DatabaseFailed, problem);
            }
        }
    }
}
