//! Service shared by all protocols: questions, queries, schema, examples, sessions, traces.
//!
//! Callers are already authenticated; authorization and audit logging happen here.

mod ask;
mod examples;
mod feedback;
mod requests;
mod schema_text;
mod session_errors;
mod sessions;
mod sql;
mod tenant;
mod traces;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use querymend::error_history::ErrorHistory;
use querymend::resilience::{BreakerStats, Breakers};
use querymend::{Config, Problem, ProblemCode};
use querymend_engine::{Connections, Engine};
use querymend_memory::ExampleStore;
use querymend_model::Model;
use querymend_sql::Schema;

use self::tenant::{LiveConfig, TenantDatabase, has_access};
use crate::audit::entries::audit_entry;
use crate::audit::log::AuditLog;
use crate::auth::user::{Authenticator, Credentials, User};
use crate::limits::idempotency::IdempotencyStore;
use crate::limits::rate_limit::{InFlightGuard, RateLimiter};
use crate::limits::result_cache::ResultCache;
use crate::observe::metrics;
use crate::observe::metrics::metric::MetricSnapshot;
use crate::observe::metrics::{MetricsRecorder, RuntimeStats, ServerMetrics};
use crate::observe::observer::Observer;
use crate::request_context::RequestContext;
use crate::store::SessionStore;

pub use self::feedback::{FeedbackRequest, FeedbackResponse};
pub use self::requests::{AnalysisTarget, AskRequest, CreateExampleRequest, DatabaseInfo, SqlRequest};
pub use self::schema_text::SelectedTables;

/// Maximum length of a question, in bytes.
const MAX_QUESTION_BYTES: usize = 16 << 10;

/// Components of a service.
///
/// A reload replaces all of them; the session store and the audit log stay.
pub struct Setup {
    /// Configuration.
    pub config: Config,
    /// Model that writes the SQL.
    pub model: Arc<dyn Model>,
    /// Databases that can be queried.
    pub databases: Vec<Database>,
    /// Store of examples; `None` if memory is off.
    pub store: Option<Arc<dyn ExampleStore>>,
    /// Authenticator of requests.
    pub authenticator: Arc<dyn Authenticator>,
}

/// A database under its public name.
pub struct Database {
    /// Name that clients use.
    pub name: String,
    /// Engine of the database.
    pub engine: Arc<dyn Engine>,
    /// Globally unique identity, the namespace of the database's examples.
    pub identity: String,
}

/// Service shared by all protocols.
pub struct Service {
    live_config: RwLock<Arc<LiveConfig>>,
    breakers: Arc<Breakers>,
    /// Recent errors of each session.
    error_history: Arc<ErrorHistory>,
    session_store: Arc<dyn SessionStore>,
    audit: AuditLog,
    rate_limiter: RateLimiter,
    /// Results with pages that have not been fetched yet.
    pub result_cache: ResultCache,
    /// Responses that are replayed for repeated idempotency keys.
    pub(crate) idempotency: IdempotencyStore,
    /// Number of configuration reloads.
    config_version: AtomicU64,
    metrics: Arc<ServerMetrics>,
    observers: Vec<Arc<dyn Observer>>,
    /// Time and result of the last readiness check: the names of unavailable databases.
    readiness: tokio::sync::Mutex<Option<(Instant, Vec<String>)>>,
}

impl Service {
    /// Creates a service.
    pub fn new(setup: Setup, breakers: Arc<Breakers>, session_store: Arc<dyn SessionStore>, audit: AuditLog) -> Self {
        let metrics = Arc::new(ServerMetrics::default());
        setup.databases.iter().for_each(|database| metrics.register_database(&database.name));
        Self {
            live_config: RwLock::new(Arc::new(LiveConfig::new(setup))),
            breakers,
            error_history: Arc::default(),
            session_store,
            audit,
            rate_limiter: RateLimiter::default(),
            result_cache: ResultCache::default(),
            idempotency: IdempotencyStore::default(),
            config_version: AtomicU64::new(0),
            observers: vec![Arc::new(MetricsRecorder(Arc::clone(&metrics)))],
            metrics,
            readiness: tokio::sync::Mutex::default(),
        }
    }

