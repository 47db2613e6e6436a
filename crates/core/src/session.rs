//! Conversations: questions that may refer to previous ones.

use querymend_sql::ErrorType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cancel::CancellationToken;
use crate::error_history::{ErrorAnalysis, QueryFailure, SqlCorrection};
use crate::event::{Answer, AnswerStatus, Confidence, Event};
use crate::memory::{CaptureOutcome, PendingFeedback, is_complaint, is_follow_up};
use crate::querymend::Querymend;
use crate::run::AskInput;
use crate::trace_id;

/// Maximum number of previous questions in a prompt.
const MAX_HISTORY_TURNS: usize = 3;
/// Maximum number of previous questions stored in a conversation.
const MAX_TURNS: usize = 50;

/// Serializable state of a conversation, sufficient to resume it elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// Identifier of the conversation and of its error history.
    pub id: String,
    /// Total number of questions asked.
    pub asked: u32,
    /// Most recent questions, oldest first; at most 50.
    pub turns: Vec<Turn>,
    /// Last answer, until the next message provides feedback on it. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<PendingFeedback>,
}

/// Question of a conversation and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// Question of the user.
    pub question: String,
    /// Query that answered it, or the best attempt. Absent if there was none.
    pub sql: Option<String>,
    /// Outcome of the question.
    pub status: AnswerStatus,
    /// Identifier of the run.
    pub trace_id: String,
}

impl Conversation {
    /// Creates an empty conversation.
    pub fn new() -> Self {
        Self { id: trace_id::generate(), asked: 0, turns: Vec::new(), unjudged: None }
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

/// Conversation with a database.
pub struct ConversationSession<'q> {
    querymend: &'q Querymend,
    conversation: Conversation,
    answers: Vec<Answer>,
}

impl Querymend {
    /// Starts a conversation.
    pub fn session(&self) -> ConversationSession<'_> {
        self.resume(Conversation::new())
    }

    /// Resumes a conversation.
    pub fn resume(&self, conversation: Conversation) -> ConversationSession<'_> {
        ConversationSession::new(self, conversation)
    }
}

impl<'q> ConversationSession<'q> {
    pub(crate) fn new(querymend: &'q Querymend, conversation: Conversation) -> Self {
        Self { querymend, conversation, answers: Vec::new() }
    }

    /// Returns the identifier of the conversation.
    pub fn id(&self) -> &str {
        &self.conversation.id
    }

    /// Returns the state of the conversation, including turns before it was resumed.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the state of the conversation, to resume it elsewhere.
    pub fn into_conversation(self) -> Conversation {
        self.conversation
    }

    /// Returns the answers of this session, oldest first.
    pub fn answers(&self) -> &[Answer] {
        &self.answers
    }

    /// Clears the conversation, but keeps its identifier.
    pub fn reset(&mut self) {
        self.answers.clear();
        self.conversation = Conversation { id: std::mem::take(&mut self.conversation.id), ..Conversation::new() };
        self.querymend.error_history().clear(&self.conversation.id);
    }

    /// Asks a question that may refer to previous ones.
    ///
    /// A question that is cancelled or fails counts as a turn, but is not included in later
    /// prompts.
    pub async fn ask(
        &mut self,
        question: &str,
        on_event: &mut (dyn FnMut(&Event) + Send),
        cancel: &CancellationToken,
    ) -> &Answer {
        let ask = AskInput { question: question.to_string(), ..AskInput::default() };
        self.ask_with(ask, on_event, cancel).await
    }

    /// Asks a question with full input options. The history is filled in from the conversation.
    pub async fn ask_with(
        &mut self,
        ask: AskInput,
        on_event: &mut (dyn FnMut(&Event) + Send),
        cancel: &CancellationToken,
    ) -> &Answer {
        self.record_feedback(&ask.question).await;
        let answered = self.conversation.turns.iter().filter(|turn| turn.status == AnswerStatus::Answered);
        let mut earlier: Vec<(String, String)> =
            answered.filter_map(|turn| Some((turn.question.clone(), turn.sql.clone()?))).collect();
        earlier.drain(..earlier.len().saturating_sub(MAX_HISTORY_TURNS));
        let is_standalone = self.conversation.asked == 0 || !is_follow_up(&ask.question);
        let ask = AskInput { history: earlier, turn_index: self.conversation.asked, ..ask };
        let answer = self.querymend.ask_with(ask, on_event, cancel).await;
        self.record_errors(&answer);
        let pending_feedback =
            (answer.status == AnswerStatus::Answered && is_standalone).then(|| PendingFeedback::from(&answer));
        self.conversation.unjudged = pending_feedback;
        self.conversation.asked += 1;
        let turns = &mut self.conversation.turns;
        turns.drain(..turns.len().saturating_sub(MAX_TURNS - 1));
        turns.push(Turn {
            question: answer.question.clone(),
            sql: answer.sql.clone(),
            status: answer.status,
            trace_id: answer.trace_id.clone(),
        });
        self.answers.push(answer);
        &self.answers[self.answers.len() - 1]
    }

    /// Interprets the next message as feedback on the previous answer.
    ///
    /// It is a complaint, or implicit approval. Returns the outcome for that answer in memory.
    /// [`ConversationSession::ask`] calls this itself.
    pub async fn record_feedback(&mut self, message: &str) -> Option<CaptureOutcome> {
        let (memory, answer) = (self.querymend.memory()?, self.conversation.unjudged.take()?);
        let outcome = if is_complaint(message) {
            memory.record_complaint(&answer).await.map(|()| CaptureOutcome::Ignored)
        } else if self.querymend.config().memory.capture {
            memory.capture(&answer).await
        } else {
            Ok(CaptureOutcome::Ignored)
        };
        outcome.inspect_err(|error| tracing::warn!("memory cannot be written: {error}")).ok()
    }

    /// Excludes the last answer from implicit feedback, because the user gave explicit feedback.
    pub fn clear_pending_feedback(&mut self) {
        self.conversation.unjudged = None;
    }

    /// Records failed attempts, until a question of the conversation is answered.
    fn record_errors(&self, answer: &Answer) {
        let records = self.querymend.error_history();
        if answer.status == AnswerStatus::Answered {
            records.clear(&self.conversation.id);
            return;
        }
        for attempt in answer.attempts.iter() {
            // An attempt that repeats an earlier query has no finding, and adds no information.
            let (Some(message), Some(code)) = (&attempt.error, attempt.finding.clone()) else { continue };
            let correction = attempt.mended.clone().map(|corrected| SqlCorrection {
                original: attempt.sql.clone(),
                corrected,
                explanation: attempt.fixes.iter().map(|f| f.why.as_str()).collect::<Vec<_>>().join("; "),
                code: attempt.fixes.first().map_or(String::new(), |f| f.code.to_string()),
                confidence: Confidence::Low,
            });
            let options = answer.clarification.iter().flat_map(|clarification| &clarification.options);
            let suggestions = options.map(|choice| choice.label.clone()).collect();
            let error_type = attempt.error_type.unwrap_or(ErrorType::Unknown);
            let analysis = ErrorAnalysis { error_type, summary: message.clone(), suggestions };
            let (sql, message) = (attempt.sql.clone(), message.clone());
            records.record(&self.conversation.id, QueryFailure { sql, code, message, analysis, correction });
        }
    }
}
