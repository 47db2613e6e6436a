//! A conversation: questions that may refer to earlier ones.

use querymend_sql::ErrorType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Answer, Confidence, Event, Status};
use crate::id;
use crate::memory::{Captured, Unjudged, is_complaint, refers_back};
use crate::querymend::{Cancel, Querymend};
use crate::records::{Analysis, Failure, SqlCorrection};
use crate::run::Ask;

/// Earlier questions that a model is shown.
const SHOWN: usize = 3;
/// Earlier questions that a conversation holds.
const HELD: usize = 50;

/// What has been said in a conversation: all that is needed to go on with it elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// By which it is found, and by which its errors are recorded.
    pub id: String,
    /// How many questions there were.
    pub asked: u32,
    /// The last of them, oldest first.
    pub turns: Vec<Turn>,
    /// The last answer, until the next message says what to think of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<Unjudged>,
}

/// One question of a conversation and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// The question.
    pub question: String,
    /// The query that answered it, or the best attempt.
    pub sql: Option<String>,
    /// How it ended.
    pub status: Status,
    /// By which the run is found again.
    pub trace_id: String,
}

impl Conversation {
    /// One in which nothing was said yet.
    pub fn new() -> Self {
        Self { id: id::fresh(), asked: 0, turns: Vec::new(), unjudged: None }
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

/// One conversation with a database.
pub struct Session<'q> {
    querymend: &'q Querymend,
    conversation: Conversation,
    answers: Vec<Answer>,
}

impl<'q> Session<'q> {
    pub(crate) fn new(querymend: &'q Querymend, conversation: Conversation) -> Self {
        Self { querymend, conversation, answers: Vec::new() }
    }

    /// By which its errors are recorded.
    pub fn id(&self) -> &str {
        &self.conversation.id
    }

    /// What has been said, also before it was taken up here.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Lets go of it, so that it can be taken up elsewhere.
    pub fn into_conversation(self) -> Conversation {
        self.conversation
    }

    /// Answers given here so far, oldest first.
    pub fn turns(&self) -> &[Answer] {
        &self.answers
    }

    /// Forgets what was said.
    pub fn reset(&mut self) {
        self.answers.clear();
        self.conversation = Conversation { id: std::mem::take(&mut self.conversation.id), ..Conversation::new() };
        self.querymend.records().clear(&self.conversation.id);
    }

    /// Asks a question that may refer to what was said before. A question that is cancelled or fails is one
    /// of its turns, but later questions are not shown it.
    pub async fn ask(&mut self, question: &str, tell: &mut (dyn FnMut(&Event) + Send), cancel: &Cancel) -> &Answer {
        let ask = Ask { question: question.to_string(), ..Ask::default() };
        self.ask_with(ask, tell, cancel).await
    }

    /// The same with all that can be said about a question; what was said before is added here.
    pub async fn ask_with(&mut self, ask: Ask, tell: &mut (dyn FnMut(&Event) + Send), cancel: &Cancel) -> &Answer {
        self.hear(&ask.question).await;
        let answered = self.conversation.turns.iter().filter(|turn| turn.status == Status::Answered);
        let mut earlier: Vec<(String, String)> =
            answered.filter_map(|turn| Some((turn.question.clone(), turn.sql.clone()?))).collect();
        earlier.drain(..earlier.len().saturating_sub(SHOWN));
        let alone = self.conversation.asked == 0 || !refers_back(&ask.question);
        let ask = Ask { earlier, turn: self.conversation.asked, ..ask };
        let answer = self.querymend.ask_with(ask, tell, cancel).await;
        self.record(&answer);
        let unjudged = (answer.status == Status::Answered && alone).then(|| Unjudged::from(&answer));
        self.conversation.unjudged = unjudged;
        self.conversation.asked += 1;
        let turns = &mut self.conversation.turns;
        turns.drain(..turns.len().saturating_sub(HELD - 1));
        turns.push(Turn {
            question: answer.question.clone(),
            sql: answer.sql.clone(),
            status: answer.status,
            trace_id: answer.trace_id.clone(),
        });
        self.answers.push(answer);
        &self.answers[self.answers.len() - 1]
    }

    /// Takes the next message as a word on the answer before it: a complaint, or nothing against it. Gives back what became of
    /// that answer in memory. [`Session::ask`] does so by itself.
    pub async fn hear(&mut self, message: &str) -> Option<Captured> {
        let (memory, answer) = (self.querymend.memory()?, self.conversation.unjudged.take()?);
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
        self.conversation.unjudged = None;
    }

    /// What went wrong is kept until a question of the conversation is answered.
    fn record(&self, answer: &Answer) {
        let records = self.querymend.records();
        if answer.status == Status::Answered {
            records.clear(&self.conversation.id);
            return;
        }
        for attempt in answer.attempts.iter() {
            // An attempt that only repeats an earlier one has no finding, and says nothing new.
            let (Some(message), Some(code)) = (&attempt.error, attempt.finding.clone()) else { continue };
            let mended = attempt.mended.clone().map(|corrected| SqlCorrection {
                original: attempt.sql.clone(),
                corrected,
                explanation: attempt.fixes.iter().map(|f| f.why.as_str()).collect::<Vec<_>>().join("; "),
                code: attempt.fixes.first().map_or(String::new(), |f| f.code.to_string()),
                confidence: Confidence::Low,
            });
            let options = answer.clarification.iter().flat_map(|clarification| &clarification.options);
            let suggestions = options.map(|choice| choice.label.clone()).collect();
            let error_type = attempt.error_type.unwrap_or(ErrorType::Unknown);
            let analysis = Analysis { error_type, summary: message.clone(), suggestions };
            let (sql, message) = (attempt.sql.clone(), message.clone());
            records.note(&self.conversation.id, Failure { sql, code, message, analysis, correction: mended });
        }
    }
}
