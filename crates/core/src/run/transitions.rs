//! State transitions for each step outcome.

use std::sync::Arc;

use querymend_sql::diff::NormalizedTokens;
use querymend_sql::schema::Schema;
use querymend_sql::{
    Applicability, Approved, EngineError, ErrorType, Finding, LiteralFilter, QueryReferences, RepairOutcome,
    RepairStatus, Review, ReviewContext, Rows, Severity, ValueMention, Verdict, classify, dialect, is_wrapper_rule,
    review,
};

use super::{Current, GatheredContext, MAX_QUESTION_BYTES, ModelDraft, Purpose, QuestionRun, RunStep, StepError};
use crate::event::{Attempt, Event, Problem, ProblemCode, Stage, StopReason};
use crate::intent::{self, Intent};
use crate::linking::SchemaLinker;
use crate::prompts;
use crate::run::{CHOICE_STRATEGY, MAX_TEXT_BYTES};
use crate::strategies::AttemptFailure;

/// Minimum length of the schema in a prompt, in bytes; with less, no query can be written.
const MIN_SCHEMA_BYTES: usize = 200;

/// Error message of an attempt that repeats an earlier query.
pub(super) const REPEATED_QUERY_MESSAGE: &str = "the same query was tried before";

impl QuestionRun {
    /// Rejects invalid questions before any step.
    pub(super) fn check_question(&mut self) {
        let length = self.ask.question.len() + self.ask.evidence.as_ref().map_or(0, String::len);
        let wrong = if self.ask.question.trim().is_empty() {
            Some("the question is empty".to_string())
        } else if length > MAX_QUESTION_BYTES {
            Some(format!("the question has {length} bytes; at most {MAX_QUESTION_BYTES} are accepted"))
        } else {
            None
        };
        match wrong {
            Some(message) => {
                let hint = Some("ask one question in a few sentences".to_string());
                let problem = Problem { code: ProblemCode::BadRequest, message, hint, retry_after_s: None };
                self.fail(StopReason::BadQuestion, problem);
            }
            None => self.enter_stage(Stage::SchemaDiscovery),
        }
    }

    pub(super) fn enter_stage(&mut self, stage: Stage) {
        self.events.push(Event::Stage { stage, attempt: self.attempt });
    }

    pub(super) fn on_gathered(&mut self, result: Result<GatheredContext, StepError>) {
        let GatheredContext { linker, retrieved: recalled, missing_subject: missing } = match result {
            Ok(gathered) => gathered,
            Err(error) => return self.on_step_error(error),
        };
        self.schema = Arc::clone(linker.schema());
        self.enter_stage(Stage::PatternSelection);
        if let Some(sql) = self.ask.choice.clone() {
            self.linker = linker;
            self.few_shot_examples = self.select_few_shot_examples(&recalled);
            self.build_prompt();
            self.strategy = CHOICE_STRATEGY;
            return self.review_draft(sql);
        }
        match intent::classify(&self.ask.question, &self.schema) {
            Intent::Data => {}
            Intent::Chat => {
                let tables: Vec<&str> = self.schema.tables().iter().map(|t| t.name.as_str()).take(50).collect();
                self.conversation = prompts::chat(&self.ask.question, &tables);
                self.purpose = Purpose::Chat;
                return self.call_model();
            }
            Intent::DataModel => return self.on_chat_reply(&intent::describe(&self.ask.question, &self.schema)),
            Intent::Write => return self.refuse_write(),
        }
        let is_known = recalled.exact_match.is_some() && !self.ask.bypass_memory;
        if let Some(missing) = missing.filter(|_| !is_known) {
            return self.abstain(*missing);
        }
        self.linker = linker;
        self.few_shot_examples = self.select_few_shot_examples(&recalled);
        self.build_prompt();
        if !self.try_exact_match(recalled) {
            self.call_model();
        }
    }

