//! A database as one user may ask it, made from everything that can be changed while the service runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use querymend::config::Role;
use querymend::guard::Breakers;
use querymend::{Config, Memory, Problem, ProblemCode, Querymend};
use querymend_memory::{Example, ExampleStore};
use querymend_model::Model;

use super::{Asking, Database, Setup};
use crate::heard::Place;
use crate::sent::Watched;
use crate::user::{Gate, User};

/// A database as a role may ask it, and the role as it was then.
type Shared = (Arc<Role>, Querymend);

/// Everything that can be changed while the service runs.
pub(super) struct State {
    pub(super) config: Config,
    pub(super) model: Arc<dyn Model>,
    pub(super) databases: BTreeMap<String, Database>,
    pub(super) store: Option<Arc<dyn ExampleStore>>,
    pub(super) gate: Arc<dyn Gate>,
    /// One for each database and role, made when it is first asked for.
    desks: Mutex<HashMap<(String, Option<String>), Shared>>,
}

/// A database as one user may ask it.
pub(super) struct Desk {
    pub(super) name: String,
    pub(super) querymend: Querymend,
}

impl Desk {
    /// An example as clients see it: where the database is, they need not know.
    pub(super) fn shown(&self, example: Example) -> Example {
        Example { database: self.name.clone(), ..example }
    }

    pub(super) fn place<'p>(&'p self, request: &'p Asking<'p>) -> Place<'p> {
        let (model, dialect) = (self.querymend.model_name(), self.querymend.engine().dialect().name);
        Place { request, database: &self.name, model, dialect }
    }
}

impl State {
    pub(super) fn new(setup: Setup) -> Self {
        let Setup { config, model, databases, store, gate } = setup;
        let watched = |database: Database| Database { engine: Arc::new(Watched(database.engine)), ..database };
        let databases = databases.into_iter().map(|database| (database.name.clone(), watched(database))).collect();
        Self { config, model, databases, store, gate, desks: Mutex::default() }
    }

    pub(super) fn desk(&self, user: &User, named: Option<&str>, breakers: &Arc<Breakers>) -> Result<Desk, Problem> {
        let unknown = |name: &str| {
            let known: Vec<&str> = self.databases.keys().map(String::as_str).filter(|n| may_ask(user, n)).collect();
            let hint = format!("there are: {}", known.join(", "));
            Problem::new(ProblemCode::NotFound, format!("there is no database `{name}`")).hint(hint)
        };
        let database = match named {
            Some(name) => self.databases.get(name).filter(|d| may_ask(user, &d.name)).ok_or_else(|| unknown(name))?,
            None => {
                let mut allowed = self.databases.values().filter(|database| may_ask(user, &database.name));
                match (allowed.next(), allowed.next()) {
                    (Some(only), None) => only,
                    (None, _) => return Err(Problem::new(ProblemCode::Forbidden, "you may ask no database")),
                    (Some(_), Some(_)) => {
                        let names = self.databases.keys().map(String::as_str).filter(|name| may_ask(user, name));
                        let names: Vec<&str> = names.collect();
                        return Err(Problem::new(ProblemCode::BadRequest, "there are several databases: name one")
                            .hint(format!("`database` is one of {}", names.join(", "))));
                    }
                }
            }
        };
        let key = (database.name.clone(), user.role_name.clone());
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        // A request that began before a change still has its role as it was then; what it makes must not be left to others.
        let known = desks.get(&key).filter(|(role, _)| **role == *user.role).map(|(_, querymend)| querymend.clone());
        let mut querymend = known.unwrap_or_else(|| {
            let made = self.querymend(user, database, breakers);
            desks.insert(key, (Arc::clone(&user.role), made.clone()));
            made
        });
        drop(desks);
        if let (Some(id), Some(memory)) = (&user.id, querymend.memory().cloned()) {
            querymend = querymend.with_memory(memory.of(id.clone()));
        }
        Ok(Desk { name: database.name.clone(), querymend })
    }

    /// A database as users of a role may ask it.
    fn querymend(&self, user: &User, database: &Database, breakers: &Arc<Breakers>) -> Querymend {
        let mut config = self.config.clone();
        config.policy = config.policy.and(user.role.policy.clone());
        if let Some(most) = user.role.max_rows {
            config.limits.rows = config.limits.rows.min(most.max(1));
        }
        let memory = self.store.as_ref().filter(|_| config.memory.enabled).map(|store| {
            let dialect = database.engine.dialect().name;
            Memory::new(Arc::clone(store), database.identity.clone(), dialect, &config.memory)
        });
        let (engine, model) = (Arc::clone(&database.engine), Arc::clone(&self.model));
        let querymend = Querymend::guarded(engine, model, config, Arc::clone(breakers));
        match memory {
            Some(memory) => querymend.with_memory(memory),
            None => querymend,
        }
    }
}

pub(super) fn may_ask(user: &User, database: &str) -> bool {
    user.role.databases.as_ref().is_none_or(|allowed| allowed.iter().any(|name| name == database))
}
