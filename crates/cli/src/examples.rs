//! Questions with the queries that answered them, kept by hand in `examples.yaml` of the state folder.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// A question and the query that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Example {
    /// The question.
    pub question: String,
    /// The query.
    pub expected_sql: String,
}

/// The file.
pub struct Examples {
    path: PathBuf,
}

impl Examples {
    /// In a folder, which is made when the first example is kept.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { path: folder.into().join("examples.yaml") }
    }

    /// Keeps an example. A question that is there already gets the new query; `false` if nothing changed.
    pub fn save(&self, example: &Example) -> Result<bool, Failure> {
        let mut all = self.read()?;
        match all.iter_mut().find(|known| same(&known.question, &example.question)) {
            Some(known) if known == example => return Ok(false),
            Some(known) => known.clone_from(example),
            None => all.push(example.clone()),
        }
        self.write(&all)?;
        Ok(true)
    }

    /// Takes the example of a question away; `false` if there is none.
    pub fn remove(&self, question: &str) -> Result<bool, Failure> {
        let mut all = self.read()?;
        let before = all.len();
        all.retain(|known| !same(&known.question, question));
        if all.len() == before {
            return Ok(false);
        }
        self.write(&all)?;
        Ok(true)
    }

    /// All of them, oldest first.
    pub fn read(&self) -> Result<Vec<Example>, Failure> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failure("read", &error)),
        };
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        serde_saphyr::from_str(&text).map_err(|error| {
            let words = error.to_string();
            let first = words.lines().next().unwrap_or_default();
            Failure::new(format!("`{}` holds no examples: {first}", self.path.display()))
                .hint("it is a list of `question` and `expected_sql`; mend it, or move it away")
        })
    }

    /// Written beside and renamed, so that the file is never half there.
    fn write(&self, all: &[Example]) -> Result<(), Failure> {
        let text = if all.is_empty() { Ok(String::new()) } else { serde_saphyr::to_string(&all) };
        let text = text.map_err(|error| Failure::new(format!("the examples cannot be written as YAML: {error}")))?;
        let beside = self.path.with_extension("part");
        let folder = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        folder
            .and_then(|()| write_private(&beside, &text))
            .and_then(|()| fs::rename(&beside, &self.path))
            .map_err(|error| self.failure("written", &error))
    }

    fn failure(&self, what: &str, error: &io::Error) -> Failure {
        Failure::new(format!("`{}` cannot be {what}: {error}", self.path.display()))
            .hint("check the folder and its permissions")
    }
}

/// Questions may tell more than their askers would have others read.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

/// Whether two questions are the same but for white space and case.
fn same(a: &str, b: &str) -> bool {
    let words = |text: &str| text.to_lowercase().split_whitespace().map(str::to_string).collect::<Vec<_>>();
    words(a) == words(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f09_an_example_is_kept_once_and_can_be_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let examples = Examples::new(folder.path().join("state"));
        let one = |question: &str, sql: &str| Example { question: question.into(), expected_sql: sql.into() };
        let odd = one("What is \"#1\": yes?\nOr - no?", "SELECT 1 -- 'x': [y]\n");
        assert!(examples.save(&odd).unwrap());
        assert!(!examples.save(&odd).unwrap());
        assert!(examples.save(&one("How many?", "SELECT 1")).unwrap());
        assert!(examples.save(&one(" how  many?", "SELECT 2")).unwrap());
        assert_eq!(examples.read().unwrap(), [odd, one(" how  many?", "SELECT 2")]);
        assert!(examples.remove("HOW MANY?").unwrap() && !examples.remove("How many?").unwrap());
        assert!(examples.remove("What is \"#1\": yes? or - no?").unwrap());
        assert_eq!(examples.read().unwrap(), []);
        fs::write(folder.path().join("state/examples.yaml"), "a: [").unwrap();
        assert!(examples.save(&one("x", "y")).unwrap_err().hint.is_some());
        assert_eq!(fs::read_to_string(folder.path().join("state/examples.yaml")).unwrap(), "a: [");
    }
}
