//! The end of a run: the answer, how sure it is, and why there is none.

use querymend_sql::coverage::MissingSubject;
use querymend_sql::{Applicability, ErrorType, Rows, Rule, Stated, Without, inspect, review, without_each};

use super::clarify::CHOICE;
use super::steps::{SAME_QUERY, is_empty};
use super::{Hindrance, Run, Step};
use crate::chart::Chart;
use crate::confidence::ConfidenceFeatures;
use crate::event::{Answer, Attempt, Confidence, Event, Metadata, Problem, ProblemCode, Stage, Status, Stop};
use crate::summary;

impl Run {
    /// With the rows of the query that ran last.
    pub(super) fn answered(&mut self, rows: Rows) {
        let conditions = self.conditions(&rows);
        if conditions.is_empty() {
            return self.tell(rows);
        }
        self.found = Some(rows);
        self.step = Step::Explain(conditions);
    }

    /// The query without each of its conditions, if nothing was found and nobody knows why.
    fn conditions(&self, rows: &Rows) -> Vec<Without> {
        let open = is_empty(rows) && self.absent.is_empty() && self.narrow.is_none() && self.fell_back.is_none();
        let known = self.current.warnings.iter().any(|w| w.code == "unknown-value");
        if open && !known && self.settings.correction {
            without_each(&self.current.sql, &self.context())
        } else {
            Vec::new()
        }
    }

    pub(super) fn explained(&mut self, result: Result<Vec<String>, Hindrance>) {
        match result {
            Ok(narrow) => self.narrow = Some(narrow),
            Err(Hindrance::Cancelled) => return self.hindered(Hindrance::Cancelled),
            // The rows are an answer all the same.
            Err(_) => self.narrow = Some(Vec::new()),
        }
        if let Some(rows) = self.found.take() {
            self.tell(rows);
        }
    }

    fn tell(&mut self, rows: Rows) {
        let said = {
            let context = self.context();
            match &self.current.found {
                Some(found) => inspect(found, &rows, &context),
                None => inspect(&review(&self.current.sql, &context), &rows, &context),
            }
        };
        self.current.warnings.extend(said);
        let (features, mut reasons) = self.confidence(&rows);
        reasons.extend(self.not_indexed());
        let answer = Answer {
            sql: Some(self.current.sql.clone()),
            chart: Chart::of(&rows),
            text: Some(summary::sentence(&rows)),
            rows: Some(rows),
            confidence: features.level(),
            confidence_features: Some(features),
            reasons,
            fixes: self.current.fixes.clone(),
            warnings: self.current.warnings.clone(),
            ..self.blank(Status::Answered, Stop::Answered)
        };
        self.finish(answer);
    }

    /// Says so if values of the query were not compared with their column because reading it failed.
    fn not_indexed(&self) -> Option<String> {
        let values = self.schema.values()?;
        let is_unread = |s: &&Stated| {
            let is_same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
            let mut failed = values.not_indexed().iter().filter(|column| column.reason.is_transient());
            failed.any(|column| is_same(&column.table, &s.table) && is_same(&column.column, &s.column))
        };
        let stated = self.current.stated.iter().find(is_unread)?;
        let Stated { table, column, value, .. } = stated;
        Some(format!("'{value}' was not compared with the values of {table}.{column}: they could not be read in time"))
    }

    /// With rows that came earlier: what was tried since was no better.
    pub(super) fn keep(&mut self) {
        if let Some((current, rows)) = self.kept.take() {
            self.current = current;
            self.answered(rows);
        }
    }

    pub(super) fn talked(&mut self, text: &str) {
        let text = Some(text.trim().to_string()).filter(|t| !t.is_empty());
        let answer = Answer { text, confidence: Confidence::High, ..self.blank(Status::Chat, Stop::Talked) };
        self.finish(answer);
    }

    /// With a query that passed every check, where there is no database to run it on.
    pub(super) fn drafted(&mut self) {
        self.mark_corrections();
        if let Some(last) = self.latest_query() {
            last.error = None;
        }
        let answer = Answer {
            sql: Some(self.current.sql.clone()),
            reasons: vec!["it was checked against the tables, and not run: there is no database".into()],
            fixes: self.current.fixes.clone(),
            warnings: self.current.warnings.clone(),
            ..self.blank(Status::Drafted, Stop::NotRun)
        };
        self.finish(answer);
    }