    /// Builds the draft prompt with as much of the schema as fits.
    fn build_prompt(&mut self) {
        // The evidence names tables too.
        let question_text = match &self.ask.evidence {
            Some(evidence) => format!("{} {evidence}", self.ask.question),
            None => self.ask.question.clone(),
        };
        let linked =
            self.linker.link_with_values(&question_text, &self.mentioned_values(&question_text), self.max_schema_bytes);
        let draft = prompts::DraftPrompt {
            dialect: self.dialect.title,
            notes: self.dialect.prompt_notes,
            schema: &linked.text,
            evidence: self.ask.evidence.as_deref(),
            examples: &self.few_shot_examples,
            history: &self.ask.history,
            question: &self.ask.question,
        };
        self.conversation = prompts::draft(self.settings.variant, &draft);
        self.events.push(Event::SchemaLinked { tables: linked.tables.clone(), of: linked.total_tables });
        self.linked_tables = linked.tables;
    }

    /// Returns the column values that the question mentions, which indicate relevant tables.
    ///
    /// Not needed if the entire schema fits.
    fn mentioned_values(&self, asked: &str) -> Vec<ValueMention> {
        if self.linker.fits_in(self.max_schema_bytes) {
            return Vec::new();
        }
        self.schema.value_index().map(|values| values.mentions(asked)).unwrap_or_default()
    }

    /// Halves the schema and drops the examples after the prompt exceeded the context window.
    fn shrink_prompt(&mut self, problem: Problem) {
        let sent_bytes = self.conversation.iter().map(|message| message.text.len()).sum::<usize>();
        let is_shrinkable = matches!(self.purpose, Purpose::Draft | Purpose::Recall);
        if !is_shrinkable || self.max_schema_bytes <= MIN_SCHEMA_BYTES {
            return self.on_step_error(StepError::Unavailable(problem));
        }
        self.max_schema_bytes = self.max_schema_bytes.min(sent_bytes) / 2;
        self.few_shot_examples.clear();
        self.example_ids.clear();
        self.build_prompt();
        self.call_model();
    }

    /// Prompts the model, unless the budget is exhausted.
    pub(super) fn call_model(&mut self) {
        if let Some(stop) = self.settings.budget.exhausted(&self.cost, self.now) {
            return self.give_up(stop);
        }
        self.enter_stage(Stage::Generation);
        let sql = !matches!(self.purpose, Purpose::Chat | Purpose::Program);
        // Only the first draft is sampled several times: feedback about an error has one correct
        // answer.
        let compares_candidates = self.purpose == Purpose::Draft && self.attempts.is_empty() && !self.settings.offline;
        let extra_candidates = if compares_candidates { self.settings.extra_candidates } else { 0 };
        let (messages, temperature) = (self.conversation.clone(), self.settings.temperature);
        self.step = RunStep::Complete { messages, temperature, sql, extra_candidates };
    }

    pub(super) fn on_completion(&mut self, result: Result<ModelDraft, StepError>) {
        self.call_counts.model += 1;
        self.record_correction_time();
        let draft = match result {
            Ok(draft) => draft,
            // A timeout caused by the question's deadline is not a failure of the model.
            Err(StepError::Unavailable(problem))
                if problem.code == ProblemCode::ModelUnavailable
                    && self.settings.budget.exhausted(&self.cost, self.now) == Some(StopReason::TimeBudget) =>
            {
                return self.give_up(StopReason::TimeBudget);
            }
            Err(StepError::Cancelled) => return self.on_step_error(StepError::Cancelled),
            // The program is optional.
            Err(_) if self.purpose == Purpose::Program => return self.on_program(""),
            // Small talk can be answered without a model.
            Err(_) if self.purpose == Purpose::Chat => return self.on_chat_reply(intent::GREETING),
            Err(StepError::ContextTooLong(problem)) => return self.shrink_prompt(problem),
            Err(error) => return self.on_step_error(error),
        };
        self.cost = self.cost.plus(draft.cost);
        let text = prompts::truncate(&draft.text, MAX_TEXT_BYTES).to_string();
        self.events.push(Event::Drafted { attempt: self.attempt, text, usage: draft.cost });
        match self.purpose {
            Purpose::Chat => self.on_chat_reply(&draft.text),
            Purpose::Program => self.on_program(&draft.text),
            Purpose::Draft if !draft.alternatives.is_empty() && self.settings.self_correction => {
                self.compare_candidates(draft)
            }
            Purpose::Recall | Purpose::Draft | Purpose::Analysis => self.review_draft(draft.text),
        }
    }

