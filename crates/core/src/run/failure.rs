//! Handles failed attempts: retries or ends the run.

use querymend_model::Message;
use querymend_sql::schema::Table;
use querymend_sql::{
    Applicability, AppliedFix, Approved, EngineError, ErrorType, Finding, RepairOutcome, Review, ReviewContext,
    RuleGroup, Severity, classify, diff, is_wrapper_rule, review,
};

use super::clarify::Resume;
use super::{Purpose, QuestionRun, RunStep, StepError};
use crate::event::{Attempt, Confidence, Correction, Event, Problem, ProblemCode, StopReason};
use crate::linking::RankingWeights;
use crate::prompts;
use crate::retry::RetryStrategy;
use crate::run::MAX_TEXT_BYTES;
use crate::strategies::{self, AttemptFailure, StrategyContext};

/// Maximum length of a stored error message, in bytes; some repeat the entire query.
const MAX_MESSAGE_BYTES: usize = 1_000;
/// Maximum number of tables fetched for the fallback analysis.
const MAX_FETCHED_TABLES: usize = 4;
/// Minimum link score of fetched tables relative to the best one, if no draft names a table.
const MIN_LINK_SCORE_RATIO: f32 = 0.5;

impl QuestionRun {
    /// Creates an unclassified failure with only a message.
    pub(super) fn failure(&self, message: String) -> AttemptFailure {
        AttemptFailure {
            sql: self.current.sql.clone(),
            code: "engine-error".into(),
            subject: String::new(),
            error_type: ErrorType::Unknown,
            message: prompts::truncate(&message, MAX_MESSAGE_BYTES).to_string(),
            from_database: true,
            findings: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Creates the failure of a query that the review rejected.
    pub(super) fn rejected_by_review(&self, findings: &[Finding]) -> AttemptFailure {
        let mut errors = findings.iter().filter(|f| f.severity == Severity::Error);
        let first = errors.clone().next().map(|first| {
            // With an allow list, a nonexistent table is not protected: its name is wrong.
            let misnamed = errors.find(|f| f.code == "unknown-table" && f.span == first.span);
            misnamed.filter(|_| first.code == "protected-table").unwrap_or(first)
        });
        let code = first.map_or("no-sql", |f| f.code);
        AttemptFailure {
            code: code.into(),
            subject: first.map_or(String::new(), |f| f.subject.clone()),
            error_type: ErrorType::of(code),
            from_database: false,
            findings: findings.to_vec(),
            ..self.failure(first.map_or("there is no SQL in the text".into(), |f| f.message.clone()))
        }
    }

    /// Creates the failure of a query that the database rejected, with the findings of the review.
    pub(super) fn rejected_by_engine(&self, error: &EngineError) -> AttemptFailure {
        let classified = classify(self.dialect, error);
        let hint = error.hint.as_ref().map_or(String::new(), |h| format!(" {h}"));
        AttemptFailure {
            code: classified.finding.into(),
            subject: classified.names.first().map_or(String::new(), |(_, name)| name.clone()),
            error_type: ErrorType::of(classified.finding),
            findings: review(&self.current.sql, &self.review_context()).findings,
            ..self.failure(format!("{}{hint}", error.message))
        }
    }

    pub(super) fn review_context(&self) -> ReviewContext<'_> {
        ReviewContext {
            schema: Some(&self.schema),
            dialect: self.dialect,
            policy: &self.settings.policy,
            question: Some(&self.ask.question),
        }
    }

    /// Records the fixes to the extracted text of a clean query.
    ///
    /// Examples are an escape, an apostrophe, or a lost line break.
    pub(super) fn record_extraction_fixes(&mut self, found: &Review) {
        for finding in &found.findings {
            let is_extraction_fix =
                querymend_sql::Rule::from_code(finding.code).is_some_and(|r| r.group == RuleGroup::LlmOutput);
            if let Some(fix) = finding.fixes.first().filter(|_| is_extraction_fix && !is_wrapper_rule(finding.code)) {
                let why = fix.why.clone();
                self.current.fixes.push(AppliedFix { code: finding.code, applicability: fix.applicability, why });
            }
        }
        let fixes = self.current.fixes.clone();
        if let Some(last) = self.latest_attempt() {
            last.fixes = fixes;
        }
    }

    /// Records the applied fixes of a repair.
    pub(super) fn record_repair(&mut self, repair: &RepairOutcome) {
        let before = self.current.sql.clone();
        let changes = diff::diff(&before, &repair.sql, self.dialect);
        self.events.push(Event::Repaired {
            attempt: self.attempt,
            before,
            after: repair.sql.clone(),
            applied: repair.applied.clone(),
            changes,
        });
        let review_error = self.latest_attempt().and_then(|a| a.error.clone()).unwrap_or_default();
        let sure = repair.applied.iter().map(|a| a.applicability).max().unwrap_or(Applicability::Safe);
        self.corrections.push(Correction {
            original_error: self.current.engine_error.as_ref().map_or(review_error, |e| e.message.clone()),
            strategy: repair.applied.iter().map(|a| a.code).collect::<Vec<_>>().join(", "),
            successful: false,
            confidence: if sure == Applicability::Safe { Confidence::High } else { Confidence::Medium },
            duration_ms: (self.now - self.step_started).as_secs_f64() * 1e3,
        });
        let fixes = repair.applied.iter().filter(|fix| !is_wrapper_rule(fix.code));
        self.current.fixes.extend(fixes.clone().cloned());
        if let Some(last) = self.latest_attempt() {
            last.mended = Some(repair.sql.clone());
            last.fixes.extend(fixes.cloned());
        }
    }

    /// Marks the last correction as successful after the query was executed.
    pub(super) fn mark_correction_successful(&mut self) {
        if let Some(last) = self.corrections.last_mut() {
            last.successful = true;
        }
    }

    /// Returns the attempt of the current query: the last attempt, or the fallback.
    pub(super) fn latest_attempt(&mut self) -> Option<&mut Attempt> {
        self.fallback_query.as_mut().or(self.attempts.last_mut())
    }

    /// Records the time that the model took for the requested correction.
    pub(super) fn record_correction_time(&mut self) {
        if let Some(began) = self.correction_started.take()
            && let Some(last) = self.corrections.last_mut()
        {
            last.duration_ms = (self.now - began).as_secs_f64() * 1e3;
        }
    }

    /// Decides how to proceed after a failed attempt.
    pub(super) fn on_failure(&mut self, failure: AttemptFailure) {
        if let Some(last) = self.latest_attempt() {
            last.error = Some(failure.message.clone());
            last.finding = Some(failure.code.clone());
            last.error_type = Some(failure.error_type);
        }
        if self.purpose == Purpose::Analysis {
            return self.give_up(self.fallback_reason.unwrap_or(StopReason::MaxAttempts));
        }
        let is_repeated = self.failures.last().is_some_and(|t| t.is_same_error(&failure));
        let same_type_count = self.failures.iter().filter(|t| t.error_type == failure.error_type).count() as u32;
        self.failures.push(failure.clone());
        if !self.settings.self_correction {
            return self.give_up(StopReason::CorrectionOff);
        }
        let policy = match self.settings.retry.decide(failure.error_type, same_type_count + 1) {
            Err(stop) => return self.out_of_attempts(stop),
            Ok(_) if is_repeated => return self.out_of_attempts(StopReason::SameError),
            Ok(_) if self.attempt >= self.settings.budget.max_attempts => {
                return self.out_of_attempts(StopReason::MaxAttempts);
            }
            Ok(policy) => policy,
        };
        if let Some(stop) = self.settings.budget.exhausted(&self.cost, self.now) {
            return self.give_up(stop);
        }
        if !self.compare_unrepaired(|| Resume::Retry(Box::new(failure.clone()), policy)) {
            self.retry(&failure, policy);
        }
    }

    /// Prompts the model again with the first applicable strategy. Only this increments the attempt
    /// counter.
    pub(super) fn retry(&mut self, failed: &AttemptFailure, policy: RetryStrategy) {
        let (attempt, of) = (self.attempt + 1, self.settings.budget.max_attempts);
        let context = StrategyContext {
            schema: &self.schema,
            dialect: self.dialect,
            linked_tables: &self.linked_tables,
            attempt,
            max_attempts: of,
            policy,
        };
        let strategy = strategies::choose(failed, &context);
        let feedback = (strategy.feedback)(failed, &context);
        self.attempt += 1;
        self.call_counts.corrections += 1;
        self.strategy = strategy.name;
        self.corrections.push(Correction {
            original_error: failed.message.clone(),
            strategy: strategy.name.into(),
            successful: false,
            // A limited retry is a guess.
            confidence: match policy {
                RetryStrategy::LimitedRetry => Confidence::Low,
                _ => Confidence::Medium,
            },
            duration_ms: 0.0,
        });
        self.correction_started = Some(self.now);
        // Text that is far too long for a query is not repeated in the prompt.
        if strategy.restart_conversation || failed.sql.len() > MAX_TEXT_BYTES {
            self.conversation.truncate(2);
            if let (Some(last), Some(told)) = (self.conversation.last_mut(), feedback.first())
                && !last.text.ends_with(&told.text)
            {
                last.text = format!("{}\n{}", last.text.trim_end(), told.text);
            }
        } else {
            let failure = if failed.from_database {
                format!("The query failed: {}.", failed.message.trim_end_matches('.'))
            } else if failed.values.is_empty() {
                "The query cannot be run.".to_string()
            } else {
                "The query finds nothing.".to_string()
            };
            self.conversation.push(Message::assistant(failed.sql.clone()));
            self.conversation.push(prompts::revise(&failure, &feedback));
        }
        self.events.push(Event::Retrying { attempt: self.attempt, of, strategy: strategy.name, feedback });
        self.call_model();
    }

    /// Ends the attempts, and starts the fallback over plain rows if it is available.
    pub(super) fn out_of_attempts(&mut self, stop: StopReason) {
        if !self.compare_unrepaired(|| Resume::GiveUp(stop)) {
            self.start_fallback(stop);
        }
    }

    /// Starts the fallback over plain rows, unless it was tried already.
    pub(super) fn start_fallback(&mut self, stop: StopReason) {
        let is_recoverable = matches!(
            stop,
            StopReason::MaxAttempts | StopReason::RepeatedSql | StopReason::SameError | StopReason::RetryPolicy
        );
        let is_affordable = self.settings.budget.exhausted(&self.cost, self.now).is_none();
        if self.empty_fallback.is_some()
            || !is_recoverable
            || !self.settings.fallback
            || self.fallback_reason.is_some()
            || !is_affordable
        {
            return self.give_up(self.fallback_reason.unwrap_or(stop));
        }
        let tables = self.fallback_tables();
        if tables.is_empty() || !self.settings.self_correction {
            return self.give_up(stop);
        }
        if self.ask.client_analysis {
            return self.start_client_analysis(tables, stop);
        }
        self.fallback_reason = Some(stop);
        self.events.push(Event::FallbackStarted { tables: tables.iter().map(|(name, _)| name.clone()).collect() });
        self.step = RunStep::FetchTables(tables);
    }

    /// Returns the tables to fetch for the fallback, each as a plain SELECT.
    ///
    /// Those named in attempts come first, then those linked to the question. A draft may omit the
    /// very table that it needs, or name none that exists.
    fn fallback_tables(&self) -> Vec<(String, Approved)> {
        let mut tokens: Vec<String> =
            self.attempts.iter().flat_map(|a| diff::normalized_tokens(&a.sql, self.dialect)).collect();
        tokens.iter_mut().for_each(|w| *w = w.trim_matches(['"', '`', '[', ']']).to_lowercase());
        let is_named = |t: &&Table| tokens.contains(&t.name.to_lowercase());
        let linked = self.linker.rank_tables(&self.ask.question, &[], &RankingWeights::default(), MAX_FETCHED_TABLES);
        // In addition to named tables, only the best link is worth fetching.
        let share = if self.schema.tables().iter().any(|t| is_named(&t)) { 1.0 } else { MIN_LINK_SCORE_RATIO };
        let min_score = linked.first().map_or(f32::MAX, |(_, score)| *score * share);
        let is_linked = |t: &&Table| linked.iter().any(|(table, score)| *score >= min_score && table.name == t.name);
        let plain = |t: &Table| {
            let parts = [t.schema.as_deref(), Some(t.name.as_str())];
            let name: Vec<String> = parts.into_iter().flatten().map(|p| self.dialect.quote_identifier(p)).collect();
            let query = review(&format!("SELECT * FROM {}", name.join(".")), &self.review_context()).approve().ok()?;
            Some((t.name.clone(), query))
        };
        let tables = || self.schema.tables().iter();
        let rest = tables().filter(is_linked).filter(|t| !is_named(t));
        tables().filter(is_named).chain(rest).filter_map(plain).take(MAX_FETCHED_TABLES).collect()
    }

    /// Handles an external failure.
    pub(super) fn on_step_error(&mut self, error: StepError) {
        let problem = |code, message: String, hint| Problem { code, message, hint, retry_after_s: None };
        match error {
            // The retry only searched for a better result: the earlier one is still an answer.
            StepError::Unavailable(_)
            | StepError::ContextTooLong(_)
            | StepError::TimedOut(_)
            | StepError::Rejected(_)
                if self.empty_fallback.is_some() =>
            {
                self.use_fallback_rows()
            }
            StepError::Cancelled => {
                self.fail(
                    StopReason::Cancelled,
                    problem(ProblemCode::Cancelled, "the question was cancelled".into(), None),
                );
            }
            StepError::Unavailable(problem) | StepError::ContextTooLong(problem) => {
                let model =
                    problem.code == ProblemCode::ModelUnavailable || matches!(self.step, RunStep::Complete { .. });
                self.fail(if model { StopReason::ModelFailed } else { StopReason::DatabaseFailed }, problem);
            }
            StepError::TimedOut(after) => {
                let message = format!("no response within {} seconds", after.as_secs_f64());
                self.fail(StopReason::DatabaseFailed, problem(ProblemCode::DatabaseUnavailable, message, None));
            }
            StepError::Rejected(error) => {
                let problem = problem(ProblemCode::DatabaseUnavailable, error.message, error.hint);
                self.fail(StopReason::DatabaseFailed, problem);
            }
        }
    }
}
