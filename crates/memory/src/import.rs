//! Import and export of example files. A file with any invalid example is rejected as a whole.
//!
//! An example has a `question` and a query, in a field called `expected_sql`, `sql` or `query`. The
//! fields `database` (or `db_id`), `dialect` and `metric` are optional; unknown fields are ignored.
//! The output of [`export`] can be imported again.

mod csv;

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::error::Error;
use crate::example::{Example, Provenance, VerificationStatus};

/// Maximum size of an example file.
const MAX_FILE_BYTES: u64 = 256 << 20;
/// Maximum sizes of a question and of a query, larger than any that a person would ask or a model
/// would read.
const MAX_QUESTION_BYTES: usize = 10_000;
const MAX_SQL_BYTES: usize = 100_000;

/// Format of an example file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExampleFormat {
    /// A list, or a mapping with the list under `examples`.
    Yaml,
    /// Same structure as YAML, in JSON.
    Json,
    /// One JSON object per line.
    JsonLines,
    /// With a header line.
    Csv,
}

impl ExampleFormat {
    /// Returns the format for a file extension.
    pub fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_lowercase();
        match ending.as_str() {
            "yaml" | "yml" => Some(Self::Yaml),
            "json" => Some(Self::Json),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "csv" => Some(Self::Csv),
            _ => None,
        }
    }
}

/// Example as it is parsed from a file.
#[derive(Debug, Default, Deserialize)]
struct ImportedExample {
    question: Option<String>,
    expected_sql: Option<String>,
    sql: Option<String>,
    query: Option<String>,
    database: Option<String>,
    db_id: Option<String>,
    dialect: Option<String>,
    metric: Option<String>,
    provenance: Option<Provenance>,
    standing: Option<VerificationStatus>,
    uses: Option<u32>,
    helped: Option<u32>,
    hurt: Option<u32>,
    added: Option<u64>,
}

#[derive(Deserialize)]
struct ExamplesDocument<T> {
    examples: Vec<T>,
}

/// Reads examples from a file, with defaults for those that specify no database or dialect.
pub fn read_file(path: &Path, database: &str, dialect: &str) -> Result<Vec<Example>, Error> {
    let name = path.display().to_string();
    let format = ExampleFormat::from_path(path).ok_or_else(|| Error::Unusable {
        message: format!("the format of `{name}` is unknown"),
        hint: "the file extension must be .yaml, .json, .jsonl or .csv".into(),
    })?;
    let refused = |error: std::io::Error| Error::Unusable {
        message: format!("`{name}` cannot be read: {error}"),
        hint: "check the path and its permissions".into(),
    };
    if fs::metadata(path).map_err(refused)?.len() > MAX_FILE_BYTES {
        return Err(Error::Unusable {
            message: format!("`{name}` is larger than {} MB", MAX_FILE_BYTES >> 20),
            hint: "split it".into(),
        });
    }
    let mut bytes = Vec::new();
    // Enforced again, because the size of anything but a regular file is unknown before it is read.
    File::open(path).map_err(refused)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(refused)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Error::Unusable {
            message: format!("`{name}`, line {line}: this is not UTF-8 text"),
            hint: "save the file as UTF-8".into(),
        }
    })?;
    read(&text, format, &name, database, dialect)
}

/// Parses the content of a file, which is called `name` in messages.
pub fn read(
    text: &str,
    format: ExampleFormat,
    name: &str,
    database: &str,
    dialect: &str,
) -> Result<Vec<Example>, Error> {
    let text = text.trim_start_matches('\u{feff}');
    let import_error = |place: String, reason: &str| Error::Unusable {
        message: format!("`{name}`{place}: {reason}"),
        hint: "each example needs `question` and `expected_sql` (or `sql`, or `query`); nothing was imported".into(),
    };
    let entries: Vec<(String, ImportedExample)> = match format {
        ExampleFormat::Yaml => parse_yaml(text).map_err(|error| {
            let place = error.location().map_or(String::new(), |place| format!(", line {}", place.line()));
            let words = error.without_snippet().to_string();
            import_error(place, words.lines().next().unwrap_or_default())
        })?,
        ExampleFormat::Json => {
            let list = if text.trim_start().starts_with('{') {
                serde_json::from_str::<ExamplesDocument<ImportedExample>>(text).map(|under| under.examples)
            } else {
                serde_json::from_str(text)
            };
            let list = list.map_err(|error| import_error(format!(", line {}", error.line()), &error.to_string()))?;
            list.into_iter().zip(1..).map(|(entry, at)| (format!(", example {at}"), entry)).collect()
        }
        ExampleFormat::JsonLines => {
            let mut all = Vec::new();
            for (line, at) in text.lines().zip(1..) {
                if !line.trim().is_empty() {
                    let place = format!(", line {at}");
                    match serde_json::from_str(line) {
                        Ok(entry) => all.push((place, entry)),
                        Err(error) => return Err(import_error(place, &error.to_string())),
                    }
                }
            }
            all
        }
        ExampleFormat::Csv => csv::parse_rows(text)
            .and_then(|records| parse_csv(&records))
            .map_err(|(line, reason)| import_error(format!(", line {line}"), &reason))?,
    };
    entries
        .into_iter()
        .map(|(place, entry)| to_example(entry, database, dialect).map_err(|reason| import_error(place, &reason)))
        .collect()
}

