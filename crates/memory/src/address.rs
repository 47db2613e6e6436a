//! Addresses of servers that keep examples, and the secrets that belong to them, which are never part of an address.

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;

use percent_encoding::percent_decode_str;
use reqwest::Url;

use crate::error::Error;

/// A password or a token. It can be sent, and it cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Where variables of the environment are looked up.
pub(crate) type Variables<'a> = &'a (dyn Fn(&str) -> Option<String> + Send + Sync);

/// The environment itself, where what is empty is as good as not there.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A file with a secret that is larger than this is something else.
const LARGEST_FILE: u64 = 64 << 10;

/// Reads a file that holds a secret.
pub(crate) fn read(variable: &str, file: &str) -> Result<String, Error> {
    let wrong = |why: &dyn std::fmt::Display| Error::Unusable {
        message: format!("{file} cannot be read: {why}"),
        hint: format!("check {variable}"),
    };
    let mut text = String::new();
    let opened = std::fs::File::open(Path::new(file)).map_err(|why| wrong(&why))?;
    opened.take(LARGEST_FILE).read_to_string(&mut text).map_err(|why| wrong(&why))?;
    Ok(text)
}

/// An address that was taken apart.
#[derive(Debug)]
pub(crate) struct Address {
    pub user: Option<String>,
    pub host: Option<String>,
    pub port: Option<u16>,
    /// What follows the host, without the stroke.
    pub path: String,
    pub parameters: HashMap<String, String>,
}

/// Takes an address apart. It is not repeated in errors, as it may hold a password. `form` says how it should be written.
pub(crate) fn parse(spec: &str, known: &[&str], secret: &str, form: &str) -> Result<Address, Error> {
    let wrong = |message: String| Error::Unusable { message, hint: format!("write it as {form}") };
    let url =
        Url::parse(spec.trim()).map_err(|why| wrong(format!("the address of the store cannot be read: {why}")))?;
    let holds_secret = |what: &str| Error::Unusable {
        message: format!("the address of the store holds {what}"),
        hint: format!("leave it out, others could read it there; {secret}"),
    };
    if url.password().is_some() {
        return Err(holds_secret("a password"));
    }
    let mut parameters = HashMap::new();
    for (name, value) in url.query_pairs() {
        if ["password", "token", "key", "api_key"].contains(&&*name.to_lowercase()) {
            return Err(holds_secret(&format!("`{name}`")));
        }
        if !known.contains(&&*name) {
            return Err(Error::Unusable {
                message: format!("the address of the store has a parameter `{name}`, which means nothing"),
                hint: format!("those that mean something are {}", known.join(", ")),
            });
        }
        if !value.is_empty() {
            parameters.insert(name.into_owned(), value.into_owned());
        }
    }
    let decoded = |text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        text.map(String::from).map_err(|why| wrong(format!("the address of the store cannot be read: {why}")))
    };
    let path = decoded(url.path().trim_start_matches('/').trim_end_matches('/'))?;
    let user = Some(decoded(url.username())?).filter(|user| !user.is_empty());
    let host = url.host_str().filter(|host| !host.is_empty()).map(decoded).transpose()?;
    Ok(Address { user, host, port: url.port(), path, parameters })
}