    /// Adds an observer.
    #[must_use]
    pub fn with_observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Returns the metrics of this server.
    pub fn metrics(&self) -> &ServerMetrics {
        &self.metrics
    }

    /// Returns a snapshot of all metrics.
    pub fn metric_snapshots(&self) -> Vec<MetricSnapshot> {
        self.metrics.snapshots(&RuntimeStats {
            breakers: self.breakers.stats(),
            running_requests: self.running_requests(),
            audit_lines: self.audit.lines_written(),
            dropped: self.observers.iter().flat_map(|observer| observer.dropped()).collect(),
            connections: self.connections(),
        })
    }

    /// Returns the pool connections of each database with an engine that pools them.
    fn connections(&self) -> Vec<(String, Connections)> {
        let live = self.live_config();
        let databases = live.databases.values();
        databases.filter_map(|database| Some((database.name.clone(), database.engine.connections()?))).collect()
    }

    /// Returns all metrics in the Prometheus text format. Requires an admin role.
    pub fn metrics_text(&self, user: &User) -> Result<String, Problem> {
        require_admin(user)?;
        Ok(metrics::prometheus::render(&self.metric_snapshots()))
    }

    /// Replaces the configuration. Requests in flight keep the one that they started with.
    pub fn reload(&self, setup: Setup) {
        setup.databases.iter().for_each(|database| self.metrics.register_database(&database.name));
        let next = Arc::new(LiveConfig::new(setup));
        *self.live_config.write().unwrap_or_else(PoisonError::into_inner) = next;
        // Results produced under the old configuration must not be served again, including those in
        // flight.
        let changes = self.config_version.fetch_add(1, Ordering::AcqRel) + 1;
        self.result_cache.clear(changes);
        self.idempotency.clear(changes);
    }

    /// Returns the number of configuration reloads.
    ///
    /// A request that reads the same value before any other work and after completion has run under
    /// the current configuration.
    pub fn config_version(&self) -> u64 {
        self.config_version.load(Ordering::Acquire)
    }

