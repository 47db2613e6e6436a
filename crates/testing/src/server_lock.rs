//! One test at a time on a server, also where several test programs run side by side.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

/// Held as long as a test has a server to itself.
pub struct ServerLock {
    _file: File,
}

/// Waits until no other test holds the server called `name` (`postgres` for `QUERYMEND_TEST_POSTGRES`), then holds it.
///
/// A test needs it that creates or drops roles, databases or schemas, compares the whole server with what it was before, or counts or
/// ends the sessions of a user whom other tests log in as. A test that only reads what is there does not.
pub fn exclusive(name: &str) -> ServerLock {
    // Each checkout has servers of its own.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/server-locks");
    assert!(fs::create_dir_all(&folder).is_ok(), "{} cannot be made", folder.display());
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(name));
    let locked = file.and_then(|file| file.lock().map(|()| file));
    match locked {
        Ok(file) => ServerLock { _file: file },
        Err(error) => panic!("the server {name} cannot be locked: {error}"),
    }
}