    /// Reviews a draft and executes, repairs or rejects it.
    pub(super) fn review_draft(&mut self, text: String) {
        self.enter_stage(Stage::GuardrailCheck);
        let review = self.review(&text);
        let no_sql = review.references.sql.trim().is_empty();
        self.has_sql |= !no_sql;
        self.prose = Some(text.trim().to_string()).filter(|text| no_sql && is_prose(text));
        let sql = if no_sql { text.trim() } else { review.references.sql.trim() }.to_string();
        self.events.push(Event::Reviewed {
            attempt: self.attempt,
            sql: prompts::truncate(&sql, MAX_TEXT_BYTES).to_string(),
            approved: review.verdict() == Verdict::Approved,
            findings: review.findings.clone(),
            extracted: QueryReferences {
                sql: prompts::truncate(&review.references.sql, MAX_TEXT_BYTES).to_string(),
                ..review.references.clone()
            },
        });
        let mut tokens = if no_sql { NormalizedTokens::tokenize(&sql, self.dialect) } else { review.tokens() };
        let is_new = self.seen_queries.insert(tokens.identity().to_string());
        if sql.len() > MAX_TEXT_BYTES {
            // Events and diffs only contain the truncated text.
            tokens = NormalizedTokens::tokenize(prompts::truncate(&sql, MAX_TEXT_BYTES), self.dialect);
        }
        let before = std::mem::replace(&mut self.last_tokens, tokens);
        if !self.attempts.is_empty() {
            let changes = before.changes(&self.last_tokens);
            self.events.push(Event::Changed { attempt: self.attempt, changes });
        }
        let attempt = Attempt {
            number: self.attempt,
            sql: prompts::truncate(&sql, MAX_TEXT_BYTES).to_string(),
            mended: None,
            fixes: Vec::new(),
            error: review.findings.iter().find(|f| f.severity == Severity::Error).map(|f| f.message.clone()),
            finding: None,
            error_type: None,
            strategy: self.strategy,
            held_back: true,
        };
        match self.purpose {
            Purpose::Analysis => self.fallback_query = Some(attempt),
            _ => self.attempts.push(attempt),
        }
        self.draft_text = text;
        self.current = Current { sql: sql.clone(), ..Current::default() };
        if !is_new {
            if let Some(last) = self.latest_attempt() {
                last.error = Some(REPEATED_QUERY_MESSAGE.into());
            }
            return self.out_of_attempts(StopReason::RepeatedSql);
        }
        let has_error_fix = review.findings.iter().any(|f| f.severity == Severity::Error && !f.fixes.is_empty());
        let fixes_silently = |f: &Finding| (f.code == "unknown-value" && is_safe(f)) || f.has_provable_fix();
        let needs_silent_fix = self.settings.self_correction && review.findings.iter().any(fixes_silently);
        let skips_preflight = !self.settings.self_correction || !self.settings.preflight;
        match review.approve() {
            // An error that no database reports is fixed if the database confirms the fix.
            Ok(_) if review.is_clean() && needs_silent_fix => self.start_repair(None),
            Ok(query) if review.is_clean() || skips_preflight => {
                self.record_extraction_fixes(&review);
                self.execute(query, review);
            }
            // Without a fix from any rule, the repair search cannot succeed.
            _ if self.settings.self_correction && has_error_fix => self.start_repair(None),
            _ => self.on_failure(self.rejected_by_review(&review.findings)),
        }
    }

    pub(super) fn review(&mut self, text: &str) -> Review {
        self.call_counts.reviews += 1;
        let context = ReviewContext {
            schema: Some(&self.schema),
            dialect: self.dialect,
            policy: &self.settings.policy,
            question: Some(&self.ask.question),
        };
        let mut found = review(text, &context);
        // Terms that the evidence defines are covered.
        if let Some(evidence) = self.ask.evidence.as_ref().map(|evidence| evidence.to_lowercase()) {
            let is_defined = |f: &Finding| f.code == "uncovered-term" && evidence.contains(&f.subject.to_lowercase());
            found.findings.retain(|finding| !is_defined(finding));
        }
        found
    }

    pub(super) fn start_repair(&mut self, error: Option<EngineError>) {
        self.enter_stage(Stage::SelfCorrection);
        self.call_counts.corrections += 1;
        let text = if error.is_some() { self.current.sql.clone() } else { self.draft_text.clone() };
        self.current.engine_error.clone_from(&error);
        self.step = RunStep::Repair { text, error };
    }

