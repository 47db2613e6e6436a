//! One test at a time on a server, also where several test programs run side by side.

use std::env;
use std::fs::{File, OpenOptions};

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
    let address = env::var(format!("QUERYMEND_TEST_{}", name.to_uppercase())).unwrap_or_default();
    let server = address.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let path = env::temp_dir().join(format!("querymend-test-{name}-{server}.lock"));
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path).unwrap();
    file.lock().unwrap();
    ServerLock { _file: file }
}
