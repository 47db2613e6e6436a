//! What is remembered of a database: questions with the queries that answered them. Those that are like a question are shown to
//! the model, and one that was asked before is answered without it.

mod complaint;

use std::sync::Arc;

use querymend_memory::{Change, Error, Example, ExampleStore, Found, Provenance, Sought, Standing, id};
use querymend_sql::Applicability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{Answer, Confidence, Status};

pub use complaint::{is_complaint, refers_back};

/// The memory of one database.
#[derive(Clone)]
pub struct Memory {
    store: Arc<dyn ExampleStore>,
    database: String,
    dialect: &'static str,
    /// How many examples a model is shown.
    most: usize,
    /// Those of other databases too.
    others: bool,
    /// The user whose memory it is, where several have one each. What nobody owns is everyone's.
    owner: Option<String>,
}

/// What memory has for a question.
#[derive(Debug, Clone, Default)]
pub struct Recalled {
    /// The query that answered the very same question, and that can be trusted.
    pub known: Option<Example>,
    /// Examples that are like it, best first.
    pub examples: Vec<Found>,
    /// The database whose memory it is.
    pub database: Option<String>,
    /// Why memory could not be asked.
    pub trouble: Option<String>,
}

/// An answer of which nobody has said yet what to think: as much of it as memory wants to know once somebody does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unjudged {
    /// The question.
    pub question: String,
    /// The query that answered it.
    pub sql: Option<String>,
    /// Nothing speaks against keeping it.
    pub worth_keeping: bool,
    /// The examples that were shown for it, and the one that it was answered from.
    pub shown: Vec<String>,
}

impl From<&Answer> for Unjudged {
    fn from(answer: &Answer) -> Self {
        Self {
            question: answer.question.clone(),
            sql: answer.sql.clone(),
            worth_keeping: is_worth_keeping(answer),
            shown: answer.examples.iter().chain(&answer.remembered).cloned().collect(),
        }
    }
}

/// What became of an answer that was captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Captured {
    /// It is kept, until someone says more.
    New,
    /// The same answer came once more, and nobody complained: it can be trusted now.
    Confirmed,
    /// It was known already, or a person rejected it before.
    No,
}

impl Memory {
    /// The memory of a database, by a name that means this one alone.
    pub fn new(
        store: Arc<dyn ExampleStore>,
        database: impl Into<String>,
        dialect: &'static str,
        settings: &crate::config::MemorySection,
    ) -> Self {
        let (most, others) = (settings.examples, settings.others);
        Self { store, database: database.into(), dialect, most, others, owner: None }
    }

    /// The same for one user of several: what is kept is kept for this one alone, and what all share is still found.
    #[must_use]
    pub fn of(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        // Those of other databases may be other users'.
        self.others = false;
        self
    }

    /// The same for what all users share.
    #[must_use]
    pub fn of_all(mut self) -> Self {
        self.owner = None;
        self
    }

    /// By which name examples are kept: the database's, with the owner's behind it.
    pub fn shelf(&self) -> String {
        match &self.owner {
            // The last `#` is the one between them, whatever stands in the names.
            Some(owner) => format!("{}#{}", self.database, owner.replace('%', "%25").replace('#', "%23")),
            None => self.database.clone(),
        }
    }

    /// Where it is kept.
    pub fn store(&self) -> &dyn ExampleStore {
        &*self.store
    }

    /// Which database it is of.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// What there is for a question. A memory that fails is as good as an empty one.
    pub async fn recall(&self, question: &str, alone: bool) -> Recalled {
        match self.look(question, alone).await {
            Ok(recalled) => recalled,
            Err(error) => Recalled { trouble: Some(error.to_string()), ..Recalled::default() },
        }
    }

    async fn look(&self, question: &str, alone: bool) -> Result<Recalled, Error> {
        // A question that needs those before it is another question each time.
        let known = if alone { self.find(question).await? } else { None };
        let known = known.filter(|example| example.standing == Standing::Verified && example.hurt <= example.helped);
        let mut recalled = Recalled { known, database: Some(self.database.clone()), ..Recalled::default() };
        if self.most > 0 {
            for shelf in self.shelves() {
                let sought = Sought {
                    question,
                    database: &shelf,
                    dialect: Some(self.dialect),
                    only_database: !self.others,
                    only_verified: false,
                    most: self.most,
                };
                recalled.examples.extend(self.store.search(&sought).await?);
            }
            if self.owner.is_some() {
                recalled.examples.iter_mut().for_each(|found| found.example.database.clone_from(&self.database));
                recalled.examples.sort_by(|one, other| other.similarity.total_cmp(&one.similarity));
                recalled.examples.truncate(self.most);
            }
        }
        Ok(recalled)
    }

    /// The example of this very question, of this database or of any.
    async fn find(&self, question: &str) -> Result<Option<Example>, Error> {
        for shelf in self.shelves() {
            if let Some(example) = self.store.get(&id(question, &shelf)).await? {
                return Ok(Some(example));
            }
        }
        Ok(self.store.get(&id(question, "")).await?.filter(|example| example.dialect == self.dialect))
    }

