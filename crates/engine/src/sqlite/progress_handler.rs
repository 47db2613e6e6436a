//! Interrupts SQLite when a query must end.

use rusqlite::Connection;

use crate::deadline::Deadline;

/// Number of virtual machine instructions between two checks: about ten microseconds.
///
/// A check reads the deadline and the cancel flag.
const INSTRUCTIONS_PER_CHECK: i32 = 1_000;

/// Installs a progress handler and an interrupt hook.
///
/// The handler also runs while a statement is prepared. The hook ends a query at its next jump
/// instruction, without waiting for the handler.
pub(super) fn install(connection: &mut Connection, deadline: &Deadline) -> rusqlite::Result<()> {
    let working = connection.get_interrupt_handle();
    deadline.on_cancel(move || working.interrupt());
    let stop = deadline.clone();
    let must_end = move || {
        stop.add_steps(INSTRUCTIONS_PER_CHECK as u64);
        stop.stop_reason().is_some()
    };
    connection.progress_handler(INSTRUCTIONS_PER_CHECK, Some(must_end))
}

/// Removes the handler, so that a pooled connection does not keep the deadline of its last query.
pub(super) fn remove(connection: &mut Connection, deadline: &Deadline) -> rusqlite::Result<()> {
    deadline.clear_cancel_hook();
    connection.progress_handler(0, None::<fn() -> bool>)
}
