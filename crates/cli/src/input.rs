//! Input of commands: text, schemas and policies from files or stdin.

use std::fs::File;
use std::io::{self, BufRead, ErrorKind, IsTerminal, Read};
use std::path::Path;

use querymend::Config;
use querymend_sql::{Dialect, Policy, Schema, SchemaError};

use crate::error::CliError;
use crate::state_dir;

/// Maximum number of bytes read into memory; no query, schema or policy is this long.
pub const MAX_INPUT_BYTES: usize = 16 << 20;

/// Text, with a name for messages.
pub struct SourceText {
    /// Path as given by the user, or `<stdin>`, or `<sql>`.
    pub name: String,
    /// Content of the source.
    pub text: String,
}

/// Hint for commands that need SQL when none is given.
const NO_SQL_HINT: &str = "give a file, --sql or SQL on stdin";

/// Reads the SQL of a command: `--sql`, else the file, else stdin. Blank text is an error.
pub fn read_sql(file: Option<&Path>, sql: Option<&str>) -> Result<SourceText, CliError> {
    let text = read_sql_source(file, sql)?;
    if text.text.trim().is_empty() {
        return Err(CliError::new(format!("`{}` is empty: there is no SQL in it", text.name)).hint(NO_SQL_HINT));
    }
    Ok(text)
}

fn read_sql_source(file: Option<&Path>, sql: Option<&str>) -> Result<SourceText, CliError> {
    if let Some(sql) = sql {
        return Ok(SourceText { name: "<sql>".into(), text: sql.to_string() });
    }
    match file {
        Some(path) if path != Path::new("-") => self::read_file(path),
        None if io::stdin().is_terminal() => Err(CliError::new("no SQL was given").hint(NO_SQL_HINT)),
        _ => {
            let bytes = read_bounded(io::stdin().lock()).map_err(|error| read_error("<stdin>", &error))?;
            Ok(SourceText { name: "<stdin>".into(), text: decode_utf8("<stdin>", bytes)? })
        }
    }
}

/// Reads the question of a command: the argument, or stdin if that is `-` or missing.
pub fn read_question(text: Option<&str>) -> Result<String, CliError> {
    match text {
        Some(words) if words != "-" => Ok(words.to_string()),
        None if io::stdin().is_terminal() => {
            Err(CliError::new("no question was asked").hint("write it in quotes, or pipe it in"))
        }
        _ => {
            let bytes = read_bounded(io::stdin().lock()).map_err(|error| read_error("<stdin>", &error))?;
            decode_utf8("<stdin>", bytes)
        }
    }
}

/// Reads a UTF-8 text file.
pub fn read_file(path: &Path) -> Result<SourceText, CliError> {
    let name = path.display().to_string();
    let bytes = File::open(path).and_then(read_bounded).map_err(|error| read_error(&name, &error))?;
    Ok(SourceText { text: decode_utf8(&name, bytes)?, name })
}

/// Reads a schema file: JSON, or `CREATE TABLE` statements in the dialect.
pub fn read_schema(path: &Path, dialect: &Dialect) -> Result<Schema, CliError> {
    let SourceText { name, text } = read_file(path)?;
    let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) || text.trim_start().starts_with('{');
    let schema = if json { Schema::from_json(&text) } else { Schema::from_ddl(&text, dialect) };
    schema.map_err(|error| {
        let hint = match &error {
            SchemaError::Json(_) => {
                r#"the form is {"tables":[{"name":"t","columns":[{"name":"c","type":"text"}]}]}; `querymend schema --format json` writes it"#.to_string()
            }
            SchemaError::DuplicateTable(_) => "leave one description of the table in the file, or give the tables different schemas".into(),
            SchemaError::DuplicateColumn { .. } => "leave one description of the column in the table".into(),
            SchemaError::UnknownKeyColumn { .. } => "add the column to the table, or remove it from the key".into(),
            SchemaError::Ddl(_) => format!("it was read as {}; name another dialect with --dialect", dialect.name),
        };
        CliError::new(format!("`{name}` is not a valid schema: {error}")).hint(hint)
    })
}

