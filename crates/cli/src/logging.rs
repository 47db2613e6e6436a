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