    /// Abstains: the database lacks the subject of the question.
    pub(super) fn abstain(&mut self, missing: MissingSubject) {
        let close = match missing.closest.as_slice() {
            [] => "what the database has".to_string(),
            tables => format!("one of the closest tables ({})", tables.join(", ")),
        };
        let hint = format!("ask about {close}, or say in the question which table holds the {}", missing.subject);
        let problem = Problem::new(ProblemCode::SubjectMissing, missing.message()).hint(hint);
        let answer = Answer { problem: Some(problem), ..self.blank(Status::Abstained, Stop::MissingSubject) };
        self.finish(answer);
    }

    /// Refuses a message that asks to change data.
    pub(super) fn refuse_write(&mut self) {
        let problem = Problem::new(ProblemCode::WriteRefused, "this asks to change data, and data is only read here")
            .hint("ask which rows it is about; change them with a tool that may write to the database");
        let answer = Answer { problem: Some(problem), ..self.blank(Status::Refused, Stop::WriteRequest) };
        self.finish(answer);
    }

    /// Without an answer: everything was tried. Rows that were found on the way are one all the same.
    pub(super) fn give_up(&mut self, stop: Stop) {
        if self.kept.is_some() {
            return self.keep();
        }
        // A model that never wrote SQL has said why in its own words.
        if let Some(prose) = self.prose.take().filter(|_| !self.has_sql) {
            let answer = Answer { text: Some(prose), ..self.blank(Status::Chat, Stop::Talked) };
            return self.finish(answer);
        }
        let last = self.troubles.last();
        // What is said is said of the query that is shown.
        let shown = if stop == Stop::NotRetryable { self.attempts.last() } else { self.best() };
        let held_back = shown.is_some_and(|a| a.held_back);
        let error_type = shown.and_then(|a| a.error_type);
        let nothing = if stop == Stop::TimeSpent {
            "the time was spent before there was a query"
        } else {
            "there was no attempt"
        };
        let told = shown.and_then(|a| a.error.clone()).or_else(|| last.map(|t| t.message.clone()));
        let message = told.unwrap_or_else(|| nothing.to_string());
        let code = match (stop, error_type) {
            (Stop::NotRetryable, Some(ErrorType::PermissionDenied)) => ProblemCode::PermissionDeniedNotRetryable,
            (Stop::NotRetryable, Some(ErrorType::ConnectionError)) => ProblemCode::DatabaseUnavailable,
            (Stop::TokensSpent | Stop::CostSpent | Stop::TimeSpent, _) => ProblemCode::BudgetExceeded,
            (Stop::CorrectionOff | Stop::NotRetryable, _) if held_back => ProblemCode::PreflightValidationFailed,
            _ => ProblemCode::MaxRetriesExceeded,
        };
        let hint = match (stop, error_type) {
            (Stop::TokensSpent | Stop::CostSpent | Stop::TimeSpent, _) => "allow more in the budget, or ask for less",
            (Stop::CorrectionOff, _) => "turn self-correction on",
            (Stop::NotRetryable, Some(ErrorType::PermissionDenied)) => {
                "the query may be right: ask whoever runs the database for access to what it reads"
            }
            (Stop::NotRetryable, Some(ErrorType::ConnectionError)) => {
                "the query may be right: check that the database can be reached, then ask again"
            }
            (Stop::NotRetryable, _) => {
                "`retry_policy` says fail_immediately for this kind of error: allow retries there, or ask in other words"
            }
            (Stop::SameSql, _) => {
                "the model wrote the same query again: ask in other words, or name the tables and columns that you mean"
            }
            _ => "ask in other words, or name the tables and columns that you mean",
        };
        let answer = Answer {
            sql: shown.map(as_sent),
            problem: Some(Problem { code, message, hint: Some(hint.into()), retry_after_s: None }),
            ..self.blank(Status::GaveUp, stop)
        };
        self.finish(answer);
    }

    /// The world is in the way.
    pub(super) fn fail(&mut self, stop: Stop, problem: Problem) {
        let answer =
            Answer { sql: self.best().map(as_sent), problem: Some(problem), ..self.blank(Status::Failed, stop) };
        self.finish(answer);
    }

    /// The attempt that came furthest: one that reached the database before one that did not, a later one before an earlier.
    fn best(&self) -> Option<&Attempt> {
        let is_query = |a: &&Attempt| a.finding.as_deref() != Some("no-sql") && a.error.as_deref() != Some(SAME_QUERY);
        let reached = self.attempts.iter().rev().find(|a| !a.held_back);
        reached.or(self.attempts.iter().rev().find(is_query))
    }

