//! Parses addresses: `scheme://user:password@host:port/path?name=value`.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::{Error, Secret};

/// Parameters that could only hold a secret. Command-line arguments are visible to other users of
/// the machine.
const SECRET_PARAMETERS: [&str; 6] = ["password", "token", "key", "api_key", "secret", "jwt"];

/// Parsed address. Its debug output does not contain the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Scheme before `://`, in lowercase.
    pub scheme: String,
    /// User name, if any.
    pub user: Option<String>,
    /// Password of the user, if any.
    pub password: Option<Secret>,
    /// Host name or IP address; an IPv6 address is without brackets.
    pub host: Option<String>,
    /// Port, if any.
    pub port: Option<u16>,
    /// Path without leading and trailing slashes.
    pub path: String,
    /// Query parameters; those without a value are omitted.
    pub parameters: HashMap<String, String>,
}

/// Expected format of an address.
#[derive(Debug, Clone, Copy)]
pub struct UrlSpec<'a> {
    /// Subject of the address in messages: "the store", "the database".
    pub subject: &'a str,
    /// Supported query parameters.
    pub parameters: &'a [&'a str],
    /// Example address.
    pub example: &'a str,
    /// Hint on how to provide secrets instead.
    pub secret_hint: &'a str,
}

impl Address {
    /// Parses an address. Errors never repeat it, because it may contain a password.
    pub fn parse(text: &str, spec: &UrlSpec<'_>) -> Result<Self, Error> {
        let what = spec.subject;
        let wrong = |why: &dyn std::fmt::Display| {
            Error::new(format!("the address of {what} is not valid: {why}"), format!("write it as {}", spec.example))
        };
        let url = Url::parse(text.trim()).map_err(|why| wrong(&why))?;
        let mut parameters = HashMap::new();
        for (name, value) in url.query_pairs() {
            if SECRET_PARAMETERS.contains(&&*name.to_lowercase()) {
                return Err(spec.secret_error(&format!("`{name}`")));
            }
            if !spec.parameters.contains(&&*name) {
                // A password that contains a question mark would end up here.
                let plain = name.len() <= 40 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
                let name = if plain { &*name } else { "…" };
                let known = match spec.parameters {
                    [] => "it takes no parameters".to_string(),
                    known => format!("known parameters: {}", known.join(", ")),
                };
                let message = format!("the address of {what} has an unknown parameter `{name}`");
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

    /// Returns the value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Returns the segments of the path.
    pub fn path_segments(&self) -> Vec<&str> {
        self.path.split('/').filter(|part| !part.is_empty()).collect()
    }
}

impl UrlSpec<'_> {
    /// Error for an address that contains a secret.
    pub fn secret_error(&self, which: &str) -> Error {
        let message = format!("the address of {} contains {which}", self.subject);
        Error::new(message, format!("remove it, because others can read it there; {}", self.secret_hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: UrlSpec<'_> = UrlSpec {
        subject: "the database",
        parameters: &["sslmode"],
        example: "pg://HOST/NAME",
        secret_hint: "set PASSWORD",
    };

    #[test]
    fn parses_addresses() {
        let address = Address::parse(" PG://m%C3%BC:p%40ss@[::1]:5/a%20b/c/?sslmode=require ", &FORM).unwrap();
        assert_eq!((address.scheme.as_str(), address.user.as_deref()), ("pg", Some("mü")));
        assert_eq!(address.password, Some(Secret("p@ss".into())));
        assert_eq!((address.host.as_deref(), address.port), (Some("::1"), Some(5)));
        assert_eq!(address.path_segments(), ["a b", "c"]);
        assert_eq!(address.parameter("sslmode"), Some("require"));
        assert!(!format!("{address:?}").contains("p@ss"));
    }

    #[test]
    fn reports_invalid_addresses_without_secrets() {
        for (text, said) in [
            ("pg://me:hunter2@host:99999/x", "is not valid"),
            ("pg://me:hunter2@host/x?token=hunter2", "contains `token`"),
            ("pg://me:hunter2@host/x?color=hunter2", "parameter `color`"),
            ("hunter2", "is not valid"),
            ("pg://me:?hunter2@host/db", "parameter `…`"),
        ] {
            let error = Address::parse(text, &FORM).unwrap_err();
            assert!(error.message.contains(said), "{error}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
