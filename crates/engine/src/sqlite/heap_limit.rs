//! Memory limit of SQLite. Temporary data is kept in memory as well, so that the limit bounds both.

use std::sync::atomic::{AtomicUsize, Ordering};

use rusqlite::{Connection, Result};

/// Lowest limit so far, which SQLite applies to the whole process.
static HEAP_LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Lowers SQLite's heap limit. It can only be lowered, never raised.
pub(super) fn lower_heap_limit(bytes: usize) -> Result<()> {
    if HEAP_LIMIT.fetch_min(bytes, Ordering::Relaxed) > bytes {
        // The limit is process-wide, so any connection can set it.
        Connection::open_in_memory()?.execute_batch(&format!("PRAGMA hard_heap_limit = {bytes}"))?;
    }
    Ok(())
}

/// Returns the error message for an exceeded limit.
pub(super) fn out_of_memory_message() -> String {
    let least = HEAP_LIMIT.load(Ordering::Relaxed);
    match least >> 20 {
        0 => format!("the query needed more than {least} bytes of memory"),
        mebibytes => format!("the query needed more than {mebibytes} MiB of memory"),
    }
}
