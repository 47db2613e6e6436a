//! Objects of JSON: one in each line, one behind the other, or in a list.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::kinds::{Kind, of_text};
use super::sheet::{Each, MOST_COLUMNS, Raw, Sheet, broken, too_wide};
use crate::Error;

/// A line that is longer than this is something else.
const LONGEST_LINE: u64 = 64 << 20;
/// A list is read into memory as a whole, up to this size.
const MOST_LISTED: u64 = 128 << 20;

type Object = Map<String, Value>;

pub(super) struct Objects {
    path: PathBuf,
    names: Vec<String>,
    /// What was in a list; nothing if each line is read anew.
    listed: Option<Vec<Object>>,
}

/// Opens a file with an object in each line.
pub(super) fn open_lines(path: &Path) -> Result<Vec<Box<dyn Sheet>>, Error> {
    let mut names = Names::default();
    each_line(path, &mut |object| names.note(path, &object))?;
    Ok(vec![Box::new(Objects { path: path.to_path_buf(), names: names.order, listed: None })])
}

/// Opens a file with a list of objects, or with objects one behind the other.
pub(super) fn open(path: &Path) -> Result<Vec<Box<dyn Sheet>>, Error> {
    let mut text = String::new();
    let file = File::open(path).map_err(|error| broken(path, &error))?;
    file.take(MOST_LISTED + 1).read_to_string(&mut text).map_err(|error| broken(path, &error))?;
    if text.len() as u64 > MOST_LISTED {
        return Err(broken(path, &"it is too large; write one object in each line, and name it .jsonl"));
    }
    let text = text.trim_start_matches('\u{feff}');
    let wrong = |error: serde_json::Error| broken(path, &error);
    let listed: Vec<Object> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text).map_err(wrong)?
    } else {
        serde_json::Deserializer::from_str(text).into_iter().collect::<Result<_, _>>().map_err(wrong)?
    };
    let mut names = Names::default();
    listed.iter().try_for_each(|object| names.note(path, object))?;
    Ok(vec![Box::new(Objects { path: path.to_path_buf(), names: names.order, listed: Some(listed) })])
}

/// Names in the order in which they come up.
#[derive(Default)]
struct Names {
    order: Vec<String>,
    seen: HashMap<String, usize>,
}

impl Names {
    fn note(&mut self, path: &Path, object: &Object) -> Result<(), Error> {
        for name in object.keys() {
            if !self.seen.contains_key(name) {
                self.seen.insert(name.clone(), self.order.len());
                self.order.push(name.clone());
            }
        }
        if self.order.len() > MOST_COLUMNS { Err(too_wide(path)) } else { Ok(()) }
    }
}

fn each_line(path: &Path, each: &mut dyn FnMut(Object) -> Result<(), Error>) -> Result<(), Error> {
    let file = File::open(path).map_err(|error| broken(path, &error))?;
    let mut reader = BufReader::with_capacity(256 << 10, file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let read = (&mut reader).take(LONGEST_LINE + 1).read_until(b'\n', &mut line);
        if read.map_err(|error| broken(path, &error))? == 0 {
            break;
        }
        if line.len() as u64 > LONGEST_LINE {
            return Err(broken(path, &format!("line {number} is too long")));
        }
        let text = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let object = serde_json::from_slice(text).map_err(|error| broken(path, &format!("line {number}: {error}")))?;
        each(object)?;
    }
    Ok(())
}

impl Sheet for Objects {
    fn name(&self) -> Option<&str> {
        None
    }

    fn columns(&self) -> Vec<String> {
        self.names.clone()
    }

    fn rows(&mut self, each: Each<'_>) -> Result<(), Error> {
        let names = &self.names;
        let mut one = |object: &Object| {
            let row: Vec<Raw<'_>> = names.iter().map(|name| object.get(name).map_or(Raw::Nothing, raw)).collect();
            each(&row)
        };
        match &self.listed {
            Some(listed) => listed.iter().try_for_each(one),
            None => each_line(&self.path, &mut |object| one(&object)),
        }
    }
}

fn raw(value: &Value) -> Raw<'_> {
    match value {
        Value::Null => Raw::Nothing,
        Value::Bool(truth) => Raw::Boolean(*truth),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Raw::Integer(whole),
            (None, Some(float)) if !number.is_u64() => Raw::Number(float),
            _ => Raw::Text(Cow::Owned(number.to_string())),
        },
        Value::String(text) => match of_text(text) {
            Kind::Date => Raw::Date(text.clone()),
            Kind::Timestamp => Raw::Timestamp(text.clone()),
            _ => Raw::Text(Cow::Borrowed(text)),
        },
        Value::Array(_) | Value::Object(_) => Raw::Text(Cow::Owned(value.to_string())),
    }
}
