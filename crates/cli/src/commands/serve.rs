//! `querymend serve`: the same for others, over HTTP, gRPC and MCP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use querymend::Config;
use querymend::direct::NO_MODEL;
use querymend::guard::Breakers;
use querymend_server::audit::Audit;
use querymend_server::logs::Logging;
use querymend_server::otlp::{Otlp, Settings};
use querymend_server::shelf::{Here, Postgres, Shelf};
use querymend_server::user::Gate;
use querymend_server::{Bounds, Service, Stopping, faces, serve_within};
use tokio::net::TcpListener;

use crate::chosen::Unnamed;
use crate::failure::{Exit, Failure};
use crate::out::Out;
use crate::remember::Remembering;
use crate::setup::Asking;
use crate::{logging, serving, state};

/// How often the configuration is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One object on each line
    Json,
}

/// Answer questions of others over HTTP
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  querymend serve --db shop.db
  querymend serve --db shop=shop.db --db crm=postgres://reader@db/crm --bind 127.0.0.1:8642
  curl -s localhost:8642/v1/ask -H 'content-type: application/json' -d '{\"question\": \"How many products are there?\"}'

On this machine nobody has to sign in; elsewhere it needs `server.sign_in` in querymend.yaml.
A changed configuration is taken on while it runs (also on SIGHUP). Ctrl-C lets running questions end; a second one does not wait.
GET /openapi.json describes every request.
Exit codes: 0 stopped, 2 could not be done.")]
pub struct Serve {
    /// Database to serve, as NAME=ADDRESS or an address alone; may be given several times
    #[arg(long, value_name = "[NAME=]URL")]
    pub db: Vec<String>,
    /// Address and port to listen at [default: 127.0.0.1:8642, or `server.bind`]
    #[arg(long, value_name = "ADDR:PORT")]
    pub bind: Option<SocketAddr>,
    #[command(flatten)]
    pub asking: Asking,
    #[command(flatten)]
    pub unnamed: Unnamed,
    #[command(flatten)]
    pub remembering: Remembering,
    /// File that gets a line for every query that ran
    #[arg(long, value_name = "FILE")]
    pub audit: Option<PathBuf>,
    /// Folder with what the page computes with in the browser [default: pyodide in the cache folder]
    #[arg(long, value_name = "DIR")]
    pub pyodide: Option<PathBuf>,
    /// How the log on stderr is written
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// Does it.
pub fn run(given: &Serve, out: &mut Out) -> Result<Exit, Failure> {
    let config = given.config()?;
    let bind: SocketAddr = match given.bind {
        Some(bind) => bind,
        None => config.server.bind.parse().map_err(|_| Failure::new("`server.bind` is no address and port"))?,
    };
    querymend_server::may_bind(bind, &config.server).map_err(refused)?;
    logging::serve(given.log_format == LogFormat::Json);
    if given.asking.named(&config).is_some_and(|name| name != NO_MODEL) {
        // One that was asked for must be there.
        given.asking.model(&config)?;
    }
    let model = serving::model(&given.asking, Some(&given.unnamed), &config, out);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("no thread can be started: {error}")))?;
    let served = runtime.block_on(listen(given, config, bind, model, out));
    // What does not let itself be stopped must not keep the program.
    runtime.shutdown_background();
    served
}

impl Serve {
    /// The configuration with what the options change.
    fn config(&self) -> Result<Config, Failure> {
        let mut config = self.asking.config()?;
        if let Some(audit) = &self.audit {
            config.server.audit = Some(audit.clone());
        }
        if let Some(folder) = &self.pyodide {
            if !folder.join("pyodide-lock.json").is_file() {
                let failure = Failure::new(format!("{} has no Pyodide in it", folder.display()));
                return Err(failure.hint("scripts/pyodide.sh DIR fetches it"));
            }
            config.server.pyodide = Some(folder.clone());
        }
        config.server.pyodide = config.server.pyodide.or_else(|| Some(state::cache()?.join("pyodide")));
        Ok(config)
    }

    /// Who is let in. Also a configuration that is changed later must not open to all what can be reached from elsewhere.
    fn gate(config: &Config, bind: SocketAddr) -> Result<Arc<dyn Gate>, Failure> {
        querymend_server::may_bind(bind, &config.server).map_err(refused)?;
        querymend_server::gate(&config.server).map_err(refused)
    }
}

fn refused(error: querymend_net::Error) -> Failure {
    Failure::new(error.message).hint(error.hint)
}

