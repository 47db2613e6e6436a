//! JSON files: one object per line, concatenated objects, or an array of objects.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::table_source::{MAX_COLUMNS, RawValue, RowCallback, TableSource, too_many_columns, unreadable_file};
use super::type_inference::{InferredType, infer_text};
use crate::Error;

/// Maximum length of a line.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// Maximum size of a file that is read into memory as a whole.
const MAX_ARRAY_BYTES: u64 = 128 << 20;

type Object = Map<String, Value>;

pub(super) struct JsonSource {
    path: PathBuf,
    names: Vec<String>,
    /// Objects of an array, or `None` if lines are read from the file each time.
    objects: Option<Vec<Object>>,
}

/// Opens a file with one object per line.
pub(super) fn open_lines(path: &Path) -> Result<Vec<Box<dyn TableSource>>, Error> {
    let mut names = ColumnNames::default();
    for_each_line(path, &mut |object| names.add_keys_of(path, &object))?;
    Ok(vec![Box::new(JsonSource { path: path.to_path_buf(), names: names.order, objects: None })])
}

/// Opens a file with an array of objects, or with concatenated objects.
pub(super) fn open(path: &Path) -> Result<Vec<Box<dyn TableSource>>, Error> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| unreadable_file(path, &error))?;
    file.take(MAX_ARRAY_BYTES + 1).read_to_string(&mut text).map_err(|error| unreadable_file(path, &error))?;
    if text.len() as u64 > MAX_ARRAY_BYTES {
        return Err(unreadable_file(path, &"it is too large; write one object in each line, and name it .jsonl"));
    }
    let text = text.trim_start_matches('\u{feff}');
    let wrong = |error: serde_json::Error| unreadable_file(path, &error);
    let listed: Vec<Object> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(wrong)?
    } else {
        serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map_err(wrong)?
    };
    let mut names = ColumnNames::default();
    listed.iter().try_for_each(|object| names.add_keys_of(path, object))?;
    Ok(vec![Box::new(JsonSource { path: path.to_path_buf(), names: names.order, objects: Some(listed) })])
}

/// Column names in order of first occurrence.
#[derive(Default)]
struct ColumnNames {
    order: Vec<String>,
    seen: HashMap<String, usize>,
}

impl ColumnNames {
    fn add_keys_of(&mut self, path: &Path, object: &Object) -> Result<(), Error> {
        for name in object.keys() {
            if !self.seen.contains_key(name) {
                self.seen.insert(name.clone(), self.order.len());
                self.order.push(name.clone());
            }
        }
        if self.order.len() > MAX_COLUMNS { Err(too_many_columns(path)) } else { Ok(()) }
    }
}

fn for_each_line(path: &Path, each: &mut dyn FnMut(Object) -> Result<(), Error>) -> Result<(), Error> {
    let file = File::open(path).map_err(|error| unreadable_file(path, &error))?;
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut reader).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| unreadable_file(path, &error))? == 0 {
            break;
        }
        if line.len() as u64 > MAX_LINE_BYTES {
            return Err(unreadable_file(path, &format!("line {number} is too long")));
        }
        let text = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object =
            serde_json::from_slice(text).map_err(|error| unreadable_file(path, &format!("line {number}: {error}")))?;
        each(object)?;
    }
    Ok(())
}

impl TableSource for JsonSource {
    fn name(&self) -> Option<&str> {
        None
    }

    fn column_names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn for_each_row(&mut self, each: RowCallback<'_>) -> Result<(), Error> {
        let names = &self.names;
        let mut one = |object: &Object| {
            let row: Vec<RawValue<'_>> =
                names.iter().map(|name| object.get(name).map_or(RawValue::Null, to_raw)).collect();
            each(&row)
        };
        match &self.objects {
            Some(listed) => listed.iter().try_for_each(one),
            None => for_each_line(&self.path, &mut |object| one(&object)),
        }
    }
}

fn to_raw(value: &Value) -> RawValue<'_> {
    match value {
        Value::Null => RawValue::Null,
        Value::Bool(truth) => RawValue::Boolean(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => RawValue::Integer(whole),
            (None, Some(float)) if !number.is_u64() => RawValue::Number(float),
            _ => RawValue::Text(Cow::Owned(number.to_string())),
        },
        Value::String(text) => match infer_text(text) {
            InferredType::Date => RawValue::Date(text.clone()),
            InferredType::Timestamp => RawValue::Timestamp(text.clone()),
            _ => RawValue::Text(Cow::Borrowed(text)),
        },
        Value::Array(_) | Value::Object(_) => RawValue::Text(Cow::Owned(value.to_string())),
    }
}
