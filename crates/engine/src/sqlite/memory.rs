//! How much memory SQLite may use. What it would sort or keep on disk is kept in memory too, so that this bounds both.

use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, Result};

/// The least that was ever allowed, which SQLite holds the whole program to.
static LEAST: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Holds SQLite to so much memory, unless it is held to less already: it can only be told to use less, never more.
pub(super) fn allow(bytes: usize) -> Result<()> {
    if LEAST.fetch_min(bytes, Ordering::Relaxed) > bytes {
        // The account is the program's, so that any connection will do.
        Connection::open_in_memory()?.execute_batch(&format!("PRAGMA hard_heap_limit = {bytes}"))?;
    }
    Ok(())
}

/// What is said when it is not enough.
pub(super) fn too_little() -> String {
    let least = LEAST.load(Ordering::Relaxed);
    match least >> 20 {
        0 => format!("the query needed more memory than {least} bytes"),
        mebibytes => format!("the query needed more memory than {mebibytes} MiB"),
    }
}
