//! End of a run: builds the answer, its confidence, or the reason that there is none.

use querymend_sql::coverage::MissingSubject;
use querymend_sql::{
    AblatedQuery, Applicability, ErrorType, LiteralFilter, Rows, Rule, RuleGroup, drop_each_predicate, inspect_rows,
    review,
};

use super::transitions::REPEATED_QUERY_MESSAGE;
use super::{QuestionRun, RunStep, StepError};
use crate::chart::Chart;
use crate::confidence::ConfidenceFeatures;
use crate::event::{
    Answer, AnswerStatus, Attempt, Confidence, Event, Metadata, Problem, ProblemCode, Stage, StopReason,
};
use crate::row_summary;
use crate::run::CHOICE_STRATEGY;

impl QuestionRun {
    /// Answers with the rows of the last query.
    pub(super) fn finish_with_rows(&mut self, rows: Rows) {
        let conditions = self.predicates_to_ablate(&rows);
        if conditions.is_empty() {
            return self.answer_with_rows(rows);
        }
        self.pending_rows = Some(rows);
        self.step = RunStep::ExplainEmpty(conditions);
    }

    /// Returns the query without each of its predicates. Empty unless the result is empty for an
    /// unknown reason.
    fn predicates_to_ablate(&self, rows: &Rows) -> Vec<AblatedQuery> {
        let is_unexplained = rows.is_effectively_empty()
            && self.missing_values.is_empty()
            && self.blocking_predicates.is_none()
            && self.fallback_reason.is_none();
        let has_unknown_value = self.current.warnings.iter().any(|w| w.code == "unknown-value");
        if is_unexplained && !has_unknown_value && self.settings.self_correction {
            drop_each_predicate(&self.current.sql, &self.review_context())
        } else {
            Vec::new()
        }
    }

    pub(super) fn on_empty_explained(&mut self, result: Result<Vec<String>, StepError>) {
        match result {
            Ok(predicates) => self.blocking_predicates = Some(predicates),
            Err(StepError::Cancelled) => return self.on_step_error(StepError::Cancelled),
            // The rows are an answer even without an explanation.
            Err(_) => self.blocking_predicates = Some(Vec::new()),
        }
        if let Some(rows) = self.pending_rows.take() {
            self.answer_with_rows(rows);
        }
    }

    fn answer_with_rows(&mut self, rows: Rows) {
        let findings = {
            let context = self.review_context();
            match &self.current.review {
                Some(found) => inspect_rows(found, &rows, &context),
                None => inspect_rows(&review(&self.current.sql, &context), &rows, &context),
            }
        };
        self.current.warnings.extend(findings);
        let (features, mut reasons) = self.rate_confidence(&rows);
        reasons.extend(self.unindexed_value_reason());
        let answer = Answer {
            sql: Some(self.current.sql.clone()),
            chart: Chart::from_rows(&rows),
            text: Some(row_summary::sentence(&rows)),
            rows: Some(rows),
            confidence: features.level(),
            confidence_features: Some(features),
            reasons,
            fixes: self.current.fixes.clone(),
            warnings: self.current.warnings.clone(),
            ..self.base_answer(AnswerStatus::Answered, StopReason::Answered)
        };
        self.finish(answer);
    }

    /// Returns a reason for doubt if sampling the column of a literal failed.
    fn unindexed_value_reason(&self) -> Option<String> {
        let values = self.schema.value_index()?;
        let is_unread = |s: &&LiteralFilter| {
            let is_same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
            let mut failed = values.not_indexed().iter().filter(|column| column.reason.is_transient());
            failed.any(|column| is_same(&column.table, &s.table) && is_same(&column.column, &s.column))
        };
        let stated = self.current.literal_filters.iter().find(is_unread)?;
        let LiteralFilter { table, column, value, .. } = stated;
        Some(format!("'{value}' was not compared with the values of {table}.{column}: they could not be read in time"))
    }

    /// Answers with earlier rows, because later queries were not better.
    pub(super) fn use_fallback_rows(&mut self) {
        if let Some((current, rows)) = self.empty_fallback.take() {
            self.current = current;
            self.finish_with_rows(rows);
        }
    }

