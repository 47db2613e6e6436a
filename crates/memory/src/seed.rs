//! Files of examples that people write: read whole, and refused whole if anything in them is wrong.
//!
//! An example has a `question` and a query, which may be called `expected_sql`, `sql` or `query`. It may have a `database`
//! (or `db_id`), a `dialect` and a `metric`; other fields are left alone. What [`export`] writes can be read again.

mod csv;

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::error::Error;
use crate::example::{Example, Provenance, Standing};

/// Larger files are no examples.
const MOST_BYTES: u64 = 256 << 20;
/// Nobody asks longer questions, and no model reads longer queries.
const MOST_QUESTION: usize = 10_000;
const MOST_SQL: usize = 100_000;

/// How a file of examples is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A list, or a list under `examples`.
    Yaml,
    /// The same as JSON.
    Json,
    /// One example on each line, as JSON.
    JsonLines,
    /// With a first line that names the columns.
    Csv,
}

impl Form {
    /// By the ending of a file's name.
    pub fn of(path: &Path) -> Option<Self> {
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

/// An example as it stands in a file.
#[derive(Debug, Default, Deserialize)]
struct Entry {
    question: Option<String>,
    expected_sql: Option<String>,
    sql: Option<String>,
    query: Option<String>,
    database: Option<String>,
    db_id: Option<String>,
    dialect: Option<String>,
    metric: Option<String>,
    provenance: Option<Provenance>,
    standing: Option<Standing>,
    uses: Option<u32>,
    helped: Option<u32>,
    hurt: Option<u32>,
    added: Option<u64>,
}

#[derive(Deserialize)]
struct Under<T> {
    examples: Vec<T>,
}

/// Reads a file. An example that names no database or dialect has those that are given.
pub fn read_file(path: &Path, database: &str, dialect: &str) -> Result<Vec<Example>, Error> {
    let name = path.display().to_string();
    let form = Form::of(path).ok_or_else(|| Error::Unusable {
        message: format!("`{name}` is no file of examples that can be told by its name"),
        hint: "its name should end in .yaml, .json, .jsonl or .csv".into(),
    })?;
    let refused = |error: std::io::Error| Error::Unusable {
        message: format!("`{name}` cannot be read: {error}"),
        hint: "check the path and its permissions".into(),
    };
    if fs::metadata(path).map_err(refused)?.len() > MOST_BYTES {
        return Err(Error::Unusable {
            message: format!("`{name}` is larger than {} MB", MOST_BYTES >> 20),
            hint: "split it".into(),
        });
    }
    let mut bytes = Vec::new();
    // The limit again: what is no plain file has no length before it is read.
    File::open(path).map_err(refused)?.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(refused)?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line =
            1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Error::Unusable {
            message: format!("`{name}`, line {line}: this is not text in UTF-8"),
            hint: "save the file as UTF-8".into(),
        }
    })?;
    read(&text, form, &name, database, dialect)
}

/// Reads the text of a file, which is called `name` in messages.
pub fn read(text: &str, form: Form, name: &str, database: &str, dialect: &str) -> Result<Vec<Example>, Error> {
    let text = text.trim_start_matches('\u{feff}');
    let wrong = |place: String, said: &str| Error::Unusable {
        message: format!("`{name}`{place}: {said}"),
        hint: "each example needs `question` and `expected_sql` (or `sql`, or `query`); nothing was kept".into(),
    };
    let entries: Vec<(String, Entry)> = match form {
        Form::Yaml => yaml(text).map_err(|error| {
            let place = error.location().map_or(String::new(), |place| format!(", line {}", place.line()));
            let words = error.without_snippet().to_string();
            wrong(place, words.lines().next().unwrap_or_default())
        })?,
        Form::Json => {
            let list = if text.trim_start().starts_with('{') {
                serde_json::from_str::<Under<Entry>>(text).map(|under| under.examples)
            } else {
                serde_json::from_str(text)
            };
            let list = list.map_err(|error| wrong(format!(", line {}", error.line()), &error.to_string()))?;
            list.into_iter().zip(1..).map(|(entry, at)| (format!(", example {at}"), entry)).collect()
        }
        Form::JsonLines => {
            let mut all = Vec::new();
            for (line, at) in text.lines().zip(1..) {
                if !line.trim().is_empty() {
                    let place = format!(", line {at}");
                    match serde_json::from_str(line) {
                        Ok(entry) => all.push((place, entry)),
                        Err(error) => return Err(wrong(place, &error.to_string())),
                    }
                }
            }
            all
        }
        Form::Csv => csv::records(text)
            .and_then(|records| table(&records))
            .map_err(|(line, said)| wrong(format!(", line {line}"), &said))?,
    };
    entries
        .into_iter()
        .map(|(place, entry)| example(entry, database, dialect).map_err(|said| wrong(place, &said)))
        .collect()
}

