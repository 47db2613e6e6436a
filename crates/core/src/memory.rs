//! Memory of a database: past questions with the queries that answered them.
//!
//! Similar questions become few-shot examples in the prompt, and a repeated question is answered
//! without the model.

mod feedback;

use std::sync::Arc;

use querymend_memory::{
    Error, Example, ExampleQuery, ExampleStore, ExampleUpdate, Provenance, ScoredExample, VerificationStatus,
    example_id,
};
use querymend_sql::Applicability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Answer, AnswerStatus, Confidence};

pub use feedback::{is_complaint, is_follow_up};

/// Memory of one database.
#[derive(Clone)]
pub struct Memory {
    store: Arc<dyn ExampleStore>,
    database: String,
    dialect: &'static str,
    /// Maximum number of few-shot examples in a prompt.
    max_examples: usize,
    /// `true` to also retrieve examples of other databases.
    cross_database: bool,
    /// User that owns the examples. Examples without an owner are shared by all users.
    owner: Option<String>,
}

/// Examples retrieved for a question.
#[derive(Debug, Clone, Default)]
pub struct RetrievedExamples {
    /// Verified example with the identical question.
    pub exact_match: Option<Example>,
    /// Similar examples, best first.
    pub examples: Vec<ScoredExample>,
    /// Database that the memory belongs to.
    pub database: Option<String>,
    /// Reason that retrieval failed.
    pub error: Option<String>,
}

/// Answer that has not received feedback, reduced to the data needed to process the feedback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PendingFeedback {
    /// Question that was answered.
    pub question: String,
    /// Query that answered it. Absent if there was none.
    pub sql: Option<String>,
    /// `true` if the answer qualifies as an example.
    pub worth_keeping: bool,
    /// IDs of the few-shot examples in its prompt, and of the example that provided its query.
    pub shown: Vec<String>,
}

impl From<&Answer> for PendingFeedback {
    fn from(answer: &Answer) -> Self {
        Self {
            question: answer.question.clone(),
            sql: answer.sql.clone(),
            worth_keeping: is_worth_keeping(answer),
            shown: answer.examples.iter().chain(&answer.remembered).cloned().collect(),
        }
    }
}

/// Result of capturing an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureOutcome {
    /// The answer was stored as unverified.
    New,
    /// The same answer occurred again without a complaint, and was marked as verified.
    Confirmed,
    /// The answer was already stored, or was rejected by a person before.
    Ignored,
}

impl Memory {
    /// Creates the memory of a database. The name must identify the database uniquely.
    pub fn new(
        store: Arc<dyn ExampleStore>,
        database: impl Into<String>,
        dialect: &'static str,
        settings: &crate::config::MemorySection,
    ) -> Self {
        let (most, others) = (settings.examples, settings.cross_database);
        Self { store, database: database.into(), dialect, max_examples: most, cross_database: others, owner: None }
    }