    fn live_config(&self) -> Arc<LiveConfig> {
        Arc::clone(&self.live_config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the configuration.
    pub fn config(&self) -> Config {
        self.live_config().config.clone()
    }

    /// Returns the maximum size of a request body, in bytes.
    pub fn max_body_bytes(&self) -> usize {
        self.live_config().config.server.limits.body_bytes
    }

    /// Returns the directory of the Pyodide files that the web app loads.
    pub fn pyodide_dir(&self) -> Option<PathBuf> {
        self.live_config().config.server.pyodide.clone()
    }

    /// Returns whether requests must be authenticated.
    pub fn requires_credentials(&self) -> bool {
        self.live_config().authenticator.requires_credentials()
    }

    /// Authenticates a request.
    pub async fn authenticate(&self, credentials: &Credentials<'_>) -> Result<User, Problem> {
        self.live_config().authenticator.authenticate(credentials).await
    }

    /// Admits a request within the user's rate limits.
    pub fn acquire(&self, user: &User) -> Result<InFlightGuard, Problem> {
        self.rate_limiter.acquire(user.id(), &self.live_config().config.server.limits)
    }

    /// Returns the number of requests in flight.
    pub fn running_requests(&self) -> usize {
        self.rate_limiter.in_flight()
    }

    /// Returns the databases that a user may query.
    pub fn databases(&self, user: &User) -> Vec<DatabaseInfo> {
        let live = self.live_config();
        let allowed = live.databases.values().filter(|database| has_access(user, &database.name));
        allowed.map(|d| DatabaseInfo { name: d.name.clone(), dialect: d.engine.dialect().name }).collect()
    }

    fn tenant(&self, user: &User, database: Option<&str>) -> Result<TenantDatabase, Problem> {
        let mut tenant = self.live_config().tenant(user, database, &self.breakers)?;
        tenant.querymend = tenant.querymend.with_error_history(Arc::clone(&self.error_history));
        Ok(tenant)
    }

    /// Returns a database for a request that brings its own tables.
    ///
    /// The client need not name one if all allowed databases share a dialect, or the request
    /// specifies the dialect.
    fn any_database(&self, user: &User, dialect: Option<&str>) -> Result<Option<String>, Problem> {
        let allowed = self.databases(user);
        let same_dialect = allowed.windows(2).all(|pair| pair[0].dialect == pair[1].dialect);
        if dialect.is_some() || same_dialect {
            return Ok(allowed.into_iter().next().map(|database| database.name));
        }
        let names: Vec<&str> = allowed.iter().map(|database| database.name.as_str()).collect();
        Err(Problem::new(ProblemCode::BadRequest, "the databases have different dialects, so the query needs one")
            .hint(format!("set `dialect`, or `database` to one of {}", names.join(", "))))
    }

    /// Returns the tables that a user may read.
    pub async fn schema(&self, user: &User, database: Option<&str>) -> Result<Arc<Schema>, Problem> {
        let tenant = self.tenant(user, database)?;
        tenant.querymend.schema().await.map_err(querymend::sql_api::database_problem)
    }

    /// Returns sample questions for users who do not know the database.
    pub async fn suggestions(&self, user: &User, database: Option<&str>) -> Result<Vec<String>, Problem> {
        Ok(querymend::sample_questions::generate(&*self.schema(user, database).await?))
    }

    /// Returns the name of the configured model.
    pub fn model_name(&self) -> String {
        self.live_config().model.name().to_owned()
    }

    /// Returns the state of all circuit breakers. Requires an admin role.
    pub fn breakers(&self, user: &User) -> Result<Vec<BreakerStats>, Problem> {
        require_admin(user)?;
        Ok(self.breakers.stats())
    }

    /// Returns the circuit breakers themselves, for monitoring.
    pub fn breaker_registry(&self) -> &Arc<Breakers> {
        &self.breakers
    }

    /// Closes a circuit breaker, or all of them.
    pub async fn reset_breakers(&self, ctx: &RequestContext<'_>, tool: Option<&str>) -> Result<(), Problem> {
        require_admin(ctx.user)?;
        match tool {
            None => self.breakers.reset_all(),
            Some(tool) if self.breakers.reset(tool) => {}
            Some(_) => return Err(Problem::new(ProblemCode::NotFound, "there is no such breaker")),
        }
        self.audit.write(&audit_entry(ctx, "reset", tool.unwrap_or("all"), "done")).await
    }

    /// Returns the names of databases that do not respond.
    pub async fn unavailable_databases(&self) -> Vec<String> {
        // The endpoint is public, so databases are probed at most once per second, by one request
        // at a time (single-flight).
        let mut readiness = self.readiness.lock().await;
        if let Some((_, down)) = readiness.as_ref().filter(|(at, _)| at.elapsed() < Duration::from_secs(1)) {
            return down.clone();
        }
        let live = self.live_config();
        let mut down = Vec::new();
        for database in live.databases.values() {
            let response = tokio::time::timeout(Duration::from_secs(2), database.engine.test_connection()).await;
            if !matches!(response, Ok(Ok(()))) {
                down.push(database.name.clone());
            }
        }
        *readiness = Some((Instant::now(), down.clone()));
        down
    }
}

fn check_length(field: &str, text: &str, max_bytes: usize) -> Result<(), Problem> {
    if text.len() <= max_bytes {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::BadRequest, format!("`{field}` has more than {max_bytes} bytes")))
}

fn require_admin(user: &User) -> Result<(), Problem> {
    if user.role.admin {
        Ok(())
    } else {
        Err(Problem::new(ProblemCode::Forbidden, "this operation requires an admin role"))
    }
}