    /// Where examples may be: the user's own come first.
    pub fn shelves(&self) -> impl Iterator<Item = String> + use<> {
        let shared = self.owner.is_some().then(|| self.database.clone());
        std::iter::once(self.shelf()).chain(shared)
    }

    /// Writes down what was shown for an answer, and what turned out not to fit the tables any more.
    pub async fn note(&self, answer: &Answer, stale: &[String]) -> Result<(), Error> {
        let gave_up = answer.status == Status::GaveUp;
        let outdated = Change { standing: Some(Standing::Stale), ..Change::default() };
        // What one user may not read, others may: it is stale for nobody else.
        let stale = if self.owner.is_some() { &[] } else { stale };
        let mut changes: Vec<(&str, Change)> = Vec::new();
        for id in answer.examples.iter().chain(&answer.remembered) {
            let hurt = gave_up && self.may_judge(id).await?;
            changes.push((id, Change { uses: 1, hurt: u32::from(hurt), ..Change::default() }));
        }
        changes.extend(stale.iter().map(|id| (id.as_str(), outdated)));
        if changes.is_empty() { Ok(()) } else { self.store.change(&changes).await.map(|_| ()) }
    }

    /// What nobody complained about is kept, if nothing speaks against it; the examples that were shown for it helped.
    pub async fn capture(&self, answer: &Unjudged) -> Result<Captured, Error> {
        self.judge(answer, Change { helped: 1, ..Change::default() }).await?;
        let Some(sql) = answer.sql.as_deref().filter(|_| answer.worth_keeping) else { return Ok(Captured::No) };
        let fresh = self.example(&answer.question, sql, Provenance::Auto, Standing::Unverified);
        match self.store.get(&fresh.id).await? {
            None => {
                self.store.add(&[fresh]).await?;
                Ok(Captured::New)
            }
            Some(old) if old.standing == Standing::Unverified && old.sql == fresh.sql => {
                let verified = Change { standing: Some(Standing::Verified), ..Change::default() };
                self.store.change(&[(&old.id, verified)]).await?;
                Ok(Captured::Confirmed)
            }
            Some(old) if old.standing == Standing::Stale || (old.standing == Standing::Unverified) => {
                self.store.add(&[fresh]).await?;
                Ok(Captured::New)
            }
            Some(_) => Ok(Captured::No),
        }
    }

    /// Somebody complained about an answer: the examples that were shown for it hurt, and it is not answered from memory again
    /// until somebody approves it.
    pub async fn complain(&self, answer: &Unjudged) -> Result<(), Error> {
        self.judge(answer, Change { hurt: 1, ..Change::default() }).await?;
        let mine = id(&answer.question, &self.shelf());
        let doubted = Change { standing: Some(Standing::Unverified), ..Change::default() };
        let known = self.store.get(&mine).await?;
        let same =
            known.filter(|known| Some(&known.sql) == answer.sql.as_ref() && known.standing == Standing::Verified);
        if let Some(known) = same {
            self.store.change(&[(&known.id, doubted)]).await?;
        }
        Ok(())
    }

    /// What one user thinks of an example that all share must not take it from the others.
    async fn may_judge(&self, id: &str) -> Result<bool, Error> {
        if self.owner.is_none() {
            return Ok(true);
        }
        Ok(self.store.get(id).await?.is_some_and(|example| example.database == self.shelf()))
    }

    async fn judge(&self, answer: &Unjudged, change: Change) -> Result<(), Error> {
        let mut changes: Vec<(&str, Change)> = Vec::new();
        for id in &answer.shown {
            if self.may_judge(id).await? {
                changes.push((id, change));
            }
        }
        if changes.is_empty() { Ok(()) } else { self.store.change(&changes).await.map(|_| ()) }
    }

    /// A person says that this is right; `false` if that was known.
    pub async fn save(&self, question: &str, sql: &str) -> Result<bool, Error> {
        let example = self.example(question, sql, Provenance::Saved, Standing::Verified);
        let known = self.store.get(&example.id).await?;
        if known.is_some_and(|known| known.sql == example.sql && known.standing == Standing::Verified) {
            return Ok(false);
        }
        self.store.add(&[example]).await?;
        Ok(true)
    }

    /// Forgets a question; `false` if it was not known.
    pub async fn forget(&self, question: &str) -> Result<bool, Error> {
        Ok(self.store.remove(&[&id(question, &self.shelf())]).await? > 0)
    }

    fn example(&self, question: &str, sql: &str, provenance: Provenance, standing: Standing) -> Example {
        Example { provenance, standing, ..Example::new(question, sql, &self.shelf(), self.dialect) }
    }
}

/// Only what ran as it was written, or with fixes that are proved, and raised no finding.
fn is_worth_keeping(answer: &Answer) -> bool {
    let rows = answer.rows.as_ref().is_some_and(|rows| !crate::run::is_empty(rows));
    answer.status == Status::Answered
        && rows
        && !answer.fallback
        && answer.remembered.is_none()
        && answer.warnings.is_empty()
        && answer.confidence != Confidence::Low
        && answer.fixes.iter().all(|fix| fix.applicability == Applicability::Safe)
}