    pub(super) fn on_chat_reply(&mut self, text: &str) {
        let text = Some(text.trim().to_string()).filter(|t| !t.is_empty());
        let answer =
            Answer { text, confidence: Confidence::High, ..self.base_answer(AnswerStatus::Chat, StopReason::Chat) };
        self.finish(answer);
    }

    /// Answers with a query that passed every check, if there is no database to execute it.
    pub(super) fn finish_unexecuted(&mut self) {
        self.mark_correction_successful();
        if let Some(last) = self.latest_attempt() {
            last.error = None;
        }
        let answer = Answer {
            sql: Some(self.current.sql.clone()),
            reasons: vec!["it was checked against the schema but not run: there is no database".into()],
            fixes: self.current.fixes.clone(),
            warnings: self.current.warnings.clone(),
            ..self.base_answer(AnswerStatus::Drafted, StopReason::NotRun)
        };
        self.finish(answer);
    }

    /// Abstains: the database lacks the subject of the question.
    pub(super) fn abstain(&mut self, missing: MissingSubject) {
        let close = match missing.closest.as_slice() {
            [] => "what the database has".to_string(),
            tables => format!("one of the closest tables ({})", tables.join(", ")),
        };
        let hint = format!("ask about {close}, or name the table with the {} in the question", missing.subject);
        let problem = Problem::new(ProblemCode::SubjectMissing, missing.message()).hint(hint);
        let answer =
            Answer { problem: Some(problem), ..self.base_answer(AnswerStatus::Abstained, StopReason::MissingSubject) };
        self.finish(answer);
    }

    /// Refuses a message that asks to change data.
    pub(super) fn refuse_write(&mut self) {
        let problem = Problem::new(ProblemCode::WriteRefused, "this asks to change data, but access is read-only")
            .hint("ask for the affected rows; change them with a tool that can write to the database");
        let answer =
            Answer { problem: Some(problem), ..self.base_answer(AnswerStatus::Refused, StopReason::WriteRequest) };
        self.finish(answer);
    }

    /// Gives up after all attempts, unless an earlier query returned rows.
    pub(super) fn give_up(&mut self, stop: StopReason) {
        if self.empty_fallback.is_some() {
            return self.use_fallback_rows();
        }
        // A model that never wrote SQL has explained the reason in prose.
        if let Some(prose) = self.prose.take().filter(|_| !self.has_sql) {
            let answer = Answer { text: Some(prose), ..self.base_answer(AnswerStatus::Chat, StopReason::Chat) };
            return self.finish(answer);
        }
        let last = self.failures.last();
        // The problem must describe the query that is returned.
        let shown = if stop == StopReason::NotRetryable { self.attempts.last() } else { self.best_attempt() };
        let held_back = shown.is_some_and(|a| a.held_back);
        let error_type = shown.and_then(|a| a.error_type);
        let nothing = if stop == StopReason::TimeBudget {
            "the time budget was exhausted before there was a query"
        } else {
            "there was no attempt"
        };
        let error = shown.and_then(|a| a.error.clone()).or_else(|| last.map(|t| t.message.clone()));
        let message = error.unwrap_or_else(|| nothing.to_string());
        let code = match (stop, error_type) {
            (StopReason::NotRetryable, Some(ErrorType::PermissionDenied)) => ProblemCode::PermissionDeniedNotRetryable,
            (StopReason::NotRetryable, Some(ErrorType::ConnectionError)) => ProblemCode::DatabaseUnavailable,
            (StopReason::TokenBudget | StopReason::CostBudget | StopReason::TimeBudget, _) => {
                ProblemCode::BudgetExceeded
            }
            (StopReason::CorrectionOff | StopReason::NotRetryable, _) if held_back => {
                ProblemCode::PreflightValidationFailed
            }
            _ => ProblemCode::MaxRetriesExceeded,
        };
        let hint = match (stop, error_type) {
            (StopReason::TokenBudget | StopReason::CostBudget | StopReason::TimeBudget, _) => {
                "raise the budget, or ask for less"
            }
            (StopReason::CorrectionOff, _) => "enable self-correction",
            (StopReason::NotRetryable, Some(ErrorType::PermissionDenied)) => {
                "the query may be correct: ask the administrator of the database for access to the tables that it reads"
            }
            (StopReason::NotRetryable, Some(ErrorType::ConnectionError)) => {
                "the query may be correct: check that the database can be reached, then ask again"
            }
            (StopReason::NotRetryable, _) => {
                "`retry_policy` is fail_immediately for this kind of error: allow retries there, or rephrase the question"
            }
            (StopReason::RepeatedSql, _) => {
                "the model wrote the same query again: rephrase the question, or name the tables and columns that you mean"
            }
            _ => "rephrase the question, or name the tables and columns that you mean",
        };
        let answer = Answer {
            sql: shown.map(executed_sql),
            problem: Some(Problem { code, message, hint: Some(hint.into()), retry_after_s: None }),
            ..self.base_answer(AnswerStatus::GaveUp, stop)
        };
        self.finish(answer);
    }

