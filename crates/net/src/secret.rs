//! Passwords and tokens, and where they are looked for.

use std::fs::File;
use std::io::Read;

use crate::Error;

/// A password or a token. It can be sent, and it cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Where variables of the environment are looked up.
pub type Variables<'a> = &'a (dyn Fn(&str) -> Option<String> + Send + Sync);

/// The environment itself, where what is empty is as good as not there.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A file with a secret that is larger than this is something else.
const LARGEST_FILE: u64 = 64 << 10;

/// Reads a file that holds secrets; `variable` is what named it.
pub fn read_secret(variable: &str, file: &str) -> Result<String, Error> {
    let wrong =
        |why: &dyn std::fmt::Display| Error::new(format!("{file} cannot be read: {why}"), format!("check {variable}"));
    let mut text = String::new();
    let opened = File::open(file).map_err(|why| wrong(&why))?;
    opened.take(LARGEST_FILE).read_to_string(&mut text).map_err(|why| wrong(&why))?;
    Ok(text)
}
