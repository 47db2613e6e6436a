//! `querymend serve`: serves databases over HTTP, gRPC and MCP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use querymend::Config;
use querymend::resilience::Breakers;
use querymend::sql_api::NO_MODEL;
use querymend_server::audit::log::AuditLog;
use querymend_server::auth::user::Authenticator;
use querymend_server::observe::logging::LogObserver;
use querymend_server::observe::otlp::{OtlpExporter, OtlpSettings};
use querymend_server::store::{InMemoryStore, PostgresSessionStore, SessionStore};
use querymend_server::{ConnectionLimits, Service, Shutdown, app_router, serve_with_limits};
use tokio::net::TcpListener;

use crate::args::answer::AnswerArgs;
use crate::error::{CliError, ExitStatus};
use crate::output::Out;
use crate::{logging, service_builder, state_dir};

/// Interval at which the configuration is polled for changes.
const CONFIG_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Output format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text, for people
    Text,
    /// JSON, one object per line
    Json,
}

/// Answer questions over HTTP
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend serve --db shop.db
  querymend serve --db shop=shop.db --db crm=postgres://reader@db/crm --bind 127.0.0.1:8642
  curl -s localhost:8642/v1/ask -H 'content-type: application/json' -d '{\"question\": \"How many products are there?\"}'

A loopback address needs no authentication; other addresses need `server.auth` in querymend.yaml.
A changed configuration is reloaded while it runs (also on SIGHUP). Ctrl-C waits for running questions; a second one does not.
GET /openapi.json describes every request.
Exit codes: 0 stopped, 2 failed.")]
pub struct ServeCommand {
    /// Database to serve, as NAME=ADDRESS or an address alone; may be repeated
    #[arg(long, value_name = "[NAME=]URL")]
    pub db: Vec<String>,
    /// Address and port to listen on [default: 127.0.0.1:8642, or `server.bind`]
    #[arg(long, value_name = "ADDR:PORT")]
    pub bind: Option<SocketAddr>,
    #[command(flatten)]
    pub answer_args: AnswerArgs,
    /// File to append an audit record to for every query that ran
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Folder with Pyodide, which the web page computes with in the browser [default: pyodide in
    /// the cache folder]
    #[arg(long, value_name = "DIR")]
    pub pyodide: Option<PathBuf>,
    /// Output format of the log on stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// Runs `querymend serve`.
pub fn run(command: &ServeCommand, out: &mut Out) -> Result<ExitStatus, CliError> {
    let config = command.load_config()?;
    let bind: SocketAddr = match command.bind {
        Some(bind) => bind,
        None => config.server.bind.parse().map_err(|_| CliError::new("`server.bind` is not an address and port"))?,
    };
    querymend_server::check_bind_address(bind, &config.server)?;
    logging::serve(command.log_format == LogFormat::Json);
    if command.answer_args.model_args.model_spec(&config).is_some_and(|name| name != NO_MODEL) {
        // A model that was named explicitly must open.
        command.answer_args.model_args.open_model(&config)?;
    }
    let model = service_builder::select_model_or_none(
        &command.answer_args.model_args,
        Some(&command.answer_args.auto_pull),
        &config,
        out,
    );
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::new(format!("cannot start a thread: {error}")))?;
    let served = runtime.block_on(listen(command, config, bind, model, out));
    // Work that cannot be cancelled must not keep the process alive.
    runtime.shutdown_background();
    served
}

impl ServeCommand {
    /// Loads the configuration and applies the options on top of it.
    fn load_config(&self) -> Result<Config, CliError> {
        let mut config = self.answer_args.model_args.load_config()?;
        if let Some(audit) = &self.audit {
            config.server.audit = Some(audit.clone());
        }
        if let Some(folder) = &self.pyodide {
            if !folder.join("pyodide-lock.json").is_file() {
                let failure = CliError::new(format!("{} has no Pyodide in it", folder.display()));
                return Err(failure.hint("scripts/pyodide.sh DIR fetches it"));
            }
            config.server.pyodide = Some(folder.clone());
        }
        config.server.pyodide = config.server.pyodide.or_else(|| Some(state_dir::cache_dir()?.join("pyodide")));
        Ok(config)
    }