/// Loads the configuration, with its policy intersected with the policy file. Neither policy can
/// lift denials of the other.
pub fn load_config(policy: Option<&Path>) -> Result<Config, CliError> {
    let mut config = state_dir::with_value_cache(Config::load()?);
    if let Some(path) = policy {
        config.policy = std::mem::take(&mut config.policy).intersect(read_policy(path)?);
    }
    Ok(config)
}

/// Reads a policy file, YAML or JSON.
pub fn read_policy(path: &Path) -> Result<Policy, CliError> {
    let SourceText { name, text } = read_file(path)?;
    let json = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let policy = if json {
        serde_json::from_str(&text).map_err(|error| error.to_string())
    } else if text.trim().is_empty() {
        // An empty YAML document parses as null, which is not a policy; treat it as one without
        // rules.
        Ok(Policy::default())
    } else {
        // Lines after the first repeat the file.
        serde_saphyr::from_str(&text).map_err(|error| {
            let words = error.to_string();
            let first = words.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_string()
        })
    };
    policy.map_err(|error| {
        CliError::new(format!("`{name}` is not a valid policy: {error}")).hint(
            "its fields are allow_tables, deny_tables, deny_columns, allow_functions, deny_functions, \
             comments (strip or reject), max_bytes and max_depth",
        )
    })
}

/// Converts an I/O error of reading `name` to a [`CliError`] with a hint.
pub fn read_error(name: &str, error: &io::Error) -> CliError {
    match error.kind() {
        ErrorKind::NotFound => {
            CliError::new(format!("there is no file `{name}`")).hint("check the spelling and the current folder")
        }
        ErrorKind::IsADirectory => CliError::new(format!("`{name}` is a folder")).hint("name a file inside it"),
        ErrorKind::PermissionDenied => CliError::new(format!("`{name}` may not be read"))
            .hint("check the permissions of the file and of its folder"),
        ErrorKind::FileTooLarge => CliError::new(format!("`{name}` is larger than {} MB", MAX_INPUT_BYTES >> 20))
            .hint("give one query at a time; `querymend check --batch` reads many, line by line"),
        _ => CliError::new(format!("`{name}` cannot be read: {error}")).hint("check that it is a plain file or a pipe"),
    }
}

/// Returns the lines of a reader, without line breaks. A line that is too long is an error, and the
/// last item.
pub fn bounded_lines(mut reader: impl BufRead) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    let mut over = false;
    std::iter::from_fn(move || {
        if over {
            return None;
        }
        let mut line = Vec::new();
        let read = reader.by_ref().take(MAX_INPUT_BYTES as u64 + 1).read_until(b'\n', &mut line);
        let outcome = match read {
            Ok(0) => return None,
            Ok(_) if line.last() == Some(&b'\n') => {
                line.pop();
                Ok(line)
            }
            Ok(read) if read > MAX_INPUT_BYTES => Err(ErrorKind::FileTooLarge.into()),
            Ok(_) => Ok(line),
            Err(error) => Err(error),
        };
        over = outcome.is_err();
        Some(outcome)
    })
}

fn read_bounded(reader: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_INPUT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_INPUT_BYTES { Err(ErrorKind::FileTooLarge.into()) } else { Ok(bytes) }
}

fn decode_utf8(name: &str, bytes: Vec<u8>) -> Result<String, CliError> {
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|b| **b == b'\n').count() + 1;
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        let encoding = if utf16 { "UTF-16" } else { "LATIN1" };
        CliError::new(format!("`{name}` is not UTF-8 text: byte 0x{byte:02x} at offset {at} (line {line})"))
            .hint(format!("save it as UTF-8, for example with `iconv -f {encoding} -t UTF-8`"))
    })?;
    // Editors on Windows may add a byte order mark, which is not part of the text.
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_string))
}
