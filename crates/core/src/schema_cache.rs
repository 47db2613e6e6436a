//! Cache of a database schema with its value index. Loaded on first use, and reloaded when it
//! expires or the database contradicts it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use querymend_engine::{DataVersion, Engine, Error};
use querymend_sql::Policy;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::AbortHandle;

use crate::config::ValuesSection;
use crate::embedding_similarity;
use crate::linking::{SchemaLinker, value_sampling};
use crate::resilience::{Clock, GuardedEngine};

/// Minimum interval between reloads, however often the database contradicts the schema.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(2);

/// Cached schema of a database.
pub(crate) struct SchemaCache {
    cached: Mutex<Option<CachedSchema>>,
    /// Held while loading, so that concurrent requests load once (single-flight).
    load_lock: AsyncMutex<()>,
    is_invalidated: AtomicBool,
    /// Engine without circuit breaker: sampling values in the background must not open it.
    unguarded_engine: Arc<dyn Engine>,
    policy: Arc<Policy>,
    value_settings: ValuesSection,
    /// Time to live of the cached schema.
    ttl: Duration,
    clock: Arc<dyn Clock>,
    value_load: Mutex<Option<ValueLoadTask>>,
}

struct CachedSchema {
    linker: Arc<SchemaLinker>,
    /// Version of the data whose values were sampled. `None` if the database does not report one.
    data_version: Option<DataVersion>,
    /// Time of loading, by [`Clock::now_ms`].
    loaded_at_ms: u64,
}

/// Background task that samples values, with handles to abort it and to await its end.
struct ValueLoadTask {
    task: AbortHandle,
    done: watch::Receiver<bool>,
}

impl SchemaCache {
    pub fn new(
        engine: Arc<dyn Engine>,
        policy: Arc<Policy>,
        values: ValuesSection,
        ttl: Duration,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            cached: Mutex::new(None),
            load_lock: AsyncMutex::new(()),
            is_invalidated: AtomicBool::new(false),
            unguarded_engine: engine,
            policy,
            value_settings: values,
            ttl,
            clock,
            value_load: Mutex::new(None),
        }
    }

    /// Returns the cached schema, loading it through a guarded engine if necessary.
    pub async fn get(&self, engine: &GuardedEngine) -> Result<Arc<SchemaLinker>, Error> {
        if let Some(tables) = self.get_if_fresh() {
            return Ok(tables);
        }
        let _guard = self.load_lock.lock().await;
        if let Some(tables) = self.get_if_fresh() {
            return Ok(tables);
        }
        let (before, data_before) = match &*self.lock_cached() {
            Some(cached) => (Some(Arc::clone(&cached.linker)), cached.data_version.clone()),
            None => (None, None),
        };
        let mut data = self.unguarded_engine.data_version().await.ok().flatten();
        // Values inserted since would be reported as missing.
        let is_same_data = !self.value_settings.enabled || data == data_before;
        let read = engine.schema().await.map(|schema| Arc::new(self.policy.filter_schema(schema)));
        let tables = match (read, before) {
            (Ok(schema), Some(before)) if is_same_data && schema.tables() == before.schema().tables() => before,
            (Ok(schema), before) => {
                embedding_similarity::attach(&schema);
                self.start_value_load(&schema);
                Arc::new(match before {
                    Some(before) => before.with_schema(schema, &self.policy),
                    None => SchemaLinker::new(schema, engine.dialect(), &self.policy),
                })
            }
            // On a transient error, a stale schema is better than none.
            (Err(error), Some(before)) if error.is_transient() => {
                data = data_before;
                before
            }
            (Err(error), _) => return Err(error),
        };
        self.is_invalidated.store(false, Ordering::Relaxed);
        *self.lock_cached() =
            Some(CachedSchema { linker: Arc::clone(&tables), data_version: data, loaded_at_ms: self.clock.now_ms() });
        Ok(tables)
    }

    /// Marks the cached schema as stale, because the database contradicts it. It is reloaded on the
    /// next access.
    pub fn invalidate(&self) {
        self.is_invalidated.store(true, Ordering::Relaxed);
    }

    fn get_if_fresh(&self) -> Option<Arc<SchemaLinker>> {
        let cached = self.lock_cached();
        let cached = cached.as_ref()?;
        let age = Duration::from_millis(self.clock.now_ms().saturating_sub(cached.loaded_at_ms));
        let is_expired = age >= self.ttl;
        let is_invalidated = self.is_invalidated.load(Ordering::Relaxed) && age >= MIN_REFRESH_INTERVAL;
        (!is_expired && !is_invalidated).then(|| Arc::clone(&cached.linker))
    }

    // The value is replaced as a whole, so a poisoned lock contains a consistent one.
    fn lock_cached(&self) -> std::sync::MutexGuard<'_, Option<CachedSchema>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts sampling values in the background.
    ///
    /// [`SchemaCache::wait_for_values`] awaits the result.
    fn start_value_load(&self, schema: &Arc<querymend_sql::Schema>) {
        let settings = self.value_settings.clone();
        let Ok(runtime) = Handle::try_current() else { return };
        if !settings.enabled {
            return;
        }
        let (engine, schema, policy) =
            (Arc::clone(&self.unguarded_engine), Arc::clone(schema), Arc::clone(&self.policy));
        let (done_sender, done) = watch::channel(false);
        let task = runtime.spawn(async move {
            let index = value_sampling::load_or_sample(&*engine, &schema, &policy, &settings).await;
            schema.set_value_index(Arc::new(index));
            done_sender.send(true).ok();
        });
        let value_load = ValueLoadTask { task: task.abort_handle(), done };
        let before = self.value_load.lock().unwrap_or_else(PoisonError::into_inner).replace(value_load);
        if let Some(before) = before {
            before.task.abort();
        }
    }

    /// Waits until the value sampling in progress has finished.
    pub async fn wait_for_values(&self) {
        let done = self.value_load.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|t| t.done.clone());
        if let Some(mut done) = done {
            done.wait_for(|done| *done).await.ok();
        }
    }
}

impl Drop for SchemaCache {
    fn drop(&mut self) {
        let value_load = self.value_load.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(value_load) = value_load.take() {
            value_load.task.abort();
        }
    }
}
