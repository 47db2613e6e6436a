//! Log output on stderr, for `-v` and for the server.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Starts logging for `-v`.
///
/// Only events of Querymend are logged: connection details of libraries help only their authors.
pub fn start(color: bool) {
    let lines =
        tracing_subscriber::fmt::layer().without_time().with_target(false).with_ansi(color).with_writer(io::stderr);
    let ours = Targets::new().with_target("querymend", LevelFilter::DEBUG);
    // This fails only if a subscriber is already set.
    tracing_subscriber::registry().with(lines).with(ours).try_init().ok();
}

/// Starts the log of a server, with timestamps and request ids, at level INFO, without debug
/// events.
pub fn serve(json: bool) {
    let ours = Targets::new().with_target("querymend", LevelFilter::INFO);
    let registry = tracing_subscriber::registry().with(ours);
    if json {
        registry.with(querymend_server::observe::logging::json_logs(io::stderr)).try_init().ok();
    } else {
        registry.with(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(io::stderr)).try_init().ok();
    }
}