    pub(super) fn on_repaired(&mut self, result: Result<RepairOutcome, StepError>) {
        let repair = match result {
            Ok(repair) => repair,
            Err(error) => return self.on_step_error(error),
        };
        match self.approve_repair(&repair) {
            Some((query, found)) => {
                if !self.compare_repair(&repair, &query) {
                    self.execute_repaired(&repair, query, found);
                }
            }
            None => {
                let failure = match self.current.engine_error.take() {
                    Some(error) => self.rejected_by_engine(&error),
                    None if has_error(&repair.findings) => self.rejected_by_review(&repair.findings),
                    // The database rejected the repaired query; report the errors of the draft
                    // itself.
                    None => {
                        let drafted = self.draft_text.clone();
                        let found = self.review(&drafted);
                        self.rejected_by_review(&found.findings)
                    }
                };
                self.on_failure(failure);
            }
        }
    }

    pub(super) fn execute_repaired(&mut self, repair: &RepairOutcome, query: Approved, found: Review) {
        if !repair.applied.iter().all(|fix| is_wrapper_rule(fix.code)) {
            self.record_repair(repair);
        }
        self.execute(query, found);
    }

    /// Returns the query of a repair, if it is approved and was not executed before.
    pub(super) fn approve_repair(&mut self, repair: &RepairOutcome) -> Option<(Approved, Review)> {
        let refused = self.current.engine_error.is_some();
        let unchanged_will_do = match repair.status {
            RepairStatus::Mended => !refused,
            // The review was wrong: the database accepts the query unchanged.
            RepairStatus::Untouched if !refused => true,
            RepairStatus::Untouched | RepairStatus::GaveUp | RepairStatus::Refused => return None,
        };
        let found = self.review(&repair.sql);
        let query = found.approve().ok()?;
        // Compare the extracted queries, without their wrapping.
        let tokens = found.tokens();
        let fits = if tokens.identity() == NormalizedTokens::tokenize(&self.current.sql, self.dialect).identity() {
            unchanged_will_do
        } else {
            !self.seen_queries.contains(tokens.identity())
        };
        fits.then_some((query, found))
    }

    pub(super) fn execute(&mut self, query: Approved, found: Review) {
        self.enter_stage(Stage::ToolExecution);
        if query.sql() != self.current.sql {
            self.seen_queries.insert(found.tokens().identity().to_string());
            self.current.sql = query.sql().to_string();
        }
        self.current.warnings = only_warnings(found.findings.clone());
        self.current.literal_filters.clone_from(&found.literal_filters);
        self.current.features = found.features;
        self.current.review = (found.source == self.current.sql).then(|| Arc::new(found));
        if let Some(last) = self.latest_attempt() {
            last.held_back = false;
        }
        if self.settings.offline {
            return self.finish_unexecuted();
        }
        self.step = RunStep::Execute(query);
    }

    pub(super) fn on_executed(&mut self, result: Result<Rows, StepError>) {
        self.call_counts.database += 1;
        match result {
            Ok(rows) => self.on_rows(rows),
            Err(StepError::Rejected(_) | StepError::TimedOut(_)) if self.purpose == Purpose::Recall => {
                self.on_stale_example()
            }
            Err(StepError::Rejected(error)) => {
                let classified = classify(self.dialect, &error);
                self.events.push(Event::Rejected {
                    attempt: self.attempt,
                    sql: self.current.sql.clone(),
                    error: error.clone(),
                    finding: classified.finding,
                    error_type: ErrorType::of(classified.finding),
                });
                let is_not_retryable = [ErrorType::PermissionDenied, ErrorType::ConnectionError]
                    .contains(&ErrorType::of(classified.finding));
                if self.settings.self_correction && !self.current.repaired_after_rejection && !is_not_retryable {
                    self.current.repaired_after_rejection = true;
                    self.start_repair(Some(error));
                } else {
                    self.on_failure(self.rejected_by_engine(&error));
                }
            }
            Err(StepError::TimedOut(after)) => {
                let message = format!("the query was stopped after {} seconds", after.as_secs_f64());
                let plain = self.failure(message);
                self.on_failure(AttemptFailure { code: "timed-out".into(), error_type: ErrorType::Timeout, ..plain });
            }
            Err(error) => self.on_step_error(error),
        }
    }