    /// Fails because of an external condition.
    pub(super) fn fail(&mut self, stop: StopReason, problem: Problem) {
        let answer = Answer {
            sql: self.best_attempt().map(executed_sql),
            problem: Some(problem),
            ..self.base_answer(AnswerStatus::Failed, stop)
        };
        self.finish(answer);
    }

    /// Returns the attempt that got furthest: executed before blocked, later before earlier.
    fn best_attempt(&self) -> Option<&Attempt> {
        let is_query =
            |a: &&Attempt| a.finding.as_deref() != Some("no-sql") && a.error.as_deref() != Some(REPEATED_QUERY_MESSAGE);
        let reached = self.attempts.iter().rev().find(|a| !a.held_back);
        reached.or(self.attempts.iter().rev().find(is_query))
    }

    pub(super) fn base_answer(&self, status: AnswerStatus, stop: StopReason) -> Answer {
        Answer {
            status,
            stop,
            trace_id: self.settings.trace_id.clone(),
            question: self.ask.question.clone(),
            sql: None,
            rows: None,
            chart: None,
            text: None,
            confidence: Confidence::Low,
            confidence_features: None,
            reasons: Vec::new(),
            fixes: Vec::new(),
            warnings: Vec::new(),
            attempts: self.attempts.clone(),
            corrections: self.corrections.clone(),
            // Without a model call, no examples were in a prompt.
            examples: if self.exact_match_id.is_some() { Vec::new() } else { self.example_ids.clone() },
            remembered: self.exact_match_id.clone().filter(|_| status == AnswerStatus::Answered),
            clarification: None,
            fallback: self.fallback_reason.is_some() && status == AnswerStatus::Answered,
            analysis: self.analysis_program.clone().filter(|analysis| !analysis.code.is_empty()),
            problem: None,
            metadata: Metadata {
                turns: self.ask.turn_index + 1,
                llm_calls: self.call_counts.model,
                tool_executions: self.call_counts.database,
                correction_attempts: self.call_counts.corrections,
                total_duration_ms: self.now.as_secs_f64() * 1e3,
                guardrails_checked: if self.call_counts.reviews > 0 {
                    self.settings.policy.guardrail_names()
                } else {
                    Vec::new()
                },
                reviews: self.call_counts.reviews,
            },
            cost: self.cost,
        }
    }

    pub(super) fn finish(&mut self, answer: Answer) {
        let stage = match answer.status {
            AnswerStatus::Answered | AnswerStatus::Drafted | AnswerStatus::Chat => Stage::Completed,
            AnswerStatus::AskUser => Stage::HumanInTheLoop,
            AnswerStatus::GaveUp | AnswerStatus::Failed | AnswerStatus::Abstained | AnswerStatus::Refused => {
                Stage::Failed
            }
        };
        self.enter_stage(stage);
        let answer = Box::new(answer);
        self.events.push(Event::Finished { answer: answer.clone() });
        self.answer = Some(answer);
        self.step = RunStep::Done;
    }

