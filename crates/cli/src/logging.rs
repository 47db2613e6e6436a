//! `-v`: what the library logs, on stderr.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Begins to write the log. Only what Querymend itself says: what libraries say about connections is for their makers.
pub fn start(color: bool) {
    let lines =
        tracing_subscriber::fmt::layer().without_time().with_target(false).with_ansi(color).with_writer(io::stderr);
    let ours = Targets::new().with_target("querymend", LevelFilter::DEBUG);
    // It fails only where a log is written already.
    tracing_subscriber::registry().with(lines).with(ours).try_init().ok();
}

/// Begins to write the log of a server: when, what and in which request; nothing that only helps to find faults.
pub fn serve(json: bool) {
    let ours = Targets::new().with_target("querymend", LevelFilter::INFO);
    let registry = tracing_subscriber::registry().with(ours);
    if json {
        registry.with(querymend_server::logs::json_logs(io::stderr)).try_init().ok();
    } else {
        registry.with(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(io::stderr)).try_init().ok();
    }
}
