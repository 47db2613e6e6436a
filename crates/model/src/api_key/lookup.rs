//! Lookup of API keys in variables and files.

use std::path::Path;

use super::ProviderApiKey;
use crate::error::Error;
use crate::limited_file::read_limited;
use crate::providers::Provider;

/// Maximum size of a key file.
const MAX_KEY_BYTES: u64 = 16 << 10;

impl ProviderApiKey {
    /// Looks up a provider's key in its variable, in the file named by the variable with the suffix
    /// `_FILE`, and in its `key_file`.
    pub(crate) fn find(
        provider: &Provider,
        model: &str,
        variables: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<ProviderApiKey>, Error> {
        let auth_error = |message: String, hint: String| Error::Auth { model: model.to_owned(), message, hint };
        let mut found = None;
        let mut origin = String::new();
        if let Some(variable) = &provider.key_variable {
            if let Some(text) = variables(variable).filter(|text| !text.trim().is_empty()) {
                found = Some(text);
                origin.clone_from(variable);
            } else if let Some(file) = variables(&format!("{variable}_FILE")).filter(|file| !file.is_empty()) {
                found = Some(read_key_file(Path::new(&file)).map_err(|why| {
                    auth_error(format!("its key file {file} cannot be read: {why}"), format!("check {variable}_FILE"))
                })?);
                origin = file;
            }
        }
        if let (None, Some(file)) = (&found, &provider.key_file) {
            let shown = file.display().to_string();
            found = Some(read_key_file(file).map_err(|why| {
                auth_error(format!("its key file {shown} cannot be read: {why}"), "check `key_file`".to_owned())
            })?);
            origin = shown;
        }
        let text = found.unwrap_or_default();
        let text = text.trim();
        if text.is_empty() {
            return match &provider.key_variable {
                Some(variable) if provider.key_required => Err(auth_error(
                    "it has no API key".to_owned(),
                    format!("set {variable}, or {variable}_FILE to a file that contains the key"),
                )),
                _ => Ok(None),
            };
        }
        // Keys consist of printable ASCII. Anything else is a configuration mistake that would
        // surface only as an obscure server error.
        if text.len() as u64 > MAX_KEY_BYTES || !text.chars().all(|c| c.is_ascii_graphic()) {
            return Err(auth_error(
                format!("the content of {origin} is not a valid API key"),
                "a key has printable characters and no spaces".to_owned(),
            ));
        }
        Ok(Some(ProviderApiKey(text.into())))
    }
}

fn read_key_file(file: &Path) -> Result<String, String> {
    let text = read_limited(file, MAX_KEY_BYTES).map_err(|why| why.to_string())?;
    text.ok_or_else(|| format!("it is longer than {MAX_KEY_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-very-secret-0123456789";

    fn provider(required: bool) -> Provider {
        Provider { key_variable: Some("SHOP_KEY".to_owned()), key_required: required, ..Provider::for_tests() }
    }

    #[test]
    fn reads_and_trims_keys_from_variables_or_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        std::fs::write(&file, format!("  {SECRET}\n")).unwrap();
        let path = file.to_string_lossy().into_owned();
        let find = |provider: &Provider, pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            ProviderApiKey::find(provider, "shop:m", &move |name| {
                pairs.iter().find(|(variable, _)| variable == name).map(|(_, value)| value.clone())
            })
        };
        let secret = Some(ProviderApiKey(SECRET.into()));
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
}
