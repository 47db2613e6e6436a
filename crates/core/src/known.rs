//! What is known of a database: its tables, and what their text columns hold. Read when it is first needed, read again when it
//! has become old or the database has proved it wrong.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use querymend_engine::{DataVersion, Engine, Error};
use querymend_sql::Policy;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as Waiting, watch};
use tokio::task::AbortHandle;

use crate::config::ValuesSection;
use crate::context::{Tables, values};
use crate::guard::{Clock, GuardedEngine};
use crate::similarity;

/// However often a database disagrees, its tables are not read again sooner than this.
const SOONEST: Duration = Duration::from_secs(2);

/// The tables of a database.
pub(crate) struct Known {
    held: Mutex<Option<Held>>,
    /// Whoever reads holds this, so that many who ask at once read once.
    turn: Waiting<()>,
    doubted: AtomicBool,
    /// The database as it was given: reading values in the background trips no breaker.
    plain: Arc<dyn Engine>,
    policy: Arc<Policy>,
    values: ValuesSection,
    /// How long tables are taken to be as they were.
    age: Duration,
    clock: Arc<dyn Clock>,
    reading: Mutex<Option<Reading>>,
}

struct Held {
    tables: Arc<Tables>,
    /// The data whose values were read. None if the database does not say.
    data: Option<DataVersion>,
    /// When they were read, by [`Clock::now_ms`].
    read_ms: u64,
}

/// Values that are read in the background: the means to stop it, and to hear when it is over.
struct Reading {
    task: AbortHandle,
    over: watch::Receiver<bool>,
}

impl Known {
    pub fn new(
        plain: Arc<dyn Engine>,
        policy: Arc<Policy>,
        values: ValuesSection,
        age: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (held, reading) = (Mutex::new(None), Mutex::new(None));
        let (turn, doubted) = (Waiting::new(()), AtomicBool::new(false));
        Self { held, turn, doubted, plain, policy, values, age, clock, reading }
    }

    /// The tables, read through a guarded engine where they have to be.
    pub async fn tables(&self, engine: &GuardedEngine) -> Result<Arc<Tables>, Error> {
        if let Some(tables) = self.fresh() {
            return Ok(tables);
        }
        let _turn = self.turn.lock().await;
        if let Some(tables) = self.fresh() {
            return Ok(tables);
        }
        let (before, data_before) = match &*self.held() {
            Some(held) => (Some(Arc::clone(&held.tables)), held.data.clone()),
            None => (None, None),
        };
        let mut data = self.plain.data_version().await.ok().flatten();
        // Values that came since would be called absent.
        let is_same_data = !self.values.enabled || data == data_before;
        let read = engine.schema().await.map(|schema| Arc::new(self.policy.readable(schema)));
        let tables = match (read, before) {
            (Ok(schema), Some(before)) if is_same_data && schema.tables() == before.schema().tables() => before,
            (Ok(schema), before) => {
                similarity::attach(&schema);
                self.learn(&schema);
                Arc::new(match before {
                    Some(before) => before.changed(schema, &self.policy),
                    None => Tables::new(schema, engine.dialect(), &self.policy),
                })
            }
            // What was known is better than nothing, as long as the database does not say otherwise.
            (Err(error), Some(before)) if error.is_transient() => {
                data = data_before;
                before
            }
            (Err(error), _) => return Err(error),
        };
        self.doubted.store(false, Ordering::Relaxed);
        *self.held() = Some(Held { tables: Arc::clone(&tables), data, read_ms: self.clock.now_ms() });
        Ok(tables)
    }

    /// The database says that something is not there which is known to be, or the other way round: the tables are read again
    /// before the next look at them.
    pub fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
    }

    fn fresh(&self) -> Option<Arc<Tables>> {
        let held = self.held();
        let held = held.as_ref()?;
        let age = Duration::from_millis(self.clock.now_ms().saturating_sub(held.read_ms));
        let old = age >= self.age;
        let doubted = self.doubted.load(Ordering::Relaxed) && age >= SOONEST;
        (!old && !doubted).then(|| Arc::clone(&held.tables))
    }

    // Whoever panicked while holding it has put something whole into it, or nothing.
    fn held(&self) -> std::sync::MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads in the background what the text columns hold. Whoever needs it waits with [`Known::learned`].
    fn learn(&self, schema: &Arc<querymend_sql::Schema>) {
        let settings = self.values.clone();
        let Ok(runtime) = Handle::try_current() else { return };
        if !settings.enabled {
            return;
        }
        let (engine, schema, policy) = (Arc::clone(&self.plain), Arc::clone(schema), Arc::clone(&self.policy));
        let (tell, over) = watch::channel(false);
        let task = runtime.spawn(async move {
            let known = values::load(&*engine, &schema, &policy, &settings).await;
            schema.learn(Arc::new(known));
            tell.send(true).ok();
        });
        let reading = Reading { task: task.abort_handle(), over };
        let before = self.reading.lock().unwrap_or_else(PoisonError::into_inner).replace(reading);
        if let Some(before) = before {
            before.task.abort();
        }
    }

    /// Waits until the values are read, if they are being read.
    pub async fn learned(&self) {
        let over = self.reading.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|r| r.over.clone());
        if let Some(mut over) = over {
            over.wait_for(|over| *over).await.ok();
        }
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let reading = self.reading.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(reading) = reading.take() {
            reading.task.abort();
        }
    }
}
