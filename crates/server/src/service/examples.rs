//! Examples: whose they are, who sees them, who may add and remove them.

use std::sync::Arc;

use querymend::{Memory, Problem, ProblemCode};
use querymend_memory::{Example, ExampleStore, Filter};
use querymend_sql::Verdict;

use super::lines::line;
use super::{Asking, LONGEST_QUESTION, NewExample, Service, short};
use crate::audit::Line;
use crate::user::User;

/// The longest query of an example, in bytes.
const LONGEST_SQL: usize = 64 << 10;

/// Examples that are listed at a time.
const MOST_EXAMPLES: usize = 200;

fn no_examples() -> Problem {
    Problem::new(ProblemCode::NotFound, "this server keeps no examples").hint("set `memory.store`")
}

/// What clients are told where a store cannot be asked.
pub(crate) fn memory_problem(error: querymend_memory::Error) -> Problem {
    let hint = error.hint().map(str::to_string);
    Problem { hint, ..Problem::new(ProblemCode::DatabaseUnavailable, error.to_string()) }
}

impl Service {
    pub(super) fn store(&self) -> Result<Arc<dyn ExampleStore>, Problem> {
        self.state().store.clone().ok_or_else(no_examples)
    }

    pub(super) fn memory(&self, user: &User, database: Option<&str>) -> Result<Memory, Problem> {
        let desk = self.desk(user, database)?;
        desk.querymend.memory().cloned().ok_or_else(no_examples)
    }

    /// Examples of a database that a user may see: their own, and those that all share.
    pub async fn examples(&self, user: &User, database: Option<&str>) -> Result<Vec<Example>, Problem> {
        let memory = self.memory(user, database)?;
        let desk = self.desk(user, database)?;
        let mut all = Vec::new();
        for shelf in memory.shelves() {
            let own = shelf == memory.shelf();
            let filter = Filter { database: Some(shelf), ..Filter::default() };
            for example in memory.store().list(&filter, 0, MOST_EXAMPLES).await.map_err(memory_problem)? {
                // What all share may speak of tables that this user is not to know.
                if own || desk.querymend.check(&example.sql, None).await?.verdict == Verdict::Approved {
                    all.push(desk.shown(example));
                }
            }
        }
        Ok(all)
    }

    /// Adds an example that a person vouches for.
    pub async fn add_example(&self, asking: &Asking<'_>, new: &NewExample) -> Result<Example, Problem> {
        let user = asking.user;
        if new.shared && !user.role.administer {
            return Err(Problem::new(ProblemCode::Forbidden, "only a role that administers adds examples for all"));
        }
        short("question", &new.question, LONGEST_QUESTION)?;
        short("sql", &new.sql, LONGEST_SQL)?;
        let desk = self.desk(user, new.database.as_deref())?;
        let checked = desk.querymend.check(&new.sql, None).await?;
        if !checked.clean {
            let first = checked.findings.first().map_or("the query is refused", |f| f.finding.message.as_str());
            return Err(Problem::new(ProblemCode::PreflightValidationFailed, first));
        }
        let memory = self.memory(user, new.database.as_deref())?;
        let memory = if new.shared { memory.of_all() } else { memory };
        memory.save(&new.question, &new.sql).await.map_err(memory_problem)?;
        let id = querymend_memory::id(&new.question, &memory.shelf());
        let example = memory.store().get(&id).await.map_err(memory_problem)?;
        let outcome = if new.shared { "added for all" } else { "added" };
        let (question, sql) = (Some(new.question.as_str()), Some(new.sql.as_str()));
        self.audit.write(&Line { question, sql, ..line(asking, "example", &desk.name, outcome) }).await?;
        let example = example.ok_or_else(|| Problem::new(ProblemCode::Internal, "the example was not kept"))?;
        Ok(desk.shown(example))
    }

    /// An example that this user may change.
    pub(super) async fn changeable(
        &self,
        asking: &Asking<'_>,
        database: Option<&str>,
        id: &str,
    ) -> Result<Example, Problem> {
        let memory = self.memory(asking.user, database)?;
        let none = || Problem::new(ProblemCode::NotFound, "there is no such example");
        let example = memory.store().get(id).await.map_err(memory_problem)?.ok_or_else(none)?;
        if example.database != memory.shelf() {
            // One that all share may be seen; one of somebody else may not even be known to be there.
            let shared = memory.shelves().any(|shelf| shelf == example.database);
            let administers = asking.user.role.administer && shared;
            if !administers {
                let desk = self.desk(asking.user, database)?;
                let seen = shared && desk.querymend.check(&example.sql, None).await?.verdict == Verdict::Approved;
                return Err(if seen {
                    Problem::new(ProblemCode::Forbidden, "the example belongs to all")
                } else {
                    none()
                });
            }
        }
        Ok(example)
    }

    /// Forgets an example.
    pub async fn remove_example(&self, asking: &Asking<'_>, database: Option<&str>, id: &str) -> Result<(), Problem> {
        let example = self.changeable(asking, database, id).await?;
        self.store()?.remove(&[id]).await.map_err(memory_problem)?;
        let line = Line { question: Some(&example.question), ..line(asking, "example", &example.database, "removed") };
        self.audit.write(&line).await
    }
}
