//! Database handle of one user, built from the reloadable configuration.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use querymend::config::RoleSection;
use querymend::resilience::Breakers;
use querymend::{Config, Memory, Problem, ProblemCode, Querymend};
use querymend_memory::{Example, ExampleStore};
use querymend_model::Model;

use super::{Database, Setup};
use crate::audit::query_log::AuditedEngine;
use crate::auth::user::{Authenticator, User};
use crate::observe::observer::EventOrigin;
use crate::request_context::RequestContext;

/// Role and the handle that was built for it.
type RoleHandle = (Arc<RoleSection>, Querymend);

/// Parts of the service that a reload replaces.
pub(super) struct LiveConfig {
    pub(super) config: Config,
    pub(super) model: Arc<dyn Model>,
    pub(super) databases: BTreeMap<String, Database>,
    pub(super) store: Option<Arc<dyn ExampleStore>>,
    pub(super) authenticator: Arc<dyn Authenticator>,
    /// Handles by database and role, built on first use.
    by_role: Mutex<HashMap<(String, Option<String>), RoleHandle>>,
}

/// Database with the policy and limits of one user.
pub(super) struct TenantDatabase {
    pub(super) name: String,
    pub(super) querymend: Querymend,
}

impl TenantDatabase {
    /// Replaces the database identity of an example by its public name.
    pub(super) fn with_public_name(&self, example: Example) -> Example {
        Example { database: self.name.clone(), ..example }
    }

    pub(super) fn origin<'p>(&'p self, request: &'p RequestContext<'p>) -> EventOrigin<'p> {
        let (model, dialect) = (self.querymend.model_name(), self.querymend.engine().dialect().name);
        EventOrigin { request, database: &self.name, model, dialect }
    }
}

impl LiveConfig {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { config, model, databases, store, authenticator } = setup;
        let audited = |database: Database| Database { engine: Arc::new(AuditedEngine(database.engine)), ..database };
        let databases = databases.into_iter().map(|database| (database.name.clone(), audited(database))).collect();
        Self { config, model, databases, store, authenticator, by_role: Mutex::default() }
    }

    pub(super) fn tenant(
        &self,
        user: &User,
        database_name: Option<&str>,
        breakers: &Arc<Breakers>,
    ) -> Result<TenantDatabase, Problem> {
        let unknown_database = |name: &str| {
            let names: Vec<&str> = self.databases.keys().map(String::as_str).filter(|n| has_access(user, n)).collect();
            let hint = format!("available databases: {}", names.join(", "));
            Problem::new(ProblemCode::NotFound, format!("there is no database `{name}`")).hint(hint)
        };
        let database = match database_name {
            Some(name) => {
                self.databases.get(name).filter(|d| has_access(user, &d.name)).ok_or_else(|| unknown_database(name))?
            }
            None => {
                let mut allowed = self.databases.values().filter(|database| has_access(user, &database.name));
                match (allowed.next(), allowed.next()) {
                    (Some(only), None) => only,
                    (None, _) => {
                        return Err(Problem::new(ProblemCode::Forbidden, "you have no access to any database"));
                    }
                    (Some(_), Some(_)) => {
                        let names = self.databases.keys().map(String::as_str).filter(|name| has_access(user, name));
                        let names: Vec<&str> = names.collect();
                        return Err(Problem::new(
                            ProblemCode::BadRequest,
                            "several databases are available, so the request must name one",
                        )
                        .hint(format!("set `database` to one of {}", names.join(", "))));
                    }
                }
            }
        };
        let key = (database.name.clone(), user.role_name.clone());
        let mut by_role = self.by_role.lock().unwrap_or_else(PoisonError::into_inner);
        // A request that began before a reload may carry an outdated role, so a cached handle is
        // used only if the roles are equal.
        let cached = by_role.get(&key).filter(|(role, _)| **role == *user.role).map(|(_, querymend)| querymend.clone());
        let mut querymend = cached.unwrap_or_else(|| {
            let built = self.build_querymend(user, database, breakers);
            by_role.insert(key, (Arc::clone(&user.role), built.clone()));
            built
        });
        drop(by_role);
        if let (Some(id), Some(memory)) = (&user.id, querymend.memory().cloned()) {
            querymend = querymend.with_memory(memory.for_owner(id.clone()));
        }
        Ok(TenantDatabase { name: database.name.clone(), querymend })
    }

    /// Builds the handle of a database for a role.
    fn build_querymend(&self, user: &User, database: &Database, breakers: &Arc<Breakers>) -> Querymend {
        let mut config = self.config.clone();
        config.policy = config.policy.intersect(user.role.policy.clone());
        if let Some(max_rows) = user.role.max_rows {
            config.limits.rows = config.limits.rows.min(max_rows.max(1));
        }
        let memory = self.store.as_ref().filter(|_| config.memory.enabled).map(|store| {
            let dialect = database.engine.dialect().name;
            Memory::new(Arc::clone(store), database.identity.clone(), dialect, &config.memory)
        });
        let (engine, model) = (Arc::clone(&database.engine), Arc::clone(&self.model));
        let querymend = Querymend::with_shared_breakers(engine, model, config, Arc::clone(breakers));
        match memory {
            Some(memory) => querymend.with_memory(memory),
            None => querymend,
        }
    }
}

pub(super) fn has_access(user: &User, database: &str) -> bool {
    user.role.databases.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == database))
}
