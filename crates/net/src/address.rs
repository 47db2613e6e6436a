//! Addresses: `scheme://user:password@host:port/path?name=value`, taken apart.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::{Error, Secret};

/// Parameters that could only hold a secret. Whoever may look at a program's arguments could read them there.
const SECRETS: [&str; 6] = ["password", "token", "key", "api_key", "secret", "jwt"];

/// An address that was taken apart. Printing it shows no password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// What stands before `://`, in small letters.
    pub scheme: String,
    /// Who asks.
    pub user: Option<String>,
    /// Their password.
    pub password: Option<Secret>,
    /// The server; an IPv6 address without its brackets.
    pub host: Option<String>,
    /// Where on the server.
    pub port: Option<u16>,
    /// What follows the host, without the strokes around it.
    pub path: String,
    /// What follows the question mark; those without a value are left out.
    pub parameters: HashMap<String, String>,
}

/// How an address of some kind is to be written.
#[derive(Debug, Clone, Copy)]
pub struct Form<'a> {
    /// What is named by it: "the store", "the database".
    pub what: &'a str,
    /// The parameters that mean something.
    pub parameters: &'a [&'a str],
    /// An address as it should look.
    pub example: &'a str,
    /// Where secrets are looked for instead.
    pub secret: &'a str,
}

impl Address {
    /// Takes an address apart. It is not repeated in errors, as it may hold a password.
    pub fn parse(text: &str, form: &Form<'_>) -> Result<Self, Error> {
        let what = form.what;
        let wrong = |why: &dyn std::fmt::Display| {
            Error::new(format!("the address of {what} cannot be read: {why}"), format!("write it as {}", form.example))
        };
        let url = Url::parse(text.trim()).map_err(|why| wrong(&why))?;
        let mut parameters = HashMap::new();
        for (name, value) in url.query_pairs() {
            if SECRETS.contains(&&*name.to_lowercase()) {
                return Err(form.holds_secret(&format!("`{name}`")));
            }
            if !form.parameters.contains(&&*name) {
                // A password with a question mark in it would stand here.
                let plain = name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
                let name = if plain { &*name } else { "…" };
                let known = match form.parameters {
                    [] => "there are none for it".to_string(),
                    known => format!("those that mean something are {}", known.join(", ")),
                };
                let message = format!("the address of {what} has a parameter `{name}`, which means nothing");
                return Err(Error::new(message, known));
            }
            if !value.is_empty() {
                parameters.insert(name.into_owned(), value.into_owned());
            }
        }
        let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(String::from).map_err(|why| wrong(&why));
        let path = decoded(url.path().trim_start_matches('/').trim_end_matches('/'))?;
        let user = Some(decoded(url.username())?).filter(|user| !user.is_empty());
        let password = url.password().map(decoded).transpose()?.map(Secret);
        let host = url.host_str().filter(|host| !host.is_empty()).map(decoded).transpose()?;
        let host = host.map(|host| host.trim_start_matches('[').trim_end_matches(']').to_string());
        let scheme = url.scheme().to_string();
        Ok(Self { scheme, user, password, host, port: url.port(), path, parameters })
    }

    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The parts of the path.
    pub fn parts(&self) -> Vec<&str> {
        self.path.split('/').filter(|part| !part.is_empty()).collect()
    }
}

impl Form<'_> {
    /// That an address holds what it must not.
    pub fn holds_secret(&self, which: &str) -> Error {
        let message = format!("the address of {} holds {which}", self.what);
        Error::new(message, format!("leave it out, others could read it there; {}", self.secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Form<'_> =
        Form { what: "the database", parameters: &["sslmode"], example: "pg://HOST/NAME", secret: "set PASSWORD" };

    #[test]
    fn an_address_is_taken_apart() {
        let address = Address::parse(" PG://m%C3%BC:p%40ss@[::1]:5/a%20b/c/?sslmode=require ", &FORM).unwrap();
        assert_eq!((address.scheme.as_str(), address.user.as_deref()), ("pg", Some("mü")));
        assert_eq!(address.password, Some(Secret("p@ss".into())));
        assert_eq!((address.host.as_deref(), address.port), (Some("::1"), Some(5)));
        assert_eq!(address.parts(), ["a b", "c"]);
        assert_eq!(address.parameter("sslmode"), Some("require"));
        assert!(!format!("{address:?}").contains("p@ss"));
    }

    #[test]
    fn what_is_wrong_is_said_without_its_secrets() {
        for (text, said) in [
            ("pg://me:hunter2@host:99999/x", "cannot be read"),
            ("pg://me:hunter2@host/x?token=hunter2", "holds `token`"),
            ("pg://me:hunter2@host/x?color=hunter2", "parameter `color`"),
            ("hunter2", "cannot be read"),
            ("pg://me:?hunter2@host/db", "parameter `…`"),
        ] {
            let error = Address::parse(text, &FORM).unwrap_err();
            assert!(error.message.contains(said), "{error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