    /// Builds the authenticator.
    ///
    /// Checks the bind address each time, so that a reloaded configuration cannot disable
    /// authentication on an address that other machines can reach.
    fn authenticator(config: &Config, bind: SocketAddr) -> Result<Arc<dyn Authenticator>, CliError> {
        querymend_server::check_bind_address(bind, &config.server)?;
        querymend_server::build_authenticator(&config.server).map_err(CliError::from)
    }
}

async fn listen(
    command: &ServeCommand,
    config: Config,
    bind: SocketAddr,
    model: Arc<dyn querymend_model::Model>,
    out: &mut Out,
) -> Result<ExitStatus, CliError> {
    let audit = match &config.server.audit {
        Some(path) => AuditLog::open(path).map_err(|error| audit_log_error(path, &error))?,
        None => AuditLog::default(),
    };
    let limits = config.server.limits.clone();
    let store = command.answer_args.memory_args.store.clone().or_else(|| config.memory.store.clone());
    let shared = store.filter(|store| store.starts_with("postgres://") || store.starts_with("postgresql://"));
    let runs = config.trace.folder.clone().or_else(|| state_dir::state_dir().map(|folder| folder.join("served")));
    let runs = runs.map(|folder| (folder, config.trace.max_traces as usize));
    let session_store: Arc<dyn SessionStore> = match shared {
        // If several processes share the examples, they share sessions too.
        Some(address) => {
            let keep = config.trace.max_traces as usize;
            let session_store = PostgresSessionStore::open(&address, limits.sessions, limits.session_age, keep).await;
            Arc::new(
                session_store.map_err(|problem| CliError { hint: problem.hint, ..CliError::new(problem.message) })?,
            )
        }
        None => Arc::new(InMemoryStore::new(limits.sessions, limits.session_age, runs)),
    };
    let breakers = Arc::new(Breakers::new(config.circuit_breaker));
    let authenticator = ServeCommand::authenticator(&config, bind)?;
    let setup = service_builder::build_setup(
        &command.db,
        Arc::clone(&model),
        &command.answer_args.memory_args,
        config,
        authenticator,
        out,
    )
    .await?;
    let names: Vec<String> = setup.databases.iter().map(|database| database.name.clone()).collect();
    let collector = match &setup.config.server.otlp {
        Some(address) => Some(start_otlp_exporter(address)?),
        None => None,
    };
    let mut service = Service::new(setup, breakers, session_store, audit).with_observer(Arc::new(LogObserver));
    if let Some(collector) = &collector {
        service = service.with_observer(Arc::new(collector.clone()));
    }
    let service = Arc::new(service);
    collector.iter().for_each(|collector| collector.export_metrics_of(&service));
    for name in service.unavailable_databases().await {
        out.message(&format!(
            "warning: the database `{name}` does not respond; requests that need it fail until it does"
        ));
        out.note("hint: check its address and that it is running; GET /readyz reports when it responds");
    }
    let listener = TcpListener::bind(bind).await.map_err(|error| {
        CliError::new(format!("cannot listen at {bind}: {error}")).hint("name another port with --bind")
    })?;
    let bound = listener.local_addr().map_err(|error| CliError::new(error.to_string()))?;
    out.message(&format!("listening at http://{bound} with {} and the model {}", names.join(", "), model.name()));
    if !querymend_server::http::has_page() {
        out.note("note: this build does not include the web app; docs/guide/web-ui.md explains how to build it");
    }
    let shutdown = Shutdown::default();
    let watch = tokio::spawn(watch_signals(shutdown.clone()));
    let router = app_router(Arc::clone(&service), &shutdown);
    let connection_limits = ConnectionLimits::from(&limits);
    let served = tokio::select! {
        served = serve_with_limits(listener, router, &shutdown, limits.shutdown, &connection_limits) => served,
        () = watch_config(command, bind, &service, &model, out) => Ok(true),
    };
    watch.abort();
    if let Some(collector) = collector {
        collector.shut_down(Duration::from_secs(5)).await;
    }
    match served {
        Ok(true) => out.message("stopped"),
        Ok(false) => out.message("stopped; some requests did not end in time"),
        Err(error) => return Err(CliError::new(format!("listening failed: {error}"))),
    }
    Ok(ExitStatus::Success)
}

/// Starts exporting traces and metrics to an OTLP collector.
fn start_otlp_exporter(address: &str) -> Result<OtlpExporter, querymend_net::Error> {
    OtlpExporter::start(&OtlpSettings::new(address)?.with_env(&querymend_net::read_env)?)
}

fn audit_log_error(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(format!("the audit log {} cannot be written: {error}", path.display()))
}

/// Handles Ctrl-C and SIGTERM: the first drains running requests, the second exits immediately.
async fn watch_signals(shutdown: Shutdown) {
    let mut received = 0;
    loop {
        if wait_for_shutdown_signal().await.is_err() {
            return;
        }
        received += 1;
        if received > 1 {
            std::process::exit(130);
        }
        shutdown.stop();
    }
}

#[cfg(unix)]
async fn wait_for_shutdown_signal() -> std::io::Result<()> {
    let mut end = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed,
        _ = end.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn wait_for_shutdown_signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Reloads the configuration when it changes. An invalid configuration is logged, and the old one
/// stays active.
async fn watch_config(
    command: &ServeCommand,
    bind: SocketAddr,
    service: &Service,
    model: &Arc<dyn querymend_model::Model>,
    out: &Out,
) {
    let files: Vec<PathBuf> = command
        .answer_args
        .model_args
        .config
        .clone()
        .or_else(Config::find)
        .into_iter()
        .chain(command.answer_args.model_args.policy.clone())
        .collect();
    let mut seen = modified_times(&files);
    loop {
        wait_or_hangup(CONFIG_POLL_INTERVAL).await;
        let now = modified_times(&files);
        if now == seen {
            continue;
        }
        seen = now;
        let changed = async {
            let config = command.load_config()?;
            if service.requires_credentials() && config.server.auth.is_none() {
                // A file that is being written, or was moved away, reads like a configuration
                // without authentication.
                return Err(CliError::new("it would disable authentication").hint("restart the server"));
            }
            let authenticator = ServeCommand::authenticator(&config, bind)?;
            service_builder::build_setup(
                &command.db,
                Arc::clone(model),
                &command.answer_args.memory_args,
                config,
                authenticator,
                out,
            )
            .await
        };
        match changed.await {
            Ok(setup) => {
                service.reload(setup);
                tracing::info!("the changed configuration was applied");
            }
            Err(failure) => tracing::error!(what = failure.message, "the changed configuration was not applied"),
        }
    }
}

/// Waits for `time`, or until SIGHUP requests a reload.
async fn wait_or_hangup(time: Duration) {
    #[cfg(unix)]
    if let Ok(mut hint) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()) {
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            _ = hint.recv() => {}
        }
        return;
    }
    tokio::time::sleep(time).await;
}

fn modified_times(files: &[PathBuf]) -> Vec<Option<SystemTime>> {
    files.iter().map(|file| std::fs::metadata(file).and_then(|about| about.modified()).ok()).collect()
}