    /// Restricts the memory to one user.
    ///
    /// Examples are stored for this user only, and shared examples are still retrieved.
    #[must_use]
    pub fn for_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        // Examples of other databases may belong to other users.
        self.cross_database = false;
        self
    }

    /// Restricts the memory to the examples that all users share.
    #[must_use]
    pub fn for_all_owners(mut self) -> Self {
        self.owner = None;
        self
    }

    /// Returns the namespace of stored examples: the database name, followed by the owner.
    pub fn namespace(&self) -> String {
        match &self.owner {
            // Escape `#` in the owner so that the last `#` is always the separator.
            Some(owner) => format!("{}#{}", self.database, owner.replace('%', "%25").replace('#', "%23")),
            None => self.database.clone(),
        }
    }

    /// Returns the underlying store.
    pub fn store(&self) -> &dyn ExampleStore {
        &*self.store
    }

    /// Returns the name of the database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Retrieves examples for a question. A failing store is treated as empty.
    pub async fn retrieve(&self, question: &str, is_standalone: bool) -> RetrievedExamples {
        match self.try_retrieve(question, is_standalone).await {
            Ok(recalled) => recalled,
            Err(error) => RetrievedExamples { error: Some(error.to_string()), ..RetrievedExamples::default() },
        }
    }

    async fn try_retrieve(&self, question: &str, is_standalone: bool) -> Result<RetrievedExamples, Error> {
        // The meaning of a follow-up question depends on the previous ones.
        let known = if is_standalone { self.find_exact_match(question).await? } else { None };
        let known =
            known.filter(|example| example.standing == VerificationStatus::Verified && example.hurt <= example.helped);
        let mut recalled = RetrievedExamples {
            exact_match: known,
            database: Some(self.database.clone()),
            ..RetrievedExamples::default()
        };
        if self.max_examples > 0 {
            for shelf in self.namespaces() {
                let query = ExampleQuery {
                    question,
                    database: &shelf,
                    dialect: Some(self.dialect),
                    only_database: !self.cross_database,
                    only_verified: false,
                    limit: self.max_examples,
                };
                recalled.examples.extend(self.store.search(&query).await?);
            }
            if self.owner.is_some() {
                recalled.examples.iter_mut().for_each(|found| found.example.database.clone_from(&self.database));
                recalled.examples.sort_by(|one, other| other.similarity.total_cmp(&one.similarity));
                recalled.examples.truncate(self.max_examples);
            }
        }
        Ok(recalled)
    }

    /// Returns the example with the identical question, of this database or of none.
    async fn find_exact_match(&self, question: &str) -> Result<Option<Example>, Error> {
        for shelf in self.namespaces() {
            if let Some(example) = self.store.get(&example_id(question, &shelf)).await? {
                return Ok(Some(example));
            }
        }
        Ok(self.store.get(&example_id(question, "")).await?.filter(|example| example.dialect == self.dialect))
    }

    /// Returns the namespaces to search, the user's own first.
    pub fn namespaces(&self) -> impl Iterator<Item = String> + use<> {
        let shared = self.owner.is_some().then(|| self.database.clone());
        std::iter::once(self.namespace()).chain(shared)
    }

    /// Records the examples used for an answer, and those that do not match the schema.
    pub async fn record_usage(&self, answer: &Answer, stale: &[String]) -> Result<(), Error> {
        let gave_up = answer.status == AnswerStatus::GaveUp;
        let outdated = ExampleUpdate { standing: Some(VerificationStatus::Stale), ..ExampleUpdate::default() };
        // An example that one user may not read is not stale for other users.
        let stale = if self.owner.is_some() { &[] } else { stale };
        let mut changes: Vec<(&str, ExampleUpdate)> = Vec::new();
        for id in answer.examples.iter().chain(&answer.remembered) {
            let hurt = gave_up && self.may_update(id).await?;
            changes.push((id, ExampleUpdate { uses: 1, hurt: u32::from(hurt), ..ExampleUpdate::default() }));
        }
        changes.extend(stale.iter().map(|id| (id.as_str(), outdated)));
        if changes.is_empty() { Ok(()) } else { self.store.update(&changes).await.map(|_| ()) }
    }

    /// Stores an answer that received no complaint, if it qualifies.
    ///
    /// Its few-shot examples are counted as helpful.
    pub async fn capture(&self, answer: &PendingFeedback) -> Result<CaptureOutcome, Error> {
        self.update_shown_examples(answer, ExampleUpdate { helped: 1, ..ExampleUpdate::default() }).await?;
        let Some(sql) = answer.sql.as_deref().filter(|_| answer.worth_keeping) else {
            return Ok(CaptureOutcome::Ignored);
        };
        let fresh = self.example(&answer.question, sql, Provenance::Auto, VerificationStatus::Unverified);
        match self.store.get(&fresh.id).await? {
            None => {
                self.store.add(&[fresh]).await?;
                Ok(CaptureOutcome::New)
            }
            Some(old) if old.standing == VerificationStatus::Unverified && old.sql == fresh.sql => {
                let verified =
                    ExampleUpdate { standing: Some(VerificationStatus::Verified), ..ExampleUpdate::default() };
                self.store.update(&[(&old.id, verified)]).await?;
                Ok(CaptureOutcome::Confirmed)
            }
            Some(old)
                if old.standing == VerificationStatus::Stale || (old.standing == VerificationStatus::Unverified) =>
            {
                self.store.add(&[fresh]).await?;
                Ok(CaptureOutcome::New)
            }
            Some(_) => Ok(CaptureOutcome::Ignored),
        }
    }

    /// Records a complaint about an answer.
    ///
    /// Its few-shot examples are counted as harmful, and memory does not answer the question again
    /// until a person approves the query.
    pub async fn record_complaint(&self, answer: &PendingFeedback) -> Result<(), Error> {
        self.update_shown_examples(answer, ExampleUpdate { hurt: 1, ..ExampleUpdate::default() }).await?;
        let mine = example_id(&answer.question, &self.namespace());
        let doubted = ExampleUpdate { standing: Some(VerificationStatus::Unverified), ..ExampleUpdate::default() };
        let known = self.store.get(&mine).await?;
        let same = known
            .filter(|known| Some(&known.sql) == answer.sql.as_ref() && known.standing == VerificationStatus::Verified);
        if let Some(known) = same {
            self.store.update(&[(&known.id, doubted)]).await?;
        }
        Ok(())
    }

    /// Returns whether the example belongs to this user.
    ///
    /// Feedback of one user must not affect shared examples.
    async fn may_update(&self, id: &str) -> Result<bool, Error> {
        if self.owner.is_none() {
            return Ok(true);
        }
        Ok(self.store.get(id).await?.is_some_and(|example| example.database == self.namespace()))
    }

    async fn update_shown_examples(&self, answer: &PendingFeedback, change: ExampleUpdate) -> Result<(), Error> {
        let mut changes: Vec<(&str, ExampleUpdate)> = Vec::new();
        for id in &answer.shown {
            if self.may_update(id).await? {
                changes.push((id, change));
            }
        }
        if changes.is_empty() { Ok(()) } else { self.store.update(&changes).await.map(|_| ()) }
    }

    /// Stores a query that a person confirmed. Returns `false` if it was already verified.
    pub async fn save(&self, question: &str, sql: &str) -> Result<bool, Error> {
        let example = self.example(question, sql, Provenance::Saved, VerificationStatus::Verified);
        let known = self.store.get(&example.id).await?;
        if known.is_some_and(|known| known.sql == example.sql && known.standing == VerificationStatus::Verified) {
            return Ok(false);
        }
        self.store.add(&[example]).await?;
        Ok(true)
    }

    /// Removes a question. Returns `false` if it was not stored.
    pub async fn remove(&self, question: &str) -> Result<bool, Error> {
        Ok(self.store.remove(&[&example_id(question, &self.namespace())]).await? > 0)
    }

    fn example(&self, question: &str, sql: &str, provenance: Provenance, standing: VerificationStatus) -> Example {
        Example { provenance, standing, ..Example::new(question, sql, &self.namespace(), self.dialect) }
    }
}

/// Returns whether the query ran unchanged or with safe fixes only, and without findings.
fn is_worth_keeping(answer: &Answer) -> bool {
    let rows = answer.rows.as_ref().is_some_and(|rows| !rows.is_effectively_empty());
    answer.status == AnswerStatus::Answered
        && rows
        && !answer.fallback
        && answer.remembered.is_none()
        && answer.warnings.is_empty()
        && answer.confidence != Confidence::Low
        && answer.fixes.iter().all(|fix| fix.applicability == Applicability::Safe)
}
