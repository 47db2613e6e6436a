//! How SQLite hears that a query must end.

use rusqlite::Connection;

use crate::stop::Stop;

/// After how many instructions of SQLite's machine the clock and the cancel flag are looked at: some ten microseconds.
const INSTRUCTIONS: i32 = 1_000;

/// Lets SQLite ask after every so many of its instructions, also while it prepares a statement; and when it is told to, it ends at
/// its next jump, however few instructions it has done since it last asked.
pub(super) fn watch(connection: &mut Connection, stop: &Stop) -> rusqlite::Result<()> {
    let working = connection.get_interrupt_handle();
    stop.answer_with(move || working.interrupt());
    let stop = stop.clone();
    let must_end = move || {
        stop.count(INSTRUCTIONS as u64);
        stop.reason().is_some()
    };
    connection.progress_handler(INSTRUCTIONS, Some(must_end))
}

/// Takes the watch off, so that a pooled connection does not keep the last query's deadline.
pub(super) fn forget(connection: &mut Connection, stop: &Stop) -> rusqlite::Result<()> {
    stop.answer_no_more();
    connection.progress_handler(0, None::<fn() -> bool>)
}
