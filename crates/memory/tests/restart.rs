//! Servers that go away and come back. A binary of its own: it kills servers that the other tests use.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, clippy::print_stderr)]

#[path = "integration/servers.rs"]
mod servers;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use querymend_memory::{Error, Example, ExampleFilter, ExampleQuery, ExampleUpdate, open};
use querymend_model::StaticEmbedder;

/// Idle time after which PostgreSQL's connections are tried before they are relied on: `STALE` in `src/postgres/pool.rs`.
const STALE: Duration = Duration::from_secs(2);

/// Whether this is the server that the script of this checkout started, so that it may be stopped.
fn is_ours(name: &str, address: &str) -> bool {
    let port = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/stores/{name}.port"));
    let ours = std::fs::read_to_string(port).is_ok_and(|port| address.contains(&format!(":{}", port.trim())));
    if !ours {
        eprintln!("skipped: the server at {address} was not started by scripts/stores.sh of this checkout");
    }
    ours
}

fn script(what: &str, name: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/stores.sh");
    assert!(Command::new(script).args([what, name]).status().unwrap().success());
}

/// Kills a server and starts it again, and waits until a store cannot mistake its connection to the old one for a usable one.
async fn restart(name: &str) {
    let begun = Instant::now();
    script("kill", name);
    script("start", name);
    // The end of the connection is noticed by another thread, which may need a moment.
    let idle = if name == "postgres" { STALE.saturating_sub(begun.elapsed()) } else { Duration::ZERO };
    tokio::time::sleep(idle.max(Duration::from_millis(100))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnects_after_a_server_restart() {
    for (name, address) in [("postgres", servers::postgres()), ("chroma", servers::chroma())] {
        let Some(address) = address.filter(|address| is_ours(name, address)) else { continue };
        let store = open(&servers::fresh(&address), Arc::new(StaticEmbedder::builtin().unwrap())).await.unwrap();
        let one = Example::new("How many orders?", "SELECT 1", "shop", "sqlite");
        store.add(std::slice::from_ref(&one)).await.unwrap();
        let sought = ExampleQuery {
            question: "orders",
            database: "shop",
            dialect: None,
            only_database: false,
            only_verified: false,
            limit: 5,
        };
        script("kill", name);
        for _ in 0..2 {
            let error = store.search(&sought).await.unwrap_err();
            assert!(matches!(error, Error::Unavailable { .. }) && error.hint().is_some(), "{error:?}");
        }
        let error = store.add(std::slice::from_ref(&one)).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
        script("start", name);
        assert_eq!(
            store.search(&sought).await.unwrap()[0].example,
            one,
            "what was acknowledged is there after a crash"
        );

        // Away and back between two questions: nobody notices, whatever is asked first.
        restart(name).await;
        assert_eq!(store.update(&[(&one.id, ExampleUpdate { uses: 1, ..ExampleUpdate::default() })]).await.unwrap(), 1);
        restart(name).await;
        assert_eq!(store.count(&ExampleFilter::default()).await.unwrap(), 1);
        assert_eq!(store.get(&one.id).await.unwrap().unwrap().uses, 1);
    }
}
