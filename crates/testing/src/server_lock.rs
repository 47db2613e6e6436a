//! Exclusive access to a test server, also across concurrent test processes.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

/// Guard for exclusive access to a server.
pub struct ServerLock {
    _file: File,
}

/// Waits for exclusive access to the server called `name` (`postgres` for
/// `QUERYMEND_TEST_POSTGRES`).
///
/// Required for a test that creates or drops roles, databases or schemas, compares the state of the
/// whole server before and after, or counts or ends the sessions of a user that other tests log in
/// as. Not required for a test that only reads existing data.
pub fn lock_server(name: &str) -> ServerLock {
    // Each checkout has its own servers.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/server-locks");
    assert!(fs::create_dir_all(&folder).is_ok(), "{} cannot be made", folder.display());
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(name));
    let locked = file.and_then(|file| file.lock().map(|()| file));
    match locked {
        Ok(file) => ServerLock { _file: file },
        Err(error) => panic!("the server {name} cannot be locked: {error}"),
    }
}