    fn on_rows(&mut self, rows: Rows) {
        self.events.push(Event::Executed {
            attempt: self.attempt,
            sql: self.current.sql.clone(),
            rows: rows.rows.len(),
            truncated: rows.truncated,
            ms: (self.now - self.step_started).as_secs_f64() * 1e3,
        });
        self.mark_correction_successful();
        if let Some(last) = self.latest_attempt() {
            last.error = None;
        }
        let is_empty = rows.is_effectively_empty();
        let looks_up_values = is_empty
            && !self.current.literal_filters.is_empty()
            && self.settings.self_correction
            && self.fallback_reason.is_none();
        let looks = looks_up_values && self.exact_match_id.is_none();
        if self.empty_fallback.is_some() && (is_empty || !self.uses_shown_value()) {
            // The retry was caused by an empty result. Only a query that uses an existing value is
            // better.
            return self.use_fallback_rows();
        }
        if looks && self.attempt < self.settings.budget.max_attempts {
            let current = self.current.clone();
            self.step = RunStep::LookUpValues(current.literal_filters.clone());
            self.empty_fallback = Some((current, rows));
        } else {
            self.finish_with_rows(rows);
        }
    }

    /// Returns whether the query uses a suggested value instead of the missing one.
    fn uses_shown_value(&self) -> bool {
        let shown = self.failures.iter().flat_map(|t| &t.values);
        let took = |(absent, held): &(LiteralFilter, Vec<String>)| {
            let there = self.current.literal_filters.iter().any(|s| held.contains(&s.value));
            there && !self.current.sql.contains(&format!("'{}'", absent.value))
        };
        shown.clone().any(took)
    }

    pub(super) fn on_value_lookup(&mut self, result: Result<Vec<(LiteralFilter, Vec<String>)>, StepError>) {
        let missing = match result {
            Ok(absent) => absent,
            Err(error) => return self.on_step_error(error),
        };
        self.missing_values = missing.iter().map(|(stated, _)| stated.clone()).collect();
        let helpful: Vec<(LiteralFilter, Vec<String>)> =
            missing.into_iter().filter(|(_, held)| !held.is_empty()).collect();
        let Some((first, _)) = helpful.first() else { return self.use_fallback_rows() };
        let failure = self.failure("the query runs and finds nothing".into());
        self.on_failure(AttemptFailure {
            code: "unknown-value".into(),
            subject: first.value.clone(),
            from_database: false,
            values: helpful,
            ..failure
        });
    }

    pub(super) fn on_tables_fetched(&mut self, result: Result<Arc<Schema>, StepError>) {
        self.call_counts.database += 1;
        match result {
            Ok(schema) => {
                let linker = SchemaLinker::new(schema, &dialect::SQLITE, &self.settings.policy);
                let linked = linker.link(&self.ask.question, usize::MAX);
                self.schema = Arc::clone(linker.schema());
                self.dialect = &dialect::SQLITE;
                self.seen_queries.clear();
                self.purpose = Purpose::Analysis;
                self.strategy = "fallback";
                let evidence = self.ask.evidence.as_deref();
                self.conversation = prompts::analyse(&linked.text, evidence, &self.ask.question);
                self.call_model();
            }
            Err(StepError::Cancelled) => self.on_step_error(StepError::Cancelled),
            Err(_) => self.give_up(self.fallback_reason.unwrap_or(StopReason::MaxAttempts)),
        }
    }
}

fn is_safe(finding: &Finding) -> bool {
    finding.fixes.first().is_some_and(|fix| fix.applicability == Applicability::Safe)
}

/// Minimum number of words in a sentence.
const MIN_PROSE_WORDS: usize = 4;

/// Returns whether a text consists of sentences, and is not data, code or noise.
fn is_prose(text: &str) -> bool {
    let is_plain = |c: &char| c.is_alphabetic() || c.is_whitespace() || ".,;:!?'’\"()-".contains(*c);
    let (length, plain) = (text.chars().count(), text.chars().filter(is_plain).count());
    let words = text.split_whitespace().count();
    words >= MIN_PROSE_WORDS && plain * 10 >= length * 9 && length <= words * 15
}

fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|f| f.severity == Severity::Error)
}

fn only_warnings(findings: Vec<Finding>) -> Vec<Finding> {
    findings.into_iter().filter(|f| f.severity == Severity::Warning).collect()
}