async fn listen(
    given: &Serve,
    config: Config,
    bind: SocketAddr,
    model: Arc<dyn querymend_model::Model>,
    out: &mut Out,
) -> Result<Exit, Failure> {
    let audit = match &config.server.audit {
        Some(path) => Audit::open(path).map_err(|error| unwritable(path, &error))?,
        None => Audit::default(),
    };
    let limits = config.server.limits.clone();
    let store = given.remembering.store.clone().or_else(|| config.memory.store.clone());
    let shared = store.filter(|store| store.starts_with("postgres://") || store.starts_with("postgresql://"));
    let runs = config.trace.folder.clone().or_else(|| state::folder().map(|folder| folder.join("served")));
    let runs = runs.map(|folder| (folder, config.trace.keep as usize));
    let shelf: Arc<dyn Shelf> = match shared {
        // Where examples are shared by several processes, conversations are too.
        Some(address) => {
            let keep = config.trace.keep as usize;
            let shelf = Postgres::open(&address, limits.sessions, limits.session_age, keep).await;
            Arc::new(shelf.map_err(|problem| Failure { hint: problem.hint, ..Failure::new(problem.message) })?)
        }
        None => Arc::new(Here::new(limits.sessions, limits.session_age, runs)),
    };
    let breakers = Arc::new(Breakers::new(config.circuit_breaker));
    let gate = Serve::gate(&config, bind)?;
    let setup = serving::setup(&given.db, Arc::clone(&model), &given.remembering, config, gate, out).await?;
    let names: Vec<String> = setup.databases.iter().map(|database| database.name.clone()).collect();
    let collector = match &setup.config.server.otlp {
        Some(address) => Some(collector(address).map_err(refused)?),
        None => None,
    };
    let mut service = Service::new(setup, breakers, shelf, audit).heard_by(Arc::new(Logging));
    if let Some(collector) = &collector {
        service = service.heard_by(Arc::new(collector.clone()));
    }
    let service = Arc::new(service);
    collector.iter().for_each(|collector| collector.measure(&service));
    for name in service.unready().await {
        out.say(&format!("warning: the database `{name}` does not answer; requests that need it fail until it does"));
        out.note("hint: check its address and that it runs; GET /readyz says when it answers");
    }
    let listener = TcpListener::bind(bind).await.map_err(|error| {
        Failure::new(format!("{bind} cannot be listened at: {error}")).hint("name another port with --bind")
    })?;
    let bound = listener.local_addr().map_err(|error| Failure::new(error.to_string()))?;
    out.say(&format!("listening at http://{bound} with {} and the model {}", names.join(", "), model.name()));
    if !querymend_server::http::has_page() {
        out.note("note: this build has no page for browsers; docs/page.md says how it is built");
    }
    let stopping = Stopping::default();
    let watch = tokio::spawn(signals(stopping.clone()));
    let router = faces(Arc::clone(&service), &stopping);
    let bounds = Bounds::from(&limits);
    let served = tokio::select! {
        served = serve_within(listener, router, &stopping, limits.shutdown, &bounds) => served,
        () = follow(given, bind, &service, &model, out) => Ok(true),
    };
    watch.abort();
    if let Some(collector) = collector {
        collector.close(Duration::from_secs(5)).await;
    }
    match served {
        Ok(true) => out.say("stopped"),
        Ok(false) => out.say("stopped; some requests did not end in time"),
        Err(error) => return Err(Failure::new(format!("listening failed: {error}"))),
    }
    Ok(Exit::Done)
}

/// Sends traces and figures to a collector.
fn collector(address: &str) -> Result<Otlp, querymend_net::Error> {
    Otlp::start(&Settings::new(address)?.with_variables(&querymend_net::environment)?)
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("the audit log {} cannot be written: {error}", path.display()))
}

/// Ctrl-C and the system's wish to end: the first lets requests end, the second does not wait.
async fn signals(stopping: Stopping) {
    let mut asked = 0;
    loop {
        if wish_to_end().await.is_err() {
            return;
        }
        asked += 1;
        if asked > 1 {
            std::process::exit(130);
        }
        stopping.stop();
    }
}

#[cfg(unix)]
async fn wish_to_end() -> std::io::Result<()> {
    let mut end = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed,
        _ = end.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn wish_to_end() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Takes on a configuration that has changed. One that cannot be taken on is told, and all stays as it was.
async fn follow(
    given: &Serve,
    bind: SocketAddr,
    service: &Service,
    model: &Arc<dyn querymend_model::Model>,
    out: &Out,
) {
    let files: Vec<PathBuf> =
        given.asking.config.clone().or_else(Config::find).into_iter().chain(given.asking.policy.clone()).collect();
    let mut seen = written(&files);
    loop {
        hint_or(LOOK).await;
        let now = written(&files);
        if now == seen {
            continue;
        }
        seen = now;
        let changed = async {
            let config = given.config()?;
            if service.signs_in() && config.server.sign_in.is_none() {
                // A file that is being written, or was moved away, reads like one that lets everyone in.
                return Err(Failure::new("it would let everyone in without signing in").hint("start the server again"));
            }
            let gate = Serve::gate(&config, bind)?;
            serving::setup(&given.db, Arc::clone(model), &given.remembering, config, gate, out).await
        };
        match changed.await {
            Ok(setup) => {
                service.change(setup);
                tracing::info!("the changed configuration is taken on");
            }
            Err(failure) => tracing::error!(what = failure.what, "the changed configuration is not taken on"),
        }
    }
}

/// Waits a while, or until the system says that the configuration has changed.
async fn hint_or(time: Duration) {
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

fn written(files: &[PathBuf]) -> Vec<Option<SystemTime>> {
    files.iter().map(|file| std::fs::metadata(file).and_then(|about| about.modified()).ok()).collect()
}
