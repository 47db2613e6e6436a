//! The servers that `./test` starts, and names of what is kept on them.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A server's address, without a collection or a table.
pub fn chroma() -> Option<String> {
    server("QUERYMEND_TEST_CHROMA")
}

/// A server's address, without a collection or a table.
pub fn postgres() -> Option<String> {
    server("QUERYMEND_TEST_STORE")
}

/// The address of a new collection or table.
pub fn fresh(server: &str) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("t_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    named(server, &name)
}

/// The address of this collection or table.
pub fn named(server: &str, name: &str) -> String {
    if server.starts_with("chroma") { format!("{server}/{name}") } else { format!("{server}?table={name}") }
}

fn server(variable: &str) -> Option<String> {
    let address = std::env::var(variable).ok().filter(|address| !address.is_empty());
    if address.is_none() {
        // Where everything is to be tested, nothing is left out without a word.
        assert!(std::env::var_os("CI").is_none(), "{variable} is not set: `scripts/stores.sh up` starts the servers");
        eprintln!("skipped: {variable} is not set; `./test` starts the servers, and so does `scripts/stores.sh up`");
    }
    address
}
