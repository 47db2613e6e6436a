//! Reading what a command is given: text, schemas and policies, from files or from stdin.

use std::fs::File;
use std::io::{self, BufRead, ErrorKind, IsTerminal, Read};
use std::path::Path;

use querymend::Config;
use querymend_sql::{Dialect, Policy, Schema, SchemaError};

use crate::failure::Failure;
use crate::state;

/// More than this is not read into memory; no query, schema or policy is so long.
pub const MOST_BYTES: usize = 16 << 20;

/// A text and what to call it in messages.
pub struct Text {
    /// The path as the user wrote it, or `<stdin>`, or `<sql>`.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// What to do where there is no SQL.
const GIVE_SQL: &str = "give a file, --sql or SQL on stdin";

/// The SQL that a command is about: `--sql`, else the file, else stdin. A text without a word in it is none.
pub fn sql(file: Option<&Path>, sql: Option<&str>) -> Result<Text, Failure> {
    let text = sql_text(file, sql)?;
    if text.text.trim().is_empty() {
        return Err(Failure::new(format!("`{}` is empty: there is no SQL in it", text.name)).hint(GIVE_SQL));
    }
    Ok(text)
}

fn sql_text(file: Option<&Path>, sql: Option<&str>) -> Result<Text, Failure> {
    if let Some(sql) = sql {
        return Ok(Text { name: "<sql>".into(), text: sql.to_string() });
    }
    match file {
        Some(path) if path != Path::new("-") => self::file(path),
        None if io::stdin().is_terminal() => Err(Failure::new("no SQL was given").hint(GIVE_SQL)),
        _ => {
            let bytes = all(io::stdin().lock()).map_err(|error| unreadable("<stdin>", &error))?;
            Ok(Text { name: "<stdin>".into(), text: utf8("<stdin>", bytes)? })
        }
    }
}

/// The question that a command is about: the argument, or stdin where that is `-` or is left out.
pub fn question(words: Option<&str>) -> Result<String, Failure> {
    match words {
        Some(words) if words != "-" => Ok(words.to_string()),
        None if io::stdin().is_terminal() => {
            Err(Failure::new("no question was asked").hint("write it in quotes, or pipe it in"))
        }
        _ => {
            let bytes = all(io::stdin().lock()).map_err(|error| unreadable("<stdin>", &error))?;
            utf8("<stdin>", bytes)
        }
    }
}

/// The text of a file.
pub fn file(path: &Path) -> Result<Text, Failure> {
    let name = path.display().to_string();
    let bytes = File::open(path).and_then(all).map_err(|error| unreadable(&name, &error))?;
    Ok(Text { text: utf8(&name, bytes)?, name })
}

/// The schema in a file: JSON, or `CREATE TABLE` text in the dialect.
pub fn schema(path: &Path, dialect: &Dialect) -> Result<Schema, Failure> {
    let Text { name, text } = file(path)?;
    let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) || text.trim_start().starts_with('{');
    let schema = if json { Schema::from_json(&text) } else { Schema::from_ddl(&text, dialect) };
    schema.map_err(|error| {
        let hint = match &error {
            SchemaError::Json(_) => {
                r#"the form is {"tables":[{"name":"t","columns":[{"name":"c","type":"text"}]}]}; `querymend schema --format json` writes it"#.to_string()
            }
            SchemaError::DuplicateTable(_) => "leave one description of the table in the file, or give the tables different schemas".into(),
            SchemaError::DuplicateColumn { .. } => "leave one description of the column in the table".into(),
            SchemaError::UnknownKeyColumn { .. } => "add the column to the table, or take it out of the key".into(),
            SchemaError::Ddl(_) => format!("it was read as {}; name another dialect with --dialect", dialect.name),
        };
        Failure::new(format!("`{name}` is no schema: {error}")).hint(hint)
    })
}

/// The configuration, with the house rules of a file besides its own. Neither takes back what the other denies.
pub fn config(policy: Option<&Path>) -> Result<Config, Failure> {
    let mut config = state::with_value_cache(Config::load()?);
    if let Some(path) = policy {
        config.policy = std::mem::take(&mut config.policy).and(policy_file(path)?);
    }
    Ok(config)
}

/// The policy in a file, YAML or JSON.
pub fn policy_file(path: &Path) -> Result<Policy, Failure> {
    let Text { name, text } = file(path)?;
    let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let policy = if json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else if text.trim().is_empty() {
        // YAML has a value for "nothing", which is no policy; an empty file changes nothing.
        Ok(Policy::default())
    } else {
        // What follows the first line repeats the file.
        serde_saphyr::from_str(&text).map_err(|error| {
            let words = error.to_string();
            let first = words.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_string()
        })
    };
    policy.map_err(|error| {
        Failure::new(format!("`{name}` is no policy: {error}")).hint(
            "its fields are allow_tables, deny_tables, deny_columns, allow_functions, deny_functions, \
             comments (strip or reject), max_bytes and max_depth",
        )
    })
}

/// What cannot be read, and why.
pub fn unreadable(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => {
            Failure::new(format!("there is no file `{name}`")).hint("check the spelling and the current folder")
        }
        ErrorKind::IsADirectory => Failure::new(format!("`{name}` is a folder")).hint("name a file inside it"),
        ErrorKind::PermissionDenied => Failure::new(format!("`{name}` may not be read"))
            .hint("check the permissions of the file and of its folder"),
        ErrorKind::FileTooLarge => Failure::new(format!("`{name}` is larger than {} MB", MOST_BYTES >> 20))
            .hint("give one query at a time; `querymend check --batch` reads many, line by line"),
        _ => Failure::new(format!("`{name}` cannot be read: {error}")).hint("check that it is a plain file or a pipe"),
    }
}

/// The lines of a reader, without their ends. One that is too long to be a line is an error, and the last item.
pub fn lines(mut reader: impl BufRead) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let mut over = false;
    std::iter::from_fn(move || {
        if over {
            return None;
        }
        let mut line = Vec::new();
        let read = reader.by_ref().take(MOST_BYTES as u64 + 1).read_until(b'\n', &mut line);
        let outcome = match read {
            Ok(0) => return None,
            Ok(_) if line.last() == Some(&b'\n') => {
                line.pop();
                Ok(line)
            }
            Ok(read) if read > MOST_BYTES => Err(ErrorKind::FileTooLarge.into()),
            Ok(_) => Ok(line),
            Err(error) => Err(error),
        };
        over = outcome.is_err();
        Some(outcome)
    })
}

fn all(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MOST_BYTES { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, Failure> {
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        let encoding = if utf16 { "UTF-16" } else { "LATIN1" };
        Failure::new(format!("`{name}` is not UTF-8 text: byte 0x{byte:02x} at offset {at} (line {line})"))
            .hint(format!("save it as UTF-8, for example with `iconv -f {encoding} -t UTF-8`"))
    })?;
    // Editors on Windows put a byte order mark in front, which is no part of the text.
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_string))
}
