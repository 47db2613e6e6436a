//! A conversation: questions that may refer to earlier ones.

use querymend_sql::ErrorType;

use crate::drive::{Cancel, Querymend};
use crate::event::{Answer, Confidence, Event, Status};
use crate::memory::{Captured, is_complaint, refers_back};
use crate::records::{Analysis, Failure, SqlCorrection};
use crate::run::Ask;
use crate::trace;

/// Earlier questions that a model is shown.
const REMEMBERED: usize = 3;

/// One conversation with a database.
pub struct Session<'q> {
    querymend: &'q Querymend,
    id: String,
    turns: Vec<Answer>,
    /// The last answer, until the next message says what to think of it.
    pending: Option<Answer>,
}

impl<'q> Session<'q> {
    pub(crate) fn new(querymend: &'q Querymend) -> Self {
        Self { querymend, id: trace::id(), turns: Vec::new(), pending: None }
    }

    /// By which its errors are recorded.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Answers so far, oldest first.
    pub fn turns(&self) -> &[Answer] {
        &self.turns
    }

    /// Forgets what was said.
    pub fn reset(&mut self) {
        self.turns.clear();
        self.pending = None;
        self.querymend.records().clear(&self.id);
    }

    /// Asks a question that may refer to what was said before. A question that is cancelled or fails is one
    /// of its turns, but later questions are not shown it.
    pub async fn ask(&mut self, question: &str, tell: &mut (dyn FnMut(&Event) + Send), cancel: &Cancel) -> &Answer {
        self.ask_again(question, false, tell, cancel).await
    }

    /// The same, and where `fresh` is set a model is asked even if the same question was answered before.
    pub async fn ask_again(
        &mut self,
        question: &str,
        fresh: bool,
        tell: &mut (dyn FnMut(&Event) + Send),
        cancel: &Cancel,
    ) -> &Answer {
        self.hear(question).await;
        let answered = self.turns.iter().filter(|t| t.status == Status::Answered);
        let mut earlier: Vec<(String, String)> =
            answered.filter_map(|t| Some((t.question.clone(), t.sql.clone()?))).collect();
        earlier.drain(..earlier.len().saturating_sub(REMEMBERED));
        let ask =
            Ask { question: question.to_string(), earlier, turn: self.turns.len() as u32, fresh, ..Ask::default() };
        let answer = self.querymend.ask_with(ask, tell, cancel).await;
        self.record(&answer);
        let alone = self.turns.is_empty() || !refers_back(question);
        self.pending = (answer.status == Status::Answered && alone).then(|| answer.clone());
        self.turns.push(answer);
        &self.turns[self.turns.len() - 1]
    }

    /// Takes the next message as a word on the answer before it: a complaint, or nothing against it. Gives back what became of
    /// that answer in memory. [`Session::ask`] does so by itself.
    pub async fn hear(&mut self, message: &str) -> Option<Captured> {
        let (memory, answer) = (self.querymend.memory()?, self.pending.take()?);
        let heard = if is_complaint(message) {
            memory.complain(&answer).await.map(|()| Captured::No)
        } else if self.querymend.config().memory.capture {
            memory.capture(&answer).await
        } else {
            Ok(Captured::No)
        };
        heard.inspect_err(|error| tracing::warn!("memory cannot be written: {error}")).ok()
    }

    /// Takes the last answer out of the conversation's reach: a person said what is to become of it.
    pub fn settled(&mut self) {
        self.pending = None;
    }

    /// What went wrong is kept until a question of the conversation is answered.
    fn record(&self, answer: &Answer) {
        let records = self.querymend.records();
        if answer.status == Status::Answered {
            records.clear(&self.id);
            return;
        }
        for attempt in answer.attempts.iter() {
            let Some(message) = &attempt.error else { continue };
            let code = attempt.finding.clone().unwrap_or_default();
            let mended = attempt.mended.clone().map(|corrected| SqlCorrection {
                original: attempt.sql.clone(),
                corrected,
                explanation: attempt.fixes.iter().map(|f| f.why.as_str()).collect::<Vec<_>>().join("; "),
                code: attempt.fixes.first().map_or(String::new(), |f| f.code.to_string()),
                confidence: Confidence::Low,
            });
            let suggestions = answer.choices.clone();
            let error_type = attempt.error_type.unwrap_or(ErrorType::Unknown);
            let analysis = Analysis { error_type, summary: message.clone(), suggestions };
            let (sql, message) = (attempt.sql.clone(), message.clone());
            records.note(&self.id, Failure { sql, code, message, analysis, correction: mended });
        }
    }
}