fn parse_yaml(text: &str) -> Result<Vec<(String, ImportedExample)>, serde_saphyr::Error> {
    let first = text.lines().map(str::trim).find(|line| !(line.is_empty() || line.starts_with('#') || *line == "---"));
    let Some(first) = first else { return Ok(Vec::new()) };
    // The parser's default limits are meant for configuration files; example files may be much
    // longer.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: MAX_FILE_BYTES as usize,
        },
    };
    let list: Vec<Spanned<ImportedExample>> = if first.starts_with(['-', '[']) {
        serde_saphyr::from_str_with_options(text, options)?
    } else {
        serde_saphyr::from_str_with_options::<ExamplesDocument<Spanned<ImportedExample>>>(text, options)?.examples
    };
    Ok(list.into_iter().map(|entry| (format!(", line {}", entry.referenced.line()), entry.value)).collect())
}

fn parse_csv(records: &[csv::CsvRow]) -> Result<Vec<(String, ImportedExample)>, (usize, String)> {
    let Some((head, rows)) = records.split_first() else { return Ok(Vec::new()) };
    let names: Vec<String> = head.fields.iter().map(|field| field.trim().to_lowercase()).collect();
    if !names.iter().any(|name| name == "question") {
        return Err((head.line, "the first line names no column `question`".into()));
    }
    let mut all = Vec::new();
    for row in rows {
        if row.fields.len() != names.len() {
            let message = format!("{} fields, where the first line names {}", row.fields.len(), names.len());
            return Err((row.line, message));
        }
        let field = |name: &str| {
            let at = names.iter().position(|known| known == name)?;
            Some(row.fields[at].clone()).filter(|text| !text.trim().is_empty())
        };
        let entry = ImportedExample {
            question: field("question"),
            expected_sql: field("expected_sql"),
            sql: field("sql"),
            query: field("query"),
            database: field("database"),
            db_id: field("db_id"),
            dialect: field("dialect"),
            metric: field("metric"),
            ..ImportedExample::default()
        };
        all.push((format!(", line {}", row.line), entry));
    }
    Ok(all)
}

fn to_example(entry: ImportedExample, database: &str, dialect: &str) -> Result<Example, String> {
    let non_empty = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let question = non_empty(entry.question).ok_or("there is no `question`")?;
    let queries: Vec<String> = [entry.expected_sql, entry.sql, entry.query].into_iter().filter_map(non_empty).collect();
    let sql = match queries.as_slice() {
        [] => return Err("there is no `expected_sql`, `sql` or `query`".into()),
        [sql] => sql,
        [first, others @ ..] if others.iter().all(|other| other.trim() == first.trim()) => first,
        _ => return Err("there are two different queries".into()),
    };
    for (what, text, most) in [("question", &question, MAX_QUESTION_BYTES), ("query", sql, MAX_SQL_BYTES)] {
        if text.len() > most {
            return Err(format!("the {what} is longer than {most} bytes"));
        }
        if text.contains('\0') {
            return Err(format!("the {what} contains a NUL byte"));
        }
    }
    let database = non_empty(entry.database).or_else(|| non_empty(entry.db_id)).unwrap_or_else(|| database.to_string());
    let dialect = non_empty(entry.dialect).unwrap_or_else(|| dialect.to_string());
    let defaults = Example::new(&question, sql, database.trim(), dialect.trim());
    Ok(Example {
        metric: non_empty(entry.metric).map(|metric| metric.trim().to_string()),
        provenance: entry.provenance.unwrap_or(defaults.provenance),
        standing: entry.standing.unwrap_or(defaults.standing),
        uses: entry.uses.unwrap_or(0),
        helped: entry.helped.unwrap_or(0),
        hurt: entry.hurt.unwrap_or(0),
        added: entry.added.unwrap_or(defaults.added),
        ..defaults
    })
}

/// Example as it is serialized to a file.
#[derive(Serialize)]
struct ExportedExample<'e> {
    question: &'e str,
    expected_sql: &'e str,
    #[serde(skip_serializing_if = "str::is_empty")]
    database: &'e str,
    #[serde(skip_serializing_if = "str::is_empty")]
    dialect: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<&'e str>,
    provenance: Provenance,
    standing: VerificationStatus,
    uses: u32,
    helped: u32,
    hurt: u32,
    added: u64,
}

/// Serializes examples with all their fields; CSV contains only questions and queries.
pub fn export(examples: &[Example], format: ExampleFormat) -> Result<String, Error> {
    let written: Vec<ExportedExample<'_>> = examples
        .iter()
        .map(|example| ExportedExample {
            question: &example.question,
            expected_sql: &example.sql,
            database: &example.database,
            dialect: &example.dialect,
            metric: example.metric.as_deref(),
            provenance: example.provenance,
            standing: example.standing,
            uses: example.uses,
            helped: example.helped,
            hurt: example.hurt,
            added: example.added,
        })
        .collect();
    let refused = |cause: String| Error::Unusable {
        message: format!("the examples cannot be written: {cause}"),
        hint: "try another format".into(),
    };
    match format {
        ExampleFormat::Yaml if written.is_empty() => Ok("[]\n".to_string()),
        ExampleFormat::Yaml => serde_saphyr::to_string(&written).map_err(|error| refused(error.to_string())),
        ExampleFormat::Json => serde_json::to_string_pretty(&written).map_err(|error| refused(error.to_string())),
        ExampleFormat::JsonLines => {
            let lines: Result<Vec<String>, _> = written.iter().map(serde_json::to_string).collect();
            let lines = lines.map_err(|error| refused(error.to_string()))?;
            Ok(lines.iter().map(|line| format!("{line}\n")).collect())
        }
        ExampleFormat::Csv => {
            let mut text = "question,expected_sql,database,dialect,metric\n".to_string();
            for one in &written {
                let fields =
                    [one.question, one.expected_sql, one.database, one.dialect, one.metric.unwrap_or_default()];
                text += &csv::format_row(&fields);
            }
            Ok(text)
        }
    }
}

#[cfg(test)]
mod tests;
