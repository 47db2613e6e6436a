//! API keys: lookup and redaction.

mod lookup;

use std::fmt;
use std::sync::Arc;

/// API key of a provider, which can be sent but never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderApiKey(Arc<str>);

impl fmt::Debug for ProviderApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl ProviderApiKey {
    /// Returns the key itself, only for use in the authentication header.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Removes the key from a server's message, because some servers echo all or part of it.
    pub(crate) fn redact(&self, text: &str) -> String {
        let text = text.replace(&*self.0, "***");
        // Servers often echo the first characters of a key and mask the rest. The key is ASCII, so
        // slicing is safe.
        let beginning = &self.0[..self.0.len().min(6)];
        if beginning.len() < 4 || !text.contains(beginning) {
            return text;
        }
        text.split_inclusive(char::is_whitespace)
            .map(|word| match word.find(beginning) {
                Some(at) => format!("{}***{}", &word[..at], &word[word.trim_end().len()..]),
                None => word.to_owned(),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-very-secret-0123456789";

    #[test]
    fn redacts_keys_that_a_server_echoes() {
        let key = ProviderApiKey(SECRET.into());
        assert_eq!(format!("{key:?}"), "***");
        let check = |text: &str, shown: &str| assert_eq!(key.redact(text), shown);
        check("wrong key: sk-very-secret-0123456789.", "wrong key: ***.");
        check("wrong key: sk-very-****6789. Look\nhere", "wrong key: *** Look\nhere");
        check("(\"sk-very-secr\"é)\n", "(\"***\n");
        check("nothing to hide", "nothing to hide");
    }
}
