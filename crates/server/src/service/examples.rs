//! Few-shot examples: ownership, visibility, and permission to add and remove them.

use std::sync::Arc;

use querymend::{Memory, Problem, ProblemCode};
use querymend_memory::{Example, ExampleFilter, ExampleStore};
use querymend_sql::Verdict;

use super::{CreateExampleRequest, MAX_QUESTION_BYTES, Service, check_length};
use crate::audit::entries::audit_entry;
use crate::audit::log::AuditEntry;
use crate::auth::user::User;
use crate::error::memory_problem;
use crate::request_context::RequestContext;

/// Maximum length of an example's query, in bytes.
const MAX_SQL_BYTES: usize = 64 << 10;

/// Maximum number of examples listed per namespace.
const MAX_LISTED_EXAMPLES: usize = 200;

fn memory_disabled() -> Problem {
    Problem::new(ProblemCode::NotFound, "memory is disabled on this server").hint("set `memory.store`")
}

impl Service {
    pub(super) fn example_store(&self) -> Result<Arc<dyn ExampleStore>, Problem> {
        self.live_config().store.clone().ok_or_else(memory_disabled)
    }

    pub(super) fn memory(&self, user: &User, database: Option<&str>) -> Result<Memory, Problem> {
        let tenant = self.tenant(user, database)?;
        tenant.querymend.memory().cloned().ok_or_else(memory_disabled)
    }

    /// Returns the examples of a database that a user may see: their own and the shared ones.
    pub async fn examples(&self, user: &User, database: Option<&str>) -> Result<Vec<Example>, Problem> {
        let memory = self.memory(user, database)?;
        let tenant = self.tenant(user, database)?;
        let mut all = Vec::new();
        for namespace in memory.namespaces() {
            let own = namespace == memory.namespace();
            let filter = ExampleFilter { database: Some(namespace), ..ExampleFilter::default() };
            for example in memory.store().list(&filter, 0, MAX_LISTED_EXAMPLES).await.map_err(memory_problem)? {
                // Shared examples may refer to tables that this user may not know about.
                if own || tenant.querymend.check(&example.sql, None).await?.verdict == Verdict::Approved {
                    all.push(tenant.with_public_name(example));
                }
            }
        }
        Ok(all)
    }

    /// Adds an example verified by a person.
    pub async fn add_example(&self, ctx: &RequestContext<'_>, new: &CreateExampleRequest) -> Result<Example, Problem> {
        let user = ctx.user;
        if new.shared && !user.role.admin {
            return Err(Problem::new(ProblemCode::Forbidden, "adding shared examples requires an admin role"));
        }
        check_length("question", &new.question, MAX_QUESTION_BYTES)?;
        check_length("sql", &new.sql, MAX_SQL_BYTES)?;
        let tenant = self.tenant(user, new.database.as_deref())?;
        let checked = tenant.querymend.check(&new.sql, None).await?;
        if !checked.clean {
            let first = checked.findings.first().map_or("the query was rejected", |f| f.finding.message.as_str());
            return Err(Problem::new(ProblemCode::PreflightValidationFailed, first));
        }
        let memory = self.memory(user, new.database.as_deref())?;
        let memory = if new.shared { memory.for_all_owners() } else { memory };
        memory.save(&new.question, &new.sql).await.map_err(memory_problem)?;
        let id = querymend_memory::example_id(&new.question, &memory.namespace());
        let example = memory.store().get(&id).await.map_err(memory_problem)?;
        let outcome = if new.shared { "added for all" } else { "added" };
        let (question, sql) = (Some(new.question.as_str()), Some(new.sql.as_str()));
        self.audit.write(&AuditEntry { question, sql, ..audit_entry(ctx, "example", &tenant.name, outcome) }).await?;
        let example = example.ok_or_else(|| Problem::new(ProblemCode::Internal, "the example was not stored"))?;
        Ok(tenant.with_public_name(example))
    }

    /// Returns an example that this user may change.
    pub(super) async fn editable_example(
        &self,
        ctx: &RequestContext<'_>,
        database: Option<&str>,
        id: &str,
    ) -> Result<Example, Problem> {
        let memory = self.memory(ctx.user, database)?;
        let none = || Problem::new(ProblemCode::NotFound, "there is no such example");
        let example = memory.store().get(id).await.map_err(memory_problem)?.ok_or_else(none)?;
        if example.database != memory.namespace() {
            // Shared examples are visible; the existence of another user's example is not revealed.
            let shared = memory.namespaces().any(|namespace| namespace == example.database);
            let is_admin = ctx.user.role.admin && shared;
            if !is_admin {
                let tenant = self.tenant(ctx.user, database)?;
                let seen = shared && tenant.querymend.check(&example.sql, None).await?.verdict == Verdict::Approved;
                return Err(if seen {
                    Problem::new(ProblemCode::Forbidden, "changing shared examples requires an admin role")
                } else {
                    none()
                });
            }
        }
        Ok(example)
    }

    /// Removes an example.
    pub async fn remove_example(
        &self,
        ctx: &RequestContext<'_>,
        database: Option<&str>,
        id: &str,
    ) -> Result<(), Problem> {
        let example = self.editable_example(ctx, database, id).await?;
        self.example_store()?.remove(&[id]).await.map_err(memory_problem)?;
        let entry = AuditEntry {
            question: Some(&example.question),
            ..audit_entry(ctx, "example", &example.database, "removed")
        };
        self.audit.write(&entry).await
    }
}