    /// Computes the confidence from verified features, and lists the reasons for doubt.
    ///
    /// See `confidence.rs`. Some reasons cap the level.
    fn rate_confidence(&self, rows: &Rows) -> (ConfidenceFeatures, Vec<String>) {
        let mut doubts: Vec<(Confidence, String)> = Vec::new();
        if self.exact_match_id.is_some() {
            doubts.push((Confidence::High, "the same question was answered by this query before".into()));
        }
        if self.fallback_reason.is_some() {
            doubts.push((Confidence::Low, "plain rows were fetched and analysed locally".into()));
        }
        if self.ask.choice.is_some() && self.strategy == CHOICE_STRATEGY {
            doubts.push((Confidence::High, "the user chose this reading".into()));
        }
        doubts.extend(self.current.assumption.clone());
        for fix in &self.current.fixes {
            let level = if fix.applicability == Applicability::Safe { Confidence::High } else { Confidence::Medium };
            doubts.push((level, format!("fixed: {}", fix.why)));
        }
        let guesses = self.current.fixes.iter().filter(|f| f.applicability != Applicability::Safe).count();
        if guesses > 1 {
            doubts.push((Confidence::Medium, format!("{guesses} guesses were needed to fix it")));
        }
        if self.attempt > 1 {
            doubts.push((Confidence::Medium, format!("it took {} attempts", self.attempt)));
        }
        // Empty results are reported separately below.
        let of_rows = |code: &str| ["empty-result", "null-result"].contains(&code);
        for warning in self.current.warnings.iter().filter(|w| !of_rows(w.code)) {
            let is_of_question = Rule::from_code(warning.code).is_some_and(|rule| rule.group == RuleGroup::Question);
            let level = if is_of_question { Confidence::Low } else { Confidence::Medium };
            doubts.push((level, warning.message.clone()));
        }
        let is_reported =
            |s: &LiteralFilter| self.current.warnings.iter().any(|w| w.code == "unknown-value" && w.subject == s.value);
        for stated in self.missing_values.iter().filter(|s| self.current.literal_filters.contains(s) && !is_reported(s))
        {
            let text = format!("{}.{} never holds '{}'", stated.table, stated.column, stated.value);
            doubts.push((Confidence::Medium, text));
        }
        if rows.is_effectively_empty() && self.missing_values.is_empty() {
            let blocking = self.blocking_predicates.as_deref().unwrap_or_default();
            let why = match blocking {
                [] => String::new(),
                [only] => format!(": without `{only}` there would be rows"),
                several => format!(": without any one of `{}` there would be rows", several.join("`, `")),
            };
            doubts.push((Confidence::Medium, format!("nothing was found{why}")));
        }
        if rows.truncated {
            doubts.push((Confidence::Medium, "there are more rows than are shown".into()));
        }
        let cap = doubts.iter().map(|(level, _)| *level).min();
        let mut reasons: Vec<String> = doubts.into_iter().map(|(_, text)| text).collect();
        if self.exact_match_id.is_some() {
            return (ConfidenceFeatures { cap, ..ConfidenceFeatures::default() }, reasons);
        }
        let warnings = self.current.warnings.iter().filter(|w| !of_rows(w.code)).count();
        let flag = |is_set: bool| f64::from(u8::from(is_set));
        let features = ConfidenceFeatures {
            guessed: flag(guesses > 0),
            fixed: flag(guesses == 0 && !self.current.fixes.is_empty()),
            empty: flag(rows.is_effectively_empty()),
            warnings: warnings.min(2) as f64,
            grouped: flag(self.current.features.has_grouping),
            cap,
            ..ConfidenceFeatures::from_query(&self.ask.question, &self.current.sql)
        };
        reasons.extend(features.doubts());
        (features, reasons)
    }
}

/// Returns the query of an attempt in the form that was or would have been executed.
fn executed_sql(attempt: &Attempt) -> String {
    attempt.mended.clone().unwrap_or_else(|| attempt.sql.clone())
}