fn yaml(text: &str) -> Result<Vec<(String, Entry)>, serde_saphyr::Error> {
    let first = text.lines().map(str::trim).find(|line| !(line.is_empty() || line.starts_with('#') || *line == "---"));
    let Some(first) = first else { return Ok(Vec::new()) };
    // The limits of the reader are made for settings; a file of examples is as long as it is.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_total_scalar_bytes: MOST_BYTES as usize,
        },
    };
    let list: Vec<Spanned<Entry>> = if first.starts_with(['-', '[']) {
        serde_saphyr::from_str_with_options(text, options)?
    } else {
        serde_saphyr::from_str_with_options::<Under<Spanned<Entry>>>(text, options)?.examples
    };
    Ok(list.into_iter().map(|entry| (format!(", line {}", entry.referenced.line()), entry.value)).collect())
}

fn table(records: &[csv::Record]) -> Result<Vec<(String, Entry)>, (usize, String)> {
    let Some((head, rows)) = records.split_first() else { return Ok(Vec::new()) };
    let names: Vec<String> = head.fields.iter().map(|field| field.trim().to_lowercase()).collect();
    if !names.iter().any(|name| name == "question") {
        return Err((head.line, "the first line names no column `question`".into()));
    }
    let mut all = Vec::new();
    for row in rows {
        if row.fields.len() != names.len() {
            let said = format!("{} fields, where the first line names {}", row.fields.len(), names.len());
            return Err((row.line, said));
        }
        let field = |name: &str| {
            let at = names.iter().position(|known| known == name)?;
            Some(row.fields[at].clone()).filter(|text| !text.trim().is_empty())
        };
        let entry = Entry {
            question: field("question"),
            expected_sql: field("expected_sql"),
            sql: field("sql"),
            query: field("query"),
            database: field("database"),
            db_id: field("db_id"),
            dialect: field("dialect"),
            metric: field("metric"),
            ..Entry::default()
        };
        all.push((format!(", line {}", row.line), entry));
    }
    Ok(all)
}

fn example(entry: Entry, database: &str, dialect: &str) -> Result<Example, String> {
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let question = given(entry.question).ok_or("there is no `question`")?;
    let queries: Vec<String> = [entry.expected_sql, entry.sql, entry.query].into_iter().filter_map(given).collect();
    let sql = match queries.as_slice() {
        [] => return Err("there is no `expected_sql`, `sql` or `query`".into()),
        [sql] => sql,
        [first, others @ ..] if others.iter().all(|other| other.trim() == first.trim()) => first,
        _ => return Err("there are two different queries".into()),
    };
    for (what, text, most) in [("question", &question, MOST_QUESTION), ("query", sql, MOST_SQL)] {
        if text.len() > most {
            return Err(format!("the {what} is longer than {most} bytes"));
        }
        if text.contains('\0') {
            return Err(format!("the {what} holds a zero byte"));
        }
    }
    let database = given(entry.database).or_else(|| given(entry.db_id)).unwrap_or_else(|| database.to_string());
    let dialect = given(entry.dialect).unwrap_or_else(|| dialect.to_string());
    let plain = Example::new(&question, sql, database.trim(), dialect.trim());
    Ok(Example {
        metric: given(entry.metric).map(|metric| metric.trim().to_string()),
        provenance: entry.provenance.unwrap_or(plain.provenance),
        standing: entry.standing.unwrap_or(plain.standing),
        uses: entry.uses.unwrap_or(0),
        helped: entry.helped.unwrap_or(0),
        hurt: entry.hurt.unwrap_or(0),
        added: entry.added.unwrap_or(plain.added),
        ..plain
    })
}

/// An example as it is written.
#[derive(Serialize)]
struct Written<'e> {
    question: &'e str,
    expected_sql: &'e str,
    #[serde(skip_serializing_if = "str::is_empty")]
    database: &'e str,
    #[serde(skip_serializing_if = "str::is_empty")]
    dialect: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    metric: Option<&'e str>,
    provenance: Provenance,
    standing: Standing,
    uses: u32,
    helped: u32,
    hurt: u32,
    added: u64,
}

/// The text of a file with these examples, with all that is known of them; CSV holds the pairs alone.
pub fn export(examples: &[Example], form: Form) -> Result<String, Error> {
    let written: Vec<Written<'_>> = examples
        .iter()
        .map(|example| Written {
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
    let refused = |said: String| Error::Unusable {
        message: format!("the examples cannot be written: {said}"),
        hint: "try another form".into(),
    };
    match form {
        Form::Yaml if written.is_empty() => Ok("[]\n".to_string()),
        Form::Yaml => serde_saphyr::to_string(&written).map_err(|error| refused(error.to_string())),
        Form::Json => serde_json::to_string_pretty(&written).map_err(|error| refused(error.to_string())),
        Form::JsonLines => {
            let lines: Result<Vec<String>, _> = written.iter().map(serde_json::to_string).collect();
            let lines = lines.map_err(|error| refused(error.to_string()))?;
            Ok(lines.iter().map(|line| format!("{line}\n")).collect())
        }
        Form::Csv => {
            let mut text = "question,expected_sql,database,dialect,metric\n".to_string();
            for one in &written {
                let fields =
                    [one.question, one.expected_sql, one.database, one.dialect, one.metric.unwrap_or_default()];
                text += &csv::line(&fields);
            }
            Ok(text)
        }
    }
}

#[cfg(test)]
mod tests;
