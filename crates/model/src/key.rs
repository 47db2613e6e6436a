//! Keys: where they come from, and how they stay unseen.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::providers::Provider;

/// A secret that opens a provider's door. It can be sent, and it cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Arc<str>);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A key file larger than this is something else.
const LARGEST_FILE: u64 = 16 << 10;

impl Key {
    /// Looks for a provider's key: in its variable, in the file that the variable with `_FILE` names, in its `key_file`.
    pub(crate) fn find(
        provider: &Provider,
        model: &str,
        variables: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Key>, Error> {
        let trouble = |message: String, hint: String| Error::Auth { model: model.to_owned(), message, hint };
        let mut found = None;
        let mut place = String::new();
        if let Some(variable) = &provider.key {
            if let Some(text) = variables(variable).filter(|text| !text.trim().is_empty()) {
                found = Some(text);
                place.clone_from(variable);
            } else if let Some(file) = variables(&format!("{variable}_FILE")).filter(|file| !file.is_empty()) {
                found = Some(read(Path::new(&file)).map_err(|why| {
                    trouble(format!("its key file {file} cannot be read: {why}"), format!("check {variable}_FILE"))
                })?);
                place = file;
            }
        }
        if let (None, Some(file)) = (&found, &provider.key_file) {
            let shown = file.display().to_string();
            found = Some(read(file).map_err(|why| {
                trouble(format!("its key file {shown} cannot be read: {why}"), "check `key_file`".to_owned())
            })?);
            place = shown;
        }
        let text = found.unwrap_or_default();
        let text = text.trim();
        if text.is_empty() {
            return match &provider.key {
                Some(variable) if provider.key_required => Err(trouble(
                    "there is no key for it".to_owned(),
                    format!("set {variable}, or {variable}_FILE to a file that holds the key"),
                )),
                _ => Ok(None),
            };
        }
        // Keys are one printable word. Anything else is a mistake, and would only come back as a riddle from far away.
        if text.len() as u64 > LARGEST_FILE || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(trouble(
                format!("what stands in {place} is not a key"),
                "a key is one word of printable characters".to_owned(),
            ));
        }
        Ok(Some(Key(text.into())))
    }

    /// The key itself, for the header that carries it and for nothing else.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// A server's words without the key: some echo it, whole or in part.
    pub(crate) fn strike_out(&self, text: &str) -> String {
        let text = text.replace(&*self.0, "***");
        // The beginning of a key is often echoed with stars for the rest. The key is ASCII, so cutting it is safe.
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

fn read(file: &Path) -> Result<String, String> {
    let text = read_up_to(file, LARGEST_FILE).map_err(|why| why.to_string())?;
    text.ok_or_else(|| format!("more than {LARGEST_FILE} bytes are no key"))
}

/// The text of a file, or nothing if there is more of it. The size that the system tells is not asked: of a device or a
/// pipe it is 0.
pub(crate) fn read_up_to(file: &Path, most: u64) -> std::io::Result<Option<String>> {
    let mut text = String::new();
    let read = File::open(file)?.take(most + 1).read_to_string(&mut text)?;
    Ok((read as u64 <= most).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-very-secret-0123456789";

    fn provider(required: bool) -> Provider {
        Provider { key: Some("SHOP_KEY".to_owned()), key_required: required, ..Provider::for_tests() }
    }

    #[test]
    fn a05_keys_come_from_the_variable_or_from_a_file_and_are_trimmed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, format!("  {SECRET}\n")).unwrap();
        let path = file.to_string_lossy().into_owned();
        let find = |provider: &Provider, pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            Key::find(provider, "shop:m", &move |name| {
                pairs.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.clone())
            })
        };
        let secret = Some(Key(SECRET.into()));
        assert_eq!(find(&provider(true), &[("SHOP_KEY", "sk-very-secret-0123456789\n")]), Ok(secret.clone()));
        assert_eq!(find(&provider(true), &[("SHOP_KEY", " "), ("SHOP_KEY_FILE", &path)]), Ok(secret.clone()));
        let with_file = Provider { key_file: Some(file), ..provider(true) };
        assert_eq!(find(&with_file, &[]), Ok(secret));
        assert_eq!(find(&provider(false), &[]), Ok(None));
        let error = find(&provider(true), &[]).unwrap_err();
        assert!(error.hint().unwrap().contains("SHOP_KEY"), "{error:?}");
        for wrong in ["two words", "line\nline", "clé"] {
            let error = find(&provider(true), &[("SHOP_KEY", wrong)]).unwrap_err();
            assert!(!format!("{error:?} {error}").contains(wrong), "{error:?}");
        }
        assert!(find(&provider(true), &[("SHOP_KEY_FILE", "/nowhere/at/all")]).is_err());
    }

    #[test]
    fn a05_a_key_is_struck_out_of_what_a_server_echoes() {
        let key = Key(SECRET.into());
        assert_eq!(format!("{key:?}"), "***");
        let check = |said: &str, shown: &str| assert_eq!(key.strike_out(said), shown);
        check("wrong key: sk-very-secret-0123456789.", "wrong key: ***.");
        check("wrong key: sk-very-****6789. Look\nhere", "wrong key: *** Look\nhere");
        check("(\"sk-very-secr\"é)\n", "(\"***\n");
        check("nothing to hide", "nothing to hide");
    }
}
