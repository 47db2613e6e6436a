//! Servers that are killed and come back. A test program of its own, which runs alone: other tests would find their server gone.

// Helpers of tests fail loudly, as tests do.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

#[allow(dead_code, reason = "the integration tests use the rest")]
#[path = "integration/support.rs"]
mod support;

use std::path::Path;
use std::process::Command;

use querymend_engine::{Error, open};
use querymend_sql::Cell;
use querymend_testing::is_full_suite;

use self::support::{ENGINE_SCRIPTS, address, ask};

/// Servers that restart in seconds. Those that are written in Java take half a minute.
const QUICK: &[&str] = &["mysql", "postgres"];

/// Returns the name and address of every server that is wanted and running.
fn servers() -> Vec<(String, String)> {
    let scripts = std::fs::read_dir(ENGINE_SCRIPTS).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = scripts.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names.into_iter().filter_map(|name| address(&name).map(|address| (name, address))).collect()
}

/// Kills a server as a crash would (`kill`), or starts it again with its data (`start`).
fn run_script(verb: &str, name: &str) {
    let script = Path::new(ENGINE_SCRIPTS).with_extension("sh");
    let status = Command::new("bash").arg(script).args([verb, name]).status().unwrap();
    assert!(status.success(), "{verb} {name}");
}

#[tokio::test]
async fn reconnects_to_a_killed_server_after_its_restart() {
    for (name, address) in servers().into_iter().filter(|(name, _)| is_full_suite() || QUICK.contains(&name.as_str())) {
        let engine = open(&address).unwrap();
        assert_eq!(ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]]);
        run_script("kill", &name);
        // Kept connections are dead, and the engine may have to notice that first.
        for _ in 0..2 {
            let outcome = ask(&*engine, "SELECT count(*) FROM things").await;
            let Err(error @ Error::Unavailable { .. }) = outcome else { panic!("{name}: {outcome:?}") };
            assert!(error.is_transient(), "{name}: {error}");
            assert!(error.hint().is_some_and(|hint| !hint.is_empty()), "{error}");
        }
        run_script("start", &name);
        assert_eq!(ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows, [[Cell::Integer(3)]]);
    }
}
