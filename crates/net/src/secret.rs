//! Passwords and tokens, and their lookup.

use std::fs::File;
use std::io::Read;

use crate::Error;

/// Password or token, redacted in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Looks up environment variables.
pub type EnvLookup<'a> = &'a (dyn Fn(&str) -> Option<String> + Send + Sync);

/// Reads an environment variable. An empty value counts as unset.
pub fn read_env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Maximum size of a file with secrets.
const MAX_SECRET_FILE_BYTES: u64 = 64 << 10;

/// Reads a file with secrets; `variable` is the environment variable that named it.
pub fn read_secret_file(variable: &str, file: &str) -> Result<String, Error> {
    let wrong =
        |why: &dyn std::fmt::Display| Error::new(format!("{file} cannot be read: {why}"), format!("check {variable}"));
    let mut text = String::new();
    let opened = File::open(file).map_err(|why| wrong(&why))?;
    opened.take(MAX_SECRET_FILE_BYTES).read_to_string(&mut text).map_err(|why| wrong(&why))?;
    Ok(text)
}