    pub(super) fn blank(&self, status: Status, stop: Stop) -> Answer {
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
            // Where no model was asked, none was shown anything.
            examples: if self.remembered.is_some() { Vec::new() } else { self.examples.clone() },
            remembered: self.remembered.clone().filter(|_| status == Status::Answered),
            clarification: None,
            fallback: self.fell_back.is_some() && status == Status::Answered,
            analysis: self.analysis.clone().filter(|analysis| !analysis.code.is_empty()),
            problem: None,
            metadata: Metadata {
                turns: self.ask.turn + 1,
                llm_calls: self.counts.model,
                tool_executions: self.counts.database,
                correction_attempts: self.counts.corrections,
                total_duration_ms: self.now.as_secs_f64() * 1e3,
                guardrails_checked: if self.counts.reviews > 0 {
                    self.settings.policy.guardrails()
                } else {
                    Vec::new()
                },
                reviews: self.counts.reviews,
            },
            cost: self.cost,
        }
    }

    pub(super) fn finish(&mut self, answer: Answer) {
        let stage = match answer.status {
            Status::Answered | Status::Drafted | Status::Chat => Stage::Completed,
            Status::AskUser => Stage::HumanInTheLoop,
            Status::GaveUp | Status::Failed | Status::Abstained | Status::Refused => Stage::Failed,
        };
        self.stage(stage);
        let answer = Box::new(answer);
        self.events.push(Event::Finished { answer: answer.clone() });
        self.answer = Some(answer);
        self.step = Step::Done;
    }

    /// Rates the answer by what was checked (`confidence.rs`), and names each doubt. Some doubts cap the level by themselves.
    fn confidence(&self, rows: &Rows) -> (ConfidenceFeatures, Vec<String>) {
        let mut doubts: Vec<(Confidence, String)> = Vec::new();
        if self.remembered.is_some() {
            doubts.push((Confidence::High, "the same question was answered by this query before".into()));
        }
        if self.fell_back.is_some() {
            doubts.push((Confidence::Low, "the rows were fetched plainly and analysed here".into()));
        }
        if self.ask.choice.is_some() && self.strategy == CHOICE {
            doubts.push((Confidence::High, "the reading was chosen by the person who asked".into()));
        }
        doubts.extend(self.current.assumed.clone());
        for fix in &self.current.fixes {
            let level = if fix.applicability == Applicability::Safe { Confidence::High } else { Confidence::Medium };
            doubts.push((level, format!("mended: {}", fix.why)));
        }
        let guesses = self.current.fixes.iter().filter(|f| f.applicability != Applicability::Safe).count();
        if guesses > 1 {
            doubts.push((Confidence::Medium, format!("{guesses} guesses were needed to mend it")));
        }
        if self.attempt > 1 {
            doubts.push((Confidence::Medium, format!("it took {} attempts", self.attempt)));
        }
        // What rows say of an empty answer is said below.
        let of_rows = |code: &str| ["empty-result", "null-result"].contains(&code);
        for warning in self.current.warnings.iter().filter(|w| !of_rows(w.code)) {
            let is_of_question = Rule::named(warning.code).is_some_and(|rule| rule.group == "question");
            let level = if is_of_question { Confidence::Low } else { Confidence::Medium };
            doubts.push((level, warning.message.clone()));
        }
        let told = |s: &Stated| self.current.warnings.iter().any(|w| w.code == "unknown-value" && w.subject == s.value);
        for stated in self.absent.iter().filter(|s| self.current.stated.contains(s) && !told(s)) {
            let text = format!("{}.{} never holds '{}'", stated.table, stated.column, stated.value);
            doubts.push((Confidence::Medium, text));
        }
        if is_empty(rows) && self.absent.is_empty() {
            let narrow = self.narrow.as_deref().unwrap_or_default();
            let why = match narrow {
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
        if self.remembered.is_some() {
            return (ConfidenceFeatures { cap, ..ConfidenceFeatures::default() }, reasons);
        }
        let warnings = self.current.warnings.iter().filter(|w| !of_rows(w.code)).count();
        let flag = |is_set: bool| f64::from(u8::from(is_set));
        let features = ConfidenceFeatures {
            guessed: flag(guesses > 0),
            fixed: flag(guesses == 0 && !self.current.fixes.is_empty()),
            empty: flag(is_empty(rows)),
            warnings: warnings.min(2) as f64,
            grouped: flag(self.current.shape.groups),
            cap,
            ..ConfidenceFeatures::of(&self.ask.question, &self.current.sql)
        };
        reasons.extend(features.doubts());
        (features, reasons)
    }
}

/// The query of an attempt, as it was or would have been sent.
fn as_sent(attempt: &Attempt) -> String {
    attempt.mended.clone().unwrap_or_else(|| attempt.sql.clone())
}
